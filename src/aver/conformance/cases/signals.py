"""Scripts that die of a signal that they send to themselves."""

from __future__ import annotations

from aver.conformance.model import Case, script

SIGNALS: tuple[tuple[int, str, str], ...] = (
    (1, "HUP", "Hangup"),
    (2, "INT", "Interrupt"),
    (3, "QUIT", "Quit"),
    (4, "ILL", "Illegal_instruction"),
    (5, "TRAP", "Trace/breakpoint_trap"),
    (6, "ABRT", "Aborted"),
    (7, "BUS", "Bus_error"),
    (8, "FPE", "Floating_point_exception"),
    (9, "KILL", "Killed"),
    (10, "USR1", "User_defined_signal_1"),
    (11, "SEGV", "Segmentation_fault"),
    (12, "USR2", "User_defined_signal_2"),
    (13, "PIPE", "Broken_pipe"),
    (14, "ALRM", "Alarm_clock"),
    (15, "TERM", "Terminated"),
    (16, "STKFLT", "Stack_fault"),
    (24, "XCPU", "CPU_time_limit_exceeded"),
    (25, "XFSZ", "File_size_limit_exceeded"),
    (26, "VTALRM", "Virtual_timer_expired"),
    (27, "PROF", "Profiling_timer_expired"),
    (29, "IO", "I/O_possible"),
    (30, "PWR", "Power_failure"),
    (31, "SYS", "Bad_system_call"),
    (34, "RTMIN", "Real-time_signal_0"),
    (64, "RTMAX", "Real-time_signal_30"),
)


def dies_of(number: int, name: str, words: str) -> Case:
    exit_code_of_sacct = "1:0 => FAILED 0:1 (whole-signals)" if number == 1 else f"0:{number}"
    return script(
        f"signals/{name.lower()}",
        f"The script dies of SIG{name}",
        f"#!/bin/sh\nkill -{number} $$\nexit 0",
        f"""
            scontrol FAILED 0:{number} 0:0 JobLaunchFailure
            ... => FAILED 0:{number} 0:0 RaisedSignal:{number}({words}) (raised-signal)
            sacct FAILED {exit_code_of_sacct}
            batch CANCELLED 0:{number}
        """,
    )


CASES = tuple(dies_of(*entry) for entry in SIGNALS)

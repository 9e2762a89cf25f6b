"""Signals: numbers, names and Slurm's texts."""

from __future__ import annotations

import signal as system

import pytest

from aver.model.signals import HIGHEST, parse_signal, signal_name, signal_words, slurm_text

OUTCOMES_3 = {
    1: "Hangup",
    2: "Interrupt",
    3: "Quit",
    4: "Illegal_instruction",
    6: "Aborted",
    8: "Floating_point_exception",
    9: "Killed",
    10: "User_defined_signal_1",
    11: "Segmentation_fault",
    12: "User_defined_signal_2",
    13: "Broken_pipe",
    14: "Alarm_clock",
    15: "Terminated",
    24: "CPU_time_limit_exceeded",
    34: "Real-time_signal_0",
    64: "Real-time_signal_30",
}


@pytest.mark.parametrize(("number", "text"), OUTCOMES_3.items())
def test_texts_of_outcomes_3(number: int, text: str) -> None:
    """The texts are those that OUTCOMES 3 lists."""
    assert slurm_text(number) == text


@pytest.mark.parametrize("number", range(1, HIGHEST + 1))
def test_names_and_texts_lead_back_to_the_number(number: int) -> None:
    """Every signal is found again by its name, short name and number."""
    name = signal_name(number)
    assert parse_signal(name) == parse_signal(name.removeprefix("SIG")) == parse_signal(str(number)) == number
    assert parse_signal(name.lower()) == number
    assert " " not in slurm_text(number)


def test_names_are_those_of_this_system() -> None:
    """Where Python on Linux knows a name, ours is the same."""
    for known in system.Signals:
        if known.value <= 31:
            assert signal_name(known.value) == known.name
            assert parse_signal(known.name) == known.value
            assert signal_words(known.value) == system.strsignal(known.value)


def test_real_time_names() -> None:
    """RTMIN+n and RTMAX-n count from 34 and 64; aliases are read."""
    assert parse_signal("RTMIN") == parse_signal("RTMAX-30") == 34
    assert parse_signal("SIGRTMAX") == parse_signal("RTMIN+30") == 64
    assert parse_signal("IOT") == 6


@pytest.mark.parametrize(
    "text", ["", "SIG", "0", "65", "-9", "USR3", "SIGSIGINT", "٩", "9.0", "1e1", "RTMIN+31", "009"]
)
def test_what_is_no_signal(text: str) -> None:
    """Anything else is refused with a sentence that shows what is valid."""
    with pytest.raises(ValueError, match="is not a signal: give a name such as USR1"):
        parse_signal(text)


@pytest.mark.parametrize("number", [0, 65, 125, -1])
def test_numbers_out_of_range(number: int) -> None:
    """Slurm's 0:53 aside, there is no signal 0, 65 or 125."""
    for say in (signal_name, signal_words, slurm_text):
        with pytest.raises(ValueError, match="is not a signal"):
            say(number)

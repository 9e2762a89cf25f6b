"""Where Aver intends to say something else than Slurm 22.05, and why. Each has a name that the cases' tables use."""

from __future__ import annotations

DIFFERENCES: dict[str, str] = {
    "whole-codes": "sacct of Slurm up to 25.05 takes 128 off an exit code of 128 and more. "
    "Aver keeps it whole, as 25.11 does.",
    "raised-signal": "Slurm 22.05 says JobLaunchFailure of a job that died of a signal, though it was launched. "
    "Aver says RaisedSignal:N(Name), as 25.11 does.",
    "whole-signals": "sacct of Slurm 22.05 prints a job that SIGHUP ended, and one past its deadline, as exit code 1. "
    "Aver prints 0:1, as scontrol does.",
    "sacct-as-scontrol": "sacct of Slurm prints 0:0 in the job's row for TIMEOUT, CANCELLED and PREEMPTED. "
    "Aver's sacct prints the exit that scontrol prints.",
    "lost-task": "Slurm's step has the exit of the last task of each node, so that other tasks' failures are lost. "
    "Aver's step has the highest of all its tasks, and srun exits with the same.",
    "killed-for-another": "With --kill-on-bad-exit Slurm's step has the TERM that the other tasks got; the failure is "
    "lost. Aver leaves out tasks that were ended because another one failed. srun exits with 143, as Slurm's does.",
    "ended-with-its-job": "Slurm judges a step that its job's time limit ended by its exit alone: trapped, TERM leaves "
    "no trace. Aver's step is CANCELLED with the exit that it had, as its job is TIMEOUT with its own.",
    "forgotten-need": "Slurm runs a job whose afterok need has failed once slurmctld has forgotten the need "
    "(MinJobAge). Aver never forgets an outcome.",
    "reason-of-the-moment": "Slurm cancels a job whose need has failed before when it is submitted, and then still "
    "looks for nodes: if these are busy, the reason becomes Resources. Aver says why it was cancelled.",
    "message-of-the-moment": "A step that is warned may end before slurmstepd has said that it is cancelled: Slurm's "
    "srun then lacks that line. Aver's always has it.",
    "unknown-need": "Slurm 22.05 takes an id that never was for one that it forgot, and accepts a dependency on it. "
    "Aver forgets none, so that it can only be a mistake: Job dependency problem.",
    "never-launched": "Slurm's srun creates the step, fails to open its files and cancels the step: derived 0:126, "
    "which is neither a code nor a signal. In Aver a step that was never launched is no step.",
    "launch-failure": "Slurm 22.05 says NonZeroExitCode of a script whose interpreter can't be started. It never ran: "
    "Aver says JobLaunchFailure, with the errno as Slurm has it.",
    "missing-folder": "Slurm runs a job or a step whose folder is not there in /tmp, where it reads and writes other "
    "files than it was meant to, and may well succeed. In Aver it could not start: JobLaunchFailure.",
    "own-output": "Slurm's daemon writes into the job's output file that it was cancelled, out of time or out of "
    "memory. Aver writes nothing there that the job did not write; the verdict and its reason say it.",
    "no-meaning-here": "Slurm refuses a partition, an account, a quality of service, a feature, a licence or a node "
    "that it does not have. On one machine these mean nothing: Aver accepts them, and says so once.",
}

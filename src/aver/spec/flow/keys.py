"""The keys of a flow and of a job, each with what it takes, in words and as JSON Schema.

The one list that the reader, the schema and the page `docs/en/reference/flow-format.md` follow; tests compare them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Schema = dict[str, Any]


class Key(NamedTuple):
    schema: Schema
    words: str
    in_defaults: bool = True


TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": ["string", "number", "boolean"]}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
AMOUNT: Schema = {"type": ["string", "number"]}
COUNT: Schema = {"type": "integer", "minimum": 1}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


JOB_KEYS: dict[str, Key] = {
    "run": Key({"anyOf": [TEXT, {"type": "array", "items": NAME}]}, "what to run", False),
    "needs": Key(_ref("needs"), "jobs that must end first, and how", False),
    "if": Key({"enum": ["success", "always", "failure"]}, "when to run, once the needs are settled", False),
    "matrix": Key(_ref("matrix"), "one member for each combination of values", False),
    "cpus": Key({"type": "number", "minimum": 0}, "cpus of each attempt; 0.25 is a quarter, 0 takes none"),
    "gpus": Key({"type": "integer", "minimum": 0}, "gpus of each attempt"),
    "mem": Key(AMOUNT, "memory limit; a bare number is MiB"),
    "time": Key(AMOUNT, "time limit; a bare number is minutes"),
    "signal": Key(TEXT, "warning signal before the limit, [B:]SIG[@lead]"),
    "kill_wait": Key(AMOUNT, "time between TERM and KILL; a bare number is seconds"),
    "checkpoint": Key(_ref("checkpoint"), "ending well after the warning means: to be continued"),
    "retry": Key(_ref("retry"), "further attempts after a failure"),
    "oom": Key({"enum": ["fail", "warn"]}, "what an out-of-memory kill under a script that exits 0 means"),
    "background": Key(FLAG, "the foreground does not wait for it", False),
    "generates": Key(TEXT, "a file of further jobs that the job writes", False),
    "inputs": Key(_ref("inputs"), "files or globs that must be there when the job starts", False),
    "outputs": Key(_ref("outputs"), "files or globs that must be there when the job has completed", False),
    "env": Key({"type": "object", "additionalProperties": NAME}, "environment variables"),
    "env_file": Key(TEXTS, "files with NAME=VALUE lines, read at submission; env counts before them"),
    "venv": Key(TEXT, "folder of a Python venv that the job runs in"),
    "conda": Key(TEXT, "name or folder of a conda environment that the job runs in"),
    "container": Key(_ref("container"), "image that the job runs in, and the engine that runs it"),
    "module": Key(TEXTS, "environment modules that are loaded before the job"),
    "shell": Key(TEXTS, "the shell for the text of run"),
    "folder": Key(TEXT, "working folder, relative to the run's"),
    "stdin": Key(TEXT, "file for standard input"),
    "output": Key(TEXT, "file for standard output, with patterns"),
    "error": Key(TEXT, "file for standard error, with patterns"),
    "append": Key(FLAG, "append to the output files instead of truncating them"),
    "hold": Key(FLAG, "wait for aver release"),
    "begin": Key(TEXT, "not before this time"),
    "deadline": Key(TEXT, "not after this time"),
    "priority": Key({"type": "integer"}, "higher goes first"),
    "comment": Key(TEXT, "free text"),
    "pools": Key(_ref("pools"), "what it takes of pools that all runs share"),
    "tags": Key(TEXTS, "words by which --tag selects it"),
    "engine": Key(_ref("engine"), "where to run: local (this machine) or slurm"),
    "host": Key(TEXT, "on Slurm: the host that has Slurm's commands, reached through ssh, such as me@login"),
    "partition": Key(TEXT, "on Slurm: the partition"),
    "account": Key(TEXT, "on Slurm: the account"),
    "qos": Key(TEXT, "on Slurm: the quality of service"),
    "nodes": Key(AMOUNT, "on Slurm: how many nodes, 2 or 1-4"),
    "tasks": Key(COUNT, "how many tasks its steps may have at once; cpus is then for each of them"),
    "gres": Key(TEXT, "on Slurm: generic resources, such as gpu:a100:2"),
    "constraint": Key(TEXT, "on Slurm: features that its nodes must have"),
    "slurm_options": Key(TEXTS, "on Slurm: further options of sbatch"),
    "srun_termination_signal": Key(TEXT, "in an allocation: warning signal before the step's limit, SIG[@lead]"),
    "requeue": Key(
        {"enum": ["aver", "slurm", True, False]},
        "whether it is tried again when it was lost with its machine; on Slurm also who does that",
    ),
}


DEFAULTS_KEYS = {name: key for name, key in JOB_KEYS.items() if key.in_defaults}

FLOW_KEYS: dict[str, Key] = {
    "name": Key(NAME, "the flow's name; the file's name without it"),
    "defaults": Key(_ref("defaults"), "values for every job that does not say otherwise"),
    "jobs": Key(_ref("jobs"), "the jobs by their names"),
    "include": Key(TEXTS, "further files with jobs of this flow"),
    "axes": Key(_ref("axes"), "lists of values that matrices may name"),
    "params": Key({"type": "object", "additionalProperties": NAME}, "values by name, with defaults, for --set"),
    "max_parallel": Key(COUNT, "how many jobs of the run may be active at once"),
    "retry_budget": Key({"type": "integer", "minimum": 0}, "how many retries the whole run may use"),
    "notify": Key(_ref("notify"), "who is notified of verdicts: a command, the desktop, mail, Slack or a webhook"),
    "engine": Key(_ref("engine"), "where to run: local (this machine) or slurm"),
    "host": Key(TEXT, "on Slurm: the host that has Slurm's commands, reached through ssh, such as me@login"),
    "sync": Key(TEXTS, "folders that are brought to the host before its first job, and back when a job ends"),
    "sync_exclude": Key(TEXTS, "what in these folders stays where it is, as rsync's --exclude has it"),
}

FOREIGN_JOB_KEYS = {
    "command": "run",
    "cmd": "run",
    "script": "run",
    "steps": "run",
    "exec": "run",
    "depends-on": "needs",
    "depends": "needs",
    "dependencies": "needs",
    "after": "needs",
    "when": "if",
    "strategy": "matrix",
    "array": "matrix",
    "cpus-per-task": "cpus",
    "cores": "cpus",
    "threads": "cpus",
    "memory": "mem",
    "ram": "mem",
    "timeout": "time",
    "timeout-minutes": "time",
    "time-limit": "time",
    "walltime": "time",
    "retries": "retry",
    "environment": "env",
    "cwd": "folder",
    "chdir": "folder",
    "workdir": "folder",
    "working-directory": "folder",
    "stdout": "output",
    "stderr": "error",
    "input": "stdin",
    "open-mode": "append",
}
FOREIGN_FLOW_KEYS = {
    "concurrency": "max_parallel",
    "max-jobs": "max_parallel",
    "env": "defaults",
    "tasks": "jobs",
    "parameters": "params",
}

"""The commands of `aver` in groups: each group is a package here, each command a module of it.

Read without importing any command, so that `aver --help` is quick.
"""

GROUPS = {  # package: (heading of the help, {command: its help in one sentence})
    "run": (
        "Run",
        {
            "run": "Run a script, a flow or a command, show its output and exit as it ended.",
            "submit": "Submit a script, a flow or a command, and print its number.",
            "map": "Run a command for each input, with a verdict for each.",
            "schedule": "Submit a flow or a script at fixed times, or list and remove schedules.",
            "check": "Check a flow or a script without running it.",
            "graph": "Draw a flow as a text tree, DOT or SVG.",
            "watch": "Wait until jobs or runs are settled.",
        },
    ),
    "look": (
        "Look",
        {
            "top": "Watch all jobs live, and act on them with keys.",
            "jobs": "List jobs.",
            "runs": "List runs.",
            "show": "Show everything known about a job, a step or a run.",
            "log": "Show a job's output.",
            "why": "Explain what happened to a job or a run, with the evidence and the next commands.",
            "failures": "Sum up why jobs of a run failed, within a budget of bytes.",
            "events": "Print changes of jobs and runs as JSON lines, from any point on.",
            "timeline": "Show every state change of a job with its evidence.",
            "results": "Show how each job and attempt of a run ended, failed ones first.",
            "usage": "Compare requested and used resources; --correct writes better requests into the flow.",
            "report": "Write a report of a run as one HTML page.",
            "export": "Export a run as JUnit XML, JSON lines or CSV.",
            "status": "Show whether the coordinator runs, and its queue.",
        },
    ),
    "act": (
        "Act",
        {
            "cancel": "Cancel jobs or runs, or send them a signal.",
            "hold": "Hold pending jobs.",
            "release": "Release held jobs.",
            "suspend": "Suspend running jobs.",
            "resume": "Resume suspended jobs.",
            "edit": "Change what pending jobs ask for.",
            "retry": "Rerun failed, lost and skipped jobs of a run.",
            "reinit": "Rerun jobs whose inputs, command or environment changed.",
            "recover": "Give jobs that ran out of memory or time more of it, and rerun them.",
            "accept": "Vouch for a job whose end nobody saw.",
            "pool": "Set and list pools that all runs share, such as licences.",
            "allocate": "Get more Slurm allocations for a run that was submitted with --allocation.",
        },
    ),
    "cluster": (
        "Slurm",
        {
            "shell": "Start a shell, or a command after --, with Slurm's commands on PATH.",
            "env": "Print the line that puts Slurm's commands on PATH.",
            "slurm": "Show the cluster's own records of a run: `aver slurm sacct RUN`.",
            "task": "Run one task of a job under its witness; for use with mpirun.",
            "connect": "Open the ssh connection to a cluster, and answer its password prompt.",
            "conformance": "Compare Slurm's commands with recorded answers of real Slurms.",
        },
    ),
    "upkeep": (
        "Upkeep",
        {
            "doctor": "Show what this machine can and can't enforce, and why.",
            "config": "Show every setting with its value, its default and where it is set, or change one.",
            "service": "Start the coordinator at boot and after a crash, so that pending jobs go on by themselves.",
            "prune": "Cut the logs of old runs; their verdicts stay.",
            "stop": "Stop the coordinator; jobs keep running.",
            "agent": "Print a short guide for coding agents, or install it as a skill in this folder.",
            "mcp": "Serve tools for agents over the Model Context Protocol, on stdin and stdout.",
            "completion": "Print the shell's completion script.",
        },
    ),
}

SYNONYMS = {  # what people type who come from other tools: the command and its first options
    "ls": ("jobs",),
    "list": ("jobs",),
    "queue": ("jobs",),
    "ps": ("jobs", "--running"),
    "logs": ("log",),
    "cat": ("log",),
    "tail": ("log", "-f"),
    "follow": ("log", "-f"),
    "info": ("show",),
    "describe": ("show",),
    "explain": ("why",),
    "kill": ("cancel",),
    "rm": ("cancel",),
    "remove": ("cancel",),
    "wait": ("watch",),
    "rerun": ("retry",),
    "restart": ("retry",),
    "pause": ("suspend",),
    "unpause": ("resume",),
    "continue": ("resume",),
    "add": ("submit",),
    "validate": ("check",),
}

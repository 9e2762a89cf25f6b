"""The commands of `aver` in groups: each group is a package here, each command a module of it.

Read without importing any command, so that `aver --help` is quick.
"""

GROUPS = {  # package: (heading of the help, {command: its help in one sentence})
    "run": (
        "Run",
        {
            "run": "Run a script, a flow or a command, show its output and exit as it ended.",
            "submit": "Submit in the background and print the number.",
            "check": "Show every mistake of a flow or a script; run nothing.",
            "graph": "Draw a flow as a text tree, DOT or SVG.",
            "watch": "Wait until jobs or runs are settled.",
        },
    ),
    "look": (
        "Look",
        {
            "jobs": "List jobs.",
            "runs": "List runs.",
            "show": "Show all facts of a job, a step or a run.",
            "log": "Show what a job wrote.",
            "why": "Say what happened to a job or a run, the evidence, and what to do next.",
            "timeline": "Show each transition of a job with its evidence.",
            "results": "Show how each job and attempt of a run ended, failed ones first.",
            "usage": "Show what was asked for and used; --correct writes better requests into the flow.",
            "report": "Write a run as one page for a browser, paper or a phone.",
            "export": "Write a run as JUnit XML, JSON lines or CSV.",
            "status": "Show the coordinator and what it has to do.",
        },
    ),
    "act": (
        "Act",
        {
            "cancel": "Cancel jobs or runs, or send them a signal.",
            "hold": "Hold pending jobs back.",
            "release": "Let held jobs go.",
            "suspend": "Stop running jobs for a while.",
            "resume": "Let suspended jobs go on.",
            "retry": "Run failed, lost and skipped jobs of a run again.",
            "reinit": "Run jobs again whose inputs, command or environment changed.",
            "recover": "Correct memory and time of what failed for them, and run again what can be mended.",
            "accept": "State as a person that a lost job succeeded.",
            "allocate": "Take more allocations of Slurm for a run that runs in them.",
        },
    ),
    "cluster": (
        "Slurm",
        {
            "shell": "Start a shell, or a command after --, with Slurm's commands on PATH.",
            "env": "Print the line that puts Slurm's commands on PATH.",
            "slurm": "Ask the cluster itself about a run: `aver slurm sacct RUN`.",
            "task": "Run one task of a job under its witness; for mpirun and the like.",
            "connect": "Open the ssh connection to a cluster's host; answers what it asks.",
            "conformance": "Compare Slurm's commands with the table of what Slurm prints.",
        },
    ),
    "upkeep": (
        "Upkeep",
        {
            "doctor": "Say what this machine can enforce, and what it can't and why.",
            "prune": "Cut the logs of old runs; their verdicts stay.",
            "stop": "Stop the coordinator; jobs go on.",
            "completion": "Print the shell's completion script.",
        },
    ),
}

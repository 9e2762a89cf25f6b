"""What sbatch refuses, and what it accepts to one's surprise: the exit status and the words, in their order."""

from __future__ import annotations

from aver.conformance.model import Command, Submit, case

OPTIONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "unknown-option",
        ("--no-such-option",),
        "exit 255: sbatch: unrecognized option '--no-such-option' / Try \"sbatch --help\" for more information",
    ),
    ("time-word", ("--time=soon",), "exit 255: sbatch: error: Invalid --time specification"),
    ("time-empty", ("--time=",), "exit 255: sbatch: error: Invalid --time specification"),
    ("time-colons", ("--time=1:2:3:4",), "exit 255: sbatch: error: Invalid --time specification"),
    ("time-dashes", ("--time=1-2-3",), "exit 255: sbatch: error: Invalid --time specification"),
    ("time-negative", ("--time=-5",), "exit 0: Submitted batch job {a}"),
    ("time-minutes-90", ("--time=1:90",), "exit 0: Submitted batch job {a}"),
    ("mem-word", ("--mem=lots",), "exit 255: sbatch: error: Invalid --mem specification"),
    ("mem-unit", ("--mem=10X",), "exit 255: sbatch: error: Invalid --mem specification"),
    ("mem-negative", ("--mem=-5",), "exit 255: sbatch: error: Invalid --mem specification"),
    (
        "mem-too-much",
        ("--mem=100T",),
        "exit 1: sbatch: error: Memory specification can not be satisfied / sbatch: error: Batch "
        "job submission failed: Requested node configuration is not available",
    ),
    (
        "array-word",
        ("--array=x",),
        "exit 1: sbatch: error: Batch job submission failed: Invalid job array specification",
    ),
    (
        "array-reversed",
        ("--array=5-1",),
        "exit 1: sbatch: error: Batch job submission failed: Invalid job array specification",
    ),
    (
        "array-huge",
        ("--array=1-1000000",),
        "exit 1: sbatch: error: Batch job submission failed: Invalid job array specification",
    ),
    (
        "array-negative",
        ("--array=-1",),
        "exit 1: sbatch: error: Batch job submission failed: Invalid job array specification",
    ),
    ("array-empty", ("--array=",), "exit 0: Submitted batch job {a}"),
    ("array-limit-0", ("--array=1-3%0",), "exit 0: Submitted batch job {a}"),
    (
        "array-step-0",
        ("--array=1-3:0",),
        "exit 1: sbatch: error: Batch job submission failed: Invalid job array specification",
    ),
    ("array-double", ("--array=1,1",), "exit 0: Submitted batch job {a}"),
    (
        "dependency-word",
        ("--dependency=whenever", "--kill-on-invalid-dep=yes"),
        "exit 1: sbatch: error: Batch job submission failed: Job dependency problem",
    ),
    (
        "dependency-unknown-kind",
        ("--dependency=afterwards:1", "--kill-on-invalid-dep=yes"),
        "exit 1: sbatch: error: Batch job submission failed: Job dependency problem",
    ),
    (
        "dependency-no-id",
        ("--dependency=afterok:", "--kill-on-invalid-dep=yes"),
        "exit 1: sbatch: error: Batch job submission failed: Job dependency problem",
    ),
    (
        "dependency-word-id",
        ("--dependency=afterok:abc", "--kill-on-invalid-dep=yes"),
        "exit 1: sbatch: error: Batch job submission failed: Job dependency problem",
    ),
    (
        "dependency-unknown-id",
        ("--dependency=afterok:99999999", "--kill-on-invalid-dep=yes"),
        "exit 0: Submitted batch job {a} => exit 1: sbatch: error: Batch job submission failed: "
        "Job dependency problem (unknown-need)",
    ),
    (
        "dependency-mixed",
        ("--dependency=afterok:1,afterok:2?afterok:3", "--kill-on-invalid-dep=yes"),
        "exit 0: Submitted batch job {a}",
    ),
    ("tasks-0", ("-n", "0"), 'exit 1: sbatch: error: Invalid numeric value "0" for --ntasks.'),
    ("tasks-word", ("-n", "many"), 'exit 1: sbatch: error: Invalid numeric value "many" for --ntasks.'),
    ("tasks-huge", ("-n", "100000"), "exit 0: Submitted batch job {a}"),
    ("cpus-word", ("-c", "many"), 'exit 1: sbatch: error: Invalid numeric value "many" for --cpus-per-task.'),
    ("nodes-word", ("-N", "many"), 'exit 255: sbatch: error: "many" is not a valid node count'),
    (
        "nodes-reversed",
        ("-N", "4-2"),
        "exit 255: sbatch: error: Maximum node count 2 is less than minimum node count 4",
    ),
    ("nodes-huge", ("-N", "1000"), "exit 0: Submitted batch job {a}"),
    (
        "nodelist-unknown",
        ("-w", "nosuchnode"),
        "exit 1: sbatch: error: Batch job submission failed: Invalid node name specified"
        " => exit 0: Submitted batch job {a} (no-meaning-here)",
    ),
    ("nodelist-bad", ("-w", "n[1-"), "exit 1: sbatch: error: Batch job submission failed: Invalid node name specified"),
    (
        "partition",
        ("-p", "nowhere"),
        "exit 1: sbatch: error: invalid partition specified: nowhere / sbatch: error: Batch job "
        "submission failed: Invalid partition name specified"
        " => exit 0: Submitted batch job {a} (no-meaning-here)",
    ),
    (
        "account",
        ("-A", "nobody"),
        "exit 1: sbatch: error: Batch job submission failed: Invalid account or "
        "account/partition combination specified"
        " => exit 0: Submitted batch job {a} (no-meaning-here)",
    ),
    (
        "qos",
        ("-q", "golden"),
        "exit 1: sbatch: error: Batch job submission failed: Invalid qos specification"
        " => exit 0: Submitted batch job {a} (no-meaning-here)",
    ),
    ("signal-word", ("--signal=NOSUCH@10",), "exit 255: sbatch: error: Invalid --signal specification"),
    ("signal-time", ("--signal=B:USR1@soon",), "exit 255: sbatch: error: Invalid --signal specification"),
    (
        "begin-word",
        ("--begin=whenever",),
        "exit 255: Invalid time specification (pos=0): whenever / sbatch: error: Invalid --begin specification",
    ),
    (
        "begin-past-format",
        ("--begin=2020-13-45",),
        "exit 255: Invalid time specification (pos=5): 2020-13-45 / sbatch: error: Invalid --begin specification",
    ),
    (
        "deadline-word",
        ("--deadline=whenever",),
        "exit 255: Invalid time specification (pos=0): whenever / sbatch: error: Invalid --deadline specification",
    ),
    (
        "deadline-past",
        ("--deadline=2020-01-01",),
        "exit 1: sbatch: error: Batch job submission failed: Requested time limit is invalid "
        "(missing or exceeds some limit)",
    ),
    ("gres", ("--gres=nosuch:1",), "exit 1: sbatch: error: Invalid generic resource (gres) specification"),
    ("open-mode", ("--open-mode=sideways",), "exit 255: sbatch: error: Invalid --open-mode specification"),
    (
        "kill-on-invalid-dep",
        ("--kill-on-invalid-dep=perhaps",),
        "exit 255: sbatch: error: Invalid --kill-on-invalid-dep specification",
    ),
    ("mail-type", ("--mail-type=WHENEVER",), "exit 255: sbatch: error: Invalid --mail-type specification"),
    (
        "constraint",
        ("-C", "nosuch"),
        "exit 1: sbatch: error: Batch job submission failed: Invalid feature specification"
        " => exit 0: Submitted batch job {a} (no-meaning-here)",
    ),
    (
        "license",
        ("-L", "nosuch:1"),
        "exit 1: sbatch: error: Batch job submission failed: Invalid license specification"
        " => exit 0: Submitted batch job {a} (no-meaning-here)",
    ),
    ("missing-value", ("--time",), "exit 255: sbatch: error: Invalid --time specification"),
)
"""A name, the options of `sbatch … script`, and the answer."""

SCRIPTS: tuple[tuple[str, str, Submit | Command, str], ...] = (
    (
        "no-first-line",
        "A script with no #! line",
        Submit("#!none\necho hello"),
        "exit 1: sbatch: error: This does not look like a batch script.  The first / sbatch: "
        "error: line must start with #! followed by the path to an interpreter. / sbatch: error: "
        "For instance: #!/bin/sh",
    ),
    ("empty", "An empty script", Submit(""), "exit 1: sbatch: error: Batch script contains only whitespace!"),
    (
        "dos",
        "A script with DOS line breaks",
        Submit("#!/bin/bash\r\ntrue\r\n"),
        "exit 1: sbatch: error: Batch script contains DOS line breaks (\\r\\n) / sbatch: error: "
        "instead of expected UNIX line breaks (\\n).",
    ),
    (
        "unknown-line",
        "A #SBATCH line with an option that sbatch does not know",
        Submit("#!/bin/bash\n#SBATCH --no-such-option=1\ntrue"),
        "exit 255: sbatch: unrecognized option '--no-such-option=1' / Try \"sbatch --help\" for more information",
    ),
    (
        "bad-line-time",
        "A #SBATCH line with a malformed time",
        Submit("#!/bin/bash\n#SBATCH --time=soon\ntrue"),
        "exit 255: sbatch: error: Invalid --time specification",
    ),
    (
        "no-file",
        "A script that is not there",
        Command(("sbatch", "/no/such/script"), row="sbatch"),
        "exit 1: sbatch: error: Unable to open file /no/such/script",
    ),
    (
        "folder",
        "A folder as a script",
        Command(("sbatch", "/tmp"), row="sbatch"),
        "exit 1: sbatch: error: Batch script is empty!",
    ),
    (
        "wrap-and-script",
        "--wrap and a script",
        Command(("sbatch", "--wrap=true", "/etc/passwd"), row="sbatch"),
        "exit 1: sbatch: error: Script arguments not permitted with --wrap option",
    ),
)
"""A name, what it shows, what is submitted, and the answer."""

CASES = (
    *(case(f"refusals/{name}", shows, act, expect=f"sbatch {answer}") for name, shows, act, answer in SCRIPTS),
    *(
        case(f"refusals/{name}", f"sbatch {' '.join(options)}", Submit("true", options), expect=f"sbatch {answer}")
        for name, options, answer in OPTIONS
    ),
)

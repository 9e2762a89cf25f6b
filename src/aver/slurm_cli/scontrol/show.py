"""The reading verbs of scontrol: `show`, `ping`, `write batch_script`, `version`. Nothing here changes a job.

Each returns the exit status, or raises Refusal with Slurm's words.
"""

from __future__ import annotations

import os
import shutil

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import CLUSTER, HIGHEST_INDEX, number_of_sluid
from aver.protocol import fast_client
from aver.protocol.place import home_folder, user_name
from aver.slurm_cli import texts
from aver.slurm_cli.facts import MIN_JOB_AGE_S, Book, JobFacts, gathered, node_name, remembered
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.settings import is_since, version_line
from aver.slurm_cli.texts import NULL, moment
from aver.spec.getopt import BadOption, Parsed, Table, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aver.slurm_cli.documents import Document, Form
    from aver.slurm_cli.machine import Node

INVALID_JOB = "slurm_load_jobs error: Invalid job id specified"
# the entities, each with the least number of letters that name it
ENTITIES = (
    ("aliases", 1), ("assoc_mgr", 2), ("bbstat", 2), ("burstbuffer", 2), ("config", 1),
    ("daemons", 1), ("dwstat", 2), ("federation", 3), ("frontend", 3), ("hostnames", 5), ("hostlist", 5),
    ("hostlistsorted", 9), ("jobs", 1), ("jobid", 1), ("licenses", 2), ("nodes", 1), ("partitions", 1),
    ("reservations", 1), ("slurmd", 2), ("steps", 2), ("topology", 1),
)  # fmt: skip
_OPTIONS = Table(
    flags="all:a details:d federation future:F help:h hide local oneliner:o quiet:Q sibling verbose:v version:V",
    values="clusters:M uid:u",
    maybe="json yaml",
)
NOT_SERVED = ("assoc_mgr", "bbstat", "burstbuffer", "dwstat", "federation", "frontend")

_INFO = 3  # the number of Slurm's level "info", the only one of the coordinator's log


def main(argv: Sequence[str]) -> int:
    return guarded("scontrol", _scontrol, argv)


def _scontrol(argv: Sequence[str]) -> int:
    try:
        parsed = parse(_OPTIONS, argv)
    except BadOption as error:
        raise Refusal(f'scontrol: {error}\nTry "scontrol --help" for more information') from None
    if parsed.has("version"):
        return version()
    verb, *words = parsed.operands or [""]
    try:
        if parsed.has("json") or parsed.has("yaml"):
            return _publish(parsed, verb, words, argv)
        return _act(
            verb,
            words,
            is_oneline=parsed.has("oneliner"),
            has_details=parsed.has("details"),
            is_verbose=parsed.has("verbose"),
        )
    except Refusal as refusal:
        if parsed.has("quiet"):
            return refusal.status
        raise


def _act(verb: str, words: Sequence[str], *, is_oneline: bool, has_details: bool, is_verbose: bool) -> int:
    match verb:
        case "show":
            return show_verb(words, is_oneline=is_oneline, has_details=has_details, is_verbose=is_verbose)
        case "write":
            return write_verb(words)
        case "ping":
            return ping(words)
        case "version":
            return version()
        case _:
            raise Refusal(f"invalid keyword: {verb}")


def _publish(parsed: Parsed, verb: str, words: Sequence[str], argv: Sequence[str]) -> int:
    """`show job|node|partition [ID]` as one document; other verbs and entities have none here."""
    from aver.slurm_cli.documents import form_of, publish

    form = form_of(parsed, "scontrol")
    assert form is not None
    entity, _, value = words[0].partition("=") if words else ("", "", "")
    asked = value or (words[1] if len(words) > 1 else "")
    document: Document
    match _entity(entity) if verb == "show" else None:
        case "jobs" | "jobid":
            document = _job_documents(asked, form)
        case "nodes":
            from aver.slurm_cli.sinfo.document import nodes_document

            book = Book.open()
            document = nodes_document(_nodes(book, asked), book.now, form.shape)
        case "partitions":
            from aver.slurm_cli.sinfo.document import partitions_document

            book = Book.open()
            document = partitions_document(_nodes(book, "", asked), book.now, form.shape)
        case _:
            raise Refusal(f"scontrol: error: --{form.name} with `{' '.join([verb, *words])}` is not supported by aver")
    publish(form, document, list(argv), "scontrol")
    return 0


def _job_documents(asked: str, form: Form) -> Document:
    from aver.slurm_cli.squeue.document import queue_document

    book = Book.open()
    jobs = _jobs(book, asked)
    if any(not job.is_settled for job in jobs) and book.refresh():
        book = Book.open()
        jobs = _jobs(book, asked)
    return queue_document(jobs if "_" in asked else gathered(jobs), book.now, form.shape)


def _nodes(book: Book, asked: str, partition: str = "") -> list[Node]:
    """This machine, if it has that name, and is in that partition."""
    from aver.slurm_cli.machine import Node

    node = Node.of(book)
    is_asked = asked in ("", node.name, node.host, "localhost") and partition in ("", node.partition)
    return [node] if is_asked else []


def show_verb(
    words: Sequence[str], *, is_oneline: bool = False, has_details: bool = False, is_verbose: bool = False
) -> int:
    """`scontrol show ENTITY [ID]`; `words` are those after `show`."""
    if not words:
        raise Refusal("too few arguments for keyword:show")
    entity, equals, value = words[0].partition("=")
    rest = [value, *words[1:]] if equals else list(words[1:])
    if len(rest) > 1:
        raise Refusal("too many arguments for keyword:show")
    asked = rest[0] if rest else ""
    name = _entity(entity)
    if name in NOT_SERVED:
        raise Refusal(f"scontrol: error: show {name} is not supported by aver")
    if is_verbose and name in ("nodes", "partitions"):
        show(f"last_update_time={moment(Book.open().now)}, records=1\n")
    match name:
        case "jobs" | "jobid":
            return _show_jobs(asked, is_oneline=is_oneline, has_details=has_details)
        case "steps":
            return _show_steps(asked, is_oneline=is_oneline)
        case "nodes":
            return _show_node(asked, is_oneline=is_oneline, has_details=has_details)
        case "partitions":
            return _show_partition(asked, is_oneline=is_oneline)
        case "config":
            return _show_config()
        case "hostnames":
            return _show_hostnames(asked)
        case "hostlist" | "hostlistsorted":
            return _show_hostlist(asked, is_sorted=name == "hostlistsorted")
        case "slurmd":
            return _show_slurmd()
        case "daemons":
            show("slurmctld slurmd\n")
        case "aliases":
            show(f"{node_name()}\n")
        case "licenses":
            show("No licenses configured in Slurm.\n")
        case "reservations":
            show("No reservations in the system\n")
        case "topology":
            say("scontrol: error: No topology information available")
        case _:
            raise Refusal(f"invalid entity:{entity} for keyword:show ")
    return 0


def ping(words: Sequence[str] = ()) -> int:
    """Whether a coordinator answers; one is started where none runs, as by every command that needs it."""
    from aver.errors import AverError

    if words:
        raise Refusal("too many arguments for keyword:ping")
    try:
        fast_client.connect(home_folder()).close()
    except (fast_client.Lost, AverError, OSError):
        show(f"Slurmctld(primary) at {node_name()} is DOWN\n")
        return 1
    show(f"Slurmctld(primary) at {node_name()} is UP\n")
    return 0


def version() -> int:
    show(f"{version_line()}\n")
    return 0


def write_verb(words: Sequence[str]) -> int:
    """`scontrol write batch_script ID [FILE|-]`; `words` are those after `write`."""
    if not words:
        raise Refusal("too few arguments for keyword:write")
    if not _means(words[0].lower(), "batch_script", 2):
        raise Refusal(f"invalid write argument:{words[0]}")
    if len(words) > 3:
        raise Refusal("too many arguments for keyword:write")
    if len(words) < 2:
        return 0
    jobs = _find(Book.open(), words[1])
    script = jobs[0].script if jobs else None
    if script is None:
        why = "Invalid job id specified" if not jobs else "Job has no batch script"
        say(f"job script retrieval failed: {why}")
        return 0
    if len(words) > 2 and words[2] == "-":
        show(jobs[0].book.masked(script))
        return 0
    path = words[2] if len(words) > 2 else f"slurm-{words[1]}.sh"
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(script)
    except (OSError, ValueError) as error:
        raise Refusal(f"failed to open file `{path}`: {getattr(error, 'strerror', None) or error}") from None
    show(f"batch script for job {words[1]} written to {path}\n")
    return 0


def _entity(word: str) -> str | None:
    return next((full for full, least in ENTITIES if _means(word.lower(), full, least)), None)


def _means(word: str, full: str, least: int) -> bool:
    return len(word) >= least and (full.startswith(word) or full.rstrip("s") == word)


def _parse(text: str) -> tuple[int, str | None] | None:
    number, bar, index = text.partition("_")
    number = str(number_of_sluid(number) or number)
    is_number = number.isascii() and number.isdigit() and len(number) < 19
    if not is_number or (bar and not (index.isascii() and index.isdigit() and len(index) < 10)):
        return None
    return int(number), str(int(index)) if bar else None


def _find(book: Book, text: str) -> list[JobFacts]:
    """The job of a number, the jobs of an array, or one of its tasks; none where there is none."""
    parsed = _parse(text)
    if parsed is None:
        return []
    number, index = parsed
    jobs = book.numbered([number])
    if index is not None:
        jobs = [job for job in jobs if job.array_job == number and job.array_index == index]
    return jobs


def _show_jobs(asked: str, *, is_oneline: bool, has_details: bool) -> int:
    book = Book.open()
    jobs = _jobs(book, asked)
    if any(not job.is_settled for job in jobs) and book.refresh():
        jobs = _jobs(Book.open(), asked)
    if not jobs:
        show(f"Job {asked} not found\n" if asked else "No jobs in the system\n")
        return 1 if asked else 0
    from aver.slurm_cli.scontrol.job import job_text

    if "_" not in asked:
        jobs = gathered(jobs)
    show("".join([job_text(job, is_oneline=is_oneline, has_details=has_details) for job in jobs]))
    return 0


def _jobs(book: Book, asked: str) -> list[JobFacts]:
    if not asked:
        return remembered(book, book.recent())
    parsed = _parse(asked)
    if parsed is None:
        raise Refusal("scontrol_print_job error: Invalid job id specified")
    number, index = parsed
    if number == 0:  # every job, and with an index those of all arrays, as in Slurm
        return [job for job in remembered(book, book.recent()) if index in (None, job.array_index)]
    jobs = remembered(book, _find(book, asked))
    if not jobs and not (index is not None and book.numbered([number])):
        raise Refusal(INVALID_JOB)
    return jobs


def _show_steps(asked: str, *, is_oneline: bool) -> int:
    from aver.slurm_cli.scontrol.job import step_text
    from aver.slurm_cli.squeue.command import running_steps

    book = Book.open()
    job_part, dot, label = asked.partition(".")
    jobs = book.unsettled() if not asked else _find(book, job_part)
    steps = running_steps(book, [job for job in jobs if job.is_active and job.has_run])
    if dot:
        steps = [step for step in steps if step.label == label]
    if asked and not jobs:
        raise Refusal("slurm_get_job_steps error: Invalid job id specified")
    if asked and not steps:
        show(f"Job step {job_part}.{label} not found\n")
        return 1
    show("".join([step_text(step, is_oneline=is_oneline) for step in steps]) or "No job steps in the system\n")
    return 0


def _show_node(asked: str, *, is_oneline: bool, has_details: bool) -> int:
    found = _nodes(Book.open(), asked)
    if not found:
        show(f"Node {asked} not found\n")
        return 1
    node = found[0]
    uname = os.uname()
    gpu = f",gres/gpu={node.gpus}" if node.gpus else ""
    used = f"cpu={node.used_cpus}" + (f",mem={texts.size(node.used_mem_mib, 'M')}" if node.used_mem_mib else "")
    lines = [
        f"NodeName={node.name} Arch={uname.machine} CoresPerSocket={node.cpus} ",
        f"CPUAlloc={node.used_cpus} CPUEfctv={node.cpus} CPUTot={node.cpus} CPULoad={node.load}",
        "AvailableFeatures=(null)",
        "ActiveFeatures=(null)",
        f"Gres={node.gres}",
        *(["GresDrain=N/A"] if has_details else []),
        f"NodeAddr={node.name} NodeHostName={node.host} Version={version_line().split()[-1]}",
        f"OS={uname.sysname} {uname.release} {uname.version} ",
        f"RealMemory={node.mem_mib} AllocMem={node.used_mem_mib} FreeMem={node.free_mem_mib} Sockets=1 Boards=1",
        f"State={node.state.upper()} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={node.partition} ",
        f"BootTime={moment(node.booted_at)} SlurmdStartTime={moment(node.booted_at)}",
        "LastBusyTime=Unknown" + (" ResumeAfterTime=None" if is_since("23.02") else ""),
        f"CfgTRES=cpu={node.cpus},mem={texts.size(node.mem_mib, 'M')},billing={node.cpus}{gpu}",
        f"AllocTRES={used if node.used_cpus else ''}",
        *([] if is_since("24.05") else ["CapWatts=n/a"]),
        "CurrentWatts=0 AveWatts=0",
        *([] if is_since("24.05") else ["ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s"]),
    ]
    show(" ".join(lines) + "\n" if is_oneline else "\n   ".join(lines) + "\n\n")
    return 0


def _show_slurmd() -> int:
    """The coordinator stands for the daemon of a node."""
    from pathlib import Path

    from aver.home import Home
    from aver.slurm_cli.squeue.command import running_steps

    book = Book.open()
    home = Home(Path(book.home))
    if not home.has_coordinator():
        raise Refusal("slurm_load_slurmd_status: Connection refused")
    node = _nodes(book, "")[0]
    steps = running_steps(book, [job for job in book.unsettled() if job.is_active and job.has_run])
    facts = {
        "Active Steps": ", ".join(f"{step.job.row.id}.{step.label}" for step in steps) or "NONE",
        "Actual CPUs": node.cpus,
        "Actual Boards": 1,
        "Actual sockets": 1,
        "Actual cores": node.cpus,
        "Actual threads per core": 1,
        "Actual real memory": f"{node.mem_mib} MB",
        "Actual temp disk space": f"{shutil.disk_usage('/tmp').total >> 20} MB",
        "Boot time": moment(node.booted_at),
        "Hostname": node.name,
        "Last slurmctld msg time": "NONE",  # there is no slurmctld
        "Slurmd PID": home.holder().get("pid", 0),
        "Slurmd Debug": _INFO,
        "Slurmd Logfile": home.log,
        "Version": version_line().split()[-1],
    }
    show("".join(f"{name:<24} = {value}\n" for name, value in facts.items()))
    return 0


def _show_partition(asked: str, *, is_oneline: bool) -> int:
    from aver.slurm_cli.machine import Node

    node = Node([])
    if asked and asked != node.partition:
        show(f"Partition {asked} not found\n")
        return 1
    topology = "ExclusiveTopo=NO " if is_since("24.11") else ""
    sockets = " MaxCPUsPerSocket=UNLIMITED" if is_since("23.02") else ""
    lines = [
        f"PartitionName={node.partition}",
        "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
        "AllocNodes=ALL Default=YES QoS=N/A",
        f"DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO {topology}GraceTime=0 Hidden=NO",
        f"MaxNodes=1 MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED{sockets}",
        f"Nodes={node.name}",
        "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State=UP TotalCPUs={node.cpus} TotalNodes=1 SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES=cpu={node.cpus},mem={texts.size(node.mem_mib, 'M')},node=1,billing={node.cpus}",
    ]
    show(" ".join(lines) + "\n" if is_oneline else "\n   ".join(lines) + "\n\n")
    return 0


def _show_config() -> int:
    from aver.slurm_cli.machine import Node
    from aver.slurm_cli.scontrol.config import FIXED, NOT_SET

    book = Book.open()
    node = Node([])
    newest = 1 if book.reader is None else book.reader.newest_number()
    values = (
        ("AccountingStorageTRES", "cpu,mem,node,billing"),
        ("AccountingStoreFlags", "job_comment,job_script"),
        ("BOOT_TIME", moment(node.booted_at)),
        ("ClusterName", CLUSTER),
        ("DefMemPerNode", "UNLIMITED"),
        ("EnforcePartLimits", "NO"),
        ("FirstJobId", "1"),
        ("GresTypes", "gpu" if node.gpus else NULL),
        ("JobAcctGatherFrequency", NULL),
        ("JobFileAppend", "0"),
        ("JobRequeue", "1"),
        ("KillOnBadExit", "0"),
        ("KillWait", f"{int(node.kill_wait_s)} sec"),
        ("Licenses", NULL),
        ("MaxArraySize", str(HIGHEST_INDEX + 1)),
        ("MaxMemPerNode", "UNLIMITED"),
        ("MaxNodeCount", "1"),
        ("MinJobAge", f"{int(MIN_JOB_AGE_S)} sec"),
        ("MpiDefault", "none"),
        ("NEXT_JOB_ID", str(newest)),
        ("OverTimeLimit", "0 min"),
        ("PreemptMode", "OFF"),
        ("PrivateData", "none"),
        ("SlurmctldHost[0]", node.name),
        ("SLURM_CONF", NULL),
        ("SLURM_VERSION", version_line().split()[-1]),
        ("SlurmUser", f"{user_name()}({os.getuid()})"),
        ("StateSaveLocation", book.home),
        ("TrackWCKey", "No"),
        ("WaitTime", "0 sec"),
    )
    found = {**dict.fromkeys(NOT_SET, NULL), **FIXED, **dict(values)}
    text = "".join([f"{name:<23} = {found[name]}\n" for name in sorted(found, key=str.lower)])
    show(f"Configuration data as of {moment(book.now)}\n{text}\nSlurmctld(primary) at {node.name} is UP\n")
    return 0


def _show_hostnames(asked: str) -> int:
    from aver.model.hostlists import expand

    text = asked or os.environ.get("SLURM_JOB_NODELIST") or os.environ.get("SLURM_NODELIST") or ""
    if not text:
        say("scontrol: error: host list is empty")
        return 0
    try:
        show("".join([f"{host}\n" for host in expand(text)]))
    except ValueError:
        say(f"Invalid hostlist: {text}")
    return 0


def _show_hostlist(asked: str, *, is_sorted: bool) -> int:
    from aver.model.hostlists import compress, expand, ordered

    if not asked:
        raise Refusal("invalid encode argument")
    text = asked
    try:
        if asked.startswith("/"):
            with open(asked, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        hosts = expand(text)
    except (OSError, ValueError):
        raise Refusal(f"Invalid hostlist: {asked}") from None
    show(compress(ordered(hosts) if is_sorted else hosts) + "\n")
    return 0

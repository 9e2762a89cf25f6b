"""What sbatch's answer means: submitted, refused, deferred, not reached, or unknown.

Only a sentence that the controller says for a refusal, or that sbatch says before it talks to the controller, means
that nothing was submitted. Whatever else went wrong may have gone wrong after the controller took the job: then the
answer is Lost, and the job is looked for by its name. The sentences are Slurm's own, of 20.11 to 25.11.
"""

from __future__ import annotations

import re

from aver.engines.slurm.commands.call import Reply, Trouble
from aver.model.record import Record


class Handed(Record):
    """sbatch put the batch into the queue."""

    id: int
    cluster: str = ""


class Refusal(Record):
    """sbatch will never take the batch as it is."""

    text: str


class Busy(Record):
    """sbatch did not take the batch, and may take it later."""

    reason: str
    text: str


class Unreachable(Record):
    """Nothing was sent; try again."""

    reason: str
    text: str


class Lost(Record):
    """Nobody knows whether sbatch took the batch."""

    text: str


Answer = Handed | Refusal | Busy | Unreachable | Lost

_ID = re.compile(r"(?:Submitted batch job )?([0-9]{1,10})(?:;(\S+)| on cluster (\S+))?", re.ASCII)
_OPTIONS_ARE_WRONG = 255  # with sbatch's own words; ssh has the same status for a lost connection
_FAILED = "batch job submission failed: "
_POLICY = "job violates accounting/qos policy"
_SUBMIT_LIMIT = re.compile(r"(?:Assoc|QOS|Max)\w*Submit\w*", re.IGNORECASE)
_LIMIT = re.compile(r"(?:Assoc|QOS|Partition|Max|Min)[A-Za-z]{4,60}")
_PREFIX = re.compile(r"^(?:sbatch|allocation): (?:(?:error|fatal|warning): )?")
_WORDY = re.compile(r"\bretrying\b|: no init\b|slurm_\w+:|unpack|_xmalloc|munge|pars(e|ing) error", re.IGNORECASE)
_WIRE = re.compile(r"message receive failure|unpack|slurm_receive|munge decode|auth_g_verify", re.IGNORECASE)
_ENCODE = re.compile(r"munge encode failed|auth_g_create: REQUEST_SUBMIT_BATCH", re.IGNORECASE)

_BUSY = {
    "unable to create job record, try again": "QueueFull",
    "maxjobcount limit reached": "MaxJobCount",
    "requested nodes are busy": "Resources",
    "licenses currently unavailable": "Licenses",
    "required node not available (down, drained or reserved)": "ReqNodeNotAvail",
    "required partition not available (inactive or drain)": "PartitionInactive",
    "partition in down state": "PartitionDown",
    "system submissions disabled": "SubmissionsDisabled",
    "requested operation is presently disabled": "SubmissionsDisabled",
    "rate limit exceeded, please retry momentarily": "RateLimit",
    "rate limit exceeded, please retry later": "RateLimit",
    "i/o error writing script/environment to file": "ControllerTrouble",
    "error generating job credential": "ControllerTrouble",
    "requested reservation not usable now": "Reservation",
    "requested account has breached requested qos usage threshold": "QOSUsageThreshold",
    "job can not start due to maintenance reservation.": "Maintenance",
    "max powered up nodes reached": "MaxPoweredUpNodes",
    "waiting for burst buffer": "BurstBufferResources",
}
_UNREACHABLE = {
    "unable to contact slurm controller (connect failure)": "ControllerUnreachable",
    "connection timed out establishing": "ControllerUnreachable",
    "slurm backup controller in standby mode": "ControllerStandby",
    "controller is in standby mode, try a different controller": "ControllerStandby",
}
_REFUSED = frozenset(
    """\
invalid partition name specified
no partition specified or system default partition
access/permission denied
user's group not permitted to use this partition
requested nodes not in this partition
more processors requested than permitted
node count specification invalid
job size specification needs to be provided
job script not specified
invalid user id
invalid user id specified
duplicate job id
pathname of a file, directory or other parameter too long
immediate execution impossible, insufficient priority
requested node configuration is not available
requested partition configuration not available now
requested topology configuration is not available
invalid node name specified
task distribution specification invalid
task count specification invalid
invalid feature specification
invalid preferred feature specification
requested operation not supported on this system
job dependency problem
circular job dependency
memory required by task is not available
invalid account or account/partition combination specified
invalid qos specification
invalid wckey specification
invalid license specification
requested time limit is invalid (missing or exceeds some limit)
invalid time-min specification (exceeds job's time or other limits)
invalid time specified
access denied to requested reservation
requested reservation is invalid
requires more ports than can be reserved
job cannot be submitted without the current working directory specified.
cpu count specification invalid
invalid generic resource (gres) specification
duplicate generic resource (gres) specification
invalid gres specification (with and without type identification)
requested gres option unsupported by configured selecttype plugin
insufficient gres available in allocation
invalid job array specification
burst buffer permission denied
burst buffer resource limit exceeded
burst buffer request invalid
invalid mcs_label specified
x11 forwarding not available
invalid group id
job --batch option is invalid or not a subset of --constraint
invalid trackable resource (tres) specification
multiple knl numa and/or mcdram constraints require use of a heterogeneous job
invalid --nice value
environment is missing in job
multiple partition job request not supported when a partition is set in the association
cannot request more threads per core than the job allocation
invalid container id specified
invalid or unknown association
invalid extra constraints specification
invalid cluster feature specification
invalid cluster name
no eligible clusters for federated job
only batch jobs are accepted or processed
preemption is required but is disabled on this system
invalid accounting frequency requested
unable to resolve user id to user name
unable to resolve group id to group name
script too large
job script size exceeds limit
""".splitlines()
)
_BEFORE = re.compile(
    r'try "sbatch --help" for more information|^invalid \S+ specification|^invalid generic resource'
    r"|^invalid numeric value|^invalid \S+ argument|unrecognized option|invalid option --|requires an argument"
    r"|^unable to open file|^batch script (is empty|contains)|does not look like a batch script|#! followed by the path"
    r"|^script arguments not permitted|mutually exclusive|only permitted by root"
    r"|^cli_filter plugin terminated with error"
    r"|^plugin stack post-option processing failed|^no cluster '.*' known by database|^memory specification can not be",
    re.IGNORECASE,
)
_NO_CONFIGURATION = re.compile(
    r"s_p_parse_file: cannot stat file|unable to process configuration file|could not establish a configuration source"
    r"|can't be reached now, or it is an invalid entry for --cluster",
    re.IGNORECASE,
)
_RETRIED = {
    "slurm temporarily unable to accept job": "ControllerBusy",
    "job creation temporarily disabled": "ControllerBusy",
    "slurm job queue full": "QueueFull",
}


def read_submission(reply: Reply | Trouble) -> Answer:
    """What became of one call of `sbatch` or `sbatch --parsable`."""
    ids = _ids(reply.out)
    if len(ids) == 1:
        return ids.pop()
    if isinstance(reply, Trouble):
        return Lost(reply.text) if reply.began else Unreachable(reply.reason, reply.text)
    lines = [_PREFIX.sub("", line.strip())[:500] for line in reply.err.splitlines() if line.strip()]
    if ids or reply.status == 0:
        printed = (reply.out.strip() or reply.err.strip() or "nothing")[:200]
        return Lost(f"sbatch ended with exit status {reply.status} and printed no single job id: {printed}")
    for line in lines:
        if line.lower().startswith(_FAILED):
            return _refused(line[len(_FAILED) :], [other for other in lines if other != line])
    if before := _before(lines):
        return before
    if reply.status == _OPTIONS_ARE_WRONG and _PREFIX.match(reply.err):
        return Refusal("; ".join(lines))
    return Lost("; ".join(lines[-3:]) or f"sbatch: exit status {reply.status}")


def _ids(text: str) -> set[Handed]:
    """The ids in whole lines; the last line may be cut."""
    found = set()
    for line in text.split("\n")[:-1]:
        match = _ID.fullmatch(line.strip())
        if match and 0 < int(match[1]) <= 0xFFFF_FFFF:
            found.add(Handed(int(match[1]), match[2] or match[3] or ""))
    return found


def _refused(sentence: str, others: list[str]) -> Answer:
    """What sbatch's last sentence means, with the lines around it."""
    said = sentence.lower().strip()
    remarks = [line for line in others if not _WORDY.search(line)]
    text = "; ".join([sentence, *remarks])
    if said.startswith(_POLICY):
        return _policy(text, remarks)
    if said in _BUSY:
        return Busy(_BUSY[said], text)
    if said in _UNREACHABLE and not any("retrying" in line for line in others):  # then an earlier try was sent
        return Unreachable(_UNREACHABLE[said], text)
    if said in _REFUSED:
        return Refusal(text)
    if said == "protocol authentication error":
        was_not_sent = any(_ENCODE.search(line) for line in others) and not any(_WIRE.search(line) for line in others)
        text = "; ".join([sentence, *others])
        return Unreachable("Authentication", text) if was_not_sent else Lost(text)
    if said == "resource temporarily unavailable":
        for line in others:
            for words, reason in _RETRIED.items():
                if line.lower().startswith(words):
                    return Busy(reason, text)
    if said == "unspecified error" and remarks and not any(_WIRE.search(line) for line in others):
        return Refusal("; ".join(remarks))  # the words of the site's own submit plugin, which came from the controller
    return Lost("; ".join([sentence, *others]))


def _policy(text: str, remarks: list[str]) -> Answer:
    """A limit on the number of jobs passes; one on a job's size does not; without a word it may."""
    for remark in remarks:
        if _SUBMIT_LIMIT.fullmatch(remark):
            return Busy(remark, text)
    if any(_LIMIT.fullmatch(remark) for remark in remarks):
        return Refusal(text)
    return Busy("AccountingPolicy", text)


def _before(lines: list[str]) -> Answer | None:
    """sbatch gave up before it talked to the controller."""
    text = "; ".join(line for line in lines if not line.lower().startswith("try "))
    if any(_BEFORE.search(line) for line in lines):
        return Refusal(text)
    if any(_NO_CONFIGURATION.search(line) for line in lines):
        return Unreachable("NoConfiguration", text)
    return None

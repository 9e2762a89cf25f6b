"""Ask scontrol: what one job looks like to the controller, and what the site has.

`show job` has no quoting: a value ends where the next key begins, and a name or a path may look like a key. A key that
is there twice is therefore unknown, not guessed. squeue says the same with fields, and is what polls use.
"""

from __future__ import annotations

import re

from aver.engines.slurm.commands.call import Commands, Reply, Trouble
from aver.engines.slurm.commands.fields import exit_text, parse_count, parse_moment
from aver.engines.slurm.commands.ids import parse_members
from aver.engines.slurm.commands.lines import last_line, trouble_in
from aver.engines.slurm.commands.rows import NoAnswer, Queue, QueueRow
from aver.engines.slurm.commands.squeue import UNKNOWN_ID
from aver.engines.slurm.states import has_ended, has_started
from aver.model.record import Record

WHOLE_CODES_SINCE = (25, 11)  # before, sacct takes 128 off every exit code of 128 and more
_USUAL_ARRAY_SIZE = 1001  # what Slurm has where slurm.conf says nothing
_NOTHING = ("", "(null)", "N/A", "None", "NONE", "Unknown")

_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z:/_-]{0,40})=")
_RECORD = re.compile(r"^JobId=[0-9]", re.MULTILINE)
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_/-]{0,60})\s*= ?(.*)")
_VERSION = re.compile(r"(?:^|[^0-9.])([0-9]{2})\.([0-9]{1,2})(?:\.([0-9]{1,3}))?(?![0-9])", re.ASCII)
_SECONDS = re.compile(r"([0-9]{1,9})(?: sec)?", re.ASCII)


class Facts(Record):
    """What the site has. None or empty: not said."""

    version: tuple[int, ...] | None = None  # of the controller: (22, 5, 8)
    cluster: str = ""
    max_array_size: int = _USUAL_ARRAY_SIZE  # the highest index is one less
    max_jobs: int | None = None  # that the controller holds at one time
    min_job_age_s: int | None = None  # so long the controller remembers a job that has ended
    kill_wait_s: int | None = None
    message_timeout_s: int | None = None
    accounting: str = ""  # such as `accounting_storage/slurmdbd`
    enforced: str = ""  # limits that are: `associations,limits,qos`
    select: str = ""  # such as `select/cons_tres`
    tracking: str = ""  # such as `proctrack/cgroup`
    has_whole_codes: bool = False  # sacct prints exit codes of 128 and more as they are

    @property
    def keeps_accounts(self) -> bool | None:
        return None if not self.accounting else not self.accounting.endswith("/none")


def ask_facts(commands: Commands, timeout_s: float) -> Facts | NoAnswer:
    """What the site has, in two calls, of which one does not leave this machine."""
    printed_by = read_version(commands.call(version_of("sacct"), timeout_s=timeout_s))
    return read_facts(commands.call(config(), timeout_s=timeout_s), printed_by)


def config() -> list[str]:
    """The call that asks what the site has."""
    return ["scontrol", "show", "config"]


def by_id(job: str) -> list[str]:
    """The call that asks for a job (`7`; an array has several rows) or for a member (`7_3`)."""
    return ["scontrol", "--details", "--oneliner", "show", "job", job]


def version_of(command: str) -> list[str]:
    """The call that asks for a command's own version: what sacct prints depends on sacct's, not on the controller's."""
    return [command, "--version"]


def read_version(reply: Reply | Trouble) -> tuple[int, ...] | None:
    """(22, 5, 8) from `slurm 22.05.8`, `slurm-wlm 22.05.8`, `25.11.6`."""
    if isinstance(reply, Trouble) or reply.status != 0:
        return None
    return parse_version(last_line(reply.out))


def parse_version(text: str) -> tuple[int, ...] | None:
    match = _VERSION.search(text)
    return None if match is None else tuple(int(part) for part in match.groups() if part is not None)


def has_whole_codes(version: tuple[int, ...] | None) -> bool:
    return version is not None and version >= WHOLE_CODES_SINCE


def read_facts(reply: Reply | Trouble, sacct_version: tuple[int, ...] | None = None) -> Facts | NoAnswer:
    """What `scontrol show config` said. `sacct_version`: see `version_of`."""
    trouble = _trouble(reply)
    if trouble is not None:
        return trouble
    assert isinstance(reply, Reply)
    settings: dict[str, str] = {}
    for line in reply.out.splitlines():
        match = _SETTING.fullmatch(line)
        if match:
            settings.setdefault(match[1], "" if match[2].strip() in _NOTHING else match[2].strip())
    if "ClusterName" not in settings and "SLURM_VERSION" not in settings:
        return NoAnswer(f"scontrol's answer can't be read: {last_line(reply.out)[:200]!r}")
    array_size = parse_count(settings.get("MaxArraySize", ""))
    return Facts(
        version=parse_version(settings.get("SLURM_VERSION", "")),
        cluster=settings.get("ClusterName", ""),
        max_array_size=_USUAL_ARRAY_SIZE if array_size is None else array_size,
        max_jobs=parse_count(settings.get("MaxJobCount", "")),
        min_job_age_s=_seconds(settings.get("MinJobAge", "")),
        kill_wait_s=_seconds(settings.get("KillWait", "")),
        message_timeout_s=_seconds(settings.get("MessageTimeout", "")),
        accounting=settings.get("AccountingStorageType", ""),
        enforced=settings.get("AccountingStorageEnforce", ""),
        select=settings.get("SelectType", ""),
        tracking=settings.get("ProctrackType", ""),
        has_whole_codes=has_whole_codes(sacct_version),
    )


def read_jobs(reply: Reply | Trouble) -> Queue | NoAnswer:
    """What `scontrol -d -o show job` said; no rows if the controller does not know the job."""
    if isinstance(reply, Reply) and reply.status != 0 and last_line(reply.err).endswith(f"error: {UNKNOWN_ID}"):
        return Queue(())
    trouble = _trouble(reply)
    if trouble is not None:
        return trouble
    assert isinstance(reply, Reply)
    starts = [match.start() for match in _RECORD.finditer(reply.out)]
    texts = [reply.out[start:end].rstrip() for start, end in zip(starts, [*starts[1:], None], strict=False)]
    rows = tuple(row for text in texts if (row := _row(text)))
    if not rows:
        return NoAnswer(trouble_in(reply.out) or f"scontrol's answer can't be read: {last_line(reply.out)[:200]!r}")
    return Queue(rows, len(rows) == len(texts))


def _row(text: str) -> QueueRow | None:
    values = _values(text)
    own, array = parse_count(values.get("JobId", "")), parse_count(values.get("ArrayJobId", ""))
    het, leader = parse_count(values.get("HetJobOffset", "")), parse_count(values.get("HetJobId", ""))
    word = values.get("JobState", "")
    if own is None or not word:
        return None
    index = parse_count(values.get("ArrayTaskId", ""))
    is_over, is_begun = has_ended(word), has_started(word)
    return QueueRow(
        job=next((one for one in (array, leader) if one is not None), own),
        index=index,
        raw_job=own,
        word=word,
        reason=values.get("Reason", ""),
        exit=exit_text(values.get("ExitCode", "")) if is_over else "",
        derived=exit_text(values.get("DerivedExitCode", "")) if is_begun else "",
        restarts=parse_count(values.get("Restarts", "")),
        submitted_at=parse_moment(values.get("SubmitTime", "")),
        started_at=parse_moment(values.get("StartTime", "")) if is_begun else None,
        ended_at=parse_moment(values.get("EndTime", "")) if is_over else None,
        nodes="" if values.get("NodeList", "") in _NOTHING else values["NodeList"],
        name=_name(text),
        members=None if array is None or index is not None else parse_members(values.get("ArrayTaskId", "")),
        het=het,
        said=text,
    )


def _values(text: str) -> dict[str, str]:
    """Each key's value, without those keys that are there twice."""
    keys = list(_KEY.finditer(text))
    values: dict[str, str] = {}
    twice = set()
    for key, next_ in zip(keys, [*keys[1:], None], strict=False):
        if key[1] in values:
            twice.add(key[1])
        values[key[1]] = text[key.end() : None if next_ is None else next_.start()].strip()
    return {key: value for key, value in values.items() if key not in twice}


def _name(text: str) -> str:
    """The name, which may have spaces and `=` in it; empty where its end can't be told."""
    _, found, rest = text.partition(" JobName=")
    end = " HetJobIdSet=" if " HetJobId=" in text.partition(" JobName=")[0] else " UserId="
    name, ended, _ = rest.partition(end)
    return name if found and ended and rest.count(end) == 1 else ""


def _seconds(text: str) -> int | None:
    match = _SECONDS.fullmatch(text)
    return None if match is None else int(match[1])


def _trouble(reply: Reply | Trouble) -> NoAnswer | None:
    if isinstance(reply, Trouble):
        return NoAnswer(reply.text)
    if reply.status != 0:
        return NoAnswer(last_line(reply.err) or last_line(reply.out) or f"scontrol: exit status {reply.status}")
    trouble = trouble_in(reply.err)
    return NoAnswer(trouble) if trouble else None

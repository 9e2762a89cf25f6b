"""Ask scontrol what the site has. What one job looks like is squeue's to say: `scontrol show job` has no quoting."""

from __future__ import annotations

import re

from aver.engines.slurm.commands.call import Commands, Reply, Trouble
from aver.engines.slurm.commands.fields import parse_count
from aver.engines.slurm.commands.lines import error_text, last_line, trouble_in
from aver.engines.slurm.commands.rows import NoAnswer
from aver.model.record import Record

WHOLE_CODES_SINCE = (25, 11)  # before, sacct takes 128 off every exit code of 128 and more
_USUAL_ARRAY_SIZE = 1001  # what Slurm has where slurm.conf says nothing
_NOTHING = ("", "(null)", "N/A", "None", "NONE", "Unknown")

_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_/-]{0,60})\s*= ?(.*)")
_VERSION = re.compile(r"(?:^|[^0-9.])([0-9]{2})\.([0-9]{1,2})(?:\.([0-9]{1,3}))?(?![0-9])", re.ASCII)
_SECONDS = re.compile(r"([0-9]{1,9})(?: sec)?", re.ASCII)


class Facts(Record):
    """What the site has. None or empty: not said."""

    version: tuple[int, ...] | None = None  # of the controller: (22, 5, 8)
    cluster: str = ""
    max_array_size: int = _USUAL_ARRAY_SIZE  # the highest index is one less
    min_job_age_s: int | None = None  # so long the controller remembers a job that has ended
    kill_wait_s: int | None = None
    accounting: str = ""  # such as `accounting_storage/slurmdbd`
    enforced: str = ""  # limits that are: `associations,limits,qos`
    select: str = ""  # such as `select/cons_tres`
    has_whole_codes: bool = False  # sacct prints exit codes of 128 and more as they are


def ask_facts(commands: Commands, timeout_s: float) -> Facts | NoAnswer:
    """What the site has, in two calls, of which one does not leave this machine."""
    printed_by = read_version(commands.call(version_of("sacct"), timeout_s=timeout_s))
    return read_facts(commands.call(config(), timeout_s=timeout_s), printed_by)


def config() -> list[str]:
    """The call that asks what the site has."""
    return ["scontrol", "show", "config"]


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
        min_job_age_s=_seconds(settings.get("MinJobAge", "")),
        kill_wait_s=_seconds(settings.get("KillWait", "")),
        accounting=settings.get("AccountingStorageType", ""),
        enforced=settings.get("AccountingStorageEnforce", ""),
        select=settings.get("SelectType", ""),
        has_whole_codes=has_whole_codes(sacct_version),
    )


def _seconds(text: str) -> int | None:
    match = _SECONDS.fullmatch(text)
    return None if match is None else int(match[1])


def _trouble(reply: Reply | Trouble) -> NoAnswer | None:
    if isinstance(reply, Trouble):
        return NoAnswer(reply.text)
    if reply.status != 0:
        return NoAnswer(error_text(reply.err) or last_line(reply.out) or f"scontrol: exit status {reply.status}")
    trouble = trouble_in(reply.err)
    return NoAnswer(trouble) if trouble else None

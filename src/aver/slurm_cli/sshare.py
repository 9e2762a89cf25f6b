"""sshare: there is no fair share on one machine, so the list is empty. Headers and formats are Slurm's."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.protocol.place import user_name
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.start import opened
from aver.slurm_cli.table.columns import TEXT, WHOLE, Layout, names_in_columns, parse_columns
from aver.spec.getopt import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from aver.slurm_cli.table.columns import Field
    from aver.spec.getopt import Parsed

OPTIONS = Table(
    flags="all:a helpformat:e help long:l noheader:n parsable:p parsable2:P partition:m usage Users:U verbose:v "
    "version:V",
    values="accounts:A clusters:M format:o users:u",
    aliases="cluster=clusters",
)
WITHOUT_MEANING = ("accounts", "all", "clusters", "partition", "users", "Users")
USAGE = """\
Usage:  sshare [OPTION]
  Valid OPTIONs are:
    -e or --helpformat     list the fields of --format
    -l or --long           more fields
    -n or --noheader       no header line
    -o or --format=        fields and their widths, such as Account%30,User
    -p or --parsable       with | between fields and at the end
    -P or --parsable2      with | between fields
    -v or --verbose        display more information: the users and accounts that were asked for
    -V or --version        the version
          --help           this page
          --usage          this page
  Without effect here, where no user has shares:
    -A or --accounts=, -a or --all, -M or --clusters=, -m or --partition, -u or --users=, -U or --Users
"""
_DEFAULT = "account,user,rawshares,normshares,rawusage,effectvusage,fairshare"
_LONG = "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,grptresmins,tresrunmins"
_nothing: Callable[[Any], object] = lambda row: ""  # noqa: E731
FIELDS: tuple[Field, ...] = (
    ("Account", -20, TEXT, _nothing),
    ("Cluster", 10, TEXT, _nothing),
    ("EffectvUsage", 13, WHOLE, _nothing),
    ("FairShare", 10, WHOLE, _nothing),
    ("GrpTRESMins", 30, TEXT, _nothing),
    ("GrpTRESRaw", 30, TEXT, _nothing),
    ("ID", 6, WHOLE, _nothing),
    ("LevelFS", 10, WHOLE, _nothing),
    ("NormShares", 11, WHOLE, _nothing),
    ("NormUsage", 11, WHOLE, _nothing),
    ("Partition", 12, TEXT, _nothing),
    ("RawShares", 10, WHOLE, _nothing),
    ("RawUsage", 11, WHOLE, _nothing),
    ("TRESRunMins", 30, TEXT, _nothing),
    ("User", 10, TEXT, _nothing),
)


def main(argv: Sequence[str]) -> int:
    return guarded("sshare", _sshare, argv)


def _sshare(argv: Sequence[str]) -> int:
    parsed = opened("sshare", OPTIONS, argv, help=USAGE, usage=USAGE, helpformat=lambda: names_in_columns(FIELDS))
    if parsed is None:
        return 0
    if parsed.has("verbose"):
        users = ["all"] if parsed.has("all") else _names(parsed, "users") or [user_name()]
        for what, names in (("Users", users), ("Accounts", _names(parsed, "accounts") or ["all"])):
            say("\n\t: ".join([f"{what} requested:", *names]))
    asked = ",".join(parsed.all("format")) or (_LONG if parsed.has("long") else _DEFAULT)
    try:
        columns = parse_columns(asked, lambda name: [one for one in FIELDS if one[0].lower().startswith(name)][:1])
    except ValueError as error:
        raise Refusal(f'sshare: error: Invalid field requested: "{error}"') from None
    show(Layout(parsed).header(columns))
    return 0


def _names(parsed: Parsed, option: str) -> list[str]:
    return [name for text in parsed.all(option) for name in text.split(",") if name]

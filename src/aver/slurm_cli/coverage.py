"""What each command supports, from its own tables, and the part of `docs/en/reference/slurm-commands.md` that says so.

`python -m aver.slurm_cli.coverage docs/en/reference/slurm-commands.md` writes that part again; a test compares the
two, and the tables with the option lists of Slurm's man pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from aver.model.record import Record
from aver.slurm_cli import scancel, seff, sshare
from aver.slurm_cli.sacct import command as sacct
from aver.slurm_cli.sacct import fields as sacct_fields
from aver.slurm_cli.sacctmgr import command as sacctmgr
from aver.slurm_cli.salloc import command as salloc
from aver.slurm_cli.scontrol import command as scontrol
from aver.slurm_cli.scontrol import show as scontrol_show
from aver.slurm_cli.scontrol import update
from aver.slurm_cli.sinfo import command as sinfo
from aver.slurm_cli.squeue import command as squeue
from aver.slurm_cli.squeue import fields as squeue_fields
from aver.slurm_cli.srun import options as srun_options
from aver.slurm_cli.sstat import command as sstat
from aver.spec.getopt import Table
from aver.spec.sbatch.call import idle_options
from aver.spec.sbatch.table import NOT_SERVED, VARIABLES, sbatch_table

BEGIN = "<!-- made by aver.slurm_cli.coverage: begin -->"
END = "<!-- made by aver.slurm_cli.coverage: end -->"
_HIDDEN = ("as-job",)


class Command(Record):
    """`status`: the exit status after an unknown option."""

    name: str
    options: Table
    without_meaning: tuple[str, ...] = ()
    not_served: tuple[str, ...] = ()
    status: int = 1

    @property
    def served(self) -> list[str]:
        others = {*self.without_meaning, *self.not_served, *_HIDDEN}
        return [name for name in self.options.takes if name not in others]


def commands() -> tuple[Command, ...]:
    batch = sbatch_table()
    return (
        Command("sbatch", batch, idle_options(batch), NOT_SERVED, 255),
        Command("srun", srun_options.TABLE, srun_options.WITHOUT_MEANING, srun_options.NOT_SERVED, 255),
        Command("salloc", salloc.OPTIONS, salloc.idle_options(), salloc.NOT_SERVED, 255),
        Command("squeue", squeue.OPTIONS, squeue.WITHOUT_MEANING),
        Command("sacct", sacct.OPTIONS, sacct.WITHOUT_MEANING, sacct.NOT_SERVED),
        Command("scontrol", scontrol.TABLE, scontrol.WITHOUT_MEANING),
        Command("scancel", scancel.TABLE, scancel.WITHOUT_MEANING),
        Command("sinfo", sinfo.OPTIONS, sinfo.WITHOUT_MEANING),
        Command("sstat", sstat.OPTIONS, sstat.WITHOUT_MEANING),
        Command("sacctmgr", sacctmgr.OPTIONS, sacctmgr.WITHOUT_MEANING),
        Command("sshare", sshare.OPTIONS, sshare.WITHOUT_MEANING),
        Command("seff", seff.OPTIONS, (), seff.NOT_SERVED),
    )


def variables() -> dict[str, tuple[str, ...]]:
    """The environment inputs that count, by command."""
    everywhere = ("SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
    return {
        "sbatch": tuple(VARIABLES),
        "srun": tuple(srun_options.ENVIRONMENT),
        "salloc": tuple(salloc.VARIABLES),
        "squeue": (*squeue.VARIABLES, *everywhere),
        "sacct": ("SACCT_FORMAT", *everywhere),
        "scontrol": everywhere,
        "scancel": tuple(scancel.VARIABLES.values()),
        "sinfo": ("SINFO_FORMAT", "SINFO_PARTITION"),
    }


def page() -> str:
    """The lists, command by command."""
    parts = []
    for command in commands():
        lines = [f"### {command.name}", "", _line("Supported", _flags(command, command.served))]
        if command.without_meaning:
            lines.append(_line("Accepted, without effect here", _flags(command, command.without_meaning)))
        if command.not_served:
            lines.append(_line("Not supported (one-line error, exit 1)", _flags(command, command.not_served)))
        lines.append(f"- Unknown options: getopt's error message, exit {command.status}")
        lines += _more(command.name)
        named = variables().get(command.name, ())
        if named:
            lines.append(_line("Variables", named))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def renew(text: str) -> str:
    """The page with its lists as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{page()}\n\n{END}{after}"


def _more(name: str) -> list[str]:
    """The lists of a command other than its options."""
    match name:
        case "squeue":
            return [
                _line("Letters of `-o`", squeue_fields.LETTERS),
                _line("Of these, constant here", _constants(squeue_fields.LETTERS)),
                _line("Names of `-O`", squeue_fields.NAMES),
                _line("Of these, constant here", _constants(squeue_fields.NAMES)),
                _line("Letters of `-o` with `-s`", squeue_fields.STEP_LETTERS),
                _line("Names of `-O` with `-s`", squeue_fields.STEP_NAMES),
            ]
        case "sinfo":
            return [
                _line("Letters of `-o`", sinfo.LETTERS),
                _line("Of these, constant here", _constants(sinfo.LETTERS)),
                _line("Names of `-O`", sinfo.NAMES),
                _line("Of these, constant here", _constants(sinfo.NAMES)),
            ]
        case "sacct":
            empty = [field[0] for field in sacct_fields.FIELDS if field[3] is sacct_fields.nothing]
            return [
                _line("Fields", (field[0] for field in sacct_fields.FIELDS)),
                _line("Of these, always empty (not measured, or not applicable)", empty),
            ]
        case "sstat":
            empty = [field[0] for field in sstat.FIELDS if field[3] is sstat.nothing]
            return [
                _line("Fields", (field[0] for field in sstat.FIELDS)),
                _line("Of these, always empty (not measured)", empty),
            ]
        case "sacctmgr":
            shown = [entity for entity in sacctmgr.ENTITIES if entity not in sacctmgr.NOT_SERVED]
            return [
                _line("Entities of `list` and `show`", shown),
                _line("Entities that are not supported (one-line error, exit 1)", sacctmgr.NOT_SERVED),
                _line("Conditions", sacctmgr.CONDITIONS),
                _line("Commands that write: not supported (one-line error, exit 1)", sacctmgr.WRITES),
            ]
        case "scontrol":
            entities = [entity for entity, _ in scontrol_show.ENTITIES if entity not in scontrol_show.NOT_SERVED]
            return [
                _line("Commands", scontrol.VERBS),
                _line("Commands that are not supported (one-line error, exit 1)", scontrol.NOT_SERVED),
                _line("Entities of `show`", entities),
                _line("Entities that are not supported (one-line error, exit 1)", scontrol_show.NOT_SERVED),
                _line("Keys of `update JobId=`", update.WORDS),
            ]
        case _:
            return []


def _constants(fields: Mapping[str, tuple[str, object]]) -> list[str]:
    return [name for name, (_, show) in fields.items() if "_constant" in getattr(show, "__qualname__", "")]


def _flags(command: Command, names: Iterable[str]) -> list[str]:
    letters = {name: letter for letter, name in command.options.letters.items()}
    return [f"-{letters[name]} --{name}" if name in letters else f"--{name}" for name in sorted(names)]


def _line(what: str, names: Iterable[str]) -> str:
    return f"- {what}: " + ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(renew(target.read_text("utf-8")), "utf-8")

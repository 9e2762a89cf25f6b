"""Read recorded answers: blocks of a line `$ title`, what was printed, and `[exit N]`."""

from __future__ import annotations

from pathlib import Path

from aver.engines.slurm.commands.call import Reply

FOLDER = Path(__file__).resolve().parent / "slurm_answers"


def answers(name: str) -> dict[str, Reply]:
    """The blocks of a file by their titles. Lines of commands' complaints are what was on stderr."""
    found = {}
    for block in (FOLDER / name).read_text("utf-8").split("\n$ ")[1:]:
        title, _, rest = block.partition("\n")
        printed, _, status = rest.rpartition("[exit ")
        lines = printed.replace("\u241f", "\x1f").splitlines(keepends=True)
        err = "".join(line for line in lines if _is_complaint(line))
        out = "".join(line for line in lines if not _is_complaint(line))
        found[title] = Reply(int(status.strip().rstrip("]")), out, err, 0.1)
    return found


def _is_complaint(line: str) -> bool:
    return "error: " in line or "fatal: " in line or "is disabled" in line

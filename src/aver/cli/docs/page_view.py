"""A page of Markdown as lines of a terminal: wrapped to its width, with tables that fit.

Knows what the pages of the documentation use: headings, paragraphs, lists, quotes, fenced code, tables, pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aver.cli.output.table import cell_count

WIDEST = 100  # columns; longer lines are hard to read
NARROWEST = 24  # columns of a table's last cell, below which its rows are stacked
GAP = 2
CODE, BOLD, END = "\ue001", "\ue002", "\ue003"
STYLES = {CODE: "\x1b[36m", BOLD: "\x1b[1m"}
RESET = "\x1b[0m"
_MARKS = re.compile(f"[{CODE}{BOLD}{END}]")
_ITEM = re.compile(r"( *)([-*]|\d+\.) +(.*)")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_PIECE = re.compile(
    r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f]+|\s+"
)
_NEVER_FIRST = frozenset("，。、；：？！）》」』】”’…%,.;:?!)")


def terminal_lines(markdown: str, width: int, has_colours: bool) -> list[str]:
    """The page in lines of at most this many columns; code is never broken."""
    width = min(width, WIDEST)
    shown, style = [], ""
    for line in _blocks(markdown.splitlines(), width):
        styled, style = _styled(line, style)
        shown.append(styled if has_colours else _MARKS.sub("", line))
    return shown


def wrapped(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of at most this many columns, broken at spaces and between Chinese characters."""
    lines: list[str] = []
    head, used = first if first is not None else indent, 0
    line = ""
    for piece in _PIECE.findall(text.strip()):
        count = cell_count(_MARKS.sub("", piece))
        room = width - cell_count(head)
        if piece.isspace():
            line, used = (line + " ", used + 1) if line else (line, used)
        elif used and used + count > room and (line.endswith(" ") or piece[0] not in _NEVER_FIRST):
            lines.append(head + line.rstrip())
            head, line, used = indent, piece, count
        else:
            line, used = line + piece, used + count
    return [*lines, head + line.rstrip()] if line.strip() else lines


def _blocks(lines: list[str], width: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        begin = at
        at += 1
        if fence := _FENCE.match(line):
            while at < len(lines) and not lines[at].strip().startswith(fence[1]):
                yield f"    {lines[at]}"
                at += 1
            at += 1
        elif not line.strip():
            yield ""
        elif heading := _HEADING.match(line):
            yield from wrapped(f"{BOLD}{_MARKS.sub('', _inline(heading[2]))}{END}", width)
        elif line.startswith("|"):
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            yield from _table([_cells(row) for row in lines[begin:at]], width)
        elif line.lstrip().startswith("<"):
            continue  # HTML: pictures for light and dark
        else:
            item = _ITEM.match(line)
            while at < len(lines) and _goes_on(lines[at]):
                at += 1
            yield from _paragraph([item[3] if item else line, *lines[begin + 1 : at]], item, width)


def _goes_on(line: str) -> bool:
    """Whether the line belongs to the paragraph above it."""
    return bool(line.strip()) and not (
        line.startswith(("|", "#")) or line.lstrip().startswith("<") or _ITEM.match(line) or _FENCE.match(line)
    )


def _paragraph(lines: list[str], item: re.Match[str] | None, width: int) -> list[str]:
    quote = "> " if lines[0].startswith(">") else ""
    text = _inline(_joined([line.strip().removeprefix(">").strip() for line in lines]))
    if item:
        mark = "•" if item[2] in "-*" else item[2]
        first = f"{item[1]}{mark} "
        return wrapped(text, width, " " * len(first), first)
    return wrapped(text, width, "  " if quote else "")


def _joined(lines: list[str]) -> str:
    """The lines as one, with a space between two unless both are Chinese there."""
    text = lines[0]
    for line in lines[1:]:
        text += line if cell_count(text[-1:]) == cell_count(line[:1]) == 2 else f" {line}"
    return text


def _inline(text: str) -> str:
    """Without the marks of Markdown; code and strong words are marked for their style."""
    parts = re.split(r"(`+)(.+?)\1", text)
    found = []
    for at in range(0, len(parts), 3):
        plain = _IMAGE.sub(r"[\1]", parts[at])
        found.append(plain)
        if at + 2 < len(parts):
            found.append(f"{CODE}{parts[at + 2]}{END}")
    joined = _LINK.sub(r"\1", "".join(found))
    return re.sub(r"\*\*(.+?)\*\*", rf"{BOLD}\1{END}", joined).replace("\\|", "|").replace("<br>", " ")


def _cells(row: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|"))
    return [_inline(cell.strip()) for cell in cells]


def _table(rows: list[list[str]], width: int) -> Iterator[str]:
    """Columns side by side where the last keeps enough room, else each row as its cells below each other."""
    head, body = rows[0], rows[2:]
    count = len(head)
    rows = [(row + [""] * count)[:count] for row in (head, *body)]
    sizes = [max(cell_count(_MARKS.sub("", row[at])) for row in rows) for at in range(count)]
    left = width - sum(sizes[:-1]) - GAP * (count - 1)
    is_wide = left >= min(NARROWEST, sizes[-1])
    for number, row in enumerate(rows):
        cells = [f"{BOLD}{cell}{END}" if cell and number == 0 else cell for cell in row]
        if is_wide:
            before = "".join(_padded(cell, size + GAP) for cell, size in zip(cells[:-1], sizes, strict=False))
            indent = " " * (sum(sizes[:-1]) + GAP * (count - 1))
            yield from wrapped(cells[-1], width, indent, before) or [before.rstrip()]
        elif number == 0:
            yield from wrapped(" · ".join(cells), width)
        else:
            yield from wrapped(cells[0], width)
            for name, cell in zip(head[1:], cells[1:], strict=True):
                if cell:
                    yield from wrapped(cell if count == 2 else f"{name}: {cell}", width, "    ")


def _padded(cell: str, size: int) -> str:
    return cell + " " * (size - cell_count(_MARKS.sub("", cell)))


def _styled(line: str, begun: str) -> tuple[str, str]:
    """The line in its styles, and the style that goes on below it; `begun` is the one that began above it."""
    marks = _MARKS.findall(begun + line)
    open_mark = marks[-1] if marks and marks[-1] != END else ""
    text = line.lstrip(" ")
    shown = line[: len(line) - len(text)] + begun + text + (END if open_mark else "")
    for mark, style in STYLES.items():
        shown = shown.replace(mark, style)
    return shown.replace(END, RESET), open_mark

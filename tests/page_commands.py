"""Run the commands of a page and compare what they print: `python tests/page_commands.py PAGE...` writes it anew.

A fenced block with the word `console` is executed: lines after `$ ` are commands (`> ` continues one), the lines below
are what it prints, stdout and stderr together. A block whose fence has `title="NAME"` is a file that the commands find.
All commands of a page share one bash, one folder and one home; jobs have two CPUs. `…` stands for any text, on a line
of its own for any lines. What differs between two runs (times, sizes that are measured, processes, who and where) is
not compared.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STATE = "/home/ann/.local/state/aver"
USER_HOME = "/home/ann"
USER_NAME = "ann"
HOST_NAME = "vm"
MARK = "\x1e"
AFTER = f"status=$?; printf '{MARK}'; (exit $status)"  # the next command can still ask for $?
FENCE = re.compile(r"^(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)\n", re.MULTILINE | re.DOTALL)
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?"), "WHEN"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "WHEN"),
    (re.compile(r"\b(\d+ h )?(\d+ min )?\d+(\.\d+)? s\b"), "SPAN"),
    (re.compile(r"\b\d+\.\d [KMG]iB\b"), "SIZE"),
    (re.compile(r"\b(process|coordinator) \d+\b"), "process N"),
    (re.compile(r"memory (watched|sampled|measured)[^,;\n]*"), "memory watched"),
    (re.compile(r" \((its largest process, resident|all its processes)\)"), ""),
    (re.compile(r"time=\"[\d.]+\""), "time"),
    (re.compile(r"\b\d+%|\b\d\.\d\d\b"), "SHARE"),
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r"[ \t]+"), " "),
)
PASSING = re.compile(r"WHEN job \d+ \S+ (RUNNING|PENDING|SETTLING)\b")  # a watcher may come too late for it


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page says that it prints."""

    text: str
    prints: str


@dataclass(frozen=True)
class Page:
    """The files that a page shows, and the commands that it runs, in order."""

    files: dict[str, str]
    commands: tuple[Command, ...]


def commands_of(body: str) -> Iterator[Command]:
    """The commands of a block with the lines below each."""
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if not part.startswith("$ "):
            assert not part.strip(), f"a console block begins with a command: {part!r}"
            continue
        lines = part.splitlines(keepends=True)
        count = 1
        while count < len(lines) and lines[count].startswith("> "):
            count += 1
        yield Command("".join(line[2:] for line in lines[:count]), "".join(lines[count:]))


def read_page(text: str) -> Page:
    """What a page has to execute."""
    files: dict[str, str] = {}
    commands: list[Command] = []
    for found in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', found["info"])
        if title:
            files.setdefault(title[1], found["body"])
        elif found["info"].split()[:1] == ["console"]:
            commands += commands_of(found["body"])
    return Page(files, tuple(commands))


def unmarked(text: str) -> list[str]:
    """The blocks with commands and output that are not executed: those that are neither `console` nor `text`."""
    blocks = [found for found in FENCE.finditer(text) if re.search(r"^\$ ", found["body"], re.MULTILINE)]
    return [found["body"] for found in blocks if found["info"].split()[:1] not in (["console"], ["text"])]


def run_page(page: Page, folder: Path, home: Path, timeout_s: float = 240.0) -> list[str]:
    """Run the page's commands in the folder; what each printed, in the names of the page."""
    for name, text in page.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    settings = folder.parent / ".config" / "aver" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("cpus = 2\n")
    script = folder.parent / f"{folder.name}.commands"
    script.write_text("".join(f"{command.text}\n{AFTER}\n" for command in page.commands))
    bin_folder = str(Path(sys.executable).parent)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AVER_", "SLURM_", "XDG_"))}
    env |= {
        "AVER_HOME": str(home), "HOME": str(folder.parent), "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", str(script)], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    script.unlink()
    text = done.stdout.replace(str(home), STATE).replace(str(folder.parent), USER_HOME)
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", HOST_NAME, text)
    text = re.sub(rf"\b{re.escape(getpass.getuser())}\b", USER_NAME, text)
    return text.split(MARK)[: len(page.commands)]


def plain(text: str) -> str:
    """The text without what differs between two runs; verdicts of jobs that ran at the same time are in any order."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    lines: list[str] = []
    events: list[str] = []
    for line in (line.rstrip() for line in text.strip("\n").split("\n")):
        if PASSING.match(line):
            continue
        if line.startswith("WHEN job "):
            events.append(line)
        else:
            lines += [*sorted(events), line]
            events = []
    return "\n".join([*lines, *sorted(events)])


def fits(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says."""
    parts = re.split(r"(^…$\n?| ?… ?)", plain(expected), flags=re.MULTILINE)
    pattern = "".join(
        "(?:.*\n?)*?" if part == "…\n" else ".*" if part.strip(" ") == "…" else re.escape(part) for part in parts
    )
    last = plain(expected).rstrip("\n").split("\n")[-1] == "…"
    return re.fullmatch(pattern + ("(?:\n.*)*" if last else ""), plain(printed)) is not None


def with_outputs(text: str, outputs: list[str]) -> str:
    """The page's text with what was printed, where it does not say so already."""
    rest = iter(outputs)

    def rewritten(found: re.Match[str]) -> str:
        if found["info"].split()[:1] != ["console"]:
            return found[0]
        body = ""
        for command in commands_of(found["body"]):
            printed = next(rest)
            first, *others = command.text.splitlines(keepends=True)
            body += f"$ {first}" + "".join(f"> {line}" for line in others)
            body += command.prints if fits(command.prints, printed) else printed
        return f"{found['fence']}{found['info']}\n{body}{found['fence']}\n"

    return FENCE.sub(rewritten, text)


def main() -> None:
    """Write the outputs of the named pages anew."""
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory(prefix="page-") as place:
            folder, home = Path(place, "project"), Path(place, "home")
            folder.mkdir()
            text = path.read_text()
            outputs = run_page(read_page(text), folder, home)
            env = {**os.environ, "AVER_HOME": str(home)}
            subprocess.run([sys.executable, "-m", "aver", "stop"], env=env, check=False, capture_output=True)
        path.write_text(with_outputs(text, outputs))


if __name__ == "__main__":
    main()

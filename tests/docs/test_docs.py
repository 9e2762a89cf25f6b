"""`aver docs`: topics, pages on a terminal and in a pipe, languages, man pages; from the tree and from a wheel."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aver.cli.docs.page_view import terminal_lines
from aver.cli.docs.topics import LANGUAGES, language_of, topics
from aver.cli.group import HELPS
from aver.cli.output.table import cell_count

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "en").rglob("*.md"))
ESCAPE = re.compile(r"\x1b\[\d+m")
DEADLINE_S = 60.0


def aver(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aver", "docs", *words],
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def on_terminal(*words: str, status: int = 0, **env: str) -> str:
    """What the command draws on a terminal of 80 columns and 24 lines."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "aver", "docs", *words],
        env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **env},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    seen = b""
    try:
        while data := os.read(leader, 65536):
            seen += data
    except OSError:
        pass  # the terminal's other end is closed
    os.close(leader)
    assert process.wait(DEADLINE_S) == status, seen
    return seen.decode().replace("\r\n", "\n")


def test_every_page_is_a_topic_with_a_sentence() -> None:
    """What is in docs/en can be read with `aver docs`, and the list says what it is about."""
    known = topics("en")
    assert {f"{topic.name}.md" for topic in known} | {"index.md"} == {
        page.relative_to(ROOT / "docs" / "en").as_posix() for page in PAGES
    }
    assert all(topic.about for topic in known)
    listed = aver("--list")
    assert listed.stdout.split() == [topic.short for topic in known]
    table = aver()
    assert [line.split()[0] for line in table.stdout.splitlines()[1:]] == listed.stdout.split()


def test_a_pipe_gets_the_markdown() -> None:
    """By its short name or its whole one, as the file has it."""
    text = (ROOT / "docs" / "en" / "reference" / "exit-statuses.md").read_text()
    assert aver("exit-statuses").stdout == text
    assert aver("reference/exit-statuses").stdout == text
    assert aver("Exit-Statuses.md").stdout == text


def test_an_unknown_topic_is_one_line_with_the_nearest() -> None:
    """Whoever mistypes a topic, or names a command, is told what to type."""
    done = aver("exit-status")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'aver: no topic "exit-status"; did you mean exit-statuses? `aver docs` lists all topics\n'
    assert aver("cancel").stderr == 'aver: no topic "cancel"; `aver cancel --help` explains the command\n'
    assert aver("x\ny" * 1000).stderr.count("\n") == 1
    assert aver("").returncode == 2
    assert aver("json", "--list").stderr == "aver: docs: give a topic, --list or --man, not two of them\n"


def test_a_shell_completes_topics() -> None:
    """Short names, and whole ones once there is a slash."""
    words = {"_AVER_COMPLETE": "bash_complete", "COMP_CWORD": "2"}

    def offered(line: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "aver"],
            env={**os.environ, **words, "COMP_WORDS": line},
            capture_output=True,
            text=True,
        )
        return [one.partition(",")[2] for one in done.stdout.split()]

    assert offered("aver docs exit") == ["exit-statuses"]
    assert offered("aver docs reference/exit") == ["reference/exit-statuses"]
    assert offered("aver docs nothing") == []


@pytest.mark.parametrize("width", [30, 80, 200])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_fits_the_terminal(page: Path, width: int) -> None:
    """No line of prose is wider than the terminal but for a word that is, and no word of the page is lost."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    lines = terminal_lines(text, width, has_colours=True)
    for line in lines:
        plain = ESCAPE.sub("", line)
        is_code = plain.startswith("    ")
        assert is_code or cell_count(plain) <= width or len(plain.split()) <= 2, plain
    without_code = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    without_marks = re.sub(r"\]\([^)]*\)|<[^>]+>|^\|[-| ]+\|$", " ", without_code, flags=re.MULTILINE)
    shown = "".join(ESCAPE.sub("", line) for line in lines)
    if width == 200:
        missing = [word for word in re.findall(r"[A-Za-z]{4,}", without_marks) if word not in shown]
        assert not missing


def test_chinese_is_broken_between_characters() -> None:
    """A line of wide characters fits, and no line begins with a full stop."""
    text = "# 退出码\n" + "裁定来自证据，未知就说未知。" * 9 + "\n"
    lines = terminal_lines(text, 40, has_colours=False)
    assert "".join(lines[1:]) == "裁定来自证据，未知就说未知。" * 9
    assert all(cell_count(line) <= 42 for line in lines)
    assert not [line for line in lines if line[0] in "，。"]
    assert terminal_lines("一句。\n二句。\nAver 三句。\n", 40, has_colours=False) == ["一句。二句。 Aver 三句。"]


def test_styles_end_with_their_line() -> None:
    """Code that is broken over two lines is styled on both; without colours no escape is left."""
    text = "Type `aver submit --time 10m --mem 2G -- python train.py` **now**.\n"
    lines = terminal_lines(text, 30, has_colours=True)
    assert len(lines) == 3
    assert all(line.count("\x1b[36m") == 1 and line.count("\x1b[0m") >= 1 for line in lines[:2])
    assert terminal_lines(text, 100, has_colours=False) == [
        "Type aver submit --time 10m --mem 2G -- python train.py now."
    ]


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that says that it was there; by its name it is taken for less, which shows colours."""
    path = tmp_path / "less"
    path.write_text("#!/bin/sh\necho PAGER $LESS\nexec cat\n")
    path.chmod(0o755)
    return str(path)


def test_a_long_page_goes_through_the_pager(pager: str) -> None:
    """The pager gets the page, in colours that it can show; a page that fits the terminal is shown at once."""
    seen = on_terminal("commands", PAGER=pager, LESS="")
    assert seen.startswith("PAGER -R\n")
    assert "\x1b[1maver run\x1b[0m" in seen
    assert "## aver run" not in seen
    assert "\x1b[" not in on_terminal("commands", PAGER=pager, LESS="-F")
    assert "\x1b[" not in on_terminal("commands", PAGER=pager, NO_COLOR="1")
    assert "PAGER" not in on_terminal("exit-statuses", PAGER=pager, LINES="200")


def test_a_pager_that_is_not_there_is_no_bug() -> None:
    """Another one is taken, or the page is shown without; quotes that do not close are said to be wrong."""
    assert "aver run" in on_terminal("commands", PAGER="no-such-pager", PATH="/nowhere")
    seen = on_terminal("commands", PAGER="'less", status=2)
    assert seen == "aver: PAGER is not a command: 'less\n"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({"LANG": "", "LC_ALL": ""}, "en"),
        ({}, "en"),
    ],
)
def test_the_locale_chooses_the_language(environment: dict[str, str], language: str) -> None:
    """As for other programs: LC_ALL, then LC_MESSAGES, then LANG."""
    assert language_of(environment) == language


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, str]:
    """An environment with a copy of the package that has two topics, one of them translated."""
    shutil.copytree(ROOT / "src" / "aver", tmp_path / "aver", ignore=shutil.ignore_patterns("__pycache__"))
    texts = {
        "en/index.md": "| [A](a.md) | one |\n| [B](b.md) | two |\n",
        "en/a.md": "# A\n",
        "en/b.md": "# B\n",
        "zh/index.md": "| [甲](a.md) | 一 |\n",
        "zh/a.md": "<!-- en: a 0123456789 -->\n# 甲\n",
        "zh/glossary.md": "# 术语\n",
    }
    for name, text in texts.items():
        path = tmp_path / "aver" / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"PYTHONPATH": str(tmp_path), "LC_ALL": "zh_CN.UTF-8"}


def test_a_page_is_in_the_language_where_it_is_translated(pages: dict[str, str]) -> None:
    """Without its stamps; a page that is not translated is in English, and that is said. --lang wins."""
    assert aver(env=pages).stdout.splitlines() == ["TOPIC  ABOUT", "a      一", "b      two"]
    assert aver("a", env=pages).stdout == "# 甲\n"
    assert aver("a", "--lang", "en", env=pages).stdout == "# A\n"
    assert aver("a", "--lang", "zh", env={**pages, "LC_ALL": "C"}).stdout == "# 甲\n"
    done = aver("b", env=pages)
    assert (done.stdout, done.stderr) == ("# B\n", "aver: b is not translated yet: this is the English page\n")
    assert aver("glossary", env=pages).returncode == 2
    (Path(pages["PYTHONPATH"]) / "aver" / "docs" / "en" / "index.md").unlink()
    gone = aver(env=pages)
    assert gone.returncode == 1
    assert gone.stderr.endswith("install Aver again\n")


def test_man_pages_are_made_of_the_help(tmp_path: Path) -> None:
    """One for each command and one for all; each is well-formed and names the command's options."""
    done = aver("--man", str(tmp_path / "man"))
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "man" / "man1").iterdir())
    assert {page.name for page in pages} == {"aver.1", *(f"aver-{name}.1" for name in HELPS)}
    if mandoc := shutil.which("mandoc"):
        lint = subprocess.run([mandoc, "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
        assert not [line for line in lint.stdout.splitlines() if "missing date" not in line]
    if groff := shutil.which("groff"):
        warned = subprocess.run([groff, "-man", "-Tutf8", "-ww", "-z", *pages], capture_output=True, text=True)
        assert warned.stderr == ""


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_man_shows_them(tmp_path: Path) -> None:
    """`man aver` and `man aver-log` show the sections that readers know, with what `--help` says."""
    assert aver("--man", str(tmp_path)).returncode == 0
    env = {**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"}

    def man(name: str) -> str:
        done = subprocess.run(["man", "-l", tmp_path / "man1" / f"{name}.1"], env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return " ".join(done.stdout.split())

    main = man("aver")
    assert not [name for name, said in HELPS.items() if f"aver-{name}(1) {said}" not in main]
    page = man("aver-log")
    assert f"NAME aver-log - {HELPS['log'].rstrip('.')} SYNOPSIS aver log [OPTIONS]" in page
    assert "OPTIONS" in page
    assert "EXAMPLES" in page
    assert "-f, --follow" in page


def test_man_pages_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "file").write_text("")
    done = aver("--man", str(tmp_path / "file"))
    assert done.returncode == 73
    assert done.stderr.count("\n") == 1


def test_a_wheel_carries_the_pages(tmp_path: Path) -> None:
    """Installed without the source tree, every topic of every language is there, and nothing but text."""
    copy = tmp_path / "tree"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if files.returncode != 0:
        pytest.skip("no git tree")
    for name in files.stdout.splitlines():
        if name.startswith(("src/", "docs/en/", "docs/zh/")) or "/" not in name:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy(ROOT / name, copy / name)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, copy], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", installed, wheel], check=True)
    shutil.rmtree(copy)
    environment = {"PYTHONPATH": str(installed), "LC_ALL": "C.UTF-8"}
    assert aver("--list", env=environment).stdout == aver("--list").stdout
    assert aver("upkeep", env=environment).stdout == aver("upkeep").stdout
    carried = installed / "aver" / "docs"
    for language in LANGUAGES:
        names = {page.relative_to(carried).as_posix() for page in (carried / language).rglob("*") if page.is_file()}
        assert names == {
            page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs" / language).rglob("*.md")
        }

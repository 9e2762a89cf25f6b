"""Every command of a page that says `console` prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.engines.local.capabilities import find_cgroup
from page_commands import fits, not_executed, read_page, run_page
from page_places import missing, place_for

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "en").rglob("*.md"))]
EXECUTED = [page for page in PAGES if read_page(page.read_text()).commands]


NOT_EXECUTED = {
    "README.md": {"./scripts/setup": "installs packages: CI runs it", "./scripts/test": "runs this test"},
    "docs/en/get-started.md": {
        "python3 -m venv": "tests/release installs it",
        "aver doctor": "shows the reader's machine",
    },
    "docs/en/guides/agents.md": {"pip install 'aver[mcp]'": "needs a registry"},
    "docs/en/guides/gpus.md": {"aver run --gpus 1": "needs a GPU"},
    "docs/en/guides/notifications.md": {"aver run --notify desktop": "needs a desktop and a mail server"},
    "docs/en/guides/other-clients.md": {"$ aver shell -- strace": "needs strace"},
    "docs/en/guides/page.md": {
        "pip install 'aver[ui]'": "needs a registry and a browser",
        "login$ aver ui --port": "needs two machines",
        "login$ aver ui --socket": "needs two machines",
    },
    "docs/en/guides/snakemake.md": {"$ python3 -m venv": "needs a registry: scripts/clients does it"},
    "docs/en/guides/submitit.md": {"$ python3 -m venv": "needs a registry: scripts/clients does it"},
    "docs/en/guides/upkeep.md": {
        "$ aver doctor": "needs systemd: tests/vm has it",
        "pip install --upgrade": "an upgrade: tests/release does it",
        "aver cancel 7": "removes Aver",
    },
    "docs/en/reference/conformance.md": {
        "aver conformance --against slurm": "minutes: tests/conformance and tests/slurm run it",
        "scripts/slurm-lab start": "tests/slurm starts it",
    },
    "docs/en/reference/flow-format.md": {
        "aver check flow.yaml": "a list of forms",
        "aver run --set n=5": "a list of forms",
        "aver run --only": "a list of forms",
    },
    "docs/en/reference/slurm-commands.md": dict.fromkeys(("sbatch", "srun", "salloc", "scancel"), "a synopsis"),
}
"""Blocks with commands that are not executed, by the beginning of their first command, and why not."""
GENERATED = {"docs/en/reference/commands.md"}  # from the help of the commands; tests/cli holds it to them


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def marks(page: Path) -> list[pytest.MarkDecorator]:
    needs = read_page(page.read_text()).needs
    found = [pytest.mark.timeout(600)] if needs else []  # Slurm's limits are minutes, and clients take long to start
    if {"slurm", "ssh"}.intersection(needs):
        found += [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]
    return found


@pytest.mark.parametrize("path", [pytest.param(page, id=name_of(page), marks=marks(page)) for page in EXECUTED])
def test_commands_print_what_the_page_shows(
    path: Path, aver_home: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`python tests/page_commands.py PAGE` writes the page's outputs anew."""
    page = read_page(path.read_text())
    if missing(page.needs):
        pytest.skip(missing(page.needs))
    texts = [*page.files.values(), *(one.text + one.prints for one in page.commands)]
    if any("bytearray" in text or "OutOfMemory" in text or "for memory" in text for text in texts):
        base, reason = find_cgroup()
        if base is None:
            pytest.skip(f"the page shows a kill for memory: {reason}")
    folder = tmp_path / "project"
    folder.mkdir()
    with place_for(page.needs, tmp_path_factory.getbasetemp().parent) as place:
        printed = run_page(page, folder, aver_home, place)
    assert len(printed) == len(page.commands)
    for command, text in zip(page.commands, printed, strict=True):
        assert fits(command.prints, text), f"$ {command.text}{text}"


@pytest.mark.parametrize("path", [page for page in PAGES if name_of(page) not in GENERATED], ids=name_of)
def test_commands_that_are_not_executed_are_known(path: Path) -> None:
    """A block with commands is `console`, and executed, or stands in NOT_EXECUTED with the reason."""
    known = NOT_EXECUTED.get(name_of(path), {})
    found = not_executed(path.read_text())
    assert [first for first in found if not first.startswith(tuple(known))] == []
    assert [start for start in known if not any(first.startswith(start) for first in found)] == [], "executed now"


def test_what_is_not_printed_does_not_fit() -> None:
    """Another word, a missing line and another exit do not fit; another time, order of events or table width does."""
    assert fits(
        "00:00:01 job 3 a FAILED\n00:00:02 job 2 b RUNNING\n", "09:00:01 job 2 b RUNNING\n09:00:02 job 3 a FAILED\n"
    )
    assert fits("JOB  NAME\n  3  a  1.2 s\n", "JOB NAME\n 3 a   12 s\n")
    assert fits("one\n…\nfour\n", "one\ntwo\nthree\nfour\n")
    assert fits("one … three\n", "one two three\n")
    assert not fits("job 3 FAILED 1:0\n", "job 3 FAILED 2:0\n")
    assert not fits("one\ntwo\n", "one\n")
    assert not fits("one\n…\nfour\n", "one\ntwo\nfive\n")
    assert not fits("", "one\n")
    assert not fits("…\none\n…\ntwo\n…\nthree\n", "\n".join(f"line {n}" for n in range(300)))

"""The live tree on a terminal: what its lines are, and what a real terminal shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from drawn_terminal import Terminal
from product import Product, wait_for_file

from aver.cli.output.documents import RunFacts
from aver.cli.output.tree import Branch, cell_count, cells, tree_lines
from aver.model.states import State

WAITS = "touch started; while [ ! -e go ]; do sleep 0.05; done"


def run_of(jobs: int) -> RunFacts:
    counts = {"RUNNING": 1, "PENDING": jobs - 1}
    return RunFacts(3, "train", "RUNNING", False, 1, False, "ann", "/", 100.0, None, 4, jobs, counts, (), ("local",))


def texts(branches: list[Branch], width: int = 80, height: int = 24) -> list[str]:
    lines = tree_lines([(run_of(len(branches) + 1), branches)], 141.0, width, height)
    return ["".join(text for text, _ in line) for line in lines]


def test_a_line_has_name_state_and_time() -> None:
    """A job that runs shows how long it has; a matrix is one line with its counts."""
    lines = texts(
        [
            Branch("└─ ", "prep", {State.RUNNING: 1}, "", 139.0, None),
            Branch("   └─ ", "train", {State.COMPLETED: 80, State.RUNNING: 2}, "", 110.0, None),
        ]
    )
    assert lines == [
        "run 3 train [....................] 0/3 settled, 1 RUNNING  41 s",
        "  └─ prep           RUNNING  2.0 s",
        "     └─ train (82)  2 RUNNING, 80 COMPLETED  31 s",
    ]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_time_of_a_run_is_not_cut_off(width: int) -> None:
    """What a narrow terminal has no room for goes from the counts before it."""
    head = texts([Branch("", "prep", {State.RUNNING: 1}, "", 139.0, None)], width=width)[0]
    assert head.endswith("  41 s")
    assert len(head) <= width
    whole = texts([Branch("", "prep", {State.RUNNING: 1}, "", 139.0, None)], width=200)[0]
    assert ("…" in head) is (head != whole)  # what was left out shows


def test_what_does_not_fit_is_counted_and_failures_stay() -> None:
    """Never more lines than the screen, and what runs or failed is left out last."""
    branches = [Branch("", f"j{n}", {State.COMPLETED: 1}, "", None, 1.0) for n in range(50)]
    branches[40] = Branch("", "bad", {State.FAILED: 1}, "3:0 NonZeroExitCode", None, 1.0)
    lines = texts(branches, height=10)
    assert len(lines) == 10
    assert any("bad" in line for line in lines)
    assert lines[-1] == "  ... 42 more: 42 COMPLETED"


@pytest.mark.parametrize("width", [10, 20, 40])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    """Wide characters count twice."""
    branch = Branch("", "名前" * 30, {State.FAILED: 1}, "3:0 NonZeroExitCode", None, 1.0)
    assert all(cell_count(line) <= width for line in texts([branch], width=width))
    assert cells("名前", 3) == "名"


def flow(product: Product) -> None:
    (product.folder / "flow.yaml").write_text(
        f"jobs:\n  a: {{run: '{WAITS}'}}\n  b: {{needs: [a], run: echo oops; exit 3}}\n"
        "  c: {needs: [b], matrix: {n: 1..9}, run: 'echo {n}'}\n"
    )


def test_run_draws_a_tree_and_ends_with_one_line(aver: Product) -> None:
    """The tree goes over itself; at the end it stays, then the failed job's last lines, then the summary."""
    flow(aver)
    terminal = Terminal(aver, ["run", "flow.yaml"], 80, 24)
    terminal.read_until(b"\x1b[34mRUNNING\x1b[0m")
    (aver.folder / "go").touch()
    text = terminal.read_until(None)
    assert terminal.close() == 1
    assert "\x1b[4A" in text
    last = text.rpartition("\x1b[4A")[2].replace("\x1b[K", "").replace("\x1b[J", "").replace("\r", "").splitlines()
    assert last[0].startswith("run 1 flow [####################] 11/11 settled, 1 FAILED, 9 SKIPPED")
    assert last[-3].endswith(" ends:")
    assert last[-2:] == ["  | oops", last[-1]]
    assert last[-1].startswith("aver: run 1 FAILED: 1 COMPLETED, 1 FAILED, 9 SKIPPED in ")


def test_a_failed_job_is_named_with_its_number(aver: Product) -> None:
    """Also a member of a matrix that is one line."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n  bad: {run: exit 4}\n  many: {matrix: {n: 1..9}, run: 'test {n} != 7'}\n"
    )
    terminal = Terminal(aver, ["run", "flow.yaml"], 100, 24, NO_COLOR="1")
    text = terminal.read_until(None)
    assert terminal.close() == 1
    assert "FAILED exit 4 (job 2)" in text
    assert "8 COMPLETED, 1 FAILED (job 9 n=7)" in text


def test_members_of_a_matrix_are_branches_of_one_tree(aver: Product) -> None:
    """Only the last member ends its branch; what needs them all is below it."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n  prep: {run: 'true'}\n  fit: {needs: [prep], matrix: {n: 1..3}, run: 'echo {n}'}\n"
        "  sum: {needs: [fit], run: 'true'}\n"
    )
    terminal = Terminal(aver, ["run", "flow.yaml"], 80, 24, NO_COLOR="1")
    text = terminal.read_until(None)
    assert terminal.close() == 0
    last = text.rpartition("5/5 settled")[2].replace("\x1b[K", "").splitlines()
    assert [line.partition("COMPLETED")[0].rstrip() for line in last[1:6]] == [
        "  └─ prep", "     ├─ fit[n=1]", "     ├─ fit[n=2]", "     └─ fit[n=3]", "        └─ sum",
    ]  # fmt: skip


def test_a_narrow_terminal_without_colours(aver: Product) -> None:
    """Width 40, 5 lines, NO_COLOR: no colour, no line that folds, never more than 4 lines at a time."""
    flow(aver)
    (aver.folder / "go").touch()
    terminal = Terminal(aver, ["run", "flow.yaml"], 40, 5, NO_COLOR="1")
    text = terminal.read_until(None)
    assert terminal.close() == 1
    assert re.search(r"\x1b\[\d+m", text) is None
    for frame in text.partition("aver:")[0].split("\x1b[J"):
        lines = re.sub(r"\x1b\[\d*[AK]|\r", "", frame).split("\n")
        assert len(lines) <= 5
        assert all(cell_count(line) < 40 for line in lines)


def test_a_dumb_terminal_gets_plain_lines(aver: Product) -> None:
    """TERM=dumb: nothing is drawn over."""
    flow(aver)
    (aver.folder / "go").touch()
    terminal = Terminal(aver, ["run", "flow.yaml"], 80, 24, TERM="dumb")
    text = terminal.read_until(None)
    terminal.close()
    assert "\x1b" not in text
    assert "job 2 a COMPLETED" in text


def test_an_interrupt_clears_the_tree_and_reports(aver: Product) -> None:
    """Ctrl-C on the terminal: the run is cancelled, its verdict is the last line, exit 130."""
    flow(aver)
    terminal = Terminal(aver, ["run", "flow.yaml"], 80, 24)
    terminal.read_until(b"c (9)")
    wait_for_file(aver.folder / "started")
    terminal.process.send_signal(2)
    text = terminal.read_until(None)
    assert terminal.close() == 130
    assert "aver: run 1 CANCELLED: 11 CANCELLED" in text.rstrip().splitlines()[-1]


def test_watch_of_a_run_draws_too(aver: Product, tmp_path: Path) -> None:
    """The same tree, and exit 0 once settled."""
    flow(aver)
    (aver.folder / "go").touch()
    run = aver.submit("flow.yaml")
    terminal = Terminal(aver, ["watch", str(run)], 80, 24)
    text = terminal.read_until(None)
    assert terminal.close() == 0
    assert "└─ c (9)" in text
    assert f"aver: run {run} FAILED" in text.rstrip().splitlines()[-1]

"""`aver retry` by the command line."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from product import Product


def test_retry_runs_it_again_and_keeps_both_attempts(aver: Product) -> None:
    """The second attempt finds what the first left."""
    number = aver.submit("--", "sh", "-c", "if [ -e once ]; then exit 0; fi; touch once; exit 3")
    assert aver("watch", str(number), "-e").status == 1
    assert aver("retry", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 0
    attempts = aver("show", str(number), "--json").document["attempts"]
    assert [attempt["exit"]["text"] for attempt in attempts] == ["3:0", "0:0"]


def test_retry_says_that_the_flows_file_has_changed(aver: Product) -> None:
    """A retry runs the flow as it was submitted; `reinit` is what runs it as it is now. A touch is no change."""
    file = aver.folder / "flow.yaml"
    file.write_text("jobs:\n  a: {run: 'false'}\n  b: {run: 'true'}\n")
    run = str(aver.submit("flow.yaml"))
    aver("watch", run)
    os.utime(file)
    assert aver("retry", run).err == ""
    aver("watch", run)
    file.write_text("jobs:\n  a: {run: 'exit 3'}\n  b: {run: 'true'}\n")
    answer = aver("retry", run)
    assert answer.err == (
        f"aver: {file} has changed since run {run} was submitted; the retry runs it as it was. "
        f"`aver reinit {run}` runs it as it is now\n"
    )
    aver("watch", run)


def test_retry_reads_the_flows_file_as_the_run_has_it(aver: Product) -> None:
    """Params, the selected part, the folder and the environment of the run make the flow no other one."""
    elsewhere = aver.folder / "elsewhere"
    elsewhere.mkdir()
    (aver.folder / "ids.txt").write_text("x\n")
    file = elsewhere / "flow.yaml"
    file.write_text(
        "params: {n: 1}\njobs:\n"
        "  a: {run: 'exit {n}', env: {A: 'b{f}'}, matrix: {f: {lines: ids.txt}}}\n"
        "  b: {run: 'true'}\n"
    )
    run = str(aver.submit("--set", "n=3", "--only", "a", "elsewhere/flow.yaml"))
    aver("watch", run)
    os.utime(file)
    assert aver("retry", run).err == ""
    aver("watch", run)


def test_the_time_of_a_round_is_its_own(aver: Product, aver_home: Path) -> None:
    """The time between two rounds is nobody's."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: 'false'}\n  b: {run: 'true'}\n")
    run = str(aver.submit("flow.yaml"))
    aver("watch", run)
    aver("stop")
    with sqlite3.connect(aver_home / "aver.db") as store:
        store.execute("UPDATE runs SET submitted_at = submitted_at - 50000")
    aver("retry", run)
    summary = aver("watch", run).err
    assert " min" not in summary
    assert " h" not in summary
    assert " in " in summary

"""Executors, runs, jobs and futures in a real notebook: tables that are drawn again while things change."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from flow_lab import Lab

from aver.api.notebook import Table, _follow
from aver.errors import AverError

pytest.importorskip("ipykernel")
nbclient: Any = pytest.importorskip("nbclient")
nbformat: Any = pytest.importorskip("nbformat")

DEADLINE_S = 120
BEGIN = """
import os, time, aver
def wait(name):
    while not os.path.exists(name): time.sleep(0.05)
executor = aver.Executor(name="book")
first, second = executor.submit(wait, "go"), executor.submit(divmod, 1, 0, aver={"name": "<bad>"})
executor
"""
RUN = """
flow = aver.Flow("two")
flow.job("slow", run="until [ -e go ]; do sleep 0.1; done")
flow.job("bad", run="exit 3")
run = flow.submit()
run
"""
# A cell hears of updates only while a cell runs: these wait until the tables were drawn for the last time.
END = """
open("go", "w")
run.wait()
executor.shutdown()
import threading
for thread in threading.enumerate():
    if thread.name == "aver-table": thread.join(60)
"""


def outputs(lab: Lab, *cells: str) -> list[dict[str, str]]:
    """What each cell shows in the end, by its kind."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python", "language": "python"}
    nbclient.NotebookClient(book, timeout=DEADLINE_S, resources={"metadata": {"path": str(lab.folder)}}).execute()
    return [dict(cell.outputs[-1]["data"]) if cell.outputs else {} for cell in book.cells]


def test_tables_are_drawn_again_while_things_change(lab: Lab) -> None:
    """Each shows the end of what it showed the beginning of, without the cell being run again."""
    executor, run, future, job, _ = outputs(lab, BEGIN, RUN, "first", "run['slow']", END)
    assert "2 of 2 settled: " in executor["text/html"]
    assert "1 raised ZeroDivisionError" in executor["text/html"]
    assert "1 returned" in executor["text/html"]
    assert '<progress value="2" max="2">' in executor["text/html"]
    assert "<td>_bad_</td><td>raised ZeroDivisionError</td>" in executor["text/html"]
    assert executor["text/plain"].startswith("<Executor book: ")
    assert " FAILED</b>" in run["text/html"]
    assert "2 of 2 settled" in run["text/html"]
    assert "<td>bad</td><td>FAILED</td><td>NonZeroExitCode</td>" in run["text/html"]
    assert "<td>returned</td>" in future["text/html"]
    assert future["text/plain"].endswith(": returned>")
    assert "<td>slow</td><td>COMPLETED</td>" in job["text/html"]


def test_in_a_terminal_of_ipython_a_line_is_printed(lab: Lab) -> None:
    """Nothing is drawn again there."""
    script = lab.write("import aver\nexecutor = aver.Executor(name='book')\nexecutor\nexit()\n", "typed.ipy")
    words = [sys.executable, "-m", "IPython", "--quick", "--no-banner", "--simple-prompt", "--colors=nocolor"]
    with script.open() as typed:
        done = subprocess.run(
            words, cwd=lab.folder, stdin=typed, env={**os.environ, "IPYTHONDIR": str(lab.folder / "ipython")},
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
    assert "<Executor book: nothing submitted>" in done.stdout


def test_without_ipython_there_is_a_table_all_the_same(lab: Lab) -> None:
    """For whatever else asks for HTML, with a line of text beside it. Aver does not import IPython."""
    script = lab.write(
        "import sys, aver\n"
        "found = aver.Executor(name='book')._repr_mimebundle_()\n"
        "assert 'IPython' not in sys.modules\n"
        "print(found['text/plain'], found['text/html'][:20])\n",
        "script.py",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.stdout, done.stderr) == ("<Executor book: nothing submitted> <b>executor book</b>\n", "")


def test_a_table_that_cant_be_read_any_more_says_so() -> None:
    """The last state stays, and is not taken for the present one."""
    drawn: list[Table] = []

    def fail() -> Table:
        raise AverError("the store is gone")

    _follow(fail, drawn.append, Table("1 running", "<p>1 running</p>", False))
    assert [(one.text, one.is_final) for one in drawn] == [
        ("1 running (not followed any more: the store is gone)", True)
    ]
    assert "1 running" in drawn[0].html
    assert "the store is gone" in drawn[0].html

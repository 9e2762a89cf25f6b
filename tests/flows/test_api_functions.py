"""Functions in flows, async waits, tables for notebooks, and the examples in docstrings."""

from __future__ import annotations

import asyncio
import doctest

import call_kit as kit
import pytest
from flow_lab import Lab

import aver
import aver.api.executor.executor
import aver.api.flow
from aver.errors import UsageError
from aver.model.states import State


def test_functions_in_a_flow(lab: Lab) -> None:
    """Their results go from job to job; a function among commands; exceptions as of a future."""
    flow = aver.Flow("functions", folder=lab.folder)
    first = flow.job("first", fn=kit.add, args=(1, 2))
    touched = flow.job("touched", run="touch here")
    second = flow.job("second", fn=kit.deep, args=({"a": [first, 5]},), needs=touched, mem="1G")
    flow.job("bad", fn=kit.divide, kwargs={"one": 1, "other": 0}, needs={second: "any"})
    flow.job("after", run="true", needs=second)
    with pytest.raises(UsageError, match="no result"):
        flow.job("wrong", fn=kit.add, args=(touched,))
    with pytest.raises(UsageError, match="two of run"):
        flow.job("wrong", "true", fn=kit.add)
    run = flow.run(60)
    assert run.result("second") == [3, 5]
    assert run.result("first") == 3
    with pytest.raises(ZeroDivisionError) as caught:
        run.result("bad")
    assert isinstance(caught.value.__cause__, aver.RemoteTraceback)
    with pytest.raises(UsageError, match="calls no function"):
        run.result("after")
    assert str(run["after"].state) == "COMPLETED"
    with pytest.raises(UsageError, match="build it again"):
        flow.submit()


def keyed_flow(lab: Lab, factor: int = 10, mem: str = "1G") -> aver.Flow:
    flow = aver.Flow("keyed", folder=lab.folder)
    first = flow.job("first", fn=kit.note, args=("ran", "1"))
    flow.job("second", fn=kit.times, args=([first], factor), mem=mem)
    return flow


def test_the_same_key_is_the_same_run(lab: Lab) -> None:
    """Built and submitted again, also after a crash; another function, argument or option is refused, and named."""
    run = keyed_flow(lab).run(60, key="nightly")
    assert run.result("second") == "1" * 10
    again = keyed_flow(lab)
    assert again.submit(key="nightly").number == run.number
    assert again.submit(key="nightly").number == run.number
    lab.kill()
    assert keyed_flow(lab).run(60, key="nightly").number == run.number
    with pytest.raises(UsageError, match=rf"'nightly' is that of run {run.number}.*second: command"):
        keyed_flow(lab, factor=11).submit(key="nightly")
    with pytest.raises(UsageError, match=r"second: mem"):
        keyed_flow(lab, mem="2G").submit(key="nightly")
    with pytest.raises(UsageError, match="a key has"):
        keyed_flow(lab).submit(key="")
    assert keyed_flow(lab).run(60, key="tomorrow").number != run.number
    assert lab.lines("ran") == ["1", "1"]


def test_async_waits(lab: Lab) -> None:
    """Runs and jobs, many at once; a timeout cancels nothing; a coordinator that is killed is connected to again."""
    flow = aver.Flow("waits", folder=lab.folder)
    flow.job("quick", run="true")
    flow.job("slow", run="touch begun; until test -e go; do sleep 0.02; done")
    run = flow.submit()
    lab.wait_for("begun")

    async def story() -> tuple[State, State]:
        assert (await run["quick"].wait_async(60)).state is State.COMPLETED
        with pytest.raises(TimeoutError, match="not settled"):
            await run.wait_async(0.1)
        waits = asyncio.gather(run.wait_async(60), run["slow"].wait_async(60))
        await asyncio.sleep(0)
        lab.kill()
        lab.let_go("go")
        state, verdict = await waits
        return state, verdict.state

    assert asyncio.run(story()) == (State.COMPLETED, State.COMPLETED)


def test_tables_for_notebooks(lab: Lab) -> None:
    """Names are escaped, what failed comes first."""
    flow = aver.Flow("table", folder=lab.folder)
    flow.job("a", run="true")
    flow.job("z", run="exit 3")
    run = flow.run(60)
    text = run._repr_html_()
    assert "(table) FAILED</b>" in text
    assert "2 of 2 settled: 1 COMPLETED, 1 FAILED" in text
    assert text.index("<td>z</td><td>FAILED</td><td>NonZeroExitCode</td>") < text.index("<td>a</td><td>COMPLETED</td>")
    assert "<td>a</td><td>COMPLETED</td><td></td>" in run["a"]._repr_html_()


@pytest.mark.parametrize("module", [aver.api.executor.executor, aver.api.flow], ids=lambda module: module.__name__)
def test_the_examples_of_docstrings(lab: Lab, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run as they stand."""
    monkeypatch.chdir(lab.folder)
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0

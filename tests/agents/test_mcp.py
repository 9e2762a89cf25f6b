"""`aver mcp`, called by the SDK's own client over stdio."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from mcp_agent import Agent, with_agent

FLOW = """\
name: story
defaults: {kill_wait: 1s}
jobs:
  prep: {run: "true"}
  slow:
    needs: [prep]
    time: 1s
    run: |
      echo "step 1 of 2"
      if [ "$AVER_ATTEMPT" = 1 ]; then sleep 300; fi
  report: {needs: [slow], run: "echo done"}
"""
MOST_CALLS = 15
TEN_MINUTES_S, LONGEST_WAIT_S = 600, 50
MOST_BYTES = 8192
HINTS = {
    "check": (True, False, True), "submit": (False, False, False), "list": (True, False, True),
    "status": (True, False, True), "wait": (True, False, True), "wait_any": (True, False, True),
    "why": (True, False, True), "failures": (True, False, True), "log": (True, False, True),
    "cancel": (False, True, True), "retry": (False, False, False), "recover": (False, True, False),
    "usage": (True, False, True),
}  # fmt: skip


def test_a_failing_flow_is_recovered_in_few_calls_and_bytes(folder: Path) -> None:
    """Check, preview, submit, wait, read the failures, recover (preview first), wait: it is COMPLETED."""
    (folder / "flow.yaml").write_text(FLOW)

    async def story(agent: Agent) -> None:
        assert (await agent("check", file="flow.yaml"))[0] == "flow.yaml: no mistakes; 3 jobs"
        line, preview = await agent("submit", file="flow.yaml", key="story-1", preview=True)
        assert (line, preview["run"]) == ("would submit story: 3 jobs", None)
        assert [one["name"] for one in preview["definitions"]] == ["prep", "slow", "report"]
        run = (await agent("submit", file="flow.yaml", key="story-1"))[1]["run"]
        assert (await agent("submit", file="flow.yaml", key="story-1"))[1]["run"] == run
        line, found = await agent.settled(run)
        assert line == f"run {run} TIMEOUT: 1 COMPLETED, 1 SKIPPED, 1 TIMEOUT"
        line, found = await agent("failures", run=str(run), max_bytes=2000)
        assert found["causes"][0]["log"]["text"] == "step 1 of 2"
        assert found["causes"][0]["next"][0] == f"aver recover {run} --dry-run"
        line, found = await agent("recover", run=str(run))
        assert (found["is_preview"], found["round"]) == (True, None)
        assert found["rerun"][0].startswith("slow: ")
        assert (folder / "flow.yaml").read_text() == FLOW
        line, found = await agent("recover", run=str(run), preview=False)
        assert found["round"] == 2
        assert (await agent.settled(run))[0] == f"run {run} COMPLETED: 3 COMPLETED"
        print(f"{agent.calls} calls, {agent.read_bytes} bytes")
        assert agent.calls <= MOST_CALLS
        assert agent.read_bytes <= MOST_BYTES

    with_agent(folder, story)


def test_a_flow_of_ten_minutes_costs_few_calls_and_bytes(folder: Path) -> None:
    """As many waits as ten minutes take, each over without a verdict but the last, which has the failures."""
    (folder / "flow.yaml").write_text("jobs:\n  long: {run: 'until [ -e go ]; do sleep 0.1; done; exit 3'}\n")

    async def story(agent: Agent) -> None:
        run = (await agent("submit", file="flow.yaml", key="long", wait_s=0.1))[1]["run"]
        for _ in range(TEN_MINUTES_S // LONGEST_WAIT_S - 1):
            assert not (await agent("wait", id=str(run), timeout_s=0.1))[1]["is_settled"]
        (folder / "go").touch()
        line, found = await agent.settled(run)
        assert line == f"run {run} FAILED: 1 FAILED"
        assert found["failures"]["causes"][0]["count"] == 1
        assert agent.calls <= MOST_CALLS
        assert agent.read_bytes <= MOST_BYTES

    with_agent(folder, story)


def test_wait_returns_in_time_and_cancel_ends_a_job(folder: Path) -> None:
    """A wait that is over says so, with a cursor from which wait_any misses nothing."""

    async def story(agent: Agent) -> None:
        job = (await agent("submit", command=["sleep", "300"], name="long"))[1]["run"]
        line, found = await agent("wait", id=str(job), timeout_s=0.5)
        assert line.startswith(f"not settled yet, wait again: job {job} ")
        assert not found["is_settled"]
        assert (await agent("wait_any", since=found["cursor"], timeout_s=0))[1]["events"] == []
        assert "cancel" in (await agent("cancel", ids=[str(job)]))[0]
        for _ in range(2):  # the same cursor gives the same answer
            line, settled = await agent("wait_any", since=found["cursor"])
            assert line == f"run {job} CANCELLED"
        assert (await agent("wait_any", since=settled["cursor"], timeout_s=0))[1]["events"] == []
        assert (await agent("why", job=str(job)))[0].startswith(f"job {job} CANCELLED: ")
        assert (await agent("status", id=str(job)))[1]["subjects"][0]["state"] == "CANCELLED"

    with_agent(folder, story)


def test_logs_lists_retries_and_usage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a log, its secrets masked; a job that failed runs again."""
    (folder / "job.sh").write_text("#!/bin/sh\nseq 1 5000\necho token $TOKEN\nexit 3\n")

    async def story(agent: Agent) -> None:
        job = (await agent("submit", file="job.sh", secrets=["TOKEN"]))[1]["run"]
        await agent.settled(job)
        end = (await agent("log", job=str(job), max_bytes=1000))[1]
        assert end["is_cut"]
        assert end["text"].endswith("\n4999\n5000\ntoken ***\n")
        assert len(end["text"]) <= 1000
        part = (await agent("log", job=str(job), first_line=10, max_bytes=1000))[1]
        assert part["text"].startswith("10\n11\n")
        rest = (await agent("log", job=str(job), first_line=part["next_line"], max_bytes=1000))[1]
        assert rest["text"].startswith(f"{int(part['text'].split()[-1]) + 1}\n")
        assert (await agent("log", job=str(job), grep="499"))[1]["text"].split()[0] == "499"
        assert (await agent("list"))[1]["subjects"][0]["counts"] == {"FAILED": 1}
        assert (await agent("list", run=str(job), state="failed"))[1]["subjects"][0]["exit"] == "3:0"
        assert (await agent("retry", ids=[str(job)]))[0] == "1 job will run again"
        assert (await agent.settled(job))[1]["subjects"][0]["attempt"] == 2
        assert (await agent("usage", run=str(job)))[1]["groups"][0]["jobs"] == 1

    monkeypatch.setenv("TOKEN", "hunter2-token")
    with_agent(folder, story)


def test_mistakes_are_one_answer_and_the_server_goes_on(folder: Path) -> None:
    """Unknown tools, arguments and jobs, wrong flows, another content under the same key."""
    (folder / "wrong.yaml").write_text("jobs: {a: {rnu: 'true'}}\n")

    async def story(agent: Agent) -> None:
        assert (await agent("list"))[0] == "nothing was submitted yet"
        assert "no tool 'shell'" in await agent.refused("shell", command="true")
        assert "unknown field" in await agent.refused("status", id="7", more=1)
        assert "timeout_s" in await agent.refused("wait", id="7", timeout_s=600)
        assert "no job or run" in await agent.refused("status", id="7")
        assert "nothing to run" in await agent.refused("submit")
        assert (await agent("check", file="wrong.yaml"))[1]["mistakes"][0]["line"] == 1
        assert "wrong.yaml" in await agent.refused("submit", file="wrong.yaml")
        await agent("submit", command=["true"], key="one")
        assert "one" in await agent.refused("submit", command=["false"], key="one")

    with_agent(folder, story)


def test_tools_have_hints_and_schemas(folder: Path) -> None:
    """Read-only, destructive and idempotent as they are; the list is small."""

    async def story(agent: Agent) -> None:
        tools = await agent.tools()
        found = {
            name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint, tool.annotations.idempotent_hint)
            for name, tool in tools.items()
        }
        assert found == HINTS
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert (tool.input_schema["type"], tool.output_schema["type"]) == ("object", "object")

    with_agent(folder, story)


def test_without_the_sdk_one_line_says_what_to_install(tmp_path: Path) -> None:
    """A Python that has Aver's own dependencies and no more."""
    packages = Path(jsonschema.__file__).parents[1]
    for name in ("click", "msgspec", "rich", "yaml", "_yaml", "markdown_it", "mdurl", "pygments"):
        if (packages / name).exists():
            (tmp_path / name).symlink_to(packages / name)
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-S", "-m", "aver", "mcp"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{source}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "aver: aver mcp needs the MCP SDK: pip install 'aver[mcp]'\n"

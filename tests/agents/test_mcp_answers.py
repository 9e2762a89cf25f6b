"""What tools of `aver mcp` answer in corners: after a retry, for a part of a run, of long lines, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp_agent import Agent, with_agent

TWO = """\
name: two
jobs:
  good: {run: "true"}
  bad: {run: "exit 3"}
"""


def states(found: Any) -> list[tuple[int | None, str]]:
    return [(one["job"], one["state"]) for one in found["events"]]


def test_wait_any_answers_as_things_are_now(folder: Path) -> None:
    """A retry is under way: the last round's verdict is no answer; its own verdict is, and once settled at once."""
    (folder / "job.sh").write_text("#!/bin/sh\n[ $AVER_ATTEMPT = 1 ] && exit 3\nuntil [ -e go ]; do sleep 0.05; done\n")

    async def story(agent: Agent) -> None:
        job = (await agent("submit", file="job.sh"))[1]["run"]
        await agent.settled(job)
        assert states((await agent("wait_any", ids=[str(job)], timeout_s=0))[1]) == [(job, "FAILED")]
        await agent("retry", ids=[str(job)])
        line, found = await agent("wait_any", ids=[str(job)], timeout_s=0)
        assert (line, found["events"]) == ("nothing was settled, wait again", [])
        (folder / "go").touch()
        line, after = await agent("wait_any", ids=[str(job)], since=found["cursor"])
        assert line == f"job {job} COMPLETED"
        line, now = await agent("wait_any", ids=[str(job)], timeout_s=0)
        assert states(now) == [(job, "COMPLETED")]
        assert now["events"][0] == after["events"][0]
        assert (await agent("wait_any", ids=[str(job)], since=now["cursor"], timeout_s=0))[1]["events"] == []

    with_agent(folder, story)


def test_a_retry_is_done_or_refused_as_a_whole(folder: Path) -> None:
    """Of two runs one can't be retried: nothing is."""
    (folder / "flow.yaml").write_text(TWO)

    async def story(agent: Agent) -> None:
        bad = (await agent("submit", file="flow.yaml"))[1]["run"]
        await agent.settled(bad)
        good = (await agent("submit", command=["true"]))[1]["run"]
        running = (await agent("submit", command=["sleep", "300"]))[1]["run"]
        await agent.settled(good)
        assert "not settled" in await agent.refused("retry", ids=[str(bad), str(running)])
        assert "no job or run" in await agent.refused("retry", ids=[str(bad), "999"])
        line, _ = await agent("status", id=str(bad))
        assert line == f"run {bad} FAILED: 1 COMPLETED, 1 FAILED"
        assert (await agent("retry", ids=[str(bad), f"{bad}/bad", str(good)]))[0] == "2 jobs will run again"
        assert (await agent.settled(bad))[0] == f"run {bad} FAILED: 1 COMPLETED, 1 FAILED"
        assert (await agent.settled(good))[1]["subjects"][0]["attempt"] == 2
        await agent("cancel", ids=[str(running)])

    with_agent(folder, story)


def test_list_and_usage_of_a_part_of_a_run(folder: Path) -> None:
    """An address that names one job of a run is about that job."""
    (folder / "flow.yaml").write_text(TWO)

    async def story(agent: Agent) -> None:
        run = (await agent("submit", file="flow.yaml"))[1]["run"]
        await agent.settled(run)
        line, found = await agent("list", run=f"{run}/bad")
        assert [one["name"] for one in found["subjects"]] == ["bad"]
        assert line == f"run {run} FAILED: 1 job"
        assert [one["name"] for one in (await agent("usage", run=f"{run}/good"))[1]["groups"]] == ["good"]

    with_agent(folder, story)


def test_a_line_longer_than_the_budget(folder: Path) -> None:
    """It is said that it is cut; with grep the part around the text is what is kept."""
    (folder / "job.sh").write_text(
        "#!/bin/sh\nhead -c 3000 /dev/zero | tr '\\0' a\nprintf needle\nhead -c 3000 /dev/zero | tr '\\0' b\necho\n"
    )

    async def story(agent: Agent) -> None:
        job = str((await agent("submit", file="job.sh"))[1]["run"])
        await agent.settled(int(job))
        part = (await agent("log", job=job, first_line=1, max_bytes=1000))[1]
        assert (part["is_cut"], part["next_line"], len(part["text"])) == (True, None, 1000)
        for first_line in (None, 1):
            given = {} if first_line is None else {"first_line": first_line}
            found = (await agent("log", job=job, grep="needle", max_bytes=1000, **given))[1]
            assert (found["is_cut"], len(found["text"])) == (True, 1000)
            assert "aaaneedlebbb" in found["text"]

    with_agent(folder, story)


def test_submit_waits_and_answers_with_the_failures(folder: Path) -> None:
    """One call from a flow to its verdict and the digest of its failures; a wait has the digest too."""
    (folder / "flow.yaml").write_text(TWO)

    async def story(agent: Agent) -> None:
        line, found = await agent("submit", file="flow.yaml", wait_s=50)
        run = found["run"]
        assert line == f"submitted two as {run}: 2 jobs; run {run} FAILED: 1 COMPLETED, 1 FAILED"
        assert found["is_settled"]
        assert found["failures"]["causes"][0]["count"] == 1
        assert agent.calls == 1
        waited = (await agent("wait", id=f"{run}/bad"))[1]
        assert waited["failures"]["causes"] == found["failures"]["causes"]
        assert (await agent("wait", id=f"{run}/good"))[1].get("failures") is None
        line, found = await agent("submit", command=["sleep", "300"], wait_s=0.1)
        assert (found["is_settled"], found.get("failures")) == (False, None)
        assert line.endswith(f"; not settled yet, wait: job {found['run']} {found['subjects'][0]['state']}")
        await agent("cancel", ids=[str(found["run"])])

    with_agent(folder, story)

"""What the live page's server answers: events by number, limits, the description of its API, metrics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from page_server import GATE, PageServer, mixed_flow

from aver.model.job import Matrix
from live_home import LiveHome, shell_job


def test_many_changes_are_at_most_four_events_a_second(live: LiveHome, server: PageServer) -> None:
    """A burst is few events, none is lost, and a page that comes back with the last id misses nothing."""
    connection = server.connection()
    connection.request("GET", f"/{server.place}/api/events", headers={"Host": server.host, "Cookie": server.cookie})
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")

    def event() -> tuple[int, str, dict[str, object]]:
        found: dict[str, str] = {}
        while "data" not in found:
            name, _, value = stream.readline().decode().strip().partition(": ")
            found[name] = value
        return int(found["id"]), found["event"], json.loads(found["data"])

    begin, kind, _ = event()
    assert kind == "beat"
    numbers = tuple(str(number) for number in range(100))
    run = live.submit(shell_job("n", "true", matrix=Matrix((("n", numbers),))), is_single=False)
    live.settle([run], 120)
    with live.reader() as reader:
        end = reader.last_seq()
    seen: set[object] = set()
    changes = 0
    seq = begin
    while seq < end:
        seq, kind, data = event()
        if kind == "change":
            changes += 1
            assert data["is_whole"]
            seen |= set(data["jobs"])  # type: ignore[call-overload]
    connection.close()
    assert seen >= set(range(run + 1, run + 101))
    answer = server.connection()
    answer.request("GET", f"/{server.place}/api/events",
                   headers={"Host": server.host, "Cookie": server.cookie, "Last-Event-ID": str(begin)})  # fmt: skip
    stream = answer.getresponse()
    event()
    again: set[object] = set()
    while seq_now := event():
        again |= set(seq_now[2].get("jobs", ()))  # type: ignore[call-overload]
        if seq_now[0] >= end:
            break
    answer.close()
    assert again >= seen


def test_a_look_at_waiting_jobs_starts_no_process(live: LiveHome, tmp_path: Path) -> None:
    """`now` says of each waiting job which jobs have the CPUs, and asks the kernel nothing that needs a process."""
    gate = tmp_path / "gate"
    numbers = tuple(str(number) for number in range(40))
    run = live.submit(shell_job("n", GATE, matrix=Matrix((("n", numbers),))), is_single=False, env={"GATE": str(gate)})
    live.wait_running(run + 1)
    look = (
        "import io, os, sys\n"
        "from starlette.datastructures import QueryParams\n"
        "from aver.cli.output.text import Output\n"
        "from aver.cli.session import Session\n"
        "from aver.ui.views import now_view\n"
        "started = []\n"
        "names = ('subprocess.Popen', 'os.posix_spawn', 'os.fork', 'os.exec')\n"
        "sys.addaudithook(lambda name, _: started.append(name) if name in names else None)\n"
        "now = now_view(Session(output=Output(io.BytesIO(), io.BytesIO())), QueryParams(''))\n"
        "print(started, now.waiting.items[0].note)\n"
    )
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    gate.touch()
    assert said.startswith("[] waiting for 1 CPU: job"), said


def test_a_page_that_follows_from_its_session_misses_nothing(live: LiveHome, server: PageServer) -> None:
    """What is committed between the first answer and the stream is told."""
    live.settle([live.run_text("true")])
    seq = server.get("session")["seq"]
    job = live.run_text("true")
    live.settle([job])
    connection = server.connection()
    connection.request(
        "GET", f"/{server.place}/api/events?after={seq}", headers={"Host": server.host, "Cookie": server.cookie}
    )
    stream = connection.getresponse()
    while not (line := stream.readline()).startswith(b'data: {"runs"'):
        assert line
    connection.close()
    assert json.loads(line.partition(b": ")[2])["jobs"] == [job]


def test_requests_have_limits(live: LiveHome, server: PageServer) -> None:
    """What is wrong with a request is one line."""
    mixed_flow(live)
    for path, words in (
        ("runs/77", "no job or run 77"), ("jobs/77", "no job 77"), ("runs/1/jobs?order=x", "order='x'"),
        ("runs/1/jobs?state=GOOD", "the states are"), ("runs/1/jobs?after=[1]", "not a cursor"),
        ("runs/1/jobs?limit=9999", "from 1 to 500"), ("jobs/2/log?at=-1", "not a number"),
        ("jobs/2/log?attempt=9", "no attempt 9"), ("jobs/2/log?stream=stderr", "same file"),
        ("jobs/6/log", "has not started"), ("jobs/2/search", "what to look for"), ("compare", "no job or run 0"),
        ("runs/1/grid", "which matrix"), ("runs/1/jobs?group=x", "not a group"), ("runs?since=x", "not a time"),
    ):  # fmt: skip
        answer = server.ask("GET", f"/{server.place}/api/{path}", {"Cookie": server.cookie})
        assert answer.status == 400, (path, answer)
        assert words in answer.data["error"], path
        assert "\n" not in answer.data["error"]
    for word, fields, said in (
        ("cancel", {"ids": []}, "1 to 1000"),
        ("cancel", {"ids": ["x"]}, "can't be read"),
        ("cancel", {"ids": [2], "more": 1}, "can't be read"),
        ("signal", {"ids": [2]}, "signal"),
        ("hold", {"ids": [2], "reason": "r" * 501}, "at most 500"),
        ("check", {"name": "../x.yaml", "text": "", "folder": "/"}, "a file's name"),
        ("submit", {"name": "x.yaml", "text": "", "folder": "relative"}, "not a folder"),
        ("recover", {"ids": []}, "one run"),
    ):
        answer = server.post(word, **fields)
        assert answer.status == 400, (word, answer)
        assert said in answer.data["error"], answer
    assert server.post("cancel", ids=[77]).data["results"][0]["done"] is False


def test_the_api_is_described(live: LiveHome, server: PageServer) -> None:
    """Every route that answers with a document is in openapi.json, and every reference leads somewhere."""
    found = server.get("openapi.json")
    assert {"/api/now", "/api/runs/{number}/jobs", "/api/act/cancel", "/api/jobs/{number}/log"} <= set(found["paths"])
    text = json.dumps(found)
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= set(found["components"]["schemas"])


def test_metrics_are_openmetrics(live: LiveHome, server: PageServer) -> None:
    """A type before each sample, counts by state, and the end mark."""
    mixed_flow(live)
    answer = server.ask("GET", f"/{server.place}/metrics", {"Authorization": f"Bearer {server.token}"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    lines = answer.text.splitlines()
    assert lines[-1] == "# EOF"
    assert 'aver_jobs_settled_last_hour{state="COMPLETED"} 3' in lines
    assert 'aver_jobs_settled_last_hour{state="FAILED"} 1' in lines
    assert "aver_queue_wait_seconds_count 4" in lines
    assert "aver_verdict_latency_seconds_count 4" in lines
    buckets = [int(line.split()[1]) for line in lines if line.startswith("aver_verdict_latency_seconds_bucket")]
    assert buckets == sorted(buckets)
    assert 'aver_verdict_latency_seconds_bucket{le="+Inf"} 4' in lines
    assert buckets[-1] == 4
    types = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    for line in lines:
        if not line.startswith("#"):
            name = line.partition("{")[0].partition(" ")[0]
            assert any(name == one or name.startswith(f"{one}_") for one in types), line

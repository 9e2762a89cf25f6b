"""Every path of the live page's API, asked for real: its answers fit the description that the server itself gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from page_server import GATE, Answer, PageServer, mixed_flow

from live_home import LiveHome, shell_job, wait_for

ROOT = Path(__file__).parents[2]
GETS = {  # by path: what is asked, with the numbers of a run and of a job of it
    "/api/session": ("session",),
    "/api/now": ("now",),
    "/api/runs": ("runs", "runs?engine=local&limit=1&text=mix&folder=work&since=1&state=FAILED", "runs?within=3600"),
    "/api/runs/{number}": ("runs/{run}",),
    "/api/runs/{number}/jobs": ("runs/{run}/jobs", "runs/{run}/jobs?order=mem&turn=down&limit=1&state=COMPLETED"),
    "/api/runs/{number}/groups": ("runs/{run}/groups",),
    "/api/runs/{number}/grid": ("runs/{run}/grid?group={first}.1",),
    "/api/runs/{number}/causes": ("runs/{run}/causes",),
    "/api/runs/{number}/usage": ("runs/{run}/usage",),
    "/api/jobs/{number}": ("jobs/{job}", "jobs/{failed}"),
    "/api/jobs/{number}/environment": ("jobs/{job}/environment",),
    "/api/jobs/{number}/log": ("jobs/{job}/log", "jobs/{job}/log?at=2&bytes=3"),
    "/api/jobs/{number}/search": ("jobs/{job}/search?text=prep", "jobs/{job}/search?text=nowhere"),
    "/api/compare": ("compare?first={run}&second={run}",),
}
FLOW = {"name": "x.yaml", "text": "jobs:\n  a: {run: 'true'}\n"}
WRONG_FLOW = {"name": "x.yaml", "text": "jobs:\n  a: {runs: 'true'}\n"}


class Described:
    """The server's description, and the schema of the documents of `--json` that it leads to."""

    def __init__(self, server: PageServer) -> None:
        self.document = server.get("openapi.json")
        self._json = json.loads((ROOT / "docs" / "json.schema.json").read_text())
        self.seen: set[tuple[str, str]] = set()

    def check(self, method: str, path: str, answer: Answer) -> Any:
        """What was answered fits what is said of this path."""
        self.seen.add((method, path))
        status = "200" if answer.status == 200 else f"{answer.status // 100}XX"
        said = self.document["paths"][path][method]["responses"][status]
        schema = {**said["content"]["application/json"]["schema"], "components": self.document["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.data)
        if answer.data["kind"] in ("causes", "usage", "recovered"):
            jsonschema.Draft202012Validator(self._json).validate(answer.data)
        return answer.data


@pytest.fixture
def described(server: PageServer) -> Described:
    return Described(server)


def ask(server: PageServer, path: str) -> Answer:
    return server.ask("GET", f"/{server.place}/api/{path}", {"Cookie": server.cookie})


def test_every_path_answers_as_it_is_described(live: LiveHome, server: PageServer, described: Described) -> None:
    """Each view and each action, answered and refused."""
    run = mixed_flow(live)
    numbers = {"run": run, "first": run + 1, "job": run + 1, "failed": run + 3}
    for path, examples in GETS.items():
        for example in examples:
            answer = ask(server, example.format(**numbers))
            assert answer.status == 200, (example, answer)
            described.check("get", path, answer)
        described.check("get", path, ask(server, f"{path[5:].replace('{number}', '777')}?limit=x&first=777&group=x"))
    _act(live, server, described, run)
    listed = {(method, path) for path, methods in described.document["paths"].items() for method in methods}
    assert described.seen == listed


def _act(live: LiveHome, server: PageServer, described: Described, run: int) -> None:
    gate = live.folder / "gate"
    job = live.submit(shell_job("job", f"trap '' USR1; {GATE}"), env={"GATE": str(gate)})
    live.wait_running(job)

    def post(word: str, **fields: Any) -> Any:
        answer = server.post(word, **fields)
        assert answer.status == 200, (word, answer)
        asked = described.document["paths"][f"/api/act/{word}"]["post"]["requestBody"]["content"]["application/json"]
        schema = {**asked["schema"], "components": described.document["components"]}
        jsonschema.Draft202012Validator(schema).validate(fields)
        refused = server.post(word, **fields, unknown=1)
        assert refused.status == 400, refused
        described.check("post", f"/api/act/{word}", refused)
        return described.check("post", f"/api/act/{word}", answer)

    post("signal", ids=[job], signal="USR1")
    post("suspend", ids=[job])
    wait_for(lambda: live.job(job).state == "SUSPENDED", "the suspended job")
    post("resume", ids=[job])
    wait_for(lambda: live.job(job).state == "RUNNING", "the resumed job")
    held = live.submit(shell_job("held", "true", hold=True))
    post("hold", ids=[held], reason="not yet")
    post("release", ids=[held])
    live.settle([held])
    post("cancel", ids=[job], force=True)
    live.settle([job])
    post("retry", ids=[run])
    live.settle([run])
    assert not post("accept", ids=[run])["results"][0]["done"]
    assert not post("recover", ids=[run], preview=True)["jobs"]
    folder = str(live.folder)
    assert post("check", **FLOW, folder=folder)["mistakes"] == []
    assert post("check", **WRONG_FLOW, folder=folder)["mistakes"]
    live.settle([post("submit", **FLOW, folder=folder)["run"]])

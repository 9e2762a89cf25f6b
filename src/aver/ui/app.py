"""The routes: each answers with a document, made in a thread by a session of its own.

What a user can cause is an answer of one line with a status; a bug is 500 and a traceback on the server's stderr.
"""

from __future__ import annotations

import io
import json
import os
import socket
import threading
from collections.abc import Callable
from importlib import resources
from typing import Any, NamedTuple

import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from aver.cli.output import documents as cli_doc
from aver.cli.output import report_documents as report_doc
from aver.cli.output.json import KINDS, plain
from aver.cli.output.text import Output
from aver.cli.session import Session, user_name
from aver.errors import AverError, InternalError, UnreachableError, UsageError
from aver.home import Home
from aver.model.codec import loads
from aver.model.record import Record
from aver.ui import actions, log_range, pictures, query, views
from aver.ui import documents as doc
from aver.ui.access import CHANGE_HEADER, Keys
from aver.ui.feed import Feed, Subject
from aver.ui.metrics import metrics_text
from aver.ui.shared import Shared
from aver.version import __version__

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
STATUSES = {UsageError: 400, UnreachableError: 503, InternalError: 500}
SHARED = {"page.css": "aver.report.html", "elements.js": "aver.report.html"}  # parts of the report
FILES = resources.files("aver.ui").joinpath("files")
EVENT = "event"  # in the address of a question: the number of the event that it follows
EXPORTS = "\nexport { make, duration, bytes, badge, clock };\n"
OWN_KINDS = {
    "SessionFacts": "session", "Now": "now", "RunPage": "run_page", "RunView": "run_view", "JobPage": "job_page",
    "GroupView": "groups", "Grid": "grid", "JobView": "job_view", "EnvironmentView": "environment",
    "LogRange": "log_range", "LogMatch": "log_match", "Comparison": "comparison", "CheckedFlow": "checked",
    "ErrorFacts": "error",
}  # fmt: skip


_HAD_STORE = threading.Event()  # set when the home of this process is first seen with a store


class View(NamedTuple):
    """A GET route: its path, what it says of itself, the words it takes, and what it answers with."""

    path: str
    words: str
    takes: tuple[str, ...]
    answer: type[Record]
    function: Callable[..., Record]


class Change(NamedTuple):
    """A POST route."""

    path: str
    words: str
    asked: type[Record]
    answer: type[Record]
    function: Callable[[Session, Any], Record]


VIEWS = (
    View("/api/now", "What runs, waits, settles and failed since yesterday.", (), doc.Now, views.now_view),
    View("/api/runs", "Runs, newest first.", ("state", "text", "folder", "engine", "since", "within", "after", "limit"),
         doc.RunPage,
         views.runs_view),
    View("/api/runs/{number}", "One run.", (), doc.RunView, views.run_view),
    View("/api/runs/{number}/jobs", "Jobs of a run.",
         ("state", "text", "group", "order", "turn", "after", "limit"), doc.JobPage, views.jobs_view),
    View("/api/runs/{number}/groups", "The graph of a run.", (), doc.GroupView, pictures.groups_view),
    View("/api/runs/{number}/grid", "The members of a matrix.", ("group",), doc.Grid, pictures.grid_view),
    View("/api/runs/{number}/causes", "Why jobs of a run failed.", (), report_doc.CauseList, views.causes_view),
    View("/api/runs/{number}/usage", "What groups of a run asked for and used.", (), report_doc.UsageList,
         views.usage_view),
    View("/api/jobs/{number}", "One job, with its evidence.", (), doc.JobView, views.job_view),
    View("/api/jobs/{number}/environment", "What a job inherits, masked.", (), doc.EnvironmentView,
         views.environment_view),
    View("/api/jobs/{number}/log", "A part of a job's output.", ("attempt", "stream", "at", "end", "bytes"),
         doc.LogRange, log_range.log_view),
    View("/api/jobs/{number}/search", "Find a text in a job's output.", ("attempt", "stream", "text", "at", "turn"),
         doc.LogMatch, log_range.search_view),
    View("/api/compare", "Two runs, job by job.", ("first", "second"), doc.Comparison, pictures.compare_view),
)  # fmt: skip
CHANGES = (
    *(
        Change(f"/api/act/{word}", f"As `aver {word}`.", actions.ActAsked, cli_doc.Acted, actions.act(word))
        for word in actions.ACTIONS
    ),
    Change("/api/act/recover", "As `aver recover`.", actions.RecoverAsked, report_doc.Recovered, actions.recover),
    Change("/api/act/check", "As `aver check`.", actions.FlowAsked, doc.CheckedFlow, actions.check_flow),
    Change("/api/act/submit", "As `aver submit`.", actions.FlowAsked, cli_doc.SubmittedFacts, actions.submit_flow),
)


def make_app(keys: Keys, is_read_only: bool) -> Starlette:
    """The application, without its guard."""
    feed, folder = Feed(Home.find()), os.getcwd()

    def session_view(session: Session, _: QueryParams) -> doc.SessionFacts:
        return doc.SessionFacts(
            __version__, str(session.home.path), user_name(), socket.gethostname(), folder, is_read_only,
            None if is_read_only else keys.change, 0 if session.reader is None else session.reader.last_seq(),
        )  # fmt: skip

    about = View("/api/session", "This server.", (), doc.SessionFacts, session_view)

    async def events(request: Request) -> Response:
        try:
            named = QueryParams(
                {"after": request.headers.get("last-event-id") or request.query_params.get("after", "")}
            )
            after = query.number(named, "after", -1)
            subject = _subject(request.query_params)
        except UsageError as error:
            return _error(error)
        stream = feed.stream(None if after < 0 else after, subject)
        return StreamingResponse(stream, media_type="text/event-stream")

    shown = (about, *VIEWS)
    routes = [
        Route("/", _file_route("index.html")),
        *(Route(f"/files/{name}", _file_route(name)) for name in _file_names()),
        *(Route(one.path.replace("{number}", "{number:int}"), _view_route(one, lambda: feed.told)) for one in shown),
        *(Route(change.path, _change_route(change), methods=["POST"]) for change in CHANGES),
        Route("/api/events", events),
        Route("/api/openapi.json", _openapi_route(shown)),
        Route("/metrics", _metrics_route),
    ]
    app = Starlette(routes=routes)
    app.state.feed = feed
    return app


def _subject(params: QueryParams) -> Subject | None:
    """`job=N` or `run=N`: the one that the page shows."""
    job, run = query.number(params, "job", 0), query.number(params, "run", 0)
    return Subject("job", job) if job else Subject("run", run) if run else None


def _file_names() -> list[str]:
    own = [entry.name for entry in FILES.iterdir() if entry.name.endswith(tuple(TYPES))]
    return [*own, *SHARED]


def _file_route(name: str) -> Callable[[Request], Response]:
    folder = resources.files(SHARED[name]) if name in SHARED else FILES
    text = folder.joinpath(name).read_text("utf-8")
    body = (text + EXPORTS if name == "elements.js" else text).encode()
    kind = f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8"
    return lambda request: Response(body, headers={"content-type": kind})


def _new_session() -> Session:
    return Session(output=Output(io.BytesIO(), io.BytesIO()))


def _view_route(view: View, told: Callable[[], int]) -> Callable[[Request], Response]:
    shared: Shared[Response] = Shared(told)

    def answer(request: Request) -> Response:
        numbers = [request.path_params["number"]] if "number" in request.path_params else []
        params = QueryParams([pair for pair in request.query_params.multi_items() if pair[0] != EVENT])
        try:
            event = query.number(request.query_params, EVENT, 0) or None
        except UsageError as error:
            return _error(error)
        return shared.get(
            f"{numbers} {params}", lambda: _answer(lambda session: view.function(session, params, *numbers)), event
        )

    return answer


def _change_route(change: Change) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        body = await request.body()
        return await anyio.to_thread.run_sync(_change, change, body)

    return answer


def _change(change: Change, body: bytes) -> Response:
    try:
        asked = loads(change.asked, body.decode())
    except (ValueError, msgspec.ValidationError) as error:
        return _error(UsageError(f"the request can't be read: {error}"))
    return _answer(lambda session: change.function(session, asked))


def _answer(make: Callable[[Session], Record]) -> Response:
    try:
        session = _new_session()
    except AverError as error:
        return _error(error)
    try:
        _check_store(session)
        document = make(session)
        masking = session.output.masking
        kind = _kind(type(document))
        text = json.dumps({"kind": kind, **plain(document, masking)}, separators=(",", ":"), ensure_ascii=False)
    except AverError as error:
        return _error(error, session)
    finally:
        session.close()
    return Response(text.encode("utf-8", "replace"), media_type="application/json")


def _check_store(session: Session) -> None:
    """Raise AverError where the store has gone: without it nobody knows what runs, which is not that nothing does."""
    if session.reader is not None:
        _HAD_STORE.set()
    elif _HAD_STORE.is_set():
        raise AverError(f"the database is gone: {session.home.database}")


def _kind(answer: type[Record]) -> str:
    return OWN_KINDS.get(answer.__name__) or KINDS[answer.__name__]


def _error(error: AverError, session: Session | None = None) -> Response:
    text = str(error) if session is None else session.output.masking.whole(str(error))
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 409)
    body = json.dumps({"kind": "error", "error": text}).encode()
    return Response(body, status_code=status, media_type="application/json")


def _metrics_route(request: Request) -> Response:
    try:
        session = _new_session()
        _check_store(session)
        text = metrics_text(session)
        session.close()
    except AverError as error:
        return _error(error)
    return Response(text, headers={"content-type": "application/openmetrics-text; version=1.0.0; charset=utf-8"})


def _openapi_route(shown: tuple[View, ...]) -> Callable[[Request], Response]:
    return lambda request: Response(json.dumps(openapi(shown)), media_type="application/json")


def openapi(shown: tuple[View, ...] = VIEWS) -> dict[str, Any]:
    """The description of all routes that answer with documents."""
    kinds = [*(view.answer for view in shown), *(one for change in CHANGES for one in (change.asked, change.answer))]
    own = [kind for kind in kinds if kind.__module__ != report_doc.__name__]
    _, parts = msgspec.json.schema_components([*own, doc.ErrorFacts], ref_template="#/components/schemas/{name}")
    for kind in set(kinds) - set(own):
        said = f"As `--json` prints it, with the kind {KINDS[kind.__name__]}: docs/json.schema.json describes it."
        parts[kind.__name__] = {"type": "object", "description": said}
    answers = [*(view.answer for view in shown), *(change.answer for change in CHANGES), doc.ErrorFacts]
    for answer in {one for one in answers if one in own or one is doc.ErrorFacts}:
        part = parts[answer.__name__]
        part["properties"] = {"kind": {"const": _kind(answer)}, **part["properties"]}
        part["required"] = ["kind", *part.get("required", ())]
    paths: dict[str, Any] = {}
    for view in shown:
        words: list[dict[str, Any]] = [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in (*view.takes, EVENT)
        ]
        if "{number}" in view.path:
            words.append({"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}})
        paths[view.path] = {"get": {"summary": view.words, "parameters": words, "responses": _responses(view.answer)}}
    for change in CHANGES:
        header = {"name": CHANGE_HEADER, "in": "header", "required": True, "schema": {"type": "string"}}
        body = {"required": True, "content": {"application/json": {"schema": _ref(change.asked)}}}
        paths[change.path] = {
            "post": {
                "summary": change.words, "parameters": [header], "requestBody": body,
                "responses": _responses(change.answer),
            }
        }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {"title": "aver ui", "version": __version__},
        "paths": paths,
        "components": {"schemas": parts},
    }


def _responses(answer: type[Record]) -> dict[str, Any]:
    return {
        "200": {"description": "The document.", "content": {"application/json": {"schema": _ref(answer)}}},
        "4XX": {"description": "Refused.", "content": {"application/json": {"schema": _ref(doc.ErrorFacts)}}},
    }


def _ref(kind: type[Record]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}

"""What the page can change: each action sends the coordinator the request of the command of its name.

Who did it is the user of this process; the reason that was typed is kept beside it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

from aver.cli.commands.run.submit import command as SUBMIT
from aver.cli.group import Invocation
from aver.cli.output.documents import Acted, Done, SubmittedFacts
from aver.cli.output.report_documents import Recovered
from aver.cli.recover_pass import begin, plan_pass
from aver.cli.selection import whole_run
from aver.cli.session import Session, user_name
from aver.cli.submission import build, submit
from aver.durable_files import write_file
from aver.errors import CantWriteError, UsageError
from aver.model.record import Record
from aver.model.signals import parse_signal
from aver.ownership import make_folder
from aver.plan.matrix import FlowIndex
from aver.protocol.messages import Accept, Cancel, Hold, Release, Request, Results, Resume, Retried, Retry, Suspend
from aver.report.measure import Rules
from aver.spec.load import load
from aver.spec.mistakes import SpecError
from aver.ui.documents import CheckedFlow, MistakeFacts

MOST_IDS = 1000
LONGEST_REASON = 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KEY = re.compile(r"[a-z0-9]{16,64}")
FLOW_SUFFIXES = (".yaml", ".yml", ".json")


class ActAsked(Record):
    """`ids`: jobs or runs. `signal` is for the action of that name."""

    ids: tuple[int, ...]
    reason: str = ""
    signal: str | None = None
    force: bool = False


class RecoverAsked(Record):
    """`preview` true changes nothing."""

    ids: tuple[int, ...]
    preview: bool = True


class FlowAsked(Record):
    """A flow's file as it was dropped: its name and text, and the folder in which its jobs start.

    `key` is the page's own, for `submit`: the same key is the same run.
    """

    name: str
    text: str
    folder: str
    key: str = ""


def act(word: str) -> Callable[[Session, ActAsked], Acted]:
    """The action of this name."""

    def acting(session: Session, asked: ActAsked) -> Acted:
        _check(asked.ids, asked.reason)
        if word == "retry":
            done = session.ask(Retry(asked.ids, user_name(), reason=asked.reason), Retried)
            return Acted(word, tuple(Done(job, "will run again") for job in done.jobs))
        reply = session.ask(_request(word, asked), Results)
        return Acted(word, tuple(Done(one.id, one.did, one.code.is_so, one.code.value) for one in reply.results))

    return acting


def _request(word: str, asked: ActAsked) -> Request:
    by, reason = user_name(), asked.reason
    match word:
        case "cancel":
            return Cancel(asked.ids, by, force=asked.force, reason=reason)
        case "signal":
            try:
                number = parse_signal(asked.signal or "")
            except ValueError as error:
                raise UsageError(f"signal: {error}") from None
            return Cancel(asked.ids, by, signal=number, reason=reason)
        case "hold":
            return Hold(asked.ids, by, reason=reason)
        case "release":
            return Release(asked.ids, by, reason=reason)
        case "suspend":
            return Suspend(asked.ids, by, reason=reason)
        case "resume":
            return Resume(asked.ids, by, reason=reason)
        case "accept":
            return Accept(asked.ids, by, reason=reason)
        case _:
            raise UsageError(f"{word!r} is not an action")


ACTIONS = ("cancel", "signal", "hold", "release", "suspend", "resume", "retry", "accept")


def recover(session: Session, asked: RecoverAsked) -> Recovered:
    """What would be done, with the diff of the flow's file; without `preview` it is done."""
    if len(asked.ids) != 1:
        raise UsageError("recover is for one run")
    row = whole_run(session, str(asked.ids[0]), "recover")
    if not row.state.is_settled:
        raise UsageError(f"run {row.id} is {row.state}: it can be recovered when it is settled")
    found = plan_pass(session, row, Rules())
    number = begin(session, found) if found.has_work and not asked.preview else None
    return found.document(asked.preview, number)


def check_flow(_: Session, asked: FlowAsked) -> CheckedFlow:
    """All mistakes of a flow at once, each with its line. Nothing is kept."""
    import tempfile

    _check_flow(asked)
    with tempfile.TemporaryDirectory(prefix="aver-flow-") as folder:
        path = os.path.join(folder, asked.name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(asked.text)
        try:
            flow = load(path, folder=asked.folder)
        except SpecError as error:
            mistakes = tuple(
                MistakeFacts(one.line or None, one.column or None, one.text, one.hint or None) for one in error.mistakes
            )
            return CheckedFlow(None, None, mistakes)
        except UsageError as error:
            return CheckedFlow(None, None, (MistakeFacts(None, None, str(error).replace(f"{folder}/", ""), None),))
    return CheckedFlow(flow.name, FlowIndex(flow).count, ())


def submit_flow(session: Session, asked: FlowAsked) -> SubmittedFacts:
    """Keep the file in the home, so that the run can be continued from it, and submit it."""
    _check_flow(asked)
    session.home.prepare()
    folder = session.home.flows / (asked.key or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}")
    path = folder / asked.name
    try:
        make_folder(os.fspath(session.home.flows))
        make_folder(os.fspath(folder))
        write_file(path, asked.text.encode())
    except OSError as error:
        raise CantWriteError(f"can't write {path}: {error.strerror}") from None
    usual = SUBMIT.make_context("submit", [], resilient_parsing=True).params
    others = ("file", "args", "quiet", "as_json", "resume", "since", "for_preview")
    options = {name: value for name, value in usual.items() if name not in others}
    options["key"] = asked.key or None
    invocation = Invocation(("aver", "submit", os.fspath(path)), None)
    submission, environment = build(session, invocation, os.fspath(path), (), options, folder=asked.folder)
    accepted = submit(session, submission, environment)
    return SubmittedFacts(accepted.run, accepted.first_job, accepted.jobs)


def _check(ids: tuple[int, ...], reason: str) -> None:
    if not 1 <= len(ids) <= MOST_IDS:
        raise UsageError(f"ids: 1 to {MOST_IDS} jobs or runs")
    if len(reason) > LONGEST_REASON:
        raise UsageError(f"reason: at most {LONGEST_REASON} characters")


def _check_flow(asked: FlowAsked) -> None:
    if not _NAME.fullmatch(asked.name) or not asked.name.endswith(FLOW_SUFFIXES):
        raise UsageError("name: a file's name of letters, digits, '.', '_' and '-', which ends in .yaml, .yml or .json")
    if asked.key and not _KEY.fullmatch(asked.key):
        raise UsageError("key: 16 to 64 digits and small letters")
    if not os.path.isabs(asked.folder) or "\0" in asked.folder or not os.path.isdir(asked.folder):
        raise UsageError(f"folder: {asked.folder!r} is not a folder of this machine, from / on")

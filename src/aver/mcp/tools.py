"""The tools: each takes a record, answers with a line and a record, and uses what the command of its name uses.

No tool runs a program: what is to run is submitted as a job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aver.cli.attach.wait import Watched, wait
from aver.cli.commands.run.submit import command as SUBMIT
from aver.cli.explanation import explain
from aver.cli.facts import jobs_facts, output_of
from aver.cli.group import Invocation
from aver.cli.logs import RunLogs
from aver.cli.output.json import encode_line
from aver.cli.recover_pass import begin, plan_pass
from aver.cli.selection import find_run, whole_run
from aver.cli.session import Session, user_name
from aver.cli.submission import build, ignored_options, submit
from aver.client.documents import JobFacts, RunFacts, run_facts
from aver.errors import AverError, UsageError
from aver.mcp import shapes
from aver.mcp.log_part import grep_end, read_end, read_lines
from aver.model.record import Record, replace
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.protocol.messages import Cancel, Results, Retried, Retry
from aver.render.masking import to_bytes
from aver.report.causes import diagnose
from aver.report.change_events import EventFacts, event_facts
from aver.report.digest import Digest, digest
from aver.report.measure import Rules
from aver.report.preview import preview, secret_values
from aver.report.usage import run_use
from aver.spec.load import load
from aver.spec.mistakes import SpecError
from aver.store.read.rows import JobRow, RunRow

LOOK_S = 0.2
PAGE = 1000
EVENTS = 20  # of one answer of wait_any
EVIDENCE = 10  # lines of one answer of why


class Answer(NamedTuple):
    summary: str
    found: Record


class Tool(NamedTuple):
    name: str
    description: str
    asked: type[Record]
    answer: type[Record]
    function: Callable[[Session, Any], Answer]
    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True


def check(_: Session, asked: shapes.CheckAsked) -> Answer:
    try:
        flow = load(asked.file)
    except SpecError as error:
        found = tuple(
            shapes.MistakeFound(one.text, one.line or None, one.column or None, one.hint or None)
            for one in error.mistakes
        )
        return Answer(
            f"{asked.file}: {_count(len(found), 'mistake')}", shapes.Checked(asked.file, False, None, None, found)
        )
    jobs = FlowIndex(flow).count
    return Answer(
        f"{asked.file}: no mistakes; {_count(jobs, 'job')}", shapes.Checked(asked.file, True, flow.name, jobs, ())
    )


def submit_run(session: Session, asked: shapes.SubmitAsked) -> Answer:
    named = {"time": asked.time, "mem": asked.mem, "cpus": asked.cpus, "name": asked.name, "folder": asked.folder}
    named |= {"key": asked.key, "engine": asked.engine}
    usual = SUBMIT.make_context("submit", [], resilient_parsing=True).params
    others = (
        "file",
        "args",
        "quiet",
        "as_json",
        "resume",
        "since",
        "for_preview",
    )  # what `aver submit` takes beside what a submission is built from
    options = {name: value for name, value in usual.items() if name not in others}
    options |= {**named, "secret": asked.secrets}
    typed = ("aver", "mcp", "submit", *([asked.file, *asked.args] if asked.file else ["--", *asked.command]))
    invocation = Invocation(typed, asked.command or None)
    submission, environment = build(session, invocation, asked.file, asked.args, options)
    flow = submission.flow
    jobs, ignored = FlowIndex(flow).count, tuple(ignored_options(flow))
    if asked.preview:
        session.output.masking |= secret_values(submission, environment)
        jobs_of = preview(submission).definitions
        found = shapes.Submission(None, flow.name, jobs, True, ignored, _cursor(session), definitions=jobs_of)
        return Answer(f"would submit {flow.name}: {_count(jobs, 'job')}", found)
    before = _cursor(session)
    accepted = submit(session, submission, environment)
    found = shapes.Submission(accepted.run, flow.name, accepted.jobs, False, ignored, before)
    text = f"submitted {flow.name} as {accepted.run}: {_count(accepted.jobs, 'job')}"
    if not asked.wait_s:
        return Answer(text, found)
    is_settled, shown, bad = _waited(session, str(accepted.run), asked.wait_s)
    text += f"; {'' if is_settled else 'not settled yet, wait: '}{_summary(shown)}"
    return Answer(text, replace(found, is_settled=is_settled, subjects=shown, failures=bad))


def list_subjects(session: Session, asked: shapes.ListAsked) -> Answer:
    session.refresh()
    if session.reader is None:
        return Answer(session.nothing_words(), shapes.Subjects((), 0))
    try:
        states = None if asked.state is None else [State(asked.state.upper())]
    except ValueError:
        raise UsageError(f"{asked.state!r} is not a state; the states are {', '.join(State)}") from None
    if asked.run is None:
        runs = session.reader.runs(states=states)
        session.mask(run.id for run in runs[: asked.limit])
        shown = tuple(_of_run(run_facts(run, session.reader.counts(run.id))) for run in runs[: asked.limit])
        return Answer(_count(len(runs), "run"), shapes.Subjects(shown, len(runs) - len(shown)))
    chosen = find_run(session, asked.run)
    row = chosen.run
    jobs = [job for job in session.reader.jobs(row.id, states) if chosen.jobs is None or job.id in chosen.jobs]
    shown = tuple(map(_of_job, jobs_facts(session, jobs[: asked.limit])))
    text = f"run {row.id} {row.state}: {_count(len(jobs), 'job')}"
    return Answer(text, shapes.Subjects(shown, len(jobs) - len(shown)))


def status(session: Session, asked: shapes.StatusAsked) -> Answer:
    session.refresh()
    shown = _subjects(session, session.ids([asked.id]))
    return Answer(_summary(shown), shapes.Subjects(shown, 0))


def wait_for(session: Session, asked: shapes.WaitAsked) -> Answer:
    is_settled, shown, bad = _waited(session, asked.id, asked.timeout_s)
    text = _summary(shown) if is_settled else f"not settled yet, wait again: {_summary(shown)}"
    return Answer(text, shapes.Waited(is_settled, shown, _cursor(session), bad))


def _waited(session: Session, address: str, timeout_s: float) -> tuple[bool, tuple[shapes.Subject, ...], Digest | None]:
    """Whether it is settled within the time, how it stands, and its failures if it is settled and did not complete."""
    watched = Watched(session, session.ids([address]))
    client = session.connect()
    try:
        state = wait(watched, client, lambda changed: None, timeout_s)
    except TimeoutError:
        return False, _subjects(session, watched.ids), None
    finally:
        client.close()
    shown = _subjects(session, watched.ids)
    is_bad = state is not State.COMPLETED
    return True, shown, _failures(session, address, shapes.DIGEST_BYTES) if is_bad else None


def wait_any(session: Session, asked: shapes.WaitAnyAsked) -> Answer:
    session.refresh()
    chosen = [session.find(text) for text in asked.ids]
    runs = {one.id for one in chosen if isinstance(one, RunRow)}
    jobs = {job.id for one in chosen if not isinstance(one, RunRow) for job in one}
    deadline = time.monotonic() + asked.timeout_s
    if asked.since is None:
        seq = _cursor(session)
        found, seq = _settled_now(session, chosen, seq)
    else:
        found, seq = _settled_after(session, asked.since, runs, jobs)
    while not found and time.monotonic() < deadline:
        time.sleep(min(LOOK_S, max(0.0, deadline - time.monotonic())))
        found, seq = _settled_after(session, seq, runs, jobs)
    session.mask({one.run for one in found})
    words = ", ".join(f"{'run' if one.job is None else 'job'} {one.job or one.run} {one.state}" for one in found)
    return Answer(words or "nothing was settled, wait again", shapes.Settled(found, seq))


def _settled_now(
    session: Session, chosen: Sequence[RunRow | list[JobRow]], seq: int
) -> tuple[tuple[EventFacts, ...], int]:
    """The events that settled what is settled, a retry that is under way counted; `seq` was before the look at it."""
    named: dict[tuple[int, int | None], None] = {}
    for one in chosen:
        rows = [(one.id, None)] if isinstance(one, RunRow) else [(job.run, job.id) for job in one]
        named |= dict.fromkeys(rows)
    found: list[EventFacts] = []
    for run, job in named:
        reader = session.found_reader(str(run))
        row = reader.run(run) if job is None else reader.job(job)
        if row is not None and row.state.is_settled:
            moves = filter(None, map(event_facts, reader.moves(run, job)))
            found += [one for one in moves if one.is_settled][:1]
    found.sort(key=lambda one: one.seq)
    return tuple(found[:EVENTS]), seq if len(found) <= EVENTS else found[EVENTS - 1].seq


def _settled_after(session: Session, seq: int, runs: set[int], jobs: set[int]) -> tuple[tuple[EventFacts, ...], int]:
    """What was settled after `seq`, and the number up to which everything was looked at."""
    reader = session.reader
    if reader is None:
        return (), seq
    end = reader.last_seq()
    while seq < end:
        page = reader.changes(seq, PAGE)
        found: list[EventFacts] = []
        for stored in page:
            one = event_facts(stored)
            if one is not None and one.is_settled and _is_asked(one, runs, jobs):
                found.append(one)
            if len(found) == EVENTS:
                break
        if found:
            return tuple(found), found[-1].seq
        if len(page) < PAGE:
            return (), end
        seq = page[-1].seq
    return (), seq


def _is_asked(one: EventFacts, runs: set[int], jobs: set[int]) -> bool:
    if not runs and not jobs:
        return one.job is None
    return one.run in runs if one.job is None else one.job in jobs


def why(session: Session, asked: shapes.WhyAsked) -> Answer:
    session.refresh()
    job = session.find_job(asked.job)
    told = explain(session, job)
    lines = tuple(f"{one.source}: {one.what}" for one in told.timeline[-EVIDENCE:])
    found = shapes.Why(job.id, job.state.value, told.sentence, lines, told.next)
    return Answer(f"job {job.id} {job.state}: {told.sentence}", found)


def failures(session: Session, asked: shapes.FailuresAsked) -> Answer:
    session.refresh()
    made = _failures(session, asked.run, asked.max_bytes)
    causes = len(made.causes) + made.causes_left_out
    cut = " (truncated)" if made.is_truncated else ""
    return Answer(f"run {made.run} {made.state}: {_count(causes, 'cause')}{cut}", made)


def _failures(session: Session, address: str, max_bytes: int) -> Digest:
    chosen = find_run(session, address)
    run = chosen.run
    masking = session.mask([run.id])
    reader = session.found_reader(address)
    rows = [row for row in reader.outcomes(run.id) if chosen.jobs is None or row.job in chosen.jobs]
    paths = RunLogs(session, run.id, rows).paths
    causes = diagnose(run.id, rows, reader.request, paths, masking)
    return digest(
        run.id,
        run.name,
        run.state.value,
        causes,
        paths,
        masking,
        max_bytes,
        lambda one: len(to_bytes(encode_line(one))),
    )


def log(session: Session, asked: shapes.LogAsked) -> Answer:
    session.refresh()
    job = session.find_job(asked.job)
    masking = session.mask([job.run])
    attempt = asked.attempt or job.attempt
    if not attempt or attempt > job.attempt:
        raise UsageError(f"job {job.id} is {job.state} and has no attempt {attempt or 1} yet")
    path, is_shared = output_of(session, job, attempt, asked.stderr)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            following = None
            if asked.first_line is not None:
                text, is_cut, following = read_lines(file, asked.first_line, asked.grep, asked.max_bytes, masking)
                is_cut = is_cut or asked.first_line > 1 or following is not None
            elif asked.grep is not None:
                text, is_cut = grep_end(file, asked.grep, asked.max_bytes, masking)
            else:
                text, is_cut = read_end(path, asked.max_bytes, masking)
    except OSError as error:
        raise AverError(f"can't read the output of job {job.id}, {path}: {error.strerror}") from None
    part = shapes.LogPart(job.id, attempt, path, is_shared, size, is_cut, following, text)
    whose = f"attempts 1 to {job.attempt}" if is_shared else f"attempt {attempt}"
    cut = ", a part of it" if is_cut else ""
    return Answer(f"log of job {job.id}, {whose}: {size} bytes{cut}", part)


def cancel(session: Session, asked: shapes.IdsAsked) -> Answer:
    reply = session.ask(Cancel(tuple(session.ids(asked.ids)), user_name()), Results)
    done = tuple(shapes.Outcome(one.id, one.did, one.code.is_so) for one in reply.results)
    return Answer("; ".join(f"{one.id}: {one.did}" for one in done), shapes.Acted("cancel", done))


def retry(session: Session, asked: shapes.IdsAsked) -> Answer:
    reply = session.ask(Retry(tuple(session.ids(asked.ids)), user_name()), Retried)
    done = tuple(shapes.Outcome(job, "will run again", True) for job in reply.jobs)
    return Answer(f"{_count(len(done), 'job')} will run again", shapes.Acted("retry", done))


def recover(session: Session, asked: shapes.RecoverAsked) -> Answer:
    row = whole_run(session, asked.run, "recover")
    if not row.state.is_settled:
        raise UsageError(f"run {row.id} is {row.state}: it can be recovered when it is settled; wait for it")
    found = plan_pass(session, row, Rules())
    number = begin(session, found) if found.has_work and not asked.preview else None
    made = found.document(asked.preview, number)
    recovery = shapes.Recovery(
        row.id,
        asked.preview,
        number,
        made.file,
        tuple(f"{one.job}: {one.key} {one.old} to {one.new}" for one in made.changes),
        tuple(f"{one.name}: {one.why}" for one in made.jobs),
        tuple(f"{one.name}: {one.why}" for one in made.hopeless),
        tuple(f"{one.job}: {one.why}" for one in made.left),
        made.waiting,
    )
    if not found.has_work:
        return Answer(f"run {row.id}: nothing that another attempt helps", recovery)
    jobs = _count(len(made.jobs), "job")
    text = f"run {row.id} would rerun {jobs}" if number is None else f"run {row.id} reruns {jobs} in round {number}"
    return Answer(text, recovery)


def usage(session: Session, asked: shapes.UsageAsked) -> Answer:
    session.refresh()
    chosen = find_run(session, asked.run)
    run = chosen.run
    session.mask([run.id])
    reader = session.found_reader(asked.run)
    rows = [row for row in reader.outcomes(run.id) if chosen.jobs is None or row.job in chosen.jobs]
    use = run_use(rows, reader.request, Rules())
    groups = use.groups[: asked.limit]
    left = use.group_count - len(groups)
    found = shapes.Usage(run.id, groups, left, use.never_ran, use.cpu_s, use.is_cpu_least, use.cpu_given_s)
    return Answer(f"run {run.id}: use of {_count(use.group_count, 'group')}", found)


def _cursor(session: Session) -> int:
    return 0 if session.reader is None else session.reader.last_seq()


def _subjects(session: Session, ids: Sequence[int]) -> tuple[shapes.Subject, ...]:
    runs, jobs = Watched(session, ids).facts()
    return (*map(_of_run, runs), *map(_of_job, jobs))


def _of_run(run: RunFacts) -> shapes.Subject:
    elapsed = None if run.ended_at is None else run.ended_at - run.submitted_at
    return shapes.Subject(
        run.id, not run.is_single, run.name, run.state, run.is_settled, elapsed_s=elapsed, counts=run.counts,
        unselected=run.unselected,
    )  # fmt: skip


def _of_job(job: JobFacts) -> shapes.Subject:
    text = None if job.exit is None else job.exit.text
    return shapes.Subject(
        job.id, False, job.name, job.state, job.is_settled, job.reason, text, job.return_code, job.verified,
        job.attempt, job.elapsed_s, job.warnings,
    )  # fmt: skip


def _summary(shown: Sequence[shapes.Subject]) -> str:
    texts = []
    for one in shown[:5]:
        counts = ", ".join(f"{count} {state}" for state, count in (one.counts or {}).items())
        ended = " ".join(filter(None, (one.exit, one.reason)))
        texts.append(
            f"{'run' if one.is_run else 'job'} {one.id} {one.state}"
            + (f": {counts or ended}" if counts or ended else "")
        )
    return "; ".join(texts) + (f"; and {len(shown) - 5} more" if len(shown) > 5 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("check", "Check a flow or batch script; all mistakes at once. Runs nothing.", shapes.CheckAsked,
             shapes.Checked, check),
        Tool("submit", "Submit a flow, a batch script or a command as a job. With key it can be repeated safely; "
             "with preview nothing is submitted; with wait_s it answers as wait does.", shapes.SubmitAsked,
             shapes.Submission, submit_run, False, False, False),
        Tool("list", "List runs, or the jobs of a run, newest runs first.", shapes.ListAsked, shapes.Subjects,
             list_subjects),
        Tool("status", "Show the state of a job or run now. To wait use wait.", shapes.StatusAsked, shapes.Subjects,
             status),
        Tool("wait", "Wait until a job or run is settled; returns within 50 s. If is_settled is false, call again. The "
             "answer has the failures, in few bytes.",
             shapes.WaitAsked, shapes.Waited, wait_for),
        Tool("wait_any", "Wait for whichever is settled next after a cursor; returns within 50 s. Nothing is missed: "
             "give the cursor of the last answer as since.", shapes.WaitAnyAsked, shapes.Settled, wait_any),
        Tool("why", "Explain what happened to a job, with the evidence and the next commands.", shapes.WhyAsked,
             shapes.Why, why),
        Tool("failures", "Sum up why jobs of a run failed, with ends of logs, within max_bytes.", shapes.FailuresAsked,
             Digest, failures),
        Tool("log", "Read a job's output: its end, from a line on, or lines with a text.", shapes.LogAsked,
             shapes.LogPart, log),
        Tool("cancel", "Cancel jobs or runs.", shapes.IdsAsked, shapes.Acted, cancel, False, True),
        Tool("retry", "Rerun failed, lost and skipped jobs.", shapes.IdsAsked, shapes.Acted, retry, False, False,
             False),
        Tool("recover", "Give jobs that ran out of memory or time more of it, and rerun them. Edits the flow's file. "
             "preview (the default) only says what would be done.", shapes.RecoverAsked, shapes.Recovery, recover,
             False, True, False),
        Tool("usage", "Compare requested and used memory, CPUs and time of a run.", shapes.UsageAsked, shapes.Usage,
             usage),
    )
}  # fmt: skip

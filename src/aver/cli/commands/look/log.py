"""`aver log`: what a job wrote, as the bytes that it wrote, with secrets masked."""

from __future__ import annotations

import os
import time
from typing import BinaryIO

import click

from aver.cli.attach.attempts import AttemptStreams
from aver.cli.attach.follow import tail_offset
from aver.cli.attach.stream import Write
from aver.cli.facts import files_of, is_others_output, output_of
from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import LogText
from aver.cli.output.views import answer
from aver.cli.remote_log import RemoteLog, find_remote
from aver.cli.session import Session
from aver.client.output_paths import JobFiles
from aver.errors import AverError, UsageError
from aver.model.states import State
from aver.render import verdict as render
from aver.store.read.rows import JobRow, RunRow

CHUNK = 256 * 1024
JSON_BYTES = 1024 * 1024  # a document holds at most this much of a log's end


@click.command("log")
@click.argument("address", metavar="ID", type=ADDRESS)
@click.option("--follow", "-f", is_flag=True, help="Follow the output, through all attempts, until the job is settled.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Attempt to show (default: the newest).")
@click.option("--err", is_flag=True, help="Show stderr, if it has a file of its own.")
@click.option("-n", "--lines", type=click.IntRange(min=0), metavar="N", help="Show only the last N lines.")
@json_option
def command(address: str, follow: bool, attempt: int | None, err: bool, lines: int | None, as_json: bool) -> None:
    """Show a job's output.

    For a run, or an address that matches several jobs, each line begins with the job's name.

    \b
    Examples:
      aver log 7
      aver log 7 -f
      aver log 3 -f
      aver log '3/train[seed=2]' --attempt 1 -n 20
    """
    if follow and as_json:
        raise UsageError("give --follow or --json, not both")
    session = Session()
    session.refresh()
    found = session.find(address)
    if isinstance(found, RunRow) or len(found) > 1:
        if attempt is not None or as_json:
            raise UsageError("--attempt and --json are for one job: `aver jobs` lists them")
        _show_many(session, found, follow, err, lines)
        return
    job = found[0]
    session.mask([job.run])
    if follow and not job.state.is_settled:
        _follow(session, job, attempt, err, lines)
        return
    which = _attempt(job, attempt)
    if err and files_of(session, job, which).stderr is None:
        session.output.note("its stderr is in the same file as its stdout")
    path, is_shared = output_of(session, job, which, err)
    if is_shared and attempt is not None:
        session.output.note(f"attempts 1 to {job.attempt} wrote to one file, {path}: this is what all of them wrote")
    if is_others_output(session, job, err):
        session.output.note(f"other members of its matrix write to this file too, {path}: it may have their output")
    remote = find_remote(session, job, path)
    if remote is not None:
        with remote:
            _show_remote(session, job, remote, lines, (which, err, path, is_shared) if as_json else None)
        return
    _refuse_if_pruned_and_gone(session, job, path)
    with _open(path, job) as file:
        if as_json:
            answer(session.output, _document(session, job, which, err, (path, is_shared), file, lines), as_json)
        else:
            _copy(session, file, tail_offset(file, lines))


def _attempt(job: JobRow, wanted: int | None) -> int:
    if job.attempt == 0:
        raise UsageError(f"job {job.id} is {job.state} and has not started; `aver why {job.id}` says why")
    if wanted is not None and wanted > job.attempt:
        raise UsageError(f"job {job.id} has no attempt {wanted}; its newest is {job.attempt}")
    return wanted or job.attempt


def _refuse_if_pruned_and_gone(session: Session, job: JobRow, path: str) -> None:
    """A log that was cut says so at its end; one that is gone since then can't."""
    if os.path.exists(path):
        return
    asked = [event for event in session.found_reader(str(job.id)).asked(job.run) if event.what == "prune"]
    if asked and asked[-1].at >= (job.ended_at or 0.0):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(asked[-1].at))
        raise AverError(
            f"{path} is gone; the logs of run {job.run} were pruned on {when} by {asked[-1].by} "
            f"({asked[-1].detail}); `aver why {job.id}` says how the job ended"
        )


def _open(path: str, job: JobRow) -> BinaryIO:
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise AverError(
            f"can't read the output of job {job.id}, {path}: {error.strerror}; `aver why {job.id}` says how it ended"
        ) from None


def _copy(session: Session, file: BinaryIO, offset: int) -> None:
    masked = session.output.masking.stream()
    file.seek(offset)
    while data := file.read(CHUNK):
        session.output.raw(masked.feed(data))
    session.output.raw(masked.finish())


def _show_many(session: Session, found: RunRow | list[JobRow], follow: bool, err: bool, lines: int | None) -> None:
    """What all these jobs wrote, each line with its job's name before it."""
    from aver.cli.attach.run_output import RunOutput, show_outputs  # most logs are of one job
    from aver.cli.explanation import first_waiting

    run = found if isinstance(found, RunRow) else session.run_row(found[0].run)
    session.mask([run.id])
    chosen = None if isinstance(found, RunRow) else {job.id for job in found}
    if not follow or run.state.is_settled:
        reader = session.found_reader(str(run.id))
        show_outputs(session, found if isinstance(found, list) else reader.jobs(run.id), err, lines)
        return
    if (waits := first_waiting(session, run.id)) is not None:
        session.output.note(f"{waits.sentence}; following the output")
    output = RunOutput(session, run.id, False, chosen, err, lines)
    output.begin()
    client = session.connect()
    try:
        for _ in client.watch([run.id]):
            pass
        output.end()
    finally:
        client.close()


def _follow(session: Session, job: JobRow, attempt: int | None, err: bool, lines: int | None) -> None:
    """Show what the job writes until it is settled, through all its attempts; a pending job is waited for."""
    first = attempt or max(1, job.attempt)
    path = _chosen(files_of(session, job, first), err)
    remotes: list[RemoteLog] = []

    def sinks(files: JobFiles) -> list[tuple[str, Write]]:
        remote = find_remote(session, job, _chosen(files, err))
        if remote is None:
            return [(_chosen(files, err), session.output.raw)]
        if lines is not None and not remotes:
            remote.begin_at_last(lines)
        remotes.append(remote)
        remote.follow()
        return [(remote.path, session.output.raw)]

    offset = 0
    if lines is not None and os.path.exists(path) and job.attempt >= first:
        with _open(path, job) as file:
            offset = tail_offset(file, lines)
    if job.state is State.PENDING and not job.attempt:
        session.output.note(f"job {job.id} {render.moved_words(job.state, job.reason)}; following its output")
    streams = AttemptStreams(session, sinks, session.output.note, first, offset)
    client = session.connect()
    try:
        for _ in client.watch([job.id]):
            streams.look(session.find_job(str(job.id)))
        streams.look(session.find_job(str(job.id)))
        for remote in remotes:
            remote.finish()
        streams.finish()
    finally:
        client.close()
        for remote in remotes:
            remote.close()


def _chosen(files: JobFiles, err: bool) -> str:
    return files.stderr if err and files.stderr is not None else files.stdout


def _show_remote(
    session: Session, job: JobRow, remote: RemoteLog, lines: int | None, document: tuple[int, bool, str, bool] | None
) -> None:
    """What it wrote on its host; `document`: attempt, whether stderr, path, and whether that is shared, for JSON."""
    remote.copy()
    with _open(remote.path, job) as file:
        if document is not None:
            which, err, path, is_shared = document
            answer(session.output, _document(session, job, which, err, (path, is_shared), file, lines), True)
        else:
            _copy(session, file, tail_offset(file, lines))


def _document(
    session: Session, job: JobRow, attempt: int, err: bool, place: tuple[str, bool], file: BinaryIO, lines: int | None
) -> LogText:
    size = os.fstat(file.fileno()).st_size
    begin = max(tail_offset(file, lines), size - JSON_BYTES)
    file.seek(begin)
    data = b"".join(iter(lambda: file.read(CHUNK), b""))
    text = session.output.masking.whole(data).decode("utf-8", "replace")
    path, is_shared = place
    return LogText(job.id, attempt, "stderr" if err else "stdout", path, is_shared, size, begin > 0, text)

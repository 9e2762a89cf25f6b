"""Submit once: a client whose answer is lost finds out whether the coordinator took the submission.

The submission carries a key. Asked again with the same key, the coordinator answers with the run that it made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from aver.errors import AverError, UnreachableError, UsageError
from aver.home import Home
from aver.model.job import Submission
from aver.model.record import replace
from aver.protocol.client import AnswerLost, Client
from aver.protocol.messages import Submit, Submitted

TRIES = 5
LONGEST_KEY = 200
ENDING_S = 2.0  # a coordinator that was killed has ended by then


def new_key() -> str:
    """A key that nobody else makes up."""
    return os.urandom(12).hex()


def check_key(key: str) -> None:
    """Refuse a person's key that can't be one: UsageError."""
    if not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise UsageError(f"a key has 1 to {LONGEST_KEY} printable characters")


def submit_once(home: Home, submission: Submission, environment: Sequence[str]) -> Submitted:
    """Hand it to the coordinator; durable when this returns. With an error it was not submitted, unless that says so.

    With a key of the submission's own the run may be there from before.
    """
    is_again = bool(submission.key)
    if not is_again:
        submission = replace(submission, key=new_key())
    environment = _with_folder(environment, submission.origin.folder)
    lost: AnswerLost | None = None
    for _ in range(TRIES):
        try:
            client = Client.connect(home)
        except AverError as error:
            if lost is None:
                raise
            return look_up(home, submission.key, error)
        try:
            return client.ask(Submit(submission, environment, is_again or lost is not None), Submitted)
        except AnswerLost as error:
            lost = error
        finally:
            client.close()
    assert lost is not None
    return look_up(home, submission.key, lost)


def _with_folder(environment: Sequence[str], folder: str) -> tuple[str, ...]:
    """With the PWD that a shell would set, which not every job has: the one that is there, if it names the folder."""
    given = next((pair[4:] for pair in environment if pair.startswith("PWD=/")), "")
    with suppress(OSError, ValueError):
        if given and os.path.samefile(given, folder):
            return tuple(environment)
    return (*(pair for pair in environment if not pair.startswith("PWD=")), f"PWD={folder}")


@contextmanager
def waiting_for(what: str, number: int) -> Iterator[None]:
    """Say with an error of waiting that the submission was taken: whoever submits again runs it twice."""
    try:
        yield
    except UnreachableError as error:
        text = f"{what} {number} is submitted, but can't be waited for: {error}; aver watch {number}"
        raise UnreachableError(text) from None


def look_up(home: Home, key: str, error: Exception) -> Submitted:
    """Find the run of a submission whose answer was lost, by its key.

    Raises UnreachableError if the store has no such run: not submitted, or not known as long as a coordinator lives.
    """
    from aver.store.read.reader import Reader  # hardly ever

    may_be_taken = home.has_coordinator(ENDING_S)
    reader = Reader.open(home.database)
    if reader is not None:
        with reader:
            run = reader.run_by_key(key)
        if run is not None:
            return Submitted(run.id, run.first_job, run.jobs, lower_limits=())
    if may_be_taken:
        raise UnreachableError(f"{error}; it may still take the submission: repeat it with --key {key}, it runs once")
    raise UnreachableError(f"not submitted: {error}")

"""`sbatch`: submit a batch script to this machine, as Slurm's sbatch submits it to a cluster.

Answers when the job is durable. With --wait it waits, across the coordinator's restarts, and exits as the job did.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import replace

from aver.coordinator.origin import origin_of
from aver.core.codec import encode
from aver.core.model import FlowSpec, JobSpec, RetryRule, Script, Streams, Submission
from aver.core.slurm_words import PARTITION, VERSION
from aver.core.states import State
from aver.errors import AverError
from aver.home import Home
from aver.slurm_cli import lean
from aver.slurm_cli.batch_environment import environment_of
from aver.slurm_cli.batch_options import BatchCall, complete, failed, read_call, table
from aver.slurm_cli.batch_script import BatchScript, find_script
from aver.slurm_cli.refusal import Refusal, guarded, say, tell
from aver.spec.arrays import matrix_of
from aver.spec.options import clean_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MOST_RESTARTS = 1000
_SAID = ".said"

_REQUEUED = RetryRule(MOST_RESTARTS, (State.NODE_FAIL, State.BOOT_FAIL))


def main(words: Sequence[str]) -> int:
    return guarded("sbatch", _sbatch, words)


def _sbatch(words: Sequence[str]) -> int:
    now = time.time()
    options = table()
    call, parsed = read_call(words, options, now)
    for name, _ in parsed.given:
        if name in ("help", "usage", "version"):
            return _about(name)
    script = find_script(parsed.get("wrap"), parsed.operands)
    complete(call, parsed, script, os.environ, options)
    home = Home.find()
    home.prepare()
    _note_without_meaning(home, call)
    submission = _submission(call, script, parsed.operands[1:], words, now)
    return _Call(home, call).submit(submission, environment_of(call, os.environ))


def _submission(
    call: BatchCall, script: BatchScript, args: Sequence[str], typed: Sequence[str], now: float
) -> Submission:
    values = call.values
    if values.deadline is not None and values.deadline <= now:
        raise failed("Requested time limit is invalid (missing or exceeds some limit)")
    job = values.job(JobSpec(clean_name(script.name), Script(script.text, tuple(args))))
    streams = job.streams
    if streams.stdout is None:
        pattern = "slurm-%j.out" if call.indices is None else "slurm-%A_%a.out"
        streams = Streams(streams.stdin, pattern, streams.stderr, streams.append)
    command = "" if script.path is None else " ".join([script.path, *args])
    job = replace(
        job,
        streams=streams,
        env=(),
        matrix=None if call.indices is None else matrix_of(call.indices),
        after=call.afters,
        retry=_REQUEUED if values.requeue else None,
        ignored=tuple(call.without_meaning()),
        facts=(*values.facts(), ("command", command)),
    )
    flow = FlowSpec(job.name, (job,), is_single=call.indices is None)
    return Submission(flow, origin_of(("sbatch", *_without_values(typed)), ()))


def _without_values(typed: Sequence[str]) -> list[str]:
    """What was typed, without the values of --export: environment values are never stored."""
    words: list[str] = []
    for word in typed:
        before = words[-1] if words else ""
        if word.startswith("--export="):
            word = "--export=" + _names_only(word[9:])
        elif before == "--export":
            word = _names_only(word)
        words.append(word)
    return words


def _names_only(text: str) -> str:
    parts = [part.partition("=") for part in text.split(",")]
    return ",".join(f"{name}=***" if equals else name for name, equals, _ in parts)


class _Call:
    """One call's talk with the coordinator."""

    def __init__(self, home: Home, call: BatchCall) -> None:
        self._home = home
        self._call = call

    def submit(self, submission: Submission, environment: list[str]) -> int:
        is_test = self._call.has("test-only")
        request = {"op": "submit", "submission": encode(submission), "env": environment, "test": is_test}
        reply = self._ask(request)
        number = int(reply["run"])
        if is_test:
            self._tell_test(number, submission)
            return 0
        if self._call.has("parsable"):
            clusters = self._call.values.said.get("clusters")
            tell(f"{number};{clusters}" if clusters else str(number))
        elif not self._call.has("quiet"):
            tell(f"Submitted batch job {number}")
        return self._wait(number) if self._call.has("wait") else 0

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            wire = lean.connect(os.fspath(self._home.path))
            wire.send(request)
            reply = wire.receive()
            wire.close()
        except lean.Lost as error:
            raise failed(f"Unable to contact slurm controller ({error})") from None
        except AverError as error:
            raise failed(str(error)) from None
        if reply.get("ok") is not True:
            raise _refused(str(reply.get("error", "")))
        return reply

    def _tell_test(self, number: int, submission: Submission) -> None:
        if self._call.has("quiet"):
            return
        job = submission.flow.jobs[0]
        begin = max(time.time(), job.begin_at or 0.0)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin))
        node = socket.gethostname().partition(".")[0]
        partition = self._call.values.said.get("partition") or PARTITION
        say(
            f"sbatch: Job {number} to start at {at} using {job.request.cpus} processors on nodes {node} "
            f"in partition {partition}"
        )

    def _wait(self, number: int) -> int:
        """Until all of it is settled; the highest exit code, or 1 where there is none, as Slurm has it."""
        while True:
            try:
                wire = lean.connect(os.fspath(self._home.path))
                wire.send({"op": "watch", "ids": [number]})
                reply = wire.receive()
                while number not in reply.get("settled", ()):
                    if reply.get("ok") is False:
                        raise Refusal(f"sbatch: error: {reply.get('error')}")
                    reply = wire.receive()
                wire.close()
                break
            except lean.Lost:
                time.sleep(0.1)
        from aver.store.reader import Reader

        reader = Reader.open(self._home.database)
        assert reader is not None
        with reader:
            return max((_code(row.exit, row.state) for row in reader.jobs(run=number)), default=1)


def _code(ended: object, state: State) -> int:
    code, signal = getattr(ended, "code", None), getattr(ended, "signal", 0)
    if code is None or signal:
        return 1
    return int(code) or int(state in (State.OUT_OF_MEMORY, State.UNVERIFIED, State.NODE_FAIL, State.SKIPPED))


def _refused(sentence: str) -> Refusal:
    if " asks for " in sentence:
        return Refusal(
            f"sbatch: error: {sentence}\n"
            "sbatch: error: Batch job submission failed: Requested node configuration is not available"
        )
    return failed(sentence)


def _note_without_meaning(home: Home, call: BatchCall) -> None:
    """Say of each option that means nothing here that it does: once for each home, with -v each time."""
    options = call.without_meaning()
    if not options or call.has("quiet"):
        return
    path = home.path / _SAID
    try:
        known = set(path.read_text("utf-8").split())
    except (OSError, UnicodeDecodeError):
        known = set()
    fresh = options if call.verbose else [option for option in options if option not in known]
    if not fresh:
        return
    say(f"sbatch: aver: accepted, and without meaning on one machine: {', '.join(fresh)}")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(handle, "".join(f"{option}\n" for option in fresh if option not in known).encode())
        os.close(handle)
    except OSError:
        return  # it is said again next time


def _about(name: str) -> int:
    if name == "version":
        tell(VERSION)
        return 0
    from aver.slurm_cli.batch_help import HELP, USAGE

    sys.stdout.write(HELP if name == "help" else USAGE)
    return 0

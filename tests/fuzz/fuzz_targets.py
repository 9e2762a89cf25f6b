"""What is fuzzed: each target takes bytes and raises only what is a bug.

Refusals that a user can cause (AverError, BadOption, ValueError where the contract says so) are answers.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable

from aver.client import batch_submission
from aver.engines.local.slot import split_lines, words_of
from aver.engines.slurm.commands import sacct, scontrol, squeue
from aver.engines.slurm.commands.call import Reply
from aver.engines.slurm.submit import sbatch_answer
from aver.engines.slurm.track.exit_records import parse_record
from aver.errors import AverError
from aver.home import parse_holder
from aver.judge import witness_record
from aver.model.job import Origin
from aver.protocol.decode import decode_request
from aver.protocol.messages import Sbatch
from aver.spec.getopt import BadOption, parse
from aver.spec.load import load
from aver.spec.sbatch.table import sbatch_table

NOW = 1_800_000_000.0
_FOLDER = tempfile.mkdtemp(prefix="aver-fuzz-")


def _words(data: bytes) -> list[str]:
    """Words between line ends, as a shell would give them: without NUL, any other byte."""
    return [os.fsdecode(word) for word in data.replace(b"\0", b"").split(b"\n")][:64]


def _load(data: bytes, name: str) -> None:
    path = os.path.join(_FOLDER, name)
    with open(path, "wb") as file:
        file.write(data)
    with contextlib.suppress(AverError):
        load(path, now=NOW, folder=_FOLDER)


def flow(data: bytes) -> None:
    _load(data, "flow.yaml")


def script(data: bytes) -> None:
    _load(b"#!/bin/sh\n" + data, "script.sh")


def sbatch_options(data: bytes) -> None:
    """As the coordinator reads what sbatch sent."""
    with contextlib.suppress(BadOption, AverError):
        given = parse(sbatch_table(), _words(data)).given
        options = tuple((name, text or "") for name, text in given)
        origin = Origin("user", 1000, "host", _FOLDER, 0o22)
        request = Sbatch(options, "#!/bin/sh\n", "name", origin=origin)
        batch_submission.submission_of(batch_submission.read_call(request, NOW), request)


def squeue_options(data: bytes) -> None:
    from aver.slurm_cli.squeue.command import main

    words = _words(data)
    if not any(word.startswith(("-", "--it")) and "i" in word for word in words):  # iterates for ever, as it should
        main(words)


def sacct_options(data: bytes) -> None:
    from aver.slurm_cli.sacct.command import main

    main(_words(data))


def _reply(data: bytes) -> Reply:
    status, _, rest = data.partition(b"\n")
    out, _, err = rest.partition(b"\n--\n")
    return Reply(1 if status == b"1" else 0, os.fsdecode(out), os.fsdecode(err), 0.1)


def squeue_output(data: bytes) -> None:
    squeue.read_queue(_reply(data), 1)
    squeue.read_queue(_reply(data), 0)


def sacct_output(data: bytes) -> None:
    sacct.read_accounts(_reply(data))


def scontrol_output(data: bytes) -> None:
    scontrol.read_facts(_reply(data))
    sbatch_answer.read_submission(_reply(data))


def record(data: bytes) -> None:
    """A witness's line, with and without its frame."""
    parse_record(data)
    for line in (data, *split_lines(data)[0]):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # as the engine does with a line
            words = words_of(line)
            witness_record.parse_record(words)
        with contextlib.suppress(ValueError):
            said = witness_record.decode(line)
            witness_record.parse_start(said)
    parse_holder(data)


def request(data: bytes) -> None:
    with contextlib.suppress(AverError):
        decode_request(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        flow,
        script,
        sbatch_options,
        squeue_options,
        sacct_options,
        squeue_output,
        sacct_output,
        scontrol_output,
        record,
        request,
    )
}

"""`python -m aver.coordinator.order.generated_reader`: read what a job generated, in a process that may crash.

The question is a line of JSON on stdin, the answer one on stdout: the batch of jobs, or what is wrong with it. The file
may be anything: it is looked at only if it is a regular file of a bearable size, and what it costs to read is limited
by the kernel. Whatever ends this process is the end of this question and of nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import stat
import sys
import time
from pathlib import Path

from aver.coordinator.capacity import check_fits, check_text
from aver.coordinator.order.allocations import check_allocation
from aver.coordinator.order.generated_question import CPU_S, Answer, Question
from aver.errors import AverError
from aver.model.codec import decode, dumps
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.spec.document import MAX_BYTES
from aver.spec.flow.generated import parse_generated
from aver.store.read.reader import Reader

MEMORY_BYTES = 1 << 30
LARGEST_ANSWER_BYTES = 64 << 20
MIB = 1 << 20


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    question = decode(Question, json.loads(sys.stdin.buffer.readline()))
    try:
        text = dumps(answer(question))
    except MemoryError:
        text = dumps(Answer(None, f"{question.path} takes more than {MEMORY_BYTES // MIB} MiB of memory to read"))
    except RecursionError:
        text = dumps(Answer(None, f"{question.path} is nested too deeply"))
    if len(text) > LARGEST_ANSWER_BYTES:
        problem = (
            f"{question.path} has more than {LARGEST_ANSWER_BYTES // MIB} MiB of jobs when its aliases are followed"
        )
        text = dumps(Answer(None, problem))
    sys.stdout.write(text + "\n")


def answer(question: Question) -> Answer:
    """What the file holds; a problem where its jobs can't be used."""
    try:
        data = read_regular(question.path)
    except OSError as error:
        return Answer(None, f"can't read {question.path}, which it was to generate: {error.strerror}")
    if data is None:
        return Answer(None, f"{question.path}, which it was to generate, is not a regular file")
    if len(data) > MAX_BYTES:
        return Answer(None, f"{question.path} has more than {MAX_BYTES // MIB} MiB")
    reader = Reader.open(Path(question.database))
    submission = None
    if reader is not None:
        with reader:
            submission = reader.submission(question.run)
            generated = [event for event in reader.generated(question.run) if event.job != question.job]
    if submission is None:
        return Answer(None, f"run {question.run} is gone from the store")
    known = [*submission.flow.jobs, *(spec for event in generated for spec in event.flow.jobs)]
    try:
        flow = beside(
            question, parse_generated(data, question.path, known=known, now=time.time(), flow=submission.flow)
        )
        check_text(flow)
        check_fits(flow, submission.engine, question.total)
        check_allocation(replace(submission, flow=flow))
    except AverError as error:
        return Answer(None, str(error))
    return Answer(flow)


def read_regular(path: str) -> bytes | None:
    """The bytes of a regular file, not many more than any format allows; None: it is something else.

    Nothing else is opened: that may wait, or do something. What changes in between is opened without waiting.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return file.read(MAX_BYTES + 1)


def beside(maker: Question, flow: FlowSpec) -> FlowSpec:
    """Jobs that do not say where they run do so where the job ran that made them: its flow said it for all."""
    jobs = tuple(
        replace(
            spec,
            engine=maker.engine if spec.engine is None else spec.engine,
            host=maker.host if spec.host is None else spec.host,
        )
        for spec in flow.jobs
    )
    return replace(flow, jobs=jobs)


if __name__ == "__main__":
    main()

"""The names of output files: no two attempts of a run share one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aver.client.output_paths import Which, job_files
from aver.model.job import Argv, FlowSpec, JobSpec, Origin, Streams, Submission

ORIGIN = Origin(user="me", uid=1, host="here", folder="/work", umask=0o22)


def path(job: int, name: str, attempt: int, output: str | None = None) -> str:
    spec = JobSpec(name, Argv(("true",)), streams=Streams(stdout=output))
    return job_files(Submission(FlowSpec("f", (spec,)), ORIGIN), spec, Which(1, job, name, attempt), False).stdout


@given(st.lists(st.text("/_a.#12", min_size=1, max_size=6) | st.just("x" * 300), unique=True, max_size=12))
def test_no_two_attempts_share_a_file(names: list[str]) -> None:
    """Names that differ only in `/` and `_`, that end like an attempt's number or a job's, or that are too long."""
    paths = [path(job, name, attempt) for job, name in enumerate(names) for attempt in (1, 2, 12)]
    assert len(set(paths)) == len(paths)


@given(st.lists(st.text("/_a", min_size=1, max_size=4).map("m[f={}]".format), unique=True, max_size=12))
def test_no_two_jobs_share_a_file_that_is_named_after_them(names: list[str]) -> None:
    """`output: %x.txt`: names that differ only in `/` and `_`, or behind what a file's name has room for."""
    names += ["x" * 300 + "1", "x" * 300 + "2"]
    paths = [path(job, name, 1, "%x.txt") for job, name in enumerate(names)]
    assert len(set(paths)) == len(paths)


def test_names_of_files() -> None:
    """A plain name is the file's; what could be another's has the job's number."""
    assert path(7, "train[seed=2]", 1) == "/work/aver-1/train[seed=2].out"
    assert path(7, "train[seed=2]", 2) == "/work/aver-1/train[seed=2].2.out"
    assert path(7, "fit[f=a/b.csv]", 1) == "/work/aver-1/fit[f=a_b.csv]#7.out"
    assert path(7, "v1.2", 1) == "/work/aver-1/v1.2#7.out"
    assert path(7, "fit[f=a_b.csv]", 1, "%x.txt") == "/work/fit[f=a_b.csv].txt"
    assert path(7, "fit[f=a/b.csv]", 1, "%x.txt") == "/work/fit[f=a_b.csv]#7.txt"

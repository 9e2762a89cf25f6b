"""Which members of a matrix write to one file: `aver log` says so, however many members there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aver.cli.facts import shares_output
from aver.client.output_paths import Which, job_files
from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Origin, Streams, Submission
from aver.plan.matrix import members

FIRST = 8
VALUES = st.sampled_from(["1", "11", "8", "a", "a/b", "a_b", "..", ".", "", "%j", "%a", "x\\", "1-1", "0"])
PIECES = ["{x}", "{y}", "{z}", "{p}", "%j", "%a", "%4a", "%x", "%A", "-", "/", "1", "..", ".txt", "\\"]


def submission_of(spec: JobSpec) -> Submission:
    return Submission(FlowSpec("flow", (spec,)), Origin("ann", 1, "here", "/data", 0o22))


def is_said(spec: JobSpec, member: int, err: bool = False) -> bool:
    return shares_output(submission_of(spec), spec, (7, FIRST + member, 1), member, err)


def paths_of(spec: JobSpec) -> list[str]:
    """The files of all members, one by one."""
    found = []
    for number, one in enumerate(members(spec)):
        which = Which(7, FIRST + number, spec.name + one.label, 1, one.values + spec.params, number)
        found.append(job_files(submission_of(spec), spec, which, False).stdout)
    return found


@given(
    axes=st.lists(st.lists(VALUES, min_size=1, max_size=4, unique=True), min_size=1, max_size=2),
    pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=5),
    folder=st.sampled_from(["", "{x}", "f/{y}"]),
    include=st.sampled_from([(), ((("z", "1"),),), ((("x", "new"), ("z", "8")),)]),
)
def test_what_is_said_is_what_comparing_all_of_them_gives(
    axes: list[list[str]], pieces: list[str], folder: str, include: tuple[tuple[tuple[str, str], ...], ...]
) -> None:
    named = tuple((name, tuple(values)) for name, values in zip("xy", axes, strict=False))
    spec = JobSpec(
        "m", Argv(("true",)), matrix=Matrix(named, include=include), streams=Streams(stdout="".join(pieces)),
        folder=folder or None, params=(("p", "1"),),
    )  # fmt: skip
    paths = paths_of(spec)
    assert [is_said(spec, number) for number in range(len(paths))] == [paths.count(path) > 1 for path in paths]


def large(pattern: str) -> JobSpec:
    axes = tuple((name, tuple(map(str, range(1000)))) for name in "xy")
    return JobSpec("m", Argv(("true",)), matrix=Matrix(axes), streams=Streams(stdout=pattern))


def test_a_matrix_of_a_million() -> None:
    """The one that shares its file is found wherever it is, and where there is none that is known as well."""
    last = 999_999
    assert not is_said(large("out/{x}-{y}.txt"), last)
    assert not is_said(large("%j.txt"), last)
    assert not is_said(large("{x}/%a"), 5)
    assert is_said(large("{x}{y}.txt"), 1_012)  # 1 and 12, as 11 and 2
    assert not is_said(large("{x}{y}.txt"), last)
    assert is_said(large("{x}.txt"), last)
    assert is_said(large("all.txt"), 0)

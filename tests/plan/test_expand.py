"""The members of a matrix, and the order of a flow's jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.job import FlowSpec, JobSpec, Matrix, Shell
from aver.plan.matrix import FlowIndex, Member, member_at, member_count, members


def spec(matrix: Matrix | None = None, name: str = "train") -> JobSpec:
    return JobSpec(name, Shell("x"), matrix=matrix)


AB = (("a", ("1", "2")), ("b", ("x", "y")))


def labels(matrix: Matrix) -> list[str]:
    return [member.label for member in members(spec(matrix))]


def test_without_a_matrix_there_is_one_member_and_a_plain_name() -> None:
    """A plain job is one member without values."""
    assert list(members(spec())) == [Member()]
    assert member_at(spec(), 0).label == ""
    with pytest.raises(IndexError):
        member_at(spec(), 1)


def test_a_product_varies_its_last_axis_fastest() -> None:
    """Members come in the order of nested loops."""
    assert labels(Matrix(AB)) == ["[a=1,b=x]", "[a=1,b=y]", "[a=2,b=x]", "[a=2,b=y]"]


def test_zip_pairs_the_axes() -> None:
    """The n-th member has the n-th value of each axis; different lengths are refused."""
    assert labels(Matrix(AB, zip=True)) == ["[a=1,b=x]", "[a=2,b=y]"]
    with pytest.raises(ValueError, match="different lengths"):
        members(spec(Matrix((("a", ("1",)), ("b", ("1", "2"))), zip=True)))


def test_exclude_takes_away_all_that_match() -> None:
    """An entry with some of the names takes away every member that has those values."""
    assert labels(Matrix(AB, exclude=((("a", "1"),), (("a", "2"), ("b", "y"))))) == ["[a=2,b=x]"]
    assert member_count(spec(Matrix(AB, exclude=((("a", "1"),), (("a", "2"),))))) == 0


def test_include_extends_the_members_that_it_does_not_contradict() -> None:
    """As in GitHub Actions: new names are added where the axes agree."""
    found = labels(Matrix(AB, include=((("a", "1"), ("lr", "3")), (("lr", "5"), ("b", "y")))))
    assert found == ["[a=1,b=x,lr=3]", "[a=1,b=y,lr=5]", "[a=2,b=x]", "[a=2,b=y,lr=5]"]


def test_include_adds_a_member_when_it_fits_none() -> None:
    """An entry that contradicts every member is a member of its own, and is not extended by later ones."""
    found = labels(Matrix((("a", ("1",)),), include=((("a", "2"),), (("a", "2"), ("c", "3")))))
    assert found == ["[a=1]", "[a=2]", "[a=2,c=3]"]


def test_include_alone_makes_the_members() -> None:
    """Without axes the entries are the members."""
    assert labels(Matrix((), include=((("a", "1"),), (("a", "2"),)))) == ["[a=1]", "[a=2]"]


def test_members_are_indexed_and_sliced_as_a_sequence() -> None:
    """Negative numbers and slices work, and numbers beyond the end are IndexErrors."""
    found = members(spec(Matrix(AB)))
    assert found[-1] == found[3]
    assert list(found[1:3]) == [found[1], found[2]]
    with pytest.raises(IndexError):
        found[4]


def test_a_huge_product_costs_nothing_until_it_is_asked() -> None:
    """A trillion members are counted and indexed at once."""
    axis = tuple(str(n) for n in range(10_000))
    huge = spec(Matrix((("a", axis), ("b", axis), ("c", axis))))
    assert member_count(huge) == 10**12
    assert member_at(huge, 10**12 - 1).label == "[a=9999,b=9999,c=9999]"


sizes = st.lists(st.none() | st.integers(0, 4), max_size=6)


@given(sizes)
def test_the_flow_index_counts_locates_and_finds_back(counts: list[int | None]) -> None:
    """Every job has one spec and member, in order, and the way back gives its number, past empty matrices."""
    jobs = tuple(
        spec(None if count is None else Matrix((("s", tuple(str(n) for n in range(count))),)), f"j{at}")
        for at, count in enumerate(counts)
    )
    index = FlowIndex(FlowSpec("f", jobs))
    expected = [(at, member) for at, one in enumerate(jobs) for member in range(member_count(one))]
    assert index.count == len(expected)
    assert [index.locate(n) for n in range(index.count)] == expected
    assert [index.job(*pair) for pair in expected] == list(range(index.count))
    assert list(index.names()) == [index.name(n) for n in range(index.count)]
    assert [index.name(n) for n in range(index.count)] == [
        jobs[s].name + member_at(jobs[s], m).label for s, m in expected
    ]
    for beyond in (-1, index.count):
        with pytest.raises(IndexError):
            index.locate(beyond)


def test_job_name_names_the_nth_job() -> None:
    """Numbers go through specs and members in order."""
    flow = FlowSpec("f", (spec(name="prep"), spec(Matrix((("seed", ("1", "2")),)))))
    assert [FlowIndex(flow).name(n) for n in range(3)] == ["prep", "train[seed=1]", "train[seed=2]"]

"""Which CPUs jobs get: sets that share none, near each other, and known again from what is held."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.engines.local.cpu_sets import MACHINE_CPUS, CpuSets, cpu_list, numa_nodes, own_cpus, parse_cpu_list
from aver.model.threads import without_outer


@given(st.sets(st.integers(0, 200)))
def test_lists_are_as_the_kernel_writes_them(cpus: set[int]) -> None:
    assert parse_cpu_list(cpu_list(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8\n", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ())])
def test_parse(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


def test_nodes_of_the_kernel(tmp_path: Path) -> None:
    """Only CPUs that this process may use; those of no node are together."""
    for node, cpus in (("node0", "0-3"), ("node1", "4-7"), ("node2", "")):
        (tmp_path / node).mkdir()
        (tmp_path / node / "cpulist").write_text(cpus)
    assert numa_nodes((1, 2, 4, 9), tmp_path) == [[1, 2], [4], [9]]
    assert numa_nodes((1, 2), tmp_path / "none") == [[1, 2]]


def test_a_set_is_from_one_node_and_from_the_fullest_that_has_enough() -> None:
    sets = CpuSets([[0, 1, 2, 3], [4, 5, 6, 7]])
    assert sets.take("a", 3) == "0-2"
    assert sets.take("b", 1) == "3"
    assert sets.take("c", 3) == "4-6"
    assert sets.take("d", 2) == ""
    sets.release("b")
    assert sets.take("d", 2) == "3,7"
    assert sets.of("d") == "3,7"
    assert sets.take("e", 1) == ""


def test_what_is_held_is_given_to_nobody_else() -> None:
    """As after a restart: sets come from the journals first."""
    sets = CpuSets([[0, 1, 2, 3]])
    sets.hold("a", (0, 2, 99))
    assert sets.take("b", 2) == "1,3"
    sets.release("a")
    assert sets.take("c", 2) == "0,2"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 4))))
def test_sets_never_share(steps: list[tuple[str, int]]) -> None:
    """Whoever takes and gives back, no CPU has two owners, and none is lost."""
    sets = CpuSets([[0, 1, 2], [3, 4], [5]])
    held: dict[str, set[int]] = {}
    for key, count in steps:
        if key in held or not count:
            sets.release(key)
            held.pop(key, None)
        else:
            cpus = set(parse_cpu_list(sets.take(key, count)))
            assert len(cpus) == (count if sum(map(len, held.values())) + count <= 6 else 0)
            assert not cpus & set().union(*held.values())
            held[key] = cpus


def test_inside_a_job_the_machine_is_that_of_its_coordinator() -> None:
    assert own_cpus({MACHINE_CPUS: "0-2"}) == (0, 1, 2)
    assert own_cpus({MACHINE_CPUS: "nonsense"}) == own_cpus({})


def test_threads_of_an_enclosing_job_are_not_inherited() -> None:
    """What the user set stays."""
    outer = {"AVER_CPUS": "1.5", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "7", "PATH": "/bin"}
    assert without_outer(outer) == {"AVER_CPUS": "1.5", "MKL_NUM_THREADS": "7", "PATH": "/bin"}
    assert without_outer({"OMP_NUM_THREADS": "2"}) == {"OMP_NUM_THREADS": "2"}

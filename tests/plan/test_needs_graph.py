"""Needs resolved, mistakes found, order known."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Need, Needs
from aver.plan.graph import Graph, GraphError
from aver.plan.lanes import Link
from aver.plan.needs import Target
from graph_problems import problems_of


def job(name: str, *needs: str, **axes: str) -> JobSpec:
    """Axes are given as `seed="1 2 3"`."""
    matrix = Matrix(tuple((axis, tuple(values.split())) for axis, values in axes.items())) if axes else None
    return JobSpec(name, Argv(("true",)), needs=Needs(tuple(Need(need) for need in needs)), matrix=matrix)


def flow(*jobs: JobSpec) -> FlowSpec:
    return FlowSpec("flow", jobs)


def meant(text: str, *jobs: JobSpec) -> list[str]:
    """The names of the jobs that a need means."""
    graph = Graph(flow(*jobs))
    graph.extend(flow(job("asks", text)))
    (target,) = graph.groups[-1].targets
    assert isinstance(target, Target)
    return [graph.name(number) for number in graph.jobs_in(target)]


def needed(text: str, asks: JobSpec, *jobs: JobSpec) -> dict[str, list[str]]:
    """The names of the jobs that each member needs."""
    graph = Graph(flow(*jobs))
    graph.extend(flow(asks))
    (link,) = graph.groups[-1].targets
    assert isinstance(link, Link)
    return {
        graph.name(number): [graph.name(one) for one in link.lanes.jobs(lane, graph.starts)]
        for number, lane in zip(graph.jobs_of(len(jobs)), link.of_member, strict=True)
    }


def test_a_name_means_all_members_of_a_matrix() -> None:
    """And a job without a matrix is itself."""
    assert meant("train", job("train", seed="1 2"), job("train2")) == ["train[seed=1]", "train[seed=2]"]
    assert meant("train2", job("train", seed="1 2"), job("train2")) == ["train2"]


def test_an_address_means_one_member() -> None:
    """Written as the job's own name is."""
    assert meant("train[seed=2]", job("train", seed="1 2 3")) == ["train[seed=2]"]


def test_an_address_may_leave_axes_out_and_give_them_in_any_order() -> None:
    """What it does not say may have any value."""
    train = job("train", seed="1 2", lr="a b")
    assert meant("train[lr=a]", train) == ["train[seed=1,lr=a]", "train[seed=2,lr=a]"]
    assert meant("train[lr=b,seed=2]", train) == ["train[seed=2,lr=b]"]


def test_globs_match_names_and_values() -> None:
    """Only `*` and `?` are special; brackets are an address, not a set of characters."""
    jobs = (job("train", seed="1 2 12"), job("trainer"), job("eval"))
    assert meant("train*", *jobs)[-1] == "trainer"
    assert meant("train[seed=1*]", *jobs) == ["train[seed=1]", "train[seed=12]"]
    assert meant("train[seed=?]", *jobs) == ["train[seed=1]", "train[seed=2]"]
    assert meant("t*[seed=2]", *jobs) == ["train[seed=2]"]
    assert len(meant("train[*]", *jobs)) == 3
    assert meant("e.al*", job("e.al"), job("eval")) == ["e.al"]


def test_a_value_may_hold_a_comma() -> None:
    """A comma that no name follows belongs to the value."""
    matrix = Matrix((("pair", ("a,b", "c")), ("n", ("1", "2"))))
    train = JobSpec("train", Argv(("true",)), matrix=matrix)
    assert meant("train[pair=a,b,n=2]", train) == ["train[pair=a,b,n=2]"]
    assert meant("train[pair=a,b]", train) == ["train[pair=a,b,n=1]", "train[pair=a,b,n=2]"]


def test_all_members_by_glob_are_the_same_target_as_the_name() -> None:
    """So that they share one counter."""
    graph = Graph(flow(job("train", seed="1 2"), job("asks", "train", "train[seed=*]", "train[*]")))
    assert graph.groups[1].targets == (Target(specs=(0,)),) * 3


def test_each_member_needs_those_with_its_value() -> None:
    """Axes that only one of them has fan out and in."""
    prep = job("prep", sample="a b")
    assert needed("", job("train", "prep[sample={sample}]", sample="b a", seed="1 2"), prep) == {
        "train[sample=b,seed=1]": ["prep[sample=b]"],
        "train[sample=b,seed=2]": ["prep[sample=b]"],
        "train[sample=a,seed=1]": ["prep[sample=a]"],
        "train[sample=a,seed=2]": ["prep[sample=a]"],
    }
    train = job("train", sample="a b", seed="1 2")
    for text in ("train[sample={s}]", "train[seed=*,sample={s}]", "tr*[sample={s}]"):
        assert needed(text, job("merge", text, s="b"), train) == {
            "merge[s=b]": ["train[sample=b,seed=1]", "train[sample=b,seed=2]"]
        }
    assert needed("", job("one", "train[sample={s},seed=2]", s="b"), train) == {"one[s=b]": ["train[sample=b,seed=2]"]}


def test_same_means_all_axes_that_both_have() -> None:
    train = job("train", sample="a b", seed="1 2")
    assert needed("", job("eval", "train[same]", seed="2", sample="a", k="9"), train) == {
        "eval[seed=2,sample=a,k=9]": ["train[sample=a,seed=2]"]
    }


def test_a_value_of_a_member_is_no_glob() -> None:
    """It is compared as it is."""
    assert needed("", job("b", "a[f={f}]", f="*.csv"), job("a", f="*.csv x.csv")) == {"b[f=*.csv]": ["a[f=*.csv]"]}


def test_a_member_may_need_a_job_by_its_name() -> None:
    jobs = (job("prep-a"), job("prep-b", n="1 2"))
    assert needed("", job("train", "prep-{s}", s="a b"), *jobs) == {
        "train[s=a]": ["prep-a"],
        "train[s=b]": ["prep-b[n=1]", "prep-b[n=2]"],
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prep[sampl={sample}]", 'but its matrix has no "sampl"; did you mean "sample"?'),
        ("one[sample={sample}]", 'but "one" has no matrix; write one'),
        ("prep[sample={smple}]", 'but "{smple}" is not a value of sample; job "asks" has no axis smple'),
        ("prep[sample={sample}]", 'which matches no member for "sample=c" and 1 more; look at both matrices'),
        ("prep[same]", 'which matches no member for "sample=c" and 1 more; look at both matrices'),
        ("one[same]", "but they have no axis in common; write one, or give both jobs the axis"),
        ("p*[sampl={sample}]", "which matches no member; look at the matrices of the jobs"),
        ("prp[sample={sample}]", 'needs "prp", but this flow has no such job; did you mean "prep"?'),
        ("prep-{sample}", 'needs "prep-a", but this flow has no such job; did you mean "prep"?'),
        ("asks[sample={sample}]", 'job "asks" needs itself; take it out of its needs'),
    ],
)
def test_mistakes_of_needs_of_members(text: str, said: str) -> None:
    problems = problems_of(flow(job("prep", sample="a b"), job("one"), job("asks", text, sample="a b c d")))
    assert problems
    assert {problem.need for problem in problems} == {text}
    assert str(problems[0]).endswith(said)


def test_every_mistake_is_found_at_once() -> None:
    """Unknown needs with the nearest name, a need of itself, duplicates and circles, each with its spec."""
    problems = problems_of(
        flow(job("prep"), job("train", "prp"), job("me", "me"), job("x", "y"), job("y", "x"), job("prep"))
    )
    assert [(problem.spec, problem.need, str(problem)) for problem in sorted(problems, key=lambda one: one.spec)] == [
        (1, "prp", 'job "train" needs "prp", but this flow has no such job; did you mean "prep"?'),
        (2, "me", 'job "me" needs itself; take it out of its needs'),
        (3, "", "jobs need each other in a cycle: x -> y -> x; take one need out"),
        (5, "", 'duplicate job name "prep"'),
    ]


@pytest.mark.parametrize("text", ["nobody", "nobody*", "train[seed=9]", "train[lr=1]", "prep[seed=1]", "prep[]", "["])
def test_a_need_that_means_no_job_is_unknown(text: str) -> None:
    """Also a glob that matches nothing, and an address of a job without a matrix."""
    problems = problems_of(flow(job("prep"), job("train", seed="1"), job("asks", text)))
    assert [(problem.spec, problem.need) for problem in problems] == [(2, text)]


def test_a_member_can_not_need_another_member_of_its_own_matrix() -> None:
    """All members have the same needs, so the one that is needed would need itself."""
    problems = problems_of(flow(job("train", "train[seed=1]", seed="1 2")))
    assert [str(problem) for problem in problems] == ['job "train" needs itself; take it out of its needs']


def test_a_cycle_is_shown_as_its_path_and_only_the_circle() -> None:
    """Jobs above and below the circle are not on the path."""
    (problem,) = problems_of(flow(job("top"), job("c", "a"), job("a", "b", "top"), job("b", "c"), job("low", "a")))
    assert str(problem) == "jobs need each other in a cycle: c -> a -> b -> c; take one need out"


def path_of(text: str) -> list[str]:
    return text.partition(": ")[2].split(" -> ")


def test_two_circles_are_two_problems() -> None:
    """Each is shown."""
    problems = problems_of(flow(job("a", "b"), job("b", "a"), job("c", "d"), job("d", "c")))
    assert [path_of(problem.text) for problem in problems] == [["a", "b", "a"], ["c", "d", "c"]]


def test_extending_with_a_mistake_changes_nothing() -> None:
    """Names, numbers and order are as before."""
    graph = Graph(flow(job("a")))
    with pytest.raises(GraphError):
        graph.extend(flow(job("b", "a"), job("c", "nobody"), job("a")))
    assert (graph.count, graph.order, graph.spec_named("b"), graph.spec_named("a")) == (1, [0], None, 0)
    graph.extend(flow(job("b", "a")))
    assert graph.order == [0, 1]


def test_a_glob_does_not_grow() -> None:
    """It means what was known when its own job was added."""
    graph = Graph(flow(job("train1"), job("eval", "train*")))
    graph.extend(flow(job("train2")))
    assert graph.below(2) == []
    assert graph.below(0) == [1]


def test_below_is_transitive_and_exact_for_members() -> None:
    """A job that needs one member is below that member only."""
    graph = Graph(flow(job("a", seed="1 2"), job("b", "a[seed=2]"), job("c", "b", n="1 2"), job("d"), job("e", "a")))
    assert [graph.name(number) for number in graph.below(1)] == ["b", "c[n=1]", "c[n=2]", "e"]
    assert [graph.name(number) for number in graph.below(0)] == ["e"]
    assert graph.below(5) == []


def test_below_follows_the_lanes() -> None:
    """One bad sample has its own chain below it, and what needs all of them."""
    graph = Graph(
        flow(
            job("prep", sample="a b"),
            job("train", "prep[same]", sample="a b", seed="1 2"),
            job("merge", "train[sample={sample}]", sample="a b"),
            job("all", "merge"),
        )
    )
    names = ["train[sample=b,seed=1]", "train[sample=b,seed=2]", "merge[sample=b]", "all"]
    assert [graph.name(number) for number in graph.below(1)] == names
    assert [graph.name(number) for number in graph.below_all([2])] == ["merge[sample=a]", "all"]
    assert [graph.name(number) for number in graph.below_all([0, 5])] == [
        "train[sample=a,seed=1]", "train[sample=a,seed=2]", "merge[sample=a]", "merge[sample=b]", "all",
    ]  # fmt: skip


@given(st.data())
def test_the_order_puts_every_spec_after_its_needs(data: st.DataObject) -> None:
    """For any graph without circles, in whatever order its specs are written."""
    count = data.draw(st.integers(1, 12))
    jobs = [
        job(
            f"j{at}",
            *data.draw(st.lists(st.sampled_from([f"j{up}" for up in range(at)]), max_size=3) if at else st.just([])),
        )
        for at in range(count)
    ]
    graph = Graph(flow(*data.draw(st.permutations(jobs))))
    place = {spec: at for at, spec in enumerate(graph.order)}
    assert sorted(place) == list(range(count))
    assert all(place[need] < place[spec] for spec in range(count) for need in graph.above(spec))


@given(st.data())
def test_any_circle_is_found(data: st.DataObject) -> None:
    """A graph with one edge back up always has a problem, and the path is a real one."""
    count = data.draw(st.integers(2, 8))
    jobs = [job(f"j{at}", *([f"j{at - 1}"] if at else [f"j{count - 1}"])) for at in range(count)]
    shuffled = data.draw(st.permutations(jobs))
    (problem,) = problems_of(flow(*shuffled))
    needs = {spec.name: {need.job for need in spec.needs.all_of} for spec in shuffled}
    path = path_of(problem.text)
    assert len(path) == count + 1
    assert all(lower in needs[upper] for upper, lower in pairwise(path))


def test_specs_without_members_are_in_the_graph_and_have_no_jobs() -> None:
    """All members excluded: the numbers go on as if it were not there."""
    empty = JobSpec("empty", Argv(("true",)), matrix=Matrix((("n", ("1",)),), exclude=((("n", "1"),),)))
    graph = Graph(flow(job("a"), empty, job("b", "empty")))
    assert [graph.name(number) for number in range(graph.count)] == ["a", "b"]
    assert graph.below(0) == []

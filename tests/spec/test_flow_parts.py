"""Needs, matrices and retries of a flow."""

from __future__ import annotations

import pytest

from aver.model.job import CheckpointRule, JobSpec, Matrix, Need, Needs, Outcome, RetryRule
from aver.model.states import State
from aver.plan.matrix import members
from aver.spec.flow.file import parse_flow
from aver.spec.flow.retry import DEFAULT_STATES
from aver.spec.mistakes import SpecError


def jobs(text: str) -> tuple[JobSpec, ...]:
    return parse_flow(text, "f.yaml", now=0.0).jobs


def complaints(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        jobs(text)
    return str(caught.value).splitlines()


def needs_of(needs: str) -> Needs:
    others = "".join(f"  {name}: {{run: x}}\n" for name in ("a", "b", "c", "ab"))
    return jobs(f"jobs:\n{others}  m: {{run: 'x {{s}}', matrix: {{s: [1, 2]}}}}\n  z: {{run: x, needs: {needs}}}\n")[
        -1
    ].needs


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("a", Needs((Need("a"),))),
        ("[a, b]", Needs((Need("a"), Need("b")))),
        ("[]", Needs()),
        ("'a*'", Needs((Need("a*"),))),
        ("'m[s=2]'", Needs((Need("m[s=2]"),))),
        ("{a: any, b: failure, c: success}", Needs((Need("a", Outcome.ANY), Need("b", Outcome.FAILURE), Need("c")))),
        ("{a: TIMEOUT}", Needs((Need("a", Outcome.SUCCESS, (State.TIMEOUT,)),))),
        ("{a: [FAILED, TIMEOUT]}", Needs((Need("a", Outcome.SUCCESS, (State.FAILED, State.TIMEOUT)),))),
        ("[a, {b: any}]", Needs((Need("a"), Need("b", Outcome.ANY)))),
        ("{any_of: [a, b]}", Needs((), ((Need("a"), Need("b")),))),
        ("{any_of: [[a, b], [c]]}", Needs((), ((Need("a"), Need("b")), (Need("c"),)))),
        ("{all_of: [a], any_of: [{b: any}, c]}", Needs((Need("a"),), ((Need("b", Outcome.ANY), Need("c")),))),
    ],
)
def test_forms_of_needs(text: str, needs: Needs) -> None:
    """A name, a list, a map of outcomes, and groups of which one is enough."""
    assert needs_of(text) == needs


@pytest.mark.parametrize(
    ("needs", "complaint"),
    [
        ("'q*'", 'f.yaml:7:22: job "z" needs "q*", which matches no job; look at the names of the jobs'),
        (
            "'?'",
            'f.yaml:7:22: job "z" needs itself, since "?" matches it; name the jobs so that the glob leaves it out',
        ),
        ("'a[s=2]'", 'f.yaml:7:22: job "z" needs "a[s=2]", but "a" has no matrix; write a'),
        ("'m[t=2]'", 'f.yaml:7:22: job "z" needs "m[t=2]", but its matrix has no "t"'),
        ("'m[s=3]'", 'f.yaml:7:22: job "z" needs "m[s=3]", but "3" is not a value of s'),
        ("'m[s'", 'f.yaml:7:22: "needs" in job "z" is wrong: "m[s" is not an address; write name[axis=value]'),
        ("{a: failed}", 'f.yaml:7:26: "a" in job "z" can\'t end as "failed"; write "FAILED"'),
        ("{a: RUNNING}", 'f.yaml:7:26: "a" in job "z" can\'t end as "RUNNING"'),
        ("{a: []}", 'f.yaml:7:26: "a" in job "z" has an empty list of states'),
        ("[[a]]", 'f.yaml:7:23: "needs" in job "z" must be a list of names, not of lists'),
        ("{any_of: []}", 'f.yaml:7:31: "any_of" in job "z" is an empty list: it could never be met'),
        ("['']", 'f.yaml:7:23: "needs" in job "z" has an empty name'),
    ],
)
def test_mistakes_of_needs(needs: str, complaint: str) -> None:
    """Each has the place of the need itself."""
    with pytest.raises(SpecError) as caught:
        needs_of(needs)
    (found,) = caught.value.mistakes
    assert str(found).startswith(complaint)


def test_a_cycle_is_shown_as_its_path() -> None:
    """Each job needs the next one of the path."""
    text = "jobs:\n  a: {run: x, needs: c}\n  b: {run: x, needs: a}\n  c: {run: x, needs: [b, d]}\n  d: {run: x}\n"
    assert complaints(text) == ["f.yaml:2:3: jobs need each other in a cycle: a -> c -> b -> a; take one need out"]


def test_two_cycles_and_one_through_a_glob() -> None:
    """Each cycle is said, also one that a glob closes."""
    text = (
        "jobs:\n  a: {run: x, needs: b}\n  b: {run: x, needs: a}\n"
        "  p1: {run: x, needs: q}\n  q: {run: x, needs: 'p*'}\n"
    )
    assert complaints(text) == [
        "f.yaml:2:3: jobs need each other in a cycle: a -> b -> a; take one need out",
        "f.yaml:4:3: jobs need each other in a cycle: p1 -> q -> p1; take one need out",
    ]


def test_a_long_chain_has_no_cycle() -> None:
    """The search does not recurse: 20,000 jobs in a row are fine."""
    lines = ["jobs:", "  j0: {run: x}"] + [f"  j{n}: {{run: x, needs: j{n - 1}}}" for n in range(1, 20_000)]
    assert len(jobs("\n".join(lines))) == 20_000


def test_a_barrier_is_not_unfolded() -> None:
    """1,000 jobs that need 1,000 through one alias share one list of needs."""
    firsts = [f"  a{n}: {{run: x}}" for n in range(1000)]
    names = ", ".join(f"a{n}" for n in range(1000))
    seconds = [f"  b{n}: {{run: x, needs: *all}}" for n in range(1000)]
    specs = jobs("\n".join([f"x-all: &all [{names}]", "jobs:", *firsts, *seconds]))
    assert len({id(spec.needs) for spec in specs[1000:]}) == 1


def matrix_of(text: str, run: str = "'{a} {b} {c}'") -> Matrix:
    matrix = jobs(f"jobs:\n  j: {{matrix: {{{text}}}, run: {run}}}\n")[0].matrix
    assert matrix is not None
    return matrix


@pytest.mark.parametrize(
    ("axis", "texts"),
    [
        ("[1, 2.50, x y, true]", ("1", "2.50", "x y", "true")),
        ("7", ("7",)),
        ("1..4", ("1", "2", "3", "4")),
        ("0..10..5", ("0", "5", "10")),
        ("08..11", ("08", "09", "10", "11")),
        ("-1..1", ("-1", "0", "1")),
        ("{from: 1, to: 3}", ("1", "2", "3")),
        ("{from: 0, to: 9, step: 4}", ("0", "4", "8")),
        ("[1..2, 9]", ("1", "2", "9")),
    ],
)
def test_axes(axis: str, texts: tuple[str, ...]) -> None:
    """Values are text as written; ranges have both ends."""
    assert matrix_of(f"a: {axis}").axes == (("a", texts),)


def test_matrix_options() -> None:
    """Zip, include, exclude and the cap of members."""
    assert matrix_of("a: [1, 2], b: [3, 4], zip: true, max_parallel: 2") == Matrix(
        (("a", ("1", "2")), ("b", ("3", "4"))), zip=True, max_parallel=2
    )
    matrix = matrix_of("a: [1, 2], b: [3, 4], exclude: [{a: 1, b: 3}], include: [{a: 9, b: 9}]")
    assert (matrix.exclude, matrix.include) == (((("a", "1"), ("b", "3")),), ((("a", "9"), ("b", "9")),))
    only = matrix_of("include: [{a: 1, b: 2}, {a: 1, b: 3}]")
    assert only == Matrix((("a", ("1", "1")), ("b", ("2", "3"))), zip=True)
    spec = jobs(
        "jobs:\n  j: {matrix: {a: 1..3, include: [{a: 2, b: x}, {a: 1, b: y}, {a: 3, b: z}]}, run: '{a}{b}'}\n"
    )[0]
    assert [member.label for member in members(spec)] == ["[a=1,b=y]", "[a=2,b=x]", "[a=3,b=z]"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: []", 'f.yaml:2:19: "a" in job "j" has no values'),
        ("a: [1, 1]", 'f.yaml:2:19: "a" in job "j" has the value "1" twice'),
        ("a: 5..1", 'f.yaml:2:19: "a" in job "j" is a range from 5 down to 1; write it as 1..5'),
        ("a: 1..9..0", 'f.yaml:2:19: "a" in job "j" has the step 0; a step is 1 or more'),
        ("a: 1..99999999", 'f.yaml:2:19: "a" in job "j" has more than 1000000 values'),
        ("a: 1..2000, b: 1..2000", 'f.yaml:2:15: "matrix" in job "j" has 4000000 members; the most is 1000000'),
        ("a: {from: 1}", 'f.yaml:2:19: "a" in job "j" is a range without "from" or "to"'),
        ("a: {from: 1, too: 2}", 'f.yaml:2:29: unknown key "too" in job "j"; did you mean "to"?'),
        ("a-b: [1]", 'f.yaml:2:16: "a-b" can\'t be the name of an axis in job "j"'),
        ("", 'f.yaml:2:15: "matrix" in job "j" has no axis; write it as matrix: {seed: [1, 2, 3]}'),
        (
            "a: [1], b: [1, 2], zip: true",
            'f.yaml:2:15: "matrix" in job "j" zips axes of different lengths: a has 1, b has 2',
        ),
        ("a: [1], exclude: [{a: 1}]", 'f.yaml:2:15: "matrix" in job "j" has no member left; look at "exclude"'),
        (
            "a: [1], exclude: [{a: 2}]",
            'f.yaml:2:33: "exclude" in job "j" names "a=2", which is not a value of that axis',
        ),
        ("a: [1], exclude: [{d: 2}]", 'f.yaml:2:33: "exclude" in job "j" names "d", which is not an axis'),
        ("a: [1], b: [2], include: [{a: 7}]", 'f.yaml:2:41: "include" in job "j" leaves the member "[a=7]" without b'),
        ("a: [1], d: [2]", 'f.yaml:2:24: matrix key "d" is not used in job "j"; use {d} in run, env or output'),
        ("a: [1], max_parallel: 0", 'f.yaml:2:38: "max_parallel" in job "j" is 0; the least is 1'),
    ],
)
def test_mistakes_of_a_matrix(text: str, complaint: str) -> None:
    """Each at its own place."""
    with pytest.raises(SpecError) as caught:
        matrix_of(text)
    found = [str(mistake) for mistake in caught.value.mistakes]
    assert any(line.startswith(complaint) for line in found), found


def test_the_shells_own_braces_do_not_count_as_use() -> None:
    """`${seed}` is the shell's; the hint says what to write."""
    (complaint,) = complaints("jobs:\n  j: {matrix: {seed: [1]}, run: 'echo ${seed}'}\n")
    assert complaint == 'f.yaml:2:16: matrix key "seed" is not used in job "j"; write {seed}, not ${seed}'


def test_an_axis_is_used_where_its_variable_is() -> None:
    """`$AVER_PARAM_seed` has the value too; a comment has nothing."""
    jobs("jobs:\n  j: {matrix: {seed: [1]}, run: 'echo $AVER_PARAM_seed'}\n")
    jobs("jobs:\n  j: {matrix: {seed: [1]}, run: [env, AVER_PARAM_seed]}\n")
    (complaint,) = complaints("jobs:\n  j:\n    matrix: {seed: [1]}\n    run: 'echo # {seed}'\n")
    assert complaint.startswith('f.yaml:3:14: matrix key "seed" is not used')


def test_places_where_no_value_can_be_put_in() -> None:
    """Each at its own line and column, in every style of YAML, with what to write instead."""
    text = """\
jobs:
  a:
    matrix: {s: [x, y], n: [1, 2]}
    run: |
      echo {s} $((2 * {n}))
      cat <<EOF
      of {s}
      EOF
  b: {matrix: {s: [x]}, run: 'echo ${s} `date` "{s}" `echo {s}`'}
  c: {matrix: {n: ["1", "a"]}, run: "echo \\"{n}\\" $(({n} + 1))"}
  d: {matrix: {s: [x]}, shell: python3, run: "print('{s}')"}
"""
    assert complaints(text) == [
        'f.yaml:7:10: "run" in job "a" has {s} inside a here-document, where no value can be put in; '
        "use the variable $AVER_PARAM_s there",
        'f.yaml:9:60: "run" in job "b" has {s} inside `...`, where no value can be put in; '
        "use the variable $AVER_PARAM_s there",
        'f.yaml:10:54: "run" in job "c" has {n} inside ((...)), and its value "a" is not a whole number; '
        "use the variable $AVER_PARAM_n there",
        'f.yaml:11:54: "run" in job "d" has {s} in text for python3, whose quotes are not known, '
        "where no value can be put in; use the variable $AVER_PARAM_s there",
    ]


CHAIN = "jobs:\n  a: {run: 'x {s}', matrix: {s: [p, q]}}\n  b: {run: 'x {s}', matrix: {s: [q, p]}, needs: NEEDS}\n"


@pytest.mark.parametrize(
    ("needs", "need"),
    [
        ("'a[s={s}]'", Need("a[s={s}]")),
        ("{a: same}", Need("a[same]")),
        ("['a[same]']", Need("a[same]")),
        ("{'a[same]': any}", Need("a[same]", Outcome.ANY)),
        ("{'a[s={s}]': failure}", Need("a[s={s}]", Outcome.FAILURE)),
        ("{'a[s={s}]': [TIMEOUT]}", Need("a[s={s}]", Outcome.SUCCESS, (State.TIMEOUT,))),
    ],
)
def test_needs_of_single_members(needs: str, need: Need) -> None:
    assert jobs(CHAIN.replace("NEEDS", needs))[1].needs == Needs((need,))
    grouped = jobs(CHAIN.replace("NEEDS", f"{{any_of: [{needs}]}}"))[1].needs
    assert grouped == Needs((), ((need,),))


def test_mistakes_of_needs_of_single_members() -> None:
    """At the place of the need: an axis that the other job lacks, a combination that matches nobody, no axis."""
    text = """\
jobs:
  one: {run: x}
  a: {run: 'x {s}', matrix: {s: [p, q]}}
  b: {run: 'x {t}', matrix: {t: [p, q]}, needs: ["a[t={t}]", "one[s={t}]", {a: same}]}
  c: {run: 'x {s}', matrix: {s: [p, r]}, needs: {"a[s={s}]": any}}
  d: {run: 'x', needs: ["a[s={s}]", "a[same]"]}
"""
    assert complaints(text) == [
        'f.yaml:4:50: job "b" needs "a[t={t}]", but its matrix has no "t"; it has s',
        'f.yaml:4:62: job "b" needs "one[s={t}]", but "one" has no matrix; write one',
        'f.yaml:4:77: job "b" needs "a[same]", but they have no axis in common; write a, or give both jobs the axis',
        'f.yaml:5:50: job "c" needs "a[s={s}]", which matches no member for "s=r"; look at both matrices',
        'f.yaml:6:25: job "d" needs "a[s={s}]", but "{s}" is not a value of s; job "d" has no axis s',
        'f.yaml:6:37: job "d" needs "a[same]", but they have no axis in common; write a, or give both jobs the axis',
    ]


AXES = "axes: {s: [p, q], n: 1..3}\njobs: {j: {run: 'x {s} {n}', matrix: MATRIX}}\n"


@pytest.mark.parametrize("matrix", ["[s, n]", "{s, n}", "{s: , n: null}", "{s: , n: [1, 2, 3]}", "{s: [p, q], n}"])
def test_axes_of_the_flow(matrix: str) -> None:
    """A list is written once."""
    assert jobs(AXES.replace("MATRIX", matrix))[0].matrix == Matrix((("s", ("p", "q")), ("n", ("1", "2", "3"))))


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        (
            "[s, m]",
            'f.yaml:2:42: axis "m" in job "j" has no values; give it values, here or in the flow\'s axes: {m: [...]}',
        ),
        ("{s, nn}", 'f.yaml:2:42: axis "nn" in job "j" has no values; did you mean "n"?'),
        ("[s, [n]]", 'f.yaml:2:42: "matrix" in job "j" must be a map, or a list of axes of the flow'),
        ("s", 'f.yaml:2:38: "matrix" in job "j" must be a map, not "s"'),
        ("{s: $s, n}", 'f.yaml:2:42: "s" in job "j" has the text "$s" as its value; write {s} for the values'),
        ('{s: "{s}", n}', 'f.yaml:2:42: "s" in job "j" has the text "{s}" as its value; write {s} for the values'),
        ("{s: '${n}', n}", 'f.yaml:2:42: "s" in job "j" has the text "${n}" as its value; write {n} for the values'),
        ("{s: s, n}", 'f.yaml:2:42: "s" in job "j" has its own name "s" as its value; write {s} for the values'),
    ],
)
def test_mistakes_of_axes_of_the_flow(matrix: str, complaint: str) -> None:
    assert any(line.startswith(complaint) for line in complaints(AXES.replace("MATRIX", matrix)))


def test_mistakes_in_axes() -> None:
    text = "axes: {s: [], a-b: [1], zip: [1], d: [1, 1], r: 3..1}\njobs: {j: {run: x}}\n"
    assert [line.partition(";")[0] for line in complaints(text)] == [
        'f.yaml:1:11: "s" in axes has no values',
        'f.yaml:1:15: "a-b" can\'t be the name of an axis in axes',
        'f.yaml:1:25: "zip" can\'t be the name of an axis in axes',
        'f.yaml:1:38: "d" in axes has the value "1" twice',
        'f.yaml:1:49: "r" in axes is a range from 3 down to 1',
    ]


def retry_of(text: str) -> RetryRule | None:
    return jobs(f"jobs:\n  j: {{run: x, retry: {text}}}\n")[0].retry


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("3", RetryRule(3, DEFAULT_STATES)),
        ("{max: 1, on: TIMEOUT}", RetryRule(1, (State.TIMEOUT,))),
        ("{max: 1, on: [exit: 75, 'exit:80-82']}", RetryRule(1, codes=(75, 80, 81, 82))),
        ("{max: 1, on: ['signal:BUS', 'signal:9']}", RetryRule(1, signals=(7, 9))),
        ("{max: 1, on: NodeDown}", RetryRule(1, reasons=("NodeDown",))),
        ("{max: 1, grow: 2x}", RetryRule(1, DEFAULT_STATES, grow_mem=2.0, grow_time=2.0)),
        (
            "{max: 1, grow: {mem: 1.5}, ceiling: {mem: 1G, time: 1h}}",
            RetryRule(1, DEFAULT_STATES, grow_mem=1.5, mem_ceiling_bytes=1024**3, time_ceiling_s=3600),
        ),
        ("{max: 1, backoff: {first: 1m, factor: 3}}", RetryRule(1, DEFAULT_STATES, backoff_s=60.0, backoff_factor=3.0)),
    ],
)
def test_retry(text: str, rule: RetryRule) -> None:
    """The short form and every part of the long one."""
    assert retry_of(text) == rule


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-1", 'f.yaml:2:22: "retry" in job "j" is -1; the least is 0'),
        ("{on: FAILED}", 'f.yaml:2:22: "retry" in job "j" has no "max"'),
        ("{max: 1, backof: 2}", 'f.yaml:2:31: unknown key "backof" in job "j"; did you mean "backoff"?'),
        ("{max: 1, on: timeout}", 'f.yaml:2:35: "on" in job "j" has "timeout", which is not a state, reason, '
         'exit code or signal; did you mean "TIMEOUT"?'),
        ("{max: 1, on: COMPLETED}", 'f.yaml:2:35: "on" in job "j" has COMPLETED, which is not a failure'),
        ("{max: 1, on: 'exit:0'}", 'f.yaml:2:35: "on" in job "j" has "exit:0"; an exit code is 1 to 255'),
        ("{max: 1, on: 'exit:256'}", 'f.yaml:2:35: "on" in job "j" has "exit:256"; an exit code is 1 to 255'),
        ("{max: 1, on: 'signal:BUZ'}", "f.yaml:2:35: \"on\" in job \"j\" has \"signal:BUZ\": 'BUZ' is not a signal"),
        ("{max: 1, on: []}", 'f.yaml:2:35: "on" in job "j" is an empty list'),
        ("{max: 1, grow: 0.5x}", 'f.yaml:2:37: "grow" in job "j" is "0.5x"; it is a factor from 1x to 100x'),
        ("{max: 1, backoff: 30}", 'f.yaml:2:40: "backoff" in job "j" is "30", which has no unit; write it as 30s'),
    ],
)  # fmt: skip
def test_mistakes_of_retry(text: str, complaint: str) -> None:
    """Each at its own place."""
    with pytest.raises(SpecError) as caught:
        retry_of(text)
    (found,) = caught.value.mistakes
    assert str(found).startswith(complaint)


def test_checkpoint() -> None:
    """True, or codes and rounds of one's own."""
    text = "jobs:\n  j: {{run: x, time: 1h, signal: TERM@5m, checkpoint: {}}}\n"
    assert jobs(text.format("true"))[0].checkpoint == CheckpointRule()
    assert jobs(text.format("false"))[0].checkpoint is None
    assert jobs(text.format("{codes: [0, 85], rounds: 3}"))[0].checkpoint == CheckpointRule((0, 85), 3)
    assert complaints(text.format("{codes: 256}")) == ['f.yaml:2:62: "codes" in job "j" is 256; the most is 255']


def test_tasks_have_cpus_each() -> None:
    """`tasks` times `cpus` is what the job takes on this machine; a cluster is told both."""
    (spec,) = jobs("jobs: {a: {run: x, tasks: 4, cpus: 2}}")
    assert (spec.request.cpus, spec.slurm_options) == (8, ("--ntasks=4", "--cpus-per-task=2"))
    assert spec.ignored == ()

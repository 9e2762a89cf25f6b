"""Flow files to a FlowSpec: what is accepted, and every mistake with its place and hint."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aver.model import codec
from aver.model.job import (
    Argv,
    CheckpointRule,
    Condition,
    FlowSpec,
    JobSpec,
    Matrix,
    Need,
    Needs,
    Request,
    RetryRule,
    Scope,
    Shell,
    Streams,
    WarningSignal,
)
from aver.model.states import State
from aver.spec.flow.file import parse_flow
from aver.spec.flow.keys import FLOW_KEYS, JOB_KEYS
from aver.spec.mistakes import SpecError
from graph_problems import problems_of

NOW = 1_900_000_000.0

EXAMPLE = """\
name: train
defaults: {time: 1h, mem: 2G}
jobs:
  prep:   {run: python prep.py}
  train:
    needs: [prep]
    matrix: {seed: [1, 2, 3]}
    cpus: 2
    mem: 4G
    signal: TERM@5m
    checkpoint: true            # exit 0 after the warning means "to be continued"
    run: python train.py --seed {seed}
    retry: {max: 3, on: [OUT_OF_MEMORY, TIMEOUT, "exit:75", "signal:BUS"], grow: {mem: 2x, time: 1.5x}, backoff: 30s}
  eval:   {needs: [train], run: python eval.py}
  report: {needs: [eval], if: always, run: ./report.sh}
  page:   {needs: [prep], background: true, run: ./render.sh}
"""
G = 1024**3
NO_CPUS = "is not a number of cpus: give a number such as 4, 0.25 or 0"


def flow(text: str | bytes) -> FlowSpec:
    return parse_flow(text, "f.yaml", now=NOW)


def job(text: str) -> JobSpec:
    """The one job of a flow whose body is given on one line."""
    return flow(f"jobs:\n  a: {{run: x, {text}}}\n").jobs[0]


def complaints(text: str | bytes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        flow(text)
    return str(caught.value).splitlines()


def test_the_example() -> None:
    """The example of the flow format gives exactly these jobs."""
    limits = Request(mem_bytes=2 * G, time_s=3600)
    retry = RetryRule(3, (State.OUT_OF_MEMORY, State.TIMEOUT), (75,), (7,), grow_mem=2.0, grow_time=1.5, backoff_s=30.0)
    assert flow(EXAMPLE) == FlowSpec(
        "train",
        (
            JobSpec("prep", Shell("python prep.py"), limits),
            JobSpec(
                "train",
                Shell("python train.py --seed {seed}"),
                Request(cpus=2, mem_bytes=4 * G, time_s=3600),
                Needs((Need("prep"),)),
                matrix=Matrix((("seed", ("1", "2", "3")),)),
                warning=WarningSignal(15, 300, Scope.PROGRAM),
                retry=retry,
                checkpoint=CheckpointRule(),
            ),
            JobSpec("eval", Shell("python eval.py"), limits, Needs((Need("train"),))),
            JobSpec("report", Shell("./report.sh"), limits, Needs((Need("eval"),)), Condition.ALWAYS),
            JobSpec("page", Shell("./render.sh"), limits, Needs((Need("prep"),)), background=True),
        ),
        defaults=JobSpec("", Shell(""), limits),
    )


def test_round_trip() -> None:
    """A flow survives the codec."""
    spec = flow(EXAMPLE)
    assert codec.decode(FlowSpec, codec.encode(spec)) == spec


def test_all_mistakes_at_once_in_the_order_of_the_file() -> None:
    """Nothing stops at the first mistake."""
    text = """\
jobs:
  train:
    run: x
    mems: 4G
    cpus: -1
    time: soon
  eval:
    needs: [trian]
    run: y
"""
    assert complaints(text) == [
        'f.yaml:4:5: unknown key "mems" in job "train"; did you mean "mem"?',
        f'f.yaml:5:11: "cpus" in job "train" is wrong: \'-1\' {NO_CPUS}',
        'f.yaml:6:11: "time" in job "train" is wrong: \'soon\' is not a time: give 10 (minutes), 90s, 2h, 1h30m, '
        "01:30:00, 1-12:00:00 or UNLIMITED",
        'f.yaml:8:13: job "eval" needs "trian", but this flow has no such job; did you mean "train"?',
    ]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("timeout-minutes: 3", 'f.yaml:2:15: unknown key "timeout-minutes" in job "a"; did you mean "time"?'),
        ("working_directory: x", 'f.yaml:2:15: unknown key "working_directory" in job "a"; did you mean "folder"?'),
        ("gpus: -1", 'f.yaml:2:21: "gpus" in job "a" is -1; the least is 0'),
        ("cpus: 99999999", f'f.yaml:2:21: "cpus" in job "a" is wrong: \'99999999\' {NO_CPUS}'),
        ("cpus: two", f'f.yaml:2:21: "cpus" in job "a" is wrong: \'two\' {NO_CPUS}'),
        ("cpus: 1.2345", f'f.yaml:2:21: "cpus" in job "a" is wrong: \'1.2345\' {NO_CPUS}'),
        ("cpus: [1]", 'f.yaml:2:21: "cpus" in job "a" must be text, not a list'),
        ("env: [A]", 'f.yaml:2:20: "env" in job "a" must be a map, not a list'),
        ("env: {1A: x}", 'f.yaml:2:21: "1A" can\'t be the name of a variable in job "a"'),
        ("env: {A: }", 'f.yaml:2:24: "A" in job "a" has no value; write "" for empty text'),
        ("env: {A: {}}", 'f.yaml:2:24: "A" in job "a" must be text, not a map'),
        (
            "background: yes",
            'f.yaml:2:27: "background" in job "a" must be true or false, not "yes"; YAML 1.2 knows only true and false',
        ),
        (
            "if: always()",
            'f.yaml:2:19: "if" in job "a" is "always()"; it is one of success, always, failure; write always',
        ),
        ("if: failure", 'f.yaml:2:19: "if" in job "a" is failure, and there is no need that could fail; add "needs"'),
        ("oom: ignore", 'f.yaml:2:20: "oom" in job "a" is "ignore"; it is one of fail, warn'),
        (
            "engine: slrum",
            'f.yaml:2:23: "engine" in job "a" is "slrum"; it is one of local, slurm; did you mean "slurm"?',
        ),
        (
            "signal: TERM@5m",
            'f.yaml:2:23: "signal" in job "a" warns before a time limit that there is not; add "time"',
        ),
        (
            "checkpoint: true",
            'f.yaml:2:27: "checkpoint" in job "a" needs a warning signal; add it, such as signal: TERM@5m',
        ),
        ("deadline: 2001-01-01", 'f.yaml:2:25: "deadline" in job "a" is in the past'),
        ("folder: ''", 'f.yaml:2:23: "folder" in job "a" is empty'),
        ('comment: "a\\0b"', 'f.yaml:2:24: "comment" in job "a" has a NUL or half a character in it'),
        ("priority: 99999999999", 'f.yaml:2:25: "priority" in job "a" is 99999999999; the most is 2147483647'),
        ("needs: a", 'f.yaml:2:22: job "a" needs itself; take it out of its needs'),
        ("cpus: 1, cpus: 2", 'f.yaml:2:24: duplicate key "cpus"; it is first at line 2'),
    ],
)
def test_mistakes_of_a_job(body: str, complaint: str) -> None:
    """Each mistake has its line, its column and, where one helps, a hint."""
    assert complaints(f"jobs:\n  a: {{run: x, {body}}}\n") == [complaint]


@pytest.mark.parametrize(
    ("body", "start"),
    [
        ("mem: -3", 'f.yaml:2:20: "mem" in job "a" is wrong: \'-3\' is not a size'),
        ("mem: 4Q", 'f.yaml:2:20: "mem" in job "a" is wrong: \'4Q\' is not a size'),
        ("mem: 0", 'f.yaml:2:20: "mem" in job "a" is wrong: \'0\' is not an amount of memory'),
        ("time: 5 parsecs", 'f.yaml:2:21: "time" in job "a" is wrong: \'5 parsecs\' is not a time'),
        ("time: 1h, signal: BUZ@5m", 'f.yaml:2:33: "signal" in job "a" is wrong: \'BUZ\' is not a signal'),
        ("time: 1h, signal: TERM@soon", 'f.yaml:2:33: "signal" in job "a" is wrong: \'soon\' is not a lead'),
        ("kill_wait: long", 'f.yaml:2:26: "kill_wait" in job "a" is wrong: \'long\' is not a kill wait'),
        ("begin: someday", 'f.yaml:2:22: "begin" in job "a" is wrong: \'someday\' is not a time of day or a date'),
    ],
)
def test_bad_units(body: str, start: str) -> None:
    """A bad unit is shown with what would be right."""
    (complaint,) = complaints(f"jobs:\n  a: {{run: x, {body}}}\n")
    assert complaint.startswith(start)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\n", 'f.yaml:1:1: the flow has no "jobs"; write it as jobs: {NAME: {run: ...}}'),
        ("- a\n", 'f.yaml:1:1: the flow must be a map, not a list; a flow has "jobs:" with the jobs by their names'),
        ("jobs: {}\n", "f.yaml:1:7: there are no jobs; write at least one, such as hello: {run: echo hello}"),
        ("jobs: 3\n", 'f.yaml:1:7: "jobs" must be a map, not "3"; write it as jobs: {NAME: {run: ...}}'),
        ("jobs: {a: echo}\n", 'f.yaml:1:11: job "a" must be a map, not "echo"; write it as a: {run: ...}'),
        ("jobs: {a: }\n", 'f.yaml:1:11: job "a" must be a map, not nothing; give it at least "run"'),
        ("jobs: {a: {}}\n", 'f.yaml:1:8: job "a" has no "run"; say what it runs, such as run: python x.py'),
        ("jobs: [{run: x}]\n", 'f.yaml:1:8: each job of a list must be a map with a "name"'),
        (
            "jobs: [{name: a, run: x}, {name: a, run: y}]\n",
            'f.yaml:1:34: duplicate job name "a"; it is first at line 1',
        ),
        ("jobs: {any_of: {run: x}}\n", 'f.yaml:1:8: a job can\'t be named "any_of"; needs uses that word'),
        (
            "jobs: {a b: {run: x}}\n",
            'f.yaml:1:8: "a b" can\'t be the name of a job; use letters, digits, _ - and . and begin with a letter, '
            'digit or _, such as "a-b"',
        ),
        ("max_parallel: 0\njobs: {a: {run: x}}\n", 'f.yaml:1:15: "max_parallel" in the flow is 0; the least is 1'),
        ("job: {}\njobs: {a: {run: x}}\n", 'f.yaml:1:1: unknown key "job" in the flow; did you mean "jobs"?'),
        (
            "defaults: {needs: b}\njobs: {a: {run: x}}\n",
            'f.yaml:1:12: "needs" can\'t have a default; say it in each job',
        ),
        (
            "defaults: {cpu: 2}\njobs: {a: {run: x}}\n",
            'f.yaml:1:12: unknown key "cpu" in defaults; did you mean "cpus"?',
        ),
    ],
)
def test_mistakes_of_the_flow(text: str, complaint: str) -> None:
    """Mistakes outside of jobs have their places too."""
    found = complaints(text)
    assert complaint in found
    assert len(found) == (2 if text == "a: 1\n" else 1)


def test_bare_numbers_mean_what_they_mean_in_slurm() -> None:
    """Times are minutes, sizes MiB, kill waits and leads seconds."""
    spec = job("time: 10, mem: 512, kill_wait: 5, signal: USR1@90")
    assert spec.request == Request(mem_bytes=512 * 1024**2, time_s=600)
    assert spec.kill_wait_s == 5.0
    assert spec.warning == WarningSignal(10, 90, Scope.PROGRAM)
    assert job("time: 1:30").request.time_s == 90
    assert job("time: 1-12:00:00").request.time_s == 36 * 3600


def test_every_key() -> None:
    """Each key lands where it belongs."""
    spec = flow(
        """\
jobs:
  a:
    run: [prog, "{x}", 1.10]
    matrix: {x: [a b]}
    gpus: 2
    oom: warn
    generates: more.json
    inputs: data/*.csv
    outputs: [a.out, b.out]
    env: {A: 1.10, B: true}
    folder: sub
    stdin: in.txt
    output: out-%j.txt
    error: err-%j.txt
    append: true
    hold: true
    begin: now+1hour
    deadline: now+2hours
    priority: -5
    comment: hello
    kill_wait: 2m
    partition: big
    account: me
"""
    ).jobs[0]
    assert spec == JobSpec(
        "a",
        Argv(("prog", "{x}", "1.10")),
        Request(gpus=2),
        matrix=Matrix((("x", ("a b",)),)),
        folder="sub",
        streams=Streams("in.txt", "out-%j.txt", "err-%j.txt", True),
        env=(("A", "1.10"), ("B", "true")),
        kill_wait_s=120.0,
        oom_warns=True,
        generates="more.json",
        inputs=("data/*.csv",),
        outputs=("a.out", "b.out"),
        hold=True,
        begin_at=NOW + 3600,
        deadline_at=NOW + 7200,
        priority=-5,
        comment="hello",
        ignored=("partition: means nothing on this machine", "account: means nothing on this machine"),
        slurm_options=("--partition=big", "--account=me"),
    )


def test_defaults_are_filled_in_and_env_is_joined() -> None:
    """A job's own value wins; variables of both are set."""
    text = "defaults: {cpus: 4, env: {A: 1, B: 2}}\njobs:\n  a: {run: x, env: {B: 3}}\n  b: {run: y, cpus: 1}\n"
    first, second = flow(text).jobs
    assert (first.request.cpus, first.env) == (4, (("A", "1"), ("B", "3")))
    assert (second.request.cpus, second.env) == (1, (("A", "1"), ("B", "2")))


def test_a_mistake_in_the_defaults_is_said_once() -> None:
    """And at its own place, not at each job."""
    text = "defaults: {mem: lots}\njobs:\n" + "".join(f"  j{n}: {{run: x}}\n" for n in range(5))
    (complaint,) = complaints(text)
    assert complaint.startswith('f.yaml:1:17: "mem" in defaults is wrong')


@pytest.mark.parametrize(
    ("shell", "argv"),
    [("bash", ("bash", "-eo", "pipefail")), ("sh", ("sh", "-e")), ("zsh -e", ("zsh", "-e")), ("[fish]", ("fish",))],
)
def test_shells(shell: str, argv: tuple[str, ...]) -> None:
    """A known shell gets its strict flags; another is taken as written."""
    assert job(f"shell: {shell}").command == Shell("x", argv)


def test_keys_for_anchors() -> None:
    """Keys that begin with x- are for anchors and mean nothing."""
    spec = flow("x-big: &big {cpus: 8, mem: 1G}\njobs:\n  a: {<<: *big, run: x, cpus: 2}\n").jobs[0]
    assert spec.request == Request(cpus=2, mem_bytes=G)


def test_flow_settings() -> None:
    """Caps and budget of the whole run; a list of named jobs is as good as a map."""
    spec = flow("max_parallel: 4\nretry_budget: 9\nengine: local\njobs: [{name: a, run: x}]\n")
    assert (spec.name, spec.max_parallel, spec.retry_budget, spec.jobs[0].name) == ("flow", 4, 9, "a")


words = st.sampled_from(
    [*JOB_KEYS, *FLOW_KEYS, "a", "b", "a*", "a[seed=1]", "seed", "{seed}", "1..5", "any_of", "include", "exclude",
     "zip", "max", "on", "grow", "exit:75", "TERM@5m", "2x", "1h", "2G",
     "x {seed}", "any", "FAILED", "always", "", "first"]
)  # fmt: skip
values = st.recursive(
    words | st.integers(-3, 300) | st.booleans() | st.none() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=15,
)
jobs = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.dictionaries(st.sampled_from([*JOB_KEYS]), values), min_size=1
)


@given(values | st.fixed_dictionaries({"jobs": jobs}, optional={"defaults": values, "max_parallel": values}))
def test_any_nested_yaml_is_a_flow_or_has_mistakes(value: object) -> None:
    """Never another error; and what is accepted, the plan accepts."""
    with contextlib.suppress(SpecError):
        assert problems_of(flow(yaml.safe_dump(value, allow_unicode=True))) == ()


needs = st.lists(st.sampled_from(["a", "b", "c", "d", "a*", "?", "b[x=1]", "b[x=*]", "c[x=9]", "b[*]", "[d", "d[x=1]"]))


@given(st.lists(needs, min_size=4, max_size=4))
def test_the_reader_and_the_plan_agree(all_needs: list[list[str]]) -> None:
    """A flow's needs are refused here exactly when the plan would refuse them."""
    lines, specs = ["jobs:"], []
    for name, its in zip("abcd", all_needs, strict=True):
        matrix = Matrix((("x", ("1", "2")),)) if name in "bc" else None
        lines.append(f"  {name}: {{run: 'x {{x}}', needs: {its!r}{', matrix: {x: [1, 2]}' if matrix else ''}}}")
        specs.append(JobSpec(name, Shell("x {x}"), needs=Needs(tuple(map(Need, its))), matrix=matrix))
    planned = FlowSpec("flow", tuple(specs))
    try:
        accepted = flow("\n".join(lines))
    except SpecError:
        assert problems_of(planned) != ()
    else:
        assert accepted == planned
        assert problems_of(planned) == ()


@given(st.text(max_size=300) | st.binary(max_size=300))
def test_any_text_is_a_flow_or_has_mistakes(text: str | bytes) -> None:
    """Random text and bytes never give another error."""
    with contextlib.suppress(SpecError):
        flow(text)

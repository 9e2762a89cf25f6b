"""`params:` of a flow: defaults, values that are set, where `{name}` is put in, and every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.plan.matrix import members, values_of
from aver.spec.files import FolderFiles
from aver.spec.flow.file import parse_flow
from aver.spec.flow.params import ParamValues, parse_settings
from aver.spec.mistakes import SpecError

FLOW = """\
params: {n: 3, data: ./x y}
jobs:
  a: {run: "echo {n}"}
  b: {run: "true", env: {D: "{data}"}}
  c: {run: "true"}
"""


def read(text: str, given: dict[str, str] | None = None, kept: dict[str, str] | None = None) -> FlowSpec:
    return parse_flow(text, "f.yaml", now=0.0, params=ParamValues(given or {}, kept or {}))


def complaints(text: str, given: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(text, given)
    return str(caught.value).splitlines()


def test_a_job_has_the_params_that_its_texts_name() -> None:
    """The flow keeps all of them, each job those that it uses; a variable counts as use."""
    flow = read(FLOW)
    assert flow.params == (("n", "3"), ("data", "./x y"))
    assert [values_of(spec, 0) for spec in flow.jobs] == [(("n", "3"),), (("data", "./x y"),), ()]
    assert read("params: {n: 3}\njobs: {a: {run: 'echo $AVER_PARAM_n'}}").jobs[0].params == (("n", "3"),)


def test_which_value_counts() -> None:
    """One that is set comes before one that the run has, and that before the default; what is gone is not missed."""
    assert dict(read(FLOW, {"n": "5"}).params)["n"] == "5"
    assert dict(read(FLOW, kept={"n": "4", "gone": "1"}).params)["n"] == "4"
    assert dict(read(FLOW, {"n": "5"}, {"n": "4"}).params)["n"] == "5"


def test_params_beside_a_matrix() -> None:
    """They are no part of a member's name, and come after its own values."""
    flow = read("params: {n: 3}\njobs: {a: {run: 'x {n} {s}', matrix: {s: [1, 2]}}}")
    assert [member.label for member in members(flow.jobs[0])] == ["[s=1]", "[s=2]"]
    assert values_of(flow.jobs[0], 1) == (("s", "2"), ("n", "3"))


def test_keys_that_the_reader_understands() -> None:
    """Numbers, times, needs, defaults, axes and lists of files take params too."""
    flow = read(
        """\
params: {n: 3, who: prep, mem: 2G, top: 7}
max_parallel: "{top}"
defaults: {mem: "{mem}"}
axes: {s: "1..{n}"}
jobs:
  prep: {run: "x {s}", matrix: [s]}
  b: {run: x, needs: "{who}[s={n}]", cpus: "{n}", time: "{n}m"}
""",
        {"n": "2"},
    )
    prep, b = flow.jobs
    assert flow.max_parallel == 7
    assert [member.label for member in members(prep)] == ["[s=1]", "[s=2]"]
    assert (b.request.cpus, b.request.time_s, b.request.mem_bytes) == (2, 120, 2 * 2**30)
    assert b.needs.all_of[0].job == "prep[s=2]"
    assert b.params == ()


def test_a_shared_node_is_filled_once_for_all_jobs() -> None:
    """Anchors and aliases with params in them mean the same in each job."""
    flow = read(
        """\
params: {n: 2}
jobs:
  a: {run: "x {s}", matrix: &m {s: "1..{n}"}}
  b: {run: "x {s}", matrix: *m, needs: &d ["a[s={n}]"]}
  c: {run: x, needs: *d}
"""
    )
    assert [len(members(spec)) for spec in flow.jobs] == [2, 2, 1]
    assert [need.job for spec in flow.jobs for need in spec.needs.all_of] == ["a[s=2]", "a[s=2]"]


def test_a_pattern_of_files(tmp_path: Path) -> None:
    """The folder of a glob may be a param."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").touch()
    text = "params: {data: nowhere}\njobs: {a: {run: 'x {f}', matrix: {f: {glob: '{data}/*.csv'}}}}"
    flow = parse_flow(text, "f.yaml", now=0.0, files=FolderFiles(str(tmp_path)), params=ParamValues({"data": "d"}))
    assert [member.label for member in members(flow.jobs[0])] == ["[f=d/a.csv]"]


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        (FLOW, {"dta": "1"}, 'f.yaml:1:1: --set dta: the flow has no param of that name; did you mean "data"?'),
        (FLOW, {"zzz": "1"}, "f.yaml:1:1: --set zzz: the flow has no param of that name; it has n, data"),
        ("jobs: {a: {run: x}}", {"n": "1"},
         "f.yaml: --set n: the flow has no param of that name; declare it: params: {n: DEFAULT}"),
        (FLOW, {"n": "a\nb"}, '"n" in params has a control character'),
        ("params: {n: 3}\njobs:\n  a: {run: 'x {n}', matrix: {n: [1, 2]}}", {},
         "f.yaml:3:30: axis \"n\" in job \"a\" has the name of one of the flow's params; rename one of them"),
        ("params: {n: 3}\naxes: {n: [1]}\njobs: {a: {run: 'x {n}'}}", {},
         "f.yaml:2:8: axis \"n\" in axes has the name of one of the flow's params; rename one of them"),
        ("params: {n: 3}\njobs: {a: {run: x}}", {},
         'f.yaml:1:10: "n" in params is not used in any job; use {n} in run, env or output'),
        ("params: {n: }\njobs: {a: {run: 'x {n}'}}", {}, '"n" in params has no value'),
        ("params: {n: [1]}\njobs: {a: {run: 'x {n}'}}", {}, '"n" in params must be text, not a list'),
        ("params: {a b: 1}\njobs: {a: {run: x}}", {}, '"a b" can\'t be the name of a param'),
        ("params: 3\njobs: {a: {run: x}}", {}, '"params" in the flow must be a map'),
        ("params: {n: x}\njobs: {a: {run: 'echo $(({n}))'}}", {}, "is not a whole number"),
        ("params: {n: x}\njobs: {a: {run: 'cat <<E\n\n  {n}\n\n  E'}}", {}, "where no value can be put in"),
        ("params: {n: x}\njobs: {a: {run: 'true', cpus: '{n}'}}", {}, "'x' is not a number of cpus"),
        ("parameters: {n: x}\njobs: {a: {run: 'true'}}", {}, 'did you mean "params"?'),
    ],
)  # fmt: skip
def test_mistakes(text: str, given: dict[str, str], said: str) -> None:
    """Each is one line with its place and, where there is one, a hint."""
    assert any(said in line for line in complaints(text, given)), complaints(text, given)


@pytest.mark.parametrize("words", [["n"], ["=3"], ["n=1", "n=2"]])
def test_settings_that_are_none(words: list[str]) -> None:
    """A name and a value, each name once."""
    with pytest.raises(UsageError, match="--set"):
        parse_settings(words)
    assert parse_settings(["a=b=c", "e="]) == {"a": "b=c", "e": ""}

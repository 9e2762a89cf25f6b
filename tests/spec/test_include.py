"""`include:` of flows: one flow of several files, and every mistake with its own file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.model.job import FlowSpec
from aver.spec.load import load
from aver.spec.mistakes import SpecError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(here: Path, **files: str) -> FlowSpec:
    """The flow in `main`; `parts_x` is parts/x.yaml."""
    for name, text in files.items():
        path = here / f"{name.replace('_', '/')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return load("main.yaml", now=0.0)


def complaints(here: Path, **files: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(here, **files)
    return str(caught.value).splitlines()


def test_files_make_one_flow(here: Path) -> None:
    """Paths are relative to the file that names them; jobs need each other across files; params and axes are shared."""
    flow = read(
        here,
        main="include: parts/prep.yaml\nparams: {n: 2}\n"
        "jobs:\n  train: {needs: {prep: same}, matrix: [s], run: 't {s} {n}'}\n",
        parts_prep="include: [more.yaml]\naxes: {s: [a, b]}\n"
        "jobs:\n  prep: {needs: get, matrix: [s], run: 'p {s} {n} {m}'}\n",
        parts_more="params: {m: 3}\njobs: {get: {run: 'true'}}\n",
    )
    assert [job.name for job in flow.jobs] == ["train", "prep", "get"]
    assert flow.params == (("n", "2"), ("m", "3"))
    assert flow.jobs[1].params == (("n", "2"), ("m", "3"))
    assert flow.included == tuple(str(here / "parts" / name) for name in ("prep.yaml", "more.yaml"))
    assert load("main.yaml", now=0.0, folder="/").included == flow.included


def test_defaults_reach_included_files_which_may_say_otherwise(here: Path) -> None:
    flow = read(
        here,
        main="defaults: {cpus: 4, env: {A: 1, B: 1}}\ninclude: [own.yaml, plain.yaml]\njobs: {a: {run: x}}\n",
        own="defaults: {cpus: 2, env: {B: 2}}\njobs: {b: {run: x}}\n",
        plain="jobs: {c: {run: x}}\n",
    )
    assert [(job.name, job.request.cpus, dict(job.env)) for job in flow.jobs] == [
        ("a", 4, {"A": "1", "B": "1"}),
        ("b", 2, {"A": "1", "B": "2"}),
        ("c", 4, {"A": "1", "B": "1"}),
    ]


def test_a_flow_may_only_include(here: Path) -> None:
    assert [job.name for job in read(here, main="include: a.yaml\n", a="jobs: {a: {run: x}}\n").jobs] == ["a"]


def test_mistakes_are_told_with_their_own_files(here: Path) -> None:
    """All at once: of the flow's own file first, and of each file in its order.

    Where a file can't be read no need is called unknown.
    """
    assert complaints(
        here,
        main="include: [a.yaml, parts/b.yaml]\nparams: {n: 1}\njobs:\n  one: {run: 'x {n}', cpu: 2}\n",
        a="name: a\nparams: {n: 2}\njobs:\n  one: {run: x}\n  two: {run: x, needs: thre}\n  three: {run: 'for {x'}\n",
        parts_b="jobs:\n  four:\n    run: |\n      cat <<E\n      {n}\n      E\n  five: [\n",
    ) == [
        'main.yaml:4:23: unknown key "cpu" in job "one"; did you mean "cpus"?',
        'a.yaml:1:1: "name" can\'t be in an included file; write it in main.yaml',
        'a.yaml:2:10: duplicate param "n"; it is first at line 2',
        'a.yaml:4:3: duplicate job name "one"; it is first at line 4',
        "parts/b.yaml:8:1: did not find expected node content",
    ]


def test_places_inside_texts_of_included_files(here: Path) -> None:
    """The column is that of the placeholder, in its own file; a name that two files have is told with the first one."""
    assert complaints(
        here,
        main="include: [a.yaml, b.yaml]\njobs: {z: {run: x}}\n",
        a="axes: {s: [1]}\njobs:\n  one: {run: x, needs: thre}\n  three: {run: x}\n",
        b="axes: {s: [2]}\njobs:\n  one: {run: y}\n  two:\n    matrix: {v: ['x y']}\n    run: |\n      echo $(({v}))\n",
    ) == [
        'a.yaml:3:24: job "one" needs "thre", but this flow has no such job; did you mean "three"?',
        'b.yaml:1:8: duplicate axis "s"; it is first at a.yaml:1',
        'b.yaml:3:3: duplicate job name "one"; it is first at a.yaml:3',
        'b.yaml:7:15: "run" in job "two" has {v} inside ((...)), and its value "x y" is not a whole number; '
        "use the variable $AVER_PARAM_v there",
    ]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"main": "include: main.yaml\n"}, 'main.yaml:1:10: "main.yaml" includes itself: main.yaml -> main.yaml'),
        (
            {"main": "include: parts/a.yaml\n", "parts_a": "include: ../main.yaml\n"},
            'parts/a.yaml:1:10: "../main.yaml" includes itself: main.yaml -> parts/a.yaml -> main.yaml',
        ),
        (
            {"main": "include: [a.yaml, ./a.yaml]\n", "a": "jobs: {a: {run: x}}\n"},
            'main.yaml:1:19: "./a.yaml" is included twice; include it once; jobs may need any job',
        ),
        ({"main": "include: none.yaml\n"}, 'main.yaml:1:10: can\'t include "none.yaml": No such file or directory'),
        ({"main": "include: {a: b}\n"}, 'main.yaml:1:10: "include" must be the path of a file, or a list, not a map'),
        (
            {"main": "include: a.yaml\n", "a": "[1]\n"},
            "a.yaml:1:1: an included file must be a map, not a list; give it jobs: {NAME: ...}",
        ),
        (
            {"main": "include: a.yaml\njobs: {b: {run: x}}\n", "a": "job: {a: {run: x}}\n"},
            'a.yaml:1:1: unknown key "job" in an included file; did you mean "jobs"?',
        ),
    ],
)
def test_mistakes_of_include(here: Path, files: dict[str, str], complaint: str) -> None:
    assert complaints(here, **files) == [complaint]


def test_a_fifo_is_not_waited_for(here: Path) -> None:
    import os

    os.mkfifo(here / "pipe.yaml")
    assert complaints(here, main="include: pipe.yaml\n") == [
        'main.yaml:1:10: can\'t include "pipe.yaml": it is not a regular file'
    ]

"""Values written into a flow's text: nothing else changes, not a comment, not a space."""

from __future__ import annotations

import difflib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.job import FlowSpec
from aver.report.correction.flow_edit import edit_flow
from aver.spec.flow.file import parse_flow

BLOCK = """\
# what this is for
name: train   # the name

defaults: {time: 1h, mem: 4G}
jobs:
  # first
  prep: {run: sleep 1}   # short
  train:                 # the big one
    matrix: {i: [1, 2]}
    mem: 100M            # too little?
    # how it is run
    run: |
      echo {i}   # no comment

  eval:
    run: echo
    needs: [prep,
            train]
"""


def requests(flow: FlowSpec) -> dict[str, tuple[int | None, int | None, int]]:
    return {spec.name: (spec.request.mem_bytes, spec.request.time_s, spec.request.cpus) for spec in flow.jobs}


def flow_of(text: str, is_json: bool = False) -> FlowSpec:
    return parse_flow(text, "flow", now=0.0, is_json=is_json)


def edited(text: str, is_json: bool = False, **wanted: dict[str, str]) -> str:
    """The text with these values, of which all could be written."""
    found = edit_flow(text, wanted, is_json)
    assert found.left == ()
    return found.text


def changed_lines(old: str, new: str) -> list[str]:
    return [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"]


def test_a_value_is_replaced_where_it_stands() -> None:
    """The comment behind it stays."""
    new = edited(BLOCK, train={"mem": "150M"})
    assert changed_lines(BLOCK, new) == [
        "-     mem: 100M            # too little?",
        "+     mem: 150M            # too little?",
    ]


def test_a_missing_key_goes_beside_one_of_its_kind() -> None:
    """With the indentation of its block, and after the line's comment."""
    new = edited(BLOCK, train={"time": "2h"})
    assert changed_lines(BLOCK, new) == ["+     time: 2h"]
    assert new.index("too little?") < new.index("time: 2h") < new.index("# how it is run")


def test_a_missing_key_of_a_map_on_one_line() -> None:
    """It is put behind the last one."""
    assert "  prep: {run: sleep 1, mem: 5G, time: 2h}   # short\n" in edited(BLOCK, prep={"mem": "5G", "time": "2h"})


def test_a_missing_key_where_nothing_of_its_kind_is() -> None:
    """It goes behind a line that is whole."""
    assert "    run: echo\n    mem: 5G\n    needs:" in edited(BLOCK, eval={"mem": "5G"})


def test_a_file_without_a_last_newline() -> None:
    """The new line gets one before it, and none after it."""
    assert edited("jobs:\n  a:\n    run: echo", a={"mem": "1G"}) == "jobs:\n  a:\n    run: echo\n    mem: 1G"


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    """Every line ends as before, the new one too."""
    text = "\ufeff" + BLOCK.replace("\n", "\r\n")
    new = edited(text, train={"mem": "150M", "time": "2h"})
    assert new.startswith("\ufeff#")
    assert new.count("\n") == new.count("\r\n") == text.count("\n") + 1


def test_a_list_of_jobs() -> None:
    """A job is found by its name, and the name stays first."""
    text = "jobs:\n  - name: a\n    run: echo\n  - {name: b, run: echo}\n"
    new = edited(text, a={"mem": "1G"}, b={"mem": "2G"})
    assert new == "jobs:\n  - name: a\n    run: echo\n    mem: 1G\n  - {name: b, run: echo, mem: 2G}\n"


def test_json_stays_json() -> None:
    """Keys and texts in quotes, numbers without."""
    text = '{"jobs": {"a": {"run": "echo", "mem": "1G"},\n          "b": {"run": "echo"}}}\n'
    new = edited(text, is_json=True, a={"mem": "2G"}, b={"time": "5m", "cpus": "4"})
    assert requests(flow_of(new, is_json=True)) == {"a": (2 << 30, None, 1), "b": (None, 300, 4)}
    assert '"time": "5m", "cpus": 4' in new


def test_quotes_stay() -> None:
    """A value in quotes is still one."""
    text = "jobs:\n  a: {run: echo, mem: '1G', time: \"5m\"}\n"
    assert edited(text, a={"mem": "2G", "time": "7m"}) == "jobs:\n  a: {run: echo, mem: '2G', time: \"7m\"}\n"


def test_every_value_on_lines_of_its_own() -> None:
    """There is no whole line to go behind: the new key goes before the last one."""
    text = "jobs:\n  a:\n    run: |\n      echo\n    needs:\n      - b\n  b: {run: echo}\n"
    assert requests(flow_of(edited(text, a={"mem": "1G"})))["a"][0] == 1 << 30


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x-big: &big 4G\njobs:\n  a: {run: echo, mem: *big}\n", "alias"),
        ("jobs:\n  a: {run: echo, mem: &big 4G}\n  b: {run: echo, mem: *big}\n", "anchor"),
        ("jobs:\n  a: {run: echo, mem: &big 4G}\n", "plain word"),
        ("jobs:\n  a: &job {run: echo, mem: 4G}\n  b: *job\n", "share"),
        ("jobs:\n  a: &job\n    run: echo\n    mem: 4G\n  b:\n    <<: *job\n", "share"),
        ("x-jobs: &jobs\n  a: {run: echo, mem: 4G}\njobs:\n  <<: *jobs\n  b: {run: echo}\n", "written out"),
        ("jobs:\n  a:\n    run: echo\n    mem: >\n      4G\n", "plain word"),
        ("jobs:\n  a: {run: echo, mem: '${MEM}'}\n", "expression"),
    ],
)
def test_what_is_shared_or_worked_out_is_left_alone(text: str, why: str) -> None:
    """One line says so, and not a character changes."""
    found = edit_flow(text, {"a": {"mem": "6G"}})
    assert found.text == text
    assert [one.job for one in found.left] == ["a"]
    assert why in found.left[0].why


def test_a_merged_value_is_overruled_by_one_of_its_own() -> None:
    """What a job inherits from a template is not touched; the job says it itself from now on."""
    text = "x-base: &base {mem: 4G, time: 1h}\njobs:\n  a:\n    <<: *base\n    run: echo\n  b: {<<: *base, run: echo}\n"
    new = edited(text, a={"mem": "6G"}, b={"mem": "7G"})
    assert requests(flow_of(new)) == {"a": (6 << 30, 3600, 1), "b": (7 << 30, 3600, 1)}
    assert "x-base: &base {mem: 4G, time: 1h}" in new


def test_an_alias_at_the_end_of_a_map() -> None:
    """Its place in the text is not that of its anchor."""
    text = "x-env: &env {A: 1}\njobs:\n  a: {run: echo, env: *env}\n"
    assert requests(flow_of(edited(text, a={"mem": "6G"})))["a"][0] == 6 << 30


# ---- any flow, any comments ---------------------------------------------------------------------------

comment = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\ufeff"), max_size=12
)
keys = st.permutations(["run: echo hé", "mem: 1G", "time: 30m", "cpus: 2", "needs: []", "comment: 'a: b # c'"])


@st.composite
def flows(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A flow with comments, blank lines, both styles and any order of keys; and its jobs' names."""
    lines = [f"# {draw(comment)}", "defaults: {mem: 3G}" if draw(st.booleans()) else "# none", "jobs:"]
    names = [f"job{at}" for at in range(draw(st.integers(1, 4)))]
    for name in names:
        chosen = draw(keys)[: draw(st.integers(1, 6))]
        chosen = [*chosen, "run: echo hé"] if "run: echo hé" not in chosen else chosen
        if draw(st.booleans()):
            lines.append(f"  {name}: {{{', '.join(chosen)}}}  # {draw(comment)}")
            continue
        indent = " " * draw(st.integers(3, 8))
        lines.append(f"  {name}:  # {draw(comment)}")
        for key in chosen:
            if draw(st.booleans()):
                lines.append(f"{indent}# {draw(comment)}")
            lines.append(f"{indent}{key}  # {draw(comment)}")
            if draw(st.booleans()):
                lines.append("")
    return draw(st.sampled_from(["\n", "\r\n"])).join([*lines, ""]), names


@given(flows(), st.data())
def test_comments_order_and_all_else_survive(made: tuple[str, list[str]], data: st.DataObject) -> None:
    """The flow has the new values and is otherwise the same; without all values the two texts are one."""
    text, names = made
    values = {"mem": ("777M", 777 << 20), "time": ("77m", 77 * 60), "cpus": ("7", 7)}
    wanted = {
        name: {key: values[key][0] for key in data.draw(st.lists(st.sampled_from(sorted(values)), unique=True))}
        for name in names
    }
    before, found = flow_of(text), edit_flow(text, wanted)
    after = flow_of(found.text)
    assert found.left == ()
    for at, name in enumerate(names):
        old = before.jobs[at].request
        expected = [
            values[key][1] if key in wanted[name] else was
            for key, was in (("mem", old.mem_bytes), ("time", old.time_s), ("cpus", old.cpus))
        ]
        assert list(requests(after)[name]) == expected
    assert _without_requests(found.text) == _without_requests(text)


def _without_requests(text: str) -> list[str]:
    """The lines without the values that are asked for and without what parts them; empty lines are gone."""
    bare = re.sub(r"\b(mem|time|cpus): (1G|30m|2|777M|77m|7)\b", "", text).replace(", ", "")
    return [line for line in bare.split("\n") if line.strip()]

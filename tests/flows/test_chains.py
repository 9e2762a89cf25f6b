"""Needs of single members: each has its own chain, from the flow to the verdicts, retries and reports."""

from __future__ import annotations

import json

from flow_lab import Lab, reasons, states, wait_for_file

import aver

SAMPLES = """
axes: {sample: [a, b, c]}
jobs:
  prep:
    matrix: [sample]
    run: echo prep-{sample} >> order; test {sample} != b || test -e mended
  train:
    matrix: {sample, seed: 1..2}
    needs: ["prep[sample={sample}]"]
    run: echo train-{sample}-{seed} >> order
  merge: {needs: {train: same}, matrix: [sample], run: "echo merge-{sample} >> order"}
  clean: {needs: {"train[sample={s}]": any}, matrix: {s: [a, b]}, run: "echo clean-{s} >> order"}
  notify: {needs: {"prep[same]": failure}, matrix: [sample], run: "echo notify-{sample} >> order"}
  all: {needs: [merge], run: echo all >> order}
"""
CHAIN_B = {"train[sample=b,seed=1]", "train[sample=b,seed=2]", "merge[sample=b]"}


def test_one_bad_sample_skips_its_own_chain_only(lab: Lab) -> None:
    """And what needs all samples; edges of other kinds see their own member."""
    run = lab.run(SAMPLES)
    ended = states(run)
    skipped = {name for name, state in ended.items() if state == "SKIPPED"}
    assert skipped == CHAIN_B | {"all", "notify[sample=a]", "notify[sample=c]"}
    assert {name for name, state in ended.items() if state == "FAILED"} == {"prep[sample=b]"}
    assert reasons(run)["train[sample=b,seed=2]"] == "NeedFailed:prep[sample=b](FAILED)"
    assert reasons(run)["notify[sample=a]"] == "NeedSucceeded:prep[sample=a](COMPLETED)"
    order = lab.lines("order")
    for sample in "ac":
        chain = [order.index(f"{step}-{sample}") for step in ("prep", "train", "merge") if f"{step}-{sample}" in order]
        assert chain == sorted(chain)
        assert order.index(f"prep-{sample}") < order.index(f"train-{sample}-2") < order.index(f"merge-{sample}")
    assert "clean-b" in order
    assert "notify-b" in order


def test_a_chain_does_not_wait_for_the_others(lab: Lab) -> None:
    """The whole chain of a ends while b has not begun its second step; what waits says for which member."""
    run = lab.submit(
        "jobs:\n"
        f"  prep: {{matrix: {{s: [a, b]}}, run: 'test {{s}} = a || {wait_for_file('go')}'}}\n"
        "  train: {matrix: {s: [a, b]}, needs: {prep: same}, run: 'true {s}'}\n"
        "  last: {matrix: {s: [a, b]}, needs: {train: same}, run: 'true {s}'}\n"
    )
    lab.until(lambda: run["last[s=a]"].state == "COMPLETED", "the chain of a is not done")
    assert states(run)["prep[s=b]"] == "RUNNING"
    why = lab("why", f"{run.number}/train[s=b]").out
    assert "(prep[s=b])" in why
    lab.let_go("go")
    run.wait(60)
    assert set(states(run).values()) == {"COMPLETED"}


def test_retry_brings_its_own_chain_back(lab: Lab) -> None:
    """`aver retry` of the failed ones runs what was skipped for them, and nothing of the other samples again."""
    run = lab.run(SAMPLES)
    before = lab.lines("order")
    lab.let_go("mended")
    assert lab("retry", str(run.number)).status == 0
    run.wait(60)
    assert states(run)["all"] == "COMPLETED"
    again = lab.lines("order")[len(before) :]
    assert sorted(again) == sorted(["prep-b", "train-b-1", "train-b-2", "merge-b", "all"])


def test_reinit_runs_the_chain_of_what_changed(lab: Lab) -> None:
    """The input of one sample changed: its chain runs again, the others do not."""
    text = (
        "jobs:\n"
        "  prep: {matrix: {s: [a, b]}, inputs: 'in-{s}', run: 'echo prep-{s} >> order; cat in-{s}'}\n"
        "  train: {matrix: {s: [a, b]}, needs: {prep: same}, run: 'echo train-{s} >> order'}\n"
    )
    for sample in "ab":
        lab.write("1", f"in-{sample}")
    run = lab.run(text)
    done = lab.lines("order")
    lab.write("2", "in-b")
    assert lab("reinit", str(run.number)).status == 0
    run.wait(60)
    assert lab.lines("order")[len(done) :] == ["prep-b", "train-b"]


def test_generated_jobs_need_members_of_the_run(lab: Lab) -> None:
    """Also with a list of axes of their own."""
    batch = {
        "axes": {"s": ["a", "b"]},
        "jobs": {"more": {"matrix": ["s"], "needs": {"prep": "same"}, "run": "true {s}"}},
    }
    lab.write(json.dumps(batch), "batch.json")
    run = lab.run(
        "jobs:\n"
        "  prep: {matrix: {s: [a, b]}, run: 'test {s} = a'}\n"
        "  gen: {needs: {prep: any}, run: cp batch.json more.json, generates: more.json}\n"
    )
    assert {name: state for name, state in states(run).items() if name.startswith("more")} == {
        "more[s=a]": "COMPLETED",
        "more[s=b]": "SKIPPED",
    }


def test_the_graph_and_the_report_show_it(lab: Lab) -> None:
    lab.write(SAMPLES)
    tree = lab("graph", "flow.yaml").out
    assert "train ×6  (per sample)" in tree
    assert lab("graph", "flow.yaml", "-o", "flow.dot").status == 0
    assert "any per s" in (lab.folder / "flow.dot").read_text()
    run = lab.run(SAMPLES)
    assert lab("report", str(run.number), "-o", "report.html").status == 0
    assert "per sample" in (lab.folder / "report.html").read_text()


def test_from_python(lab: Lab) -> None:
    """A flow's axes, a job as a key of needs, and members by their values."""
    flow = aver.Flow("f", folder=lab.folder, axes={"s": ["x y", "it's"]})
    prep = flow.job("prep", 'echo "{s}" > "out {s}"', matrix=["s"])
    flow.job("next", 'test "$AVER_PARAM_s" = "$(cat "out {s}")"', matrix={"s": None}, needs={prep: "same"})
    flow.job("last", "cat 'out {s}'", matrix=["s"], needs=[prep["s={s}"]])
    run = flow.run(60)
    assert set(states(run).values()) == {"COMPLETED"}
    assert sorted(path.name for path in lab.folder.glob("out *")) == ["out it's", "out x y"]
    assert [run[f"last[s={value}]"].log() for value in ("x y", "it's")] == ["x y\n", "it's\n"]


def test_hostile_values_reach_the_program(lab: Lab) -> None:
    """In every context of the shell, as an argument without one, and in the environment."""
    values = ["a b", "it's", '"$(touch hit)"', "`touch hit`", "-n", "--", "*", "$HOME", "a\\b", "é😀", "#x", "2", "if"]
    flow = aver.Flow("f", folder=lab.folder, axes={"v": values})
    show = "printf '%s\\n' "
    flow.job("text", f'{show} {{v}} \'{{v}}\' "{{v}}" "$AVER_PARAM_v"', matrix=["v"])
    flow.job("sh", f'{show} {{v}} \'{{v}}\' "{{v}}" "$AVER_PARAM_v"', matrix=["v"], shell="sh")
    flow.job("argv", argv=["printf", "%s\\n", "{v}"], matrix=["v"])
    run = flow.run(60)
    assert set(states(run).values()) == {"COMPLETED"}
    for value in values:
        assert run[f"text[v={value}]"].log() == f"{value}\n" * 4
        assert run[f"sh[v={value}]"].log() == f"{value}\n" * 4
        assert run[f"argv[v={value}]"].log() == f"{value}\n"
    assert not (lab.folder / "hit").exists()

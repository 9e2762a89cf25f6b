"""Outputs that must be there and inputs that must match, on this machine, through every surface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flow_lab import Lab, reasons, states

from hanging_folder import hanging


def test_a_missing_output_fails_the_job(lab: Lab) -> None:
    """Exit 0 is not enough: FAILED, the file is named, and what needs it does not run."""
    run = lab.run("""
jobs:
  good: {run: echo 1 > good.csv, outputs: good.csv}
  bad: {run: "true", outputs: [bad.csv, good2.csv]}
  after: {run: "true", needs: [bad]}
  maybe: {run: "true", outputs: {files: maybe.csv, required: false}}
""")
    assert states(run) == {"good": "COMPLETED", "bad": "FAILED", "after": "SKIPPED", "maybe": "COMPLETED"}
    assert reasons(run)["bad"] == "MissingOutput"
    why = lab("why", f"{run.number}/bad").out
    assert "bad.csv, good2.csv" in why
    assert "MissingOutput" in why
    (job,) = [one for one in lab("jobs", "--json", str(run.number)).document["jobs"] if one["name"] == "bad"]
    assert (job["state"], job["reason"], job["exit"]["text"]) == ("FAILED", "MissingOutput", "0:0")
    assert lab("watch", str(run.number), "--exit-status").status == 1


def test_members_have_outputs_of_their_own(lab: Lab) -> None:
    """Placeholders, globs and folders; one bad sample fails alone."""
    run = lab.run("""
jobs:
  fit:
    matrix: {sample: [a, b]}
    run: mkdir -p out/{sample}; test {sample} = b || touch out/{sample}/x.csv
    outputs: ["out/{sample}/*.csv", "out/{sample}"]
""")
    assert states(run) == {"fit[sample=a]": "COMPLETED", "fit[sample=b]": "FAILED"}


def test_missing_inputs(lab: Lab) -> None:
    """FAILED before its start; with the file there a retry runs it."""
    run = lab.run('jobs: {read: {run: touch ran, inputs: "data/*.csv", outputs: ran}}')
    assert (states(run), reasons(run)) == ({"read": "FAILED"}, {"read": "MissingInput"})
    assert not (lab.folder / "ran").exists()
    assert "data/*.csv" in lab("why", f"{run.number}/read").out
    (lab.folder / "data").mkdir()
    (lab.folder / "data" / "x.csv").touch()
    assert lab("retry", str(run.number)).status == 0
    run.wait(60)
    assert states(run) == {"read": "COMPLETED"}


@pytest.mark.parametrize("on", ["FAILED", "MissingOutput"])
def test_a_missing_output_is_tried_again(lab: Lab, on: str) -> None:
    """By its state or by its reason. The file of an earlier attempt is not taken for the next one's."""
    run = lab.run(f"""
jobs:
  flaky:
    run: |
      echo >> tries
      test $AVER_ATTEMPT != 1 || echo partial > a
      test $AVER_ATTEMPT != 3 || touch a b
    outputs: [a, b]
    retry: {{max: 3, on: [{on}]}}
""")
    assert states(run) == {"flaky": "COMPLETED"}
    assert len((lab.folder / "tries").read_text()) == 3
    why = lab("why", f"{run.number}/flaky").out
    assert why.count("verdict: FAILED 0:0 MissingOutput") == 2
    assert "looked at 2 outputs: wrote 1 file (a); missing: b" in why
    assert "looked at 2 outputs: wrote 0 files; missing: b; not written: a" in why


def test_partial_outputs_are_named_or_removed(lab: Lab) -> None:
    """They are kept and named, and removed where the flow says so."""
    run = lab.run("""
jobs:
  keep: {run: touch kept; exit 3, outputs: [kept, other]}
  clean: {run: touch gone; exit 3, outputs: {files: [gone, other2], clean: true}}
""")
    assert "left of its outputs: kept" in lab("why", f"{run.number}/keep").out
    assert "removed of its outputs: gone" in lab("why", f"{run.number}/clean").out
    assert ((lab.folder / "kept").exists(), (lab.folder / "gone").exists()) == (True, False)


def test_the_coordinator_is_killed_meanwhile(lab: Lab) -> None:
    """The witness knows what was there before, whoever listens."""
    (lab.folder / "old").write_text("old")
    run = lab.submit("""
jobs:
  old: {run: "touch begun; until test -e go; do sleep 0.02; done", outputs: old}
  new: {run: "touch begun2; until test -e go; do sleep 0.02; done; touch new", outputs: new}
""")
    lab.wait_for("begun")
    lab.wait_for("begun2")
    lab.kill()
    lab.let_go("go")
    run.wait(60)
    assert (states(run), reasons(run)["old"]) == ({"old": "FAILED", "new": "COMPLETED"}, "MissingOutput")


def test_a_folder_that_hangs_holds_up_its_own_job_alone(lab: Lab) -> None:
    """It is SETTLING while nobody knows; others go on, and it can be cancelled."""
    (lab.folder / "there").mkdir()
    run = lab.submit("""
jobs:
  stuck: {run: "touch begun; until test -e go; do sleep 0.02; done", outputs: there/x}
""")
    lab.wait_for("begun")
    with hanging(lab.folder / "there"):
        lab.let_go("go")
        lab.until(lambda: states(run) == {"stuck": "SETTLING"}, "it is not SETTLING")
        assert states(lab.run("jobs: {other: {run: touch fine, outputs: fine}}")) == {"other": "COMPLETED"}
        assert lab("cancel", str(run.number)).status == 0
        run.wait(60)
    assert states(run) == {"stuck": "CANCELLED"}


def test_the_python_api(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same keys, the same verdict."""
    import aver

    flow = aver.Flow("f", folder=lab.folder)
    flow.job("bad", "true", inputs=["flow.yaml"], outputs={"files": ["x", {"files": "y", "required": False}]})
    lab.write("")
    run = flow.run()
    assert reasons(run) == {"bad": "MissingOutput"}


def test_check_says_every_mistake(lab: Lab) -> None:
    """With its line, and all at once."""
    lab.write("""jobs:
  a:
    run: x
    outputs: {file: a, required: 3}
  b:
    run: x
    outputs: [a, {files: {x: 1}}, {clean: true, files: b}, ""]
    inputs: {files: x, clean: true}
""")
    (file,) = lab("check", "--json", "flow.yaml").document["files"]
    found = [(one["line"], one["text"].partition(" in job")[0], one["hint"]) for one in file["mistakes"]]
    assert set(found) == {
        (4, 'unknown key "file"', 'did you mean "files"?'),
        (4, '"required"', None),
        (4, '"outputs"', "name them, such as files: results/*.csv"),
        (7, '"files"', None),
        (7, 'unknown key "clean"', None),
        (8, 'unknown key "clean"', None),
        (7, '"outputs"', None),
    }


def test_the_schema_has_them() -> None:
    """Editors know the shapes."""
    schema = json.loads((Path(__file__).parents[2] / "docs" / "flow.schema.json").read_text())
    assert "clean" in json.dumps(schema["$defs"]["outputs"])

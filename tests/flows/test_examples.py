"""The flows of the folder examples run as the pages say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from flow_lab import Lab, states

import aver

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(lab: Lab) -> Lab:
    shutil.copytree(EXAMPLES, lab.folder, dirs_exist_ok=True)
    return lab


def test_every_example_is_a_right_flow(examples: Lab) -> None:
    """`aver check` finds no mistake in any of them."""
    flows = sorted(examples.folder.rglob("*.yaml"))
    assert len(flows) >= 8
    for path in flows:
        assert aver.Flow.from_file(path, folder=path.parent).check().jobs


def test_train(examples: Lab) -> None:
    """Three members, a finisher and a background page, all COMPLETED."""
    answer = examples("run", "train.yaml")
    assert answer.status == 0, answer
    run = aver.Run(1)
    assert run.wait(60) == "COMPLETED"
    assert len(run) == 7
    assert (examples.folder / "page.html").exists()


def test_checkpoint(examples: Lab) -> None:
    """It is warned, saves, is continued, and ends COMPLETED with all of its work done once."""
    run = aver.Flow.from_file(examples.folder / "checkpoint.yaml", folder=examples.folder).run(60)
    assert states(run) == {"count": "COMPLETED", "done": "COMPLETED"}
    attempts = [str(attempt.state) for attempt in run["count"].attempts]
    assert attempts[-1] == "COMPLETED"
    assert set(attempts[:-1]) == {"CHECKPOINTED"}
    assert (examples.folder / "count.txt").read_text() == "5"


def test_generate(examples: Lab) -> None:
    """Four jobs are added by the first one."""
    run = aver.Flow.from_file(examples.folder / "generate.yaml", folder=examples.folder).run(60)
    assert run.state == "COMPLETED"
    assert set(states(run)) == {"split", "part-a", "part-b", "part-c", "join"}
    assert run["join"].log() == "a\nb\nc\n"


def example(examples: Lab, name: str, **params: object) -> tuple[Path, aver.Run]:
    folder = examples.folder / name
    return folder, aver.Flow.from_file(folder / "flow.yaml", folder=folder, params=params).run(60)


def test_mapping(examples: Lab) -> None:
    """Per-sample chains, then all samples together; a parameter of the flow changes the calls."""
    folder, run = example(examples, "mapping")
    assert run.state == "COMPLETED"
    assert len(run) == 12
    assert (folder / "calls.vcf").read_text().split("\n")[0] == "5 ACGGTT 30"
    assert (folder / "quality.txt").read_text() == "20 1\n30 3\n40 1\n"
    folder, run = example(examples, "mapping", min_quality=35)
    assert (folder / "quality.txt").read_text() == "30 1\n40 1\n"


def test_wordcount(examples: Lab) -> None:
    """A member for each file that is there when it is submitted."""
    folder, run = example(examples, "wordcount")
    assert run.state == "COMPLETED"
    assert (folder / "results.txt").read_text().splitlines()[1] == "time 8 8 1.00"
    (folder / "texts" / "new.txt").write_text("a a b\n")
    folder, run = example(examples, "wordcount")
    assert len(run) == 5
    assert "new 2 1 2.00" in (folder / "results.txt").read_text()


def test_rnaseq(examples: Lab) -> None:
    """The bad sample fails with its code after a retry and skips its own chain; the report has the others."""
    folder, run = example(examples, "rnaseq")
    assert run.state == "FAILED"
    bad = run["fastqc[sample=lung]"]
    assert (str(bad.state), str(bad.exit), len(bad.attempts)) == ("FAILED", "65:0", 2)
    assert {name: state for name, state in states(run).items() if "lung" in name or name == "multiqc"} == {
        "fastqc[sample=lung]": "FAILED",
        "quant[sample=lung]": "SKIPPED",
        "multiqc": "COMPLETED",
    }
    assert (folder / "report.txt").read_text() == ("== gut.quant\ngeneA 2\ngeneB 1\n== liver.quant\ngeneB 1\ngeneC 1\n")


def test_sweep(examples: Lab) -> None:
    """Rows of a table with seeds; the best of nine."""
    folder, run = example(examples, "sweep", points=5)
    assert run.state == "COMPLETED"
    assert len(run) == 10
    values = {path.stem: float(path.read_text()) for path in (folder / "fits").iterdir()}
    best, name = (folder / "best.txt").read_text().split()
    assert (float(best), values[name]) == (min(values.values()), min(values.values()))


def test_letters(examples: Lab) -> None:
    """As many jobs as there are chunks, known only at run time."""
    folder, run = example(examples, "letters")
    assert run.state == "COMPLETED"
    assert set(states(run)) == {"split", "chunk_aa", "chunk_ab", "join"}
    assert (folder / "upper.txt").read_text() == "HELLO WORLD!"

"""What sbatch's answer means. Titles of the recorded blocks say what is expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recordings import answers

from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.submit.sbatch_answer import Busy, Handed, Lost, Refusal, Unreachable, read_submission
from aver.model.record import replace

BLOCKS = {**answers("sbatch-22.05.txt"), **answers("sbatch-other-versions.txt")}
PAGE = Path(__file__).resolve().parents[1] / "slurm" / "recorded" / "sbatch.txt"


@pytest.mark.parametrize("title", [title for title in BLOCKS if not title.startswith("taken")])
def test_every_answer_is_told_apart(title: str) -> None:
    """A limit, a mistake, an unreachable controller and doubt are four answers, each with Slurm's own sentence."""
    kind, _, rest = title.partition(" ")
    answer = read_submission(BLOCKS[title])
    assert type(answer).__name__ == kind
    assert not isinstance(answer, Handed)
    if isinstance(answer, (Busy, Unreachable)):
        assert answer.reason == rest
    last = BLOCKS[title].err.splitlines()[-1].split("failed: ")[-1].split("error: ")[-1].split("fatal: ")[-1]
    assert last in answer.text or "Unspecified" in last
    assert "sbatch: error: " not in answer.text


def test_an_id_is_taken() -> None:
    """Both forms of the id are read, with the cluster where one is named."""
    assert read_submission(BLOCKS["taken"]) == Handed(1390)
    assert read_submission(BLOCKS["taken on a cluster"]) == Handed(1400, "lab")
    assert read_submission(Reply(0, "Submitted batch job 7\n", "", 0.1)) == Handed(7)
    assert read_submission(Reply(0, "Submitted batch job 7 on cluster lab\n", "", 0.1)) == Handed(7, "lab")
    assert read_submission(Reply(0, "Welcome!\n7\n", "sbatch: warning: hm\n", 0.1)) == Handed(7)


def test_an_id_counts_however_sbatch_then_ended() -> None:
    """The job is in the queue, also when sbatch was killed after it said so."""
    assert read_submission(Reply(3, "7\n", "", 0.1)) == Handed(7)
    assert read_submission(Trouble("sbatch: no answer within 5 s", True, "7\n", "", 5.0)) == Handed(7)


@pytest.mark.parametrize("out", ["", "hello\n", "7\n8\n", "0\n", "-7\n", "99999999999\n", "7", "12 jobs\n"])
def test_no_single_id(out: str) -> None:
    """Exit status 0 without one whole id proves nothing; half a line may be half a number."""
    assert isinstance(read_submission(Reply(0, out, "", 0.1)), Lost)


def test_a_call_that_did_not_end() -> None:
    """Not started is not submitted; started and killed may be."""
    assert isinstance(read_submission(Trouble("sbatch: not found", began=False)), Unreachable)
    assert read_submission(Trouble("sbatch: no answer within 60 s", began=True)) == Lost(
        "sbatch: no answer within 60 s"
    )
    refusal = "sbatch: error: Batch job submission failed: Invalid qos specification\n"
    assert isinstance(read_submission(Trouble("killed", True, "", refusal)), Lost)


def _recorded_refusals() -> dict[str, Reply]:
    found = {}
    for command, printed, status in re.findall(r"^\$ (.*)\n((?:.*\n)*?)\[exit ([0-9]+)\]$", PAGE.read_text(), re.M):
        if status != "0" and "--test-only" not in command and "--wait" not in command:
            found[command] = Reply(int(status), "", printed, 0.1)
    return found


RECORDED = _recorded_refusals()


def test_a_status_of_ssh_is_no_refusal() -> None:
    """255 is sbatch's for wrong options, and also ssh's for a connection that broke: the words tell."""
    assert isinstance(read_submission(Reply(255, "", "Connection to host closed by remote host.\n", 0.1)), Lost)
    assert isinstance(read_submission(Reply(255, "", "sbatch: error: The option is new and wrong\n", 0.1)), Refusal)


@pytest.mark.parametrize("command", RECORDED)
def test_recorded_mistakes_are_refusals(command: str) -> None:
    """All mistakes that the real sbatch was recorded with are refusals with its own words."""
    answer = read_submission(RECORDED[command])
    assert isinstance(answer, Refusal)
    assert answer.text


def test_there_are_recorded_mistakes() -> None:
    """The page is where it was."""
    assert len(RECORDED) > 30


@given(st.integers(0, 255), st.text(), st.text())
def test_any_answer(status: int, out: str, err: str) -> None:
    """No answer raises, and an id comes out only where a line is one."""
    answer = read_submission(Reply(status, out, err, 0.1))
    if isinstance(answer, Handed):
        assert str(answer.id) in out


@given(st.sampled_from(sorted(BLOCKS)), st.text(max_size=60))
def test_unknown_words_around_a_sentence_never_make_doubt_a_refusal(title: str, noise: str) -> None:
    """What was Lost stays so with other lines around it, but for the words of a site's own plugin."""
    block = BLOCKS[title]
    if not title.startswith("Lost") or "Unspecified" in block.err or "something happened" in block.err:
        return
    words = "".join(letter for letter in noise if letter.isalnum() or letter == " ")
    assert isinstance(read_submission(replace(block, err=f"sbatch: error: x {words}\n{block.err}")), Lost)

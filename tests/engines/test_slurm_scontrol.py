"""What scontrol says. Recorded answers of 22.05; other versions' texts are written from their documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.engines.slurm.commands import scontrol
from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.commands.rows import NoAnswer
from aver.engines.slurm.commands.scontrol import Facts

CONFIG = Path(__file__).resolve().parents[1] / "slurm" / "recorded" / "scontrol.txt"


def test_recorded_facts() -> None:
    """The site's settings are numbers and words; sacct's own version says whether codes are whole."""
    text = CONFIG.read_text().split("$ scontrol show config\n")[1].split("[exit 0]")[0]
    facts = scontrol.read_facts(Reply(0, text, "", 0.1), (22, 5, 8))
    assert isinstance(facts, Facts)
    assert (facts.version, facts.cluster, facts.max_array_size) == ((22, 5, 8), "lab", 1001)
    assert (facts.min_job_age_s, facts.kill_wait_s) == (20, 2)
    assert facts.accounting == "accounting_storage/slurmdbd"
    assert facts.select == "select/cons_tres"
    assert not facts.has_whole_codes


def test_facts_of_a_site_without_accounts() -> None:
    """(null) is nothing said; what is not said is not known."""
    for text, said in (("accounting_storage/none", "accounting_storage/none"), ("(null)", "")):
        facts = scontrol.read_facts(Reply(0, f"ClusterName = x\nAccountingStorageType   = {text}\n", "", 0.1))
        assert isinstance(facts, Facts)
        assert facts.accounting == said
        assert (facts.version, facts.kill_wait_s) == (None, None)


@pytest.mark.parametrize(
    ("text", "version"),
    [("slurm-wlm 22.05.8", (22, 5, 8)), ("slurm 25.11.6", (25, 11, 6)), ("slurm 20.11", (20, 11)),
     ("slurm 24.05.0-0rc1", (24, 5, 0)), ("22.05.8", (22, 5, 8)),
     ("", None), ("spur", None), ("slurm 1122.05.8", None), ("slurm ..", None)],
)  # fmt: skip
def test_versions(text: str, version: tuple[int, ...] | None) -> None:
    """A version is read with or without the package's name."""
    assert scontrol.parse_version(text) == version


def test_whole_codes_since() -> None:
    """From 25.11 on; where the version is not known, no."""
    assert scontrol.has_whole_codes((25, 11, 0))
    assert scontrol.has_whole_codes((26, 5))
    assert not scontrol.has_whole_codes((25, 5, 9))
    assert not scontrol.has_whole_codes(None)


@pytest.mark.parametrize(
    "reply",
    [
        Trouble("scontrol: not found", began=False),
        Reply(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n", 9.0),
        Reply(0, "", "slurm_load_ctl_conf error: Zero Bytes were transmitted or received\n", 1.0),
        Reply(0, "", "", 0.1),
        Reply(0, "hello\n", "", 0.1),
    ],
)
def test_trouble_is_no_answer(reply: Reply | Trouble) -> None:
    """Where scontrol failed or said nothing that can be read, nothing is known."""
    assert isinstance(scontrol.read_facts(reply), NoAnswer)


KEYED = st.lists(
    st.tuples(
        st.sampled_from(["JobId", "JobState", "ExitCode", "Reason", "ArrayTaskId", "Restarts", "Foo"]),
        st.text(max_size=9),
    ),
    max_size=12,
).map(lambda pairs: "JobId=7 " + " ".join(f"{key}={value}" for key, value in pairs))


@given(st.one_of(st.text(), KEYED), st.text(max_size=30))
def test_any_text(out: str, err: str) -> None:
    """No text raises."""
    scontrol.read_facts(Reply(0, out, err, 0.1))
    scontrol.parse_version(out)

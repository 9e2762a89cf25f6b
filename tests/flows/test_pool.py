"""Pools that all runs share: who waits, why, what sizes hold, and what is left after kill -9."""

from __future__ import annotations

import pytest
from flow_lab import Lab, wait_for_file

import aver

FLOW = f"""
jobs:
  a: {{pools: {{licence: 1}}, matrix: {{n: [1, 2, 3]}}, run: "touch begun-$AVER_RUN-{{n}}; {wait_for_file("go-{n}")}"}}
"""


def begun(lab: Lab) -> list[str]:
    return sorted(path.name for path in lab.folder.glob("begun-*"))


def until_begun(lab: Lab, count: int) -> None:
    lab.until(lambda: len(begun(lab)) >= count, f"{count} have not begun")


def test_a_pool_is_shared_by_all_runs_also_after_kill_9(lab: Lab) -> None:
    """Two of two runs' six jobs at a time; the others wait with the reason, by name, and with who has it."""
    assert lab("pool", "set", "licence", "2").status == 0
    first, second = lab.submit(FLOW), lab.submit(FLOW)
    until_begun(lab, 2)
    lab.kill()
    lab("runs")
    waits = next(job for job in (*first, *second) if job.state == "PENDING")
    lab.until(lambda: waits.reason == "Licenses", "it has no reason")
    assert len(begun(lab)) == 2
    pool = lab("pool", "list", "--json").document["pools"][0]
    assert (pool["name"], pool["size"], pool["used"], len(pool["jobs"]), pool["waiting"]) == ("licence", 2, 2, 2, 4)
    lab.until(lambda: "of pool licence" in lab("why", str(waits.number)).out, "why does not name the pool")
    holders = ", ".join(map(str, pool["jobs"]))
    assert f"for 1 of pool licence: jobs {holders} have 2 of 2" in lab("why", str(waits.number)).out
    assert "licence" in lab("pool", "list").out
    for n in (1, 2, 3):
        lab.let_go(f"go-{n}")
    assert (first.wait(60), second.wait(60)) == ("COMPLETED", "COMPLETED")
    assert lab("pool", "list", "--json").document["pools"][0]["used"] == 0


def test_a_pool_of_0_pauses_its_jobs_and_the_size_survives_kill_9(lab: Lab) -> None:
    """Who runs goes on; a larger size lets the next ones start."""
    (lab.folder.parent / "config.toml").write_text("kill_wait = 1\ncpus = 4\n[pools]\nlicence = 1\n")
    run = lab.submit(FLOW)
    until_begun(lab, 1)
    assert lab("pool", "set", "licence", "0").status == 0
    lab.kill()
    lab("runs")
    lab.let_go("go-1")
    lab.let_go("go-2")
    lab.let_go("go-3")
    lab.until(lambda: run["a[n=1]"].state == "COMPLETED", "the first has not ended")
    lab.until(lambda: run["a[n=2]"].reason == "Licenses", "the second has no reason")
    assert len(begun(lab)) == 1
    assert "which has 0: aver pool set licence N" in lab("why", f"{run.number}/a[n=2]").out
    assert lab("pool", "unset", "licence").status == 0
    assert run.wait(60) == "COMPLETED"
    assert lab("pool", "list", "--json").document["pools"][0]["size"] == 1


def test_others_do_not_wait_for_the_pool(lab: Lab) -> None:
    """A job without pools starts; of two that ask for the same pool the first that came is first."""
    lab("pool", "set", "p", "2")
    lab.submit(
        "jobs:\n"
        f'  one: {{pools: p, run: "touch begun-one; {wait_for_file("go")}"}}\n'
        "  both: {pools: {p: 2}, needs: [], run: touch begun-both}\n"
        "  later: {pools: [p], priority: -1, run: touch begun-later}\n"
        "  free: {run: touch begun-free}\n".replace(", needs: []", "")
    )
    lab.wait_for("begun-one")
    lab.wait_for("begun-free")
    assert begun(lab) == ["begun-free", "begun-one"]
    lab.let_go("go")
    assert lab("watch", "1").status == 0
    assert len(begun(lab)) == 4


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("pools: {none: 1}", "there is no pool 'none'; aver pool set none N"),
        ("pools: {licence: 0}", "is 0; the least is 1"),
        ("pools: [a b]", 'has "a b"; the name of a pool has letters'),
    ],
)
def test_mistakes(lab: Lab, text: str, complaint: str) -> None:
    path = str(lab.write(f"jobs: {{a: {{run: 'true', {text}}}}}\n"))
    said = lab("check", path).out
    assert complaint.replace("'", '"') in said or complaint in said
    assert complaint in lab("submit", path).err


def test_mistakes_of_pool_set(lab: Lab) -> None:
    assert "can't be the name of a pool" in lab("pool", "set", "a b", "1").err
    assert lab("pool", "set", "a", "-1").status == 2
    assert "there are no pools" in lab("pool", "list").err


def test_python(lab: Lab) -> None:
    lab("pool", "set", "p", "1")
    flow = aver.Flow("f", folder=lab.folder)
    flow.job("a", "true", pools={"p": 1})
    assert flow.run(60)["a"].state == "COMPLETED"

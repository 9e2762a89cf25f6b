"""`aver cancel`: jobs, patterns and signals."""

from __future__ import annotations

from product import Product, wait_for_file


def test_cancel_ends_a_running_job(aver: Product) -> None:
    """Who cancelled it is evidence, and twice is harmless."""
    number = aver.submit("--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    assert aver("cancel", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 5
    assert aver("why", str(number)).out.startswith("Cancelled by ")
    again = aver("cancel", str(number))
    assert (again.status, again.out) == (0, f"{number}: already CANCELLED\n")


def test_cancel_by_pattern(aver: Product) -> None:
    """Only the jobs that match."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n  prep: {run: sleep 600}\n  train: {needs: [prep], run: 'true'}\n  tell: {needs: [prep], run: 'true'}\n"
    )
    run = aver.submit("flow.yaml")
    done = aver("cancel", f"{run}/t*", "--json").document
    assert [result["id"] for result in done["results"]] == [3, 4]
    assert aver.state(3) == "CANCELLED"
    assert aver("cancel", str(run)).status == 0
    assert aver("watch", str(run), "-e").status == 5


def test_a_signal_cancels_nothing(aver: Product) -> None:
    """--signal only sends it."""
    script = "trap 'exit 42' USR1; touch started; while :; do sleep 0.05; done"
    number = aver.submit("--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    assert aver("cancel", str(number), "--signal", "USR1").status == 0
    aver("watch", str(number))
    assert aver("show", str(number), "--json").document["job"]["exit"]["text"] == "42:0"
    assert aver("cancel", str(number), "--signal", "NOPE").status == 2

"""`aver release`."""

from __future__ import annotations

from product import Product


def test_only_what_is_held_is_released(aver: Product) -> None:
    """Jobs by name; a job that is not held stays as it is, and is no error."""
    (aver.folder / "flow.yaml").write_text("defaults: {hold: true}\njobs:\n  a: {run: 'true'}\n  b: {run: 'true'}\n")
    run = aver.submit("flow.yaml")
    assert aver("release", f"{run}/a").out == f"{run + 1}: released\n"
    assert aver("watch", f"{run}/a", "-e").status == 0
    assert aver.state(run + 2) == "PENDING"
    again = aver("release", f"{run}/a")
    assert (again.status, again.out, again.err) == (0, f"{run + 1}: not held\n", "")
    assert aver("release", str(run), "--json").document["results"][-1]["done"] is True
    assert aver("watch", str(run), "-e").status == 0

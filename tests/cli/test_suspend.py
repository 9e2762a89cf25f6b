"""`aver suspend`."""

from __future__ import annotations

from product import Product, wait_for_file


def test_suspend_and_resume(aver: Product) -> None:
    """A suspended job is SUSPENDED, and ends as it would have."""
    number = aver.submit("--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.05; done")
    wait_for_file(aver.folder / "started")
    assert aver("suspend", str(number)).status == 0
    assert aver.state(number) == "SUSPENDED"
    assert aver("resume", str(number)).status == 0
    assert aver.state(number) == "RUNNING"
    (aver.folder / "go").touch()
    assert aver("watch", str(number), "-e").status == 0

"""`aver resume`."""

from __future__ import annotations

from product import Product, wait_for_file


def test_a_job_that_is_not_suspended_stays_as_it_is(aver: Product) -> None:
    """No error, and the job runs on; one that waits has nothing to resume."""
    number = aver.submit("--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.05; done")
    wait_for_file(aver.folder / "started")
    said = aver("resume", str(number))
    assert (said.status, said.out) == (0, f"{number}: not suspended\n")
    held = str(aver.submit("--hold", "--", "true"))
    refused = aver("resume", held)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith(f"aver: {held}: ")
    (aver.folder / "go").touch()
    assert aver("watch", str(number), "-e").status == 0
    assert aver("cancel", held).status == 0


def test_a_job_that_ends_as_soon_as_it_goes_on_was_resumed(aver: Product) -> None:
    """The reply counts the resumption that came before the end."""
    for turn in range(3):
        go = aver.folder / f"go{turn}"
        number = aver.submit("--", "sh", "-c", f"touch started{turn}; until [ -e {go} ]; do :; done")
        wait_for_file(aver.folder / f"started{turn}")
        assert aver("suspend", str(number)).status == 0
        go.touch()
        said = aver("resume", str(number))
        assert (said.status, said.out) == (0, f"{number}: resumed\n")
        assert aver("watch", str(number), "-e").status == 0

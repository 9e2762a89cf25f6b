"""`aver log`: what a job wrote, through all its attempts."""

from __future__ import annotations

from product import Product, end, wait_for_file

RETRIED = """
jobs:
  flaky:
    retry: 2
    run: |
      echo "try $AVER_ATTEMPT"
      [ -e once ] && exit 0
      while [ ! -e go ]; do sleep 0.02; done
      touch once
      exit 1
"""


def test_following_goes_through_retries(aver: Product) -> None:
    """`aver log -f` shows the attempt that runs and the next, with a line between them, until the job is settled."""
    (aver.folder / "flow.yaml").write_text(RETRIED)
    run = aver.submit("flow.yaml")
    follower = aver.start("log", f"{run}/flaky", "-f")
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"try 1\n"
    (aver.folder / "go").touch()
    answer = end(follower)
    assert (answer.status, answer.out) == (0, "try 2\n"), answer.err
    assert "aver: attempt 2 begins\n" in answer.err
    assert aver.state(run + 1) == "COMPLETED"


def test_following_waits_for_a_pending_job(aver: Product) -> None:
    """A held job has no output yet: `-f` says why, and shows it once there is some."""
    number = aver.submit("--hold", "--", "echo", "here")
    told = aver.folder / "told"
    with told.open("wb") as err:
        follower = aver.start_to(err, "log", str(number), "-f")
    wait_for_file(told, "JobHeldUser")
    assert aver("release", str(number)).status == 0
    assert end(follower).out == "here\n"

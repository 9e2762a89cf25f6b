"""`aver accept`."""

from __future__ import annotations

import os
import signal

from product import Product, wait_for_file


def test_a_lost_job_is_unverified_until_a_person_accepts_it(aver: Product) -> None:
    """A killed witness: exit 7, never success; then `accept` makes it COMPLETED, by a person."""
    number = aver.submit("--", "sh", "-c", "echo $PPID > pid.tmp; mv pid.tmp pid; exec sleep 600")
    wait_for_file(aver.folder / "pid")
    os.kill(int((aver.folder / "pid").read_text()), signal.SIGKILL)
    assert aver("watch", str(number), "-e").status == 7
    why = aver("why", str(number)).out
    assert f"aver accept {number}" in why
    assert "{" not in why
    assert aver("accept", str(number)).status == 0
    job = aver("show", str(number), "--json").document["job"]
    assert (job["state"], job["source"]) == ("COMPLETED", "person")

"""`aver hold` and what is said of a held job."""

from __future__ import annotations

from product import Product


def test_hold_and_release(aver: Product) -> None:
    """A held job says so until it is let go."""
    number = aver.submit("--hold", "--", "true")
    assert aver("show", str(number), "--json").document["job"]["reason"] == "JobHeldUser"
    assert f"aver release {number}" in aver("why", str(number)).out
    status = aver("status", "--json").document
    assert (status["running"], status["pending"]) == (0, 1)
    assert aver("release", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 0


def test_run_says_what_its_job_waits_for(aver: Product) -> None:
    """Whoever waits in the foreground is told once why nothing happens."""
    waiting = aver.start("run", "--hold", "--", "true")
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == b"aver: job 1 PENDING (JobHeldUser): it is held; `aver release` lets it go\n"
    assert aver("release", "1").status == 0
    assert waiting.communicate()[1].startswith(b"aver: job 1 COMPLETED in ")
    assert waiting.returncode == 0


def test_what_is_refused_exits_1_and_says_so_on_stderr(aver: Product) -> None:
    """A settled job can't be held, suspended or vouched for; what is so already is no error."""
    number = str(aver.submit("--", "false"))
    aver("watch", number)
    for verb, code in (("hold", "settled"), ("suspend", "settled"), ("resume", "settled"), ("accept", "settled")):
        refused = aver(verb, number)
        assert (refused.status, refused.out) == (1, ""), verb
        assert refused.err.startswith(f"aver: {number}: already FAILED"), verb
        answer = aver(verb, number, "--json")
        assert answer.status == 1
        assert answer.document["results"][0]["done"] is False
        assert answer.document["results"][0]["code"] == code
    held = str(aver.submit("--hold", "--", "true"))
    again = aver("hold", held, "--json")
    assert again.status == 0
    assert (again.document["results"][0]["done"], again.document["results"][0]["code"]) == (True, "already")
    assert aver("hold", held).out == f"{held}: held already\n"
    assert aver("suspend", held).status == 1
    assert aver("release", held).status == 0

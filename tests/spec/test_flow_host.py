"""`host`, `sync` and `sync_exclude` of a flow, `host` of the settings: read as written, wrong ones refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.config import load_config
from aver.errors import UsageError
from aver.model.host_name import is_host, split_address
from aver.spec.flow.file import parse_flow
from aver.spec.mistakes import SpecError


def test_a_flow_a_default_and_a_job_may_name_a_host() -> None:
    """The nearest counts."""
    text = (
        "host: me@a\nsync: [., data]\nsync_exclude: .git/\njobs:\n  x: {run: 'true'}\n  y: {run: 'true', host: me@b}\n"
    )
    flow = parse_flow(text, "flow.yaml", now=0.0)
    assert [spec.host for spec in flow.jobs] == ["me@a", "me@b"]
    assert (flow.sync, flow.sync_exclude) == ((".", "data"), (".git/",))
    defaults = parse_flow("host: a\ndefaults: {host: b}\njobs: {x: {run: 'true'}}\n", "flow.yaml", now=0.0)
    assert defaults.jobs[0].host == "b"


@pytest.mark.parametrize("line", ["host: -oProxyCommand=id", "host: 'a b'", "host: ''", "sync: ''", "sync: {a: b}"])
def test_what_is_wrong_is_said_with_its_line(line: str) -> None:
    """A name that ssh would take for an option is never kept."""
    with pytest.raises(SpecError, match=r"flow\.yaml:1:"):
        parse_flow(f"{line}\njobs: {{x: {{run: 'true'}}}}\n", "flow.yaml", now=0.0)


def test_on_one_machine_it_means_nothing_and_says_so() -> None:
    """As the other keys that are for clusters."""
    flow = parse_flow("jobs: {x: {run: 'true', host: login}}\n", "flow.yaml", now=0.0)
    assert flow.jobs[0].ignored == ("host: means nothing on this machine",)


def test_the_settings_name_a_host_and_the_words_of_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are texts; a host that is none is refused with the file's name."""
    path = tmp_path / "config.toml"
    monkeypatch.setenv("AVER_CONFIG", str(path))
    path.write_text('[slurm]\nhost = "me@login"\nssh = "ssh -F x"\n')
    assert (load_config().slurm.host, load_config().slurm.ssh) == ("me@login", "ssh -F x")
    path.write_text('[slurm]\nhost = "-x"\n')
    with pytest.raises(UsageError, match="not the name of a host"):
        load_config()


@pytest.mark.parametrize(
    "name",
    [
        "login",
        "me@login.example.org",
        "ssh://me@login:2222",
        "10.0.0.1",
        "a_b",
        "fe80::1%eth0",
        "ssh://[::1]:22",
        "m-e.x@a-b",
    ],
)
def test_names_of_hosts(name: str) -> None:
    """What ssh takes is taken."""
    assert is_host(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "me@-oProxyCommand=x",
        "ssh://-oProxyCommand=x",
        "ssh://me@-x:22",
        "@login",
        "a b",
        "a;b",
        "a$(b)",
        "a" * 256,
    ],
)
def test_what_is_no_name_of_a_host(name: str) -> None:
    """No part of it can be taken for an option, by ssh or by a program that takes it apart."""
    assert not is_host(name)


def test_an_address_for_programs_that_know_only_names() -> None:
    assert split_address("ssh://me@login:2222") == ("me@login", "2222")
    assert split_address("ssh://[::1]") == ("[::1]", "")
    assert split_address("me@login") == ("me@login", "")

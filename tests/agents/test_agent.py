"""`aver agent guide`: every command line in it works as it stands."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import yaml

FLOW = """\
defaults: {kill_wait: 1s}
jobs:
  prep: {run: "true"}
  train:
    needs: [prep]
    time: 1s
    run: |
      echo training
      if [ "$AVER_ATTEMPT" = 1 ]; then sleep 300; fi
  lint: {run: "[ $AVER_ATTEMPT = 2 ]"}
"""
MOST_BYTES = 2500


def aver(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aver", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_command_line_of_the_guide_works(aver_home: Path, tmp_path: Path) -> None:
    """In the order of the guide, with a flow that needs recovery and a retry: it is COMPLETED in the end."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "flow.yaml").write_text(FLOW)
    guide = aver(folder, "agent", "guide").stdout
    assert len(guide.encode()) <= MOST_BYTES
    lines = [line.strip() for line in guide.splitlines() if line.startswith("    ")]
    assert len(lines) > 10
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "aver"
        done = aver(folder, *words)
        assert done.returncode == 0, f"{line}: {done.returncode} {done.stderr}"
        if words[:2] == ["submit", "--key"] and words[-1] == "flow.yaml":
            assert done.stdout == "1\n"
    assert aver(folder, "watch", "1", "--exit-status").returncode == 0


def test_the_skill_is_installed_where_agents_look(aver_home: Path, tmp_path: Path) -> None:
    """For those whose folder is here, or that are named; it has the guide, and is written anew; others' files stay."""
    guide = aver(tmp_path, "agent", "guide").stdout
    done = aver(tmp_path, "agent", "install")
    assert (done.returncode, done.stdout) == (0, ".agents/skills/aver/SKILL.md\n")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".github").mkdir()
    done = aver(tmp_path, "agent", "install")
    assert done.stdout.split() == [
        ".claude/skills/aver/SKILL.md", ".agents/skills/aver/SKILL.md", ".github/instructions/aver.instructions.md",
    ]  # fmt: skip
    for name in done.stdout.split():
        text = (tmp_path / name).read_text()
        head, _, rest = text.removeprefix("---\n").partition("---\n")
        assert "description" in yaml.safe_load(head)
        assert rest.endswith(guide)
    assert yaml.safe_load((tmp_path / ".claude/skills/aver/SKILL.md").read_text().split("---")[1])["name"] == "aver"
    own = tmp_path / ".cursor/rules/aver.mdc"
    own.parent.mkdir(parents=True)
    own.write_text("mine\n")
    refused = aver(tmp_path, "agent", "install", "--for", "cursor")
    assert (refused.returncode, own.read_text()) == (73, "mine\n")
    assert ".cursor/rules/aver.mdc" in refused.stderr
    assert aver(tmp_path, "agent", "guide", "--for", "cursor").returncode == 2

"""`aver --version`, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import aver


def loaded_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_version_is_printed() -> None:
    """`aver --version` prints the name and the version, and exits 0."""
    done = subprocess.run([sys.executable, "-m", "aver", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"aver {aver.__version__}\n", "")


def test_version_loads_no_command_line() -> None:
    """The fast path imports neither click nor anything else that is slow."""
    loaded = loaded_after("sys.argv = ['aver', '--version']\nfrom aver.__main__ import main\nmain()")
    assert "aver" in loaded
    assert not loaded & {"click", "rich", "yaml", "sqlite3", "importlib.metadata", "subprocess", "asyncio"}


@pytest.mark.parametrize("system", ["darwin", "win32", "freebsd14"])
def test_another_system_is_told_at_once(system: str) -> None:
    """Every command exits 69 with one line that names Linux, before it loads anything; `--version` is answered."""
    program = f"import sys\nsys.platform = {system!r}\nfrom aver.__main__ import main\nmain()"
    sentence = f"aver: Aver needs Linux, and this is {system}: use a Linux machine"
    for words in (["run", "--", "true"], ["jobs"], [], ["--help"]):
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (69, "", 1)
        assert done.stderr.startswith(sentence)
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "aver 0.2.0\n")


def test_another_system_gets_no_flows_from_python() -> None:
    """`aver.Flow` is an ImportError with the same sentence."""
    program = "import sys\nsys.platform = 'darwin'\nimport aver\naver.Flow"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: Aver needs Linux, and this is darwin")


def test_unknown_attribute_is_an_attribute_error() -> None:
    """A wrong name in `aver` is an AttributeError that names it, not an import error."""
    with pytest.raises(AttributeError, match="no attribute 'Flwo'"):
        _ = aver.Flwo

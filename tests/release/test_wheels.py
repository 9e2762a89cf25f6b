"""What is released: wheels that need no compiler, and the script that builds, checks and tries them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from packages import ROOT, build_wheel, copy_checkout

from aver.version import __version__
from aver.witness import build

CROSS = "aarch64-linux-gnu-gcc"
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
SOURCE = ROOT / "src" / "aver" / "witness" / "witness.c"
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release is made from a clone")
needs_cross = pytest.mark.skipif(
    not shutil.which(CROSS), reason=f"no {CROSS}: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
)
needs_emulator = pytest.mark.skipif(not EMULATOR, reason="no qemu-aarch64: apt-get install qemu-user-static")


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """scripts/release as a module."""
    loader = SourceFileLoader("aver_release", str(ROOT / "scripts" / "release"))
    spec = spec_from_loader("aver_release", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["aver_release"] = module
    loader.exec_module(module)
    return module


def built_for(release: ModuleType, start: str, compiler: str, folder: Path) -> tuple[object, Path]:
    (target,) = [one for one in release.TARGETS if one.platforms.startswith(start)]
    source = copy_checkout(folder / "source")
    return target, build_wheel(source, folder / "out", CC=compiler, AVER_WHEEL_PLATFORM=target.platforms)


def test_the_platforms_that_are_released(release: ModuleType) -> None:
    """glibc from 2.17 and musl from 1.2, on two kinds of machines."""
    assert sorted(one.platforms for one in release.TARGETS) == [
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "musllinux_1_2_aarch64",
        "musllinux_1_2_x86_64",
    ]


@needs_git
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="builds for its own machine, x86_64")
def test_a_wheel_passes_its_checks_and_a_changed_one_does_not(release: ModuleType, tmp_path: Path) -> None:
    """Name, files, version, licence files, the witness's mode, machine and libraries."""
    target, wheel = built_for(release, "manylinux_2_17_x86_64", "gcc", tmp_path)
    assert wheel.name == f"aver-{__version__}-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    release.check_wheel(wheel, target, __version__, tmp_path)
    for without, said in (("licenses/NOTICE", "NOTICE"), ("aver/judge/local.py", "judge/local.py")):
        part = tmp_path / without.replace("/", "-") / wheel.name
        part.parent.mkdir()
        with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(part, "w") as copy:
            for one in whole.infolist():
                if not one.filename.endswith(without):
                    copy.writestr(one, whole.read(one))
        with pytest.raises(release.ReleaseError, match=said):
            release.check_wheel(part, target, __version__, tmp_path)
    with pytest.raises(release.ReleaseError, match="version"):
        release.must_be_equal(wheel, "version", "0.1.0", __version__)
    foreign = next(one for one in release.TARGETS if one.machine == "aarch64")
    with pytest.raises(release.ReleaseError, match="machine: 'Advanced Micro Devices X86-64', not 'AArch64'"):
        release.check_static(tmp_path / wheel.stem / "aver/witness/aver-witness", foreign)


def test_a_witness_that_needs_a_library_is_refused(release: ModuleType, tmp_path: Path) -> None:
    """The check sees what the linker left open."""
    machine = os.uname().machine
    target = next(one for one in release.TARGETS if one.machine == machine)
    subprocess.run(["cc", "-o", tmp_path / "dynamic", SOURCE], check=True)
    with pytest.raises(release.ReleaseError, match="INTERP"):
        release.check_static(tmp_path / "dynamic", target)
    build.compile(SOURCE, tmp_path / "static", must_be_static=True)
    release.check_static(tmp_path / "static", target)


def test_a_platform_without_a_compiler_is_named(release: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built for it, and the line says what to install."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert [release.find_compiler(one) for one in release.TARGETS] == [None] * 4
    packages = {one.packages for one in release.TARGETS if one.machine == "aarch64"}
    assert packages == {"gcc-aarch64-linux-gnu libc6-dev-arm64-cross"}


def test_a_compiler_that_cannot_link_statically_makes_no_portable_wheel(tmp_path: Path) -> None:
    """The build ends with the compiler's words; there is no wheel whose name promises too much."""
    picky = tmp_path / "picky"
    picky.write_text('#!/bin/sh\ncase " $* " in *" -static"*) echo "no -lc" >&2; exit 1;; esac\nexec cc "$@"\n')
    picky.chmod(0o755)
    source = copy_checkout(tmp_path / "source")
    with pytest.raises(AssertionError, match=r"can't compile .*/witness\.c"):
        build_wheel(source, tmp_path / "out", CC=str(picky), AVER_WHEEL_PLATFORM="manylinux_2_17_x86_64")
    assert not list(tmp_path.glob("out/*"))


@needs_git
@needs_cross
def test_the_wheel_for_aarch64_has_a_static_witness(release: ModuleType, tmp_path: Path) -> None:
    """Cross-compiled, and checked as every wheel is."""
    target, wheel = built_for(release, "musllinux_1_2_aarch64", CROSS, tmp_path)
    release.check_wheel(wheel, target, __version__, tmp_path)


@needs_cross
@needs_emulator
@pytest.mark.parametrize(("script", "status", "raw"), [("exit 0", 0, 0), ("exit 7", 7, 7 << 8), ("kill -9 $$", -9, 9)])
def test_the_witness_for_aarch64_tells_how_its_child_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, status: int, raw: int
) -> None:
    """Under qemu-user: the record has the wait status, and the witness ends as its child did."""
    monkeypatch.setenv("CC", CROSS)
    build.compile(SOURCE, tmp_path / "w", must_be_static=True)
    assert EMULATOR is not None
    words = [EMULATOR, tmp_path / "w", "once", "--record", tmp_path / "record", "--", "/bin/sh", "-c", script]
    done = subprocess.run(words, check=False, timeout=60)
    assert done.returncode == status
    assert f'"raw":{raw},'.encode() in (tmp_path / "record").read_bytes()


def test_a_debian_that_was_removed_is_made_again(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note of its packages may outlive it, where old files of /tmp are removed."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # only root makes one; any other user is told that it is missing
    lab = release.load_lab()
    lab.FOLDER = tmp_path
    tree = tmp_path / "release-trixie"
    (tmp_path / "release-trixie.packages").write_text("python3")
    with pytest.raises(lab.LabError, match="release-trixie is missing, and only root can make it"):
        lab.make_tree(tree, "trixie", "python3")
    tree.mkdir()
    lab.make_tree(tree, "trixie", "python3")


def test_the_version_is_said_once() -> None:
    """The package has it; the newest entry of the changelog is of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


@pytest.mark.long
@needs_git
def test_a_release_builds_checks_and_tries_everything(tmp_path: Path) -> None:
    """scripts/release ends well; each thing it could not do is named. Needs a package index, and minutes."""
    done = subprocess.run(
        [ROOT / "scripts" / "release", "--out", tmp_path / "dist"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    own = f"aver-{__version__}-py3-none-manylinux_2_17_{os.uname().machine}.manylinux2014_{os.uname().machine}.whl"
    names = {path.name for path in (tmp_path / "dist").iterdir()}
    assert {own, f"aver-{__version__}.tar.gz"} <= names
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"ok      Python {here}: {own} is installed and runs jobs" in done.stdout
    for platforms in ("manylinux_2_17_aarch64.manylinux2014_aarch64", "musllinux_1_2_aarch64", "musllinux_1_2_x86_64"):
        name = f"aver-{__version__}-py3-none-{platforms}.whl"
        assert name in names or f"skipped {platforms}: no compiler" in done.stdout

"""Compiling the witness, and finding it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import aver.witness
from aver.errors import UnreachableError
from aver.witness import build

SOURCE = Path(aver.witness.__file__).with_name("witness.c")


def test_compile(tmp_path: Path) -> None:
    """The target is a program that says its version, and nothing else is left."""
    build.compile(SOURCE, tmp_path / "w")
    assert (
        subprocess.run([tmp_path / "w", "--version"], stdout=subprocess.PIPE, check=True).stdout == b"aver-witness 1\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_the_witness_is_hardened(tmp_path: Path) -> None:
    """Loaded at a random address, tables read-only after the start, stack and copies checked."""
    build.compile(SOURCE, tmp_path / "w")
    said = subprocess.run(["readelf", "-hlds", tmp_path / "w"], capture_output=True, text=True, check=True).stdout
    wanted = ("DYN (Position-Independent Executable file)", "GNU_RELRO", "BIND_NOW", "__stack_chk_fail", "printf_chk")
    assert [word for word in wanted if word not in said] == []


def test_missing_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler the error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(build.CompileError, match="apt-get install gcc libc6-dev"):
        build.compile(SOURCE, tmp_path / "w")


def test_static_falls_back_to_dynamic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that can't link statically still makes a witness."""
    compiler = tmp_path / "picky"
    compiler.write_text('#!/bin/sh\ncase " $* " in *" -static"*) echo "no -lc" >&2; exit 1;; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    build.compile(SOURCE, tmp_path / "w")
    assert (tmp_path / "w").exists()
    with pytest.raises(build.CompileError, match="no -lc"):
        build.compile(SOURCE, tmp_path / "for-others", must_be_static=True)


def test_wrong_source(tmp_path: Path) -> None:
    """What the compiler said is in the error, and no target is left."""
    (tmp_path / "x.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(build.CompileError, match="nothing"):
        build.compile(tmp_path / "x.c", tmp_path / "w")
    assert [path.name for path in tmp_path.iterdir()] == ["x.c"]


def test_binary_is_beside_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`binary` names it, or says how to make it."""
    monkeypatch.setattr(aver.witness, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(UnreachableError, match=r"python -m aver\.witness\.build"):
        aver.witness.binary()
    (tmp_path / "aver-witness").touch(0o644)
    with pytest.raises(UnreachableError, match="not executable"):
        aver.witness.binary()
    (tmp_path / "aver-witness").chmod(0o755)
    assert aver.witness.binary() == tmp_path / "aver-witness"


def test_sweep_without_children_files(tmp_path: Path) -> None:
    """On kernels without /proc/PID/task/TID/children descendants are found by their parents."""
    source = tmp_path / "w.c"
    source.write_text(f'#define AVER_NO_CHILDREN\n#include "{SOURCE}"\n')
    build.compile(source, tmp_path / "w")
    record = tmp_path / "record"
    script = "(sleep 61 & setsid sleep 62 & :); exit 4"
    done = subprocess.run(
        [tmp_path / "w", "once", "--record", record, "--", "bash", "-c", script], check=False, timeout=60
    )
    assert done.returncode == 4
    assert b'"left":2,' in record.read_bytes()

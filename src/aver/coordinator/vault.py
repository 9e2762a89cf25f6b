"""Environment values of jobs, kept out of the store.

A flow's `env:` values are sealed before the flow is stored: each becomes a keyed digest, and the value itself
goes into a file of the run, mode 0600, that is removed with the run. Equal values have equal digests in one
home, so a changed value is still seen as changed. The key lies in the home and nowhere else.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aver.core.model import FlowSpec, JobSpec
from aver.errors import CantWriteError
from aver.home import Home

MARK = "sealed:"
KEY_BYTES = 32
DIGEST_HEX = 32


def seal(home: Home, flow: FlowSpec) -> tuple[FlowSpec, dict[str, str]]:
    """The flow with digests in place of its environment values, and the values by their digests."""
    if not any(spec.env for spec in flow.jobs):
        return flow, {}
    key = _key(home)
    values: dict[str, str] = {}

    def sealed(value: str) -> str:
        if is_sealed(value):
            return value
        digest = MARK + hmac.digest(key, os.fsencode(value), "sha256").hex()[:DIGEST_HEX]
        values[digest] = value
        return digest

    def sealed_job(spec: JobSpec) -> JobSpec:
        return replace(spec, env=tuple((name, sealed(value)) for name, value in spec.env)) if spec.env else spec

    return replace(flow, jobs=tuple(sealed_job(spec) for spec in flow.jobs)), values


def is_sealed(value: str) -> bool:
    digest = value.removeprefix(MARK)
    return value != digest and len(digest) == DIGEST_HEX and all(letter in "0123456789abcdef" for letter in digest)


def store(home: Home, run: int, values: Mapping[str, str]) -> None:
    """Add values to the run's file; durable when this returns."""
    if not values:
        return
    data = b"".join(os.fsencode(f"{digest}={value}") + b"\0" for digest, value in values.items())
    try:
        fd = os.open(_path(home, run), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with open(fd, "ab") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
    except OSError as error:
        raise CantWriteError(f"can't write {_path(home, run)}: {error.strerror}") from None


def load(home: Home, run: int) -> dict[str, str]:
    """The run's values by their digests; none when it has none."""
    try:
        data = _path(home, run).read_bytes()
    except FileNotFoundError:
        return {}
    pairs = (os.fsdecode(pair).partition("=") for pair in data.split(b"\0")[:-1])
    return {digest: value for digest, _, value in pairs}


def _path(home: Home, run: int) -> Path:
    return home.path / "env" / f"{run}.values.env"


def _key(home: Home) -> bytes:
    """The home's own key, made when it is first needed."""
    path = home.path / "env" / "key"
    for _ in range(2):
        try:
            key = path.read_bytes()
            if len(key) == KEY_BYTES:
                return key
            raise CantWriteError(f"{path} is damaged: {len(key)} bytes, not {KEY_BYTES}; remove it")
        except FileNotFoundError:
            _make_key(path)
        except OSError as error:
            raise CantWriteError(f"can't read {path}: {error.strerror}") from None
    raise CantWriteError(f"can't make {path}")


def _make_key(path: Path) -> None:
    """Whole or not at all, and the first to make it wins."""
    scratch = path.with_name(f"key.{os.getpid()}")
    try:
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(fd)
        try:
            os.link(scratch, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(scratch)
    except OSError as error:
        raise CantWriteError(f"can't write {path}: {error.strerror}") from None

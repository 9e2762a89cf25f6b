"""What a home keeps of a run's secrets, so that their values can be masked.

`env/RUN.env` has the inherited environment. `env/RUN.secrets` has what that file has not: values of the flow's own
`env:`, of steps, and from before a `reinit`. When a settled run's environment is removed, the values in it become
keyed digests. Records end with NUL and begin with `=` (a value) or `#` (a line of `render.masking.Digests`).
Imports little: Slurm's commands read it, where a run has secrets at all.
"""

from __future__ import annotations

import contextlib
import os

from aver.durable_files import create_file, naming_failures, write_file
from aver.errors import AverError, CantWriteError
from aver.fast_start import TYPE_CHECKING
from aver.render.masking import Digests, Masking, to_bytes, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KEY_BYTES = 32
_VALUE, _DIGEST = b"=", b"#"


def load_masking(home: str, run: int, names: Sequence[str]) -> Masking:
    """What hides the secrets of a run; AverError if they can't be read, since then nothing may be shown."""
    if not names:
        return Masking()
    values, lines = _kept(home, run)
    values += values_of(_read(_env_path(home, run), run).split(b"\0"), names)
    return Masking(values, _digests(home, run, lines))


def keep_values(home: str, run: int, values: Iterable[str]) -> None:
    """Remember values of the run's secrets; durable when this returns."""
    wanted = {data for value in values if (data := to_bytes(value)) and b"\0" not in data}
    if not wanted:
        return
    kept, lines = _kept(home, run)
    if not wanted <= set(kept):
        _write(home, run, [*kept, *sorted(wanted - set(kept))], lines)


def seal_values(home: str, run: int, names: Sequence[str]) -> None:
    """Replace the values of the run's secrets by keyed digests: its environment is about to be removed."""
    values, lines = _kept(home, run)
    if names:
        values += values_of(_read(_env_path(home, run), run).split(b"\0"), names)
    values = [value for value in values if value]
    if not values:
        return
    digests = Digests(home_key(home))
    lines = sorted({*lines, *(line for value in values for line in digests.lines_of(value))})
    _write(home, run, [], lines)


def home_key(home: str) -> bytes:
    """The home's own key, made when it is first needed. It lies in the home and nowhere else."""
    path = _key_path(home)
    for _ in range(2):
        try:
            with open(path, "rb") as file:
                key = file.read()
        except FileNotFoundError:
            _make_key(path)
            continue
        except OSError as error:
            raise CantWriteError(f"can't read {path}: {error.strerror}") from None
        if len(key) != KEY_BYTES:
            raise CantWriteError(f"{path} is damaged: {len(key)} bytes, not {KEY_BYTES}; remove it")
        return key
    raise CantWriteError(f"can't make {path}")


def _make_key(path: str) -> None:
    """Whole or not at all, and the first to make it wins."""
    scratch = f"{path}.{os.getpid()}"
    with naming_failures(path):
        try:
            create_file(scratch, os.urandom(KEY_BYTES))
            os.link(scratch, path)
        except FileExistsError:
            pass
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(scratch)


def _digests(home: str, run: int, lines: list[bytes]) -> Digests | None:
    """None also where the key is gone: nothing can be compared with them then."""
    if not lines:
        return None
    key = _read(_key_path(home), run)
    return Digests(key, lines) if len(key) == KEY_BYTES else None


def _write(home: str, run: int, values: Iterable[bytes], lines: Iterable[bytes]) -> None:
    """As a whole: a record that is cut off would take the next one with it."""
    records = [*(_VALUE + value for value in values), *(_DIGEST + line for line in lines)]
    with naming_failures(_path(home, run)):
        write_file(_path(home, run), b"".join(record + b"\0" for record in records))


def _kept(home: str, run: int) -> tuple[list[bytes], list[bytes]]:
    """Values and lines of digests."""
    records = _read(_path(home, run), run).split(b"\0")[:-1]
    values, lines = ([one[1:] for one in records if one[:1] == kind] for kind in (_VALUE, _DIGEST))
    return values, lines


def _read(path: str, run: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise AverError(f"can't read {path}, to mask the secrets of run {run}: {error.strerror}") from None


def _path(home: str, run: int) -> str:
    return os.path.join(home, "env", f"{run}.secrets")


def _env_path(home: str, run: int) -> str:
    return os.path.join(home, "env", f"{run}.env")


def _key_path(home: str) -> str:
    return os.path.join(home, "env", "key")

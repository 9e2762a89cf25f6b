"""A function call as a job, of an executor or of a flow: its files, its command, its pickled form."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType

from aver.calls import forkserver, program
from aver.calls.files import Reference, dump, pickler, write_imports
from aver.durable_files import naming_failures
from aver.engines.registry import find_engine
from aver.errors import UsageError
from aver.home import Home
from aver.model.job import Argv, JobSpec
from aver.ownership import make_folder


def calls_folder(home: Home, engine: str, name: str) -> str:
    """The folder of an executor's files, which its jobs can read and write; made if it is missing."""
    registered = find_engine(engine)
    shared = None if registered is None or registered.shared_folder is None else registered.shared_folder(home)
    home.prepare()
    base = home.path if shared is None else shared
    with naming_failures(base / "calls"):
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_folder(os.fspath(base / "calls"))
        make_folder(os.fspath(base / "calls" / name))
    return os.fspath(base / "calls" / name)


def command_words(path: str, call: str) -> tuple[str, ...]:
    """The command of the job that makes this call of the file."""
    return (sys.executable, "-P", os.path.abspath(program.__file__), path, call)


def server_words(folder: str, modules: Sequence[str], alike: str) -> tuple[str, ...]:
    """The command of a server of warm calls that has these modules; one for all calls whose `alike` is the same.

    `alike` says all else that such calls share: their environment, what they ask for. The file is durable.
    """
    parts = (sys.version, sys.executable, sys.path, modules, alike)
    name = hashlib.sha256(repr(parts).encode(errors="surrogateescape")).hexdigest()[:24]
    path = os.path.join(folder, f"{name}.warm")
    with naming_failures(path):
        if not os.path.exists(path):
            write_imports(path, list(modules))
    return (sys.executable, "-P", os.path.abspath(forkserver.__file__), path)


def imports_of_main() -> tuple[str, ...]:
    """The modules that the caller's script or notebook has imported, or has imported something from."""
    found = set()
    for value in vars(sys.modules["__main__"]).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        module = sys.modules.get(name) if isinstance(name, str) else None
        if name not in ("__main__", "builtins", "aver") and getattr(module, "__spec__", None) is not None:
            found.add(str(name))
    return tuple(sorted(found))


def reference_of(spec: JobSpec) -> Reference | None:
    """The call that a stored job makes; None if it makes none."""
    command = spec.command
    if not isinstance(command, Argv) or len(command.args) < 5 or Path(command.args[2]).name != "program.py":
        return None
    return os.path.dirname(command.args[3]), command.args[4]


def pickled_call(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    refer: Callable[[object], Reference | None],
) -> bytes:
    """The call pickled; `refer` says what stands for the result of another. UsageError, and what pickling raises."""
    data = dump((function, tuple(args), dict(kwargs)), refer)
    if pickler() is pickle.Pickler and b"__main__" in data:
        raise UsageError(
            f"{function!r} or its arguments are of __main__, which the job can't import: "
            "pip install 'aver[executor]', or put them into a module"
        )
    return data


def fingerprint(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    refer: Callable[[object], Reference | None],
) -> str:
    """By which two calls with one key are compared: the function's name and code, and its arguments.

    `refer` says what stands for the result of another call. Where a function stands is no part of the fingerprint: a
    notebook's cell has another file name each time.
    """
    code = getattr(function, "__code__", None)
    named = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    parts = (named, "" if code is None else _code_text(code))
    found = hashlib.sha256(repr(parts).encode())
    found.update(dump((args, kwargs), refer))
    return found.hexdigest()[:32]


def _code_text(code: CodeType) -> str:
    constants = [_code_text(one) if isinstance(one, CodeType) else _constant(one) for one in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, constants))


def _constant(value: object) -> str:
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)

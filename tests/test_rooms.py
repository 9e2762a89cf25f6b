"""Who may import what, beyond what import-linter can say. Rooms are in DESIGN's words."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.cli.group import HELPS
from aver.client.slurm_bin import COMMANDS

SOURCE = Path(__file__).resolve().parent.parent / "src" / "aver"
MODULES = sorted(SOURCE.rglob("*.py"))
IO_AND_CLOCK = {
    "asyncio",
    "io",
    "os",
    "pathlib",
    "random",
    "select",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "time",
}
PURE = ("model/", "judge/", "plan/", "render/", "coordinator/state/")
EDGES = {
    "coordinator/commit_thread.py",  # the top of a thread: whoever waits for it must hear of it
    "cli/main.py", "coordinator/__main__.py", "coordinator/background.py", "coordinator/requests/dispatch.py",
    "calls/user_code.py",
}  # fmt: skip
SHIPPED = {"local", "slurm"}
ENGINE_NAMES = SHIPPED | {"allocation"}
ENGINE_CONSTANTS = {"LOCAL", "SLURM", "ALLOCATION"}
MOST_MODULES = 20
MOST_LINES = 500
MOST_LINES_OF_NINE_IN_TEN = 350
WORDS_OF_THE_FIELD = {"packing", "masking", "encoding", "accounting"}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def calls_of_os(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os"}


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path).startswith(PURE)], ids=name_of)
def test_pure_rooms_have_no_io_and_no_clock(path: Path) -> None:
    """No module of a pure room imports anything that reads the world."""
    imported = set(imports_of(path))
    if calls_of_os(path) <= {"strerror", "fsencode", "fsdecode"}:  # texts, no more
        imported -= {"os"}
    assert not {name for name in imported if name.split(".")[0] in IO_AND_CLOCK}


def test_pure_rooms_open_no_file_and_ask_for_no_time() -> None:
    """A pure room calls neither open() nor a now() of any kind: time is an argument."""
    for path in MODULES:
        if name_of(path).startswith(PURE):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    called = ast.unparse(node.func)
                    assert called not in ("open", "input", "print"), f"{path}:{node.lineno}"
                    assert not called.endswith((".now", ".utcnow", ".today")), f"{path}:{node.lineno}"


def test_only_the_store_imports_sqlite3() -> None:
    """Every other room reads and writes through the store."""
    users = {name_of(path).split("/")[0] for path in MODULES if "sqlite3" in set(imports_of(path))}
    assert users <= {"store"}


def test_tricks_for_fast_starts_are_in_one_module() -> None:
    """CPython's private modules and a TYPE_CHECKING of our own are in `fast_start`, with what they save."""
    for path in MODULES:
        if name_of(path) == "fast_start.py":
            continue
        assert not {one for one in imports_of(path) if re.match("_[a-z]", one)}, path
        assert "TYPE_CHECKING = False" not in path.read_text(), path


def test_a_bug_is_caught_only_at_the_outermost_edges() -> None:
    """`except Exception` and its like hide bugs; only an edge may turn a bug into a sentence."""
    for path in MODULES:
        if name_of(path) in EDGES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "everything"
                reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
                is_wide = caught in ("everything", "Exception", "BaseException")
                assert reraises or not is_wide, f"{path}:{node.lineno}: catches {caught}"


def test_only_engines_and_settings_know_the_names_of_engines() -> None:
    """Every other room asks what an engine can do: no comparison with a name, no list of names."""
    for path in MODULES:
        if name_of(path).startswith(("engines/", "conformance/")) or name_of(path) == "config.py":
            continue  # what conformance compares are targets, not engines
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare | ast.MatchValue):
                words = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                named = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & ENGINE_CONSTANTS
                named |= words & ENGINE_NAMES if "engine" in ast.unparse(node) else set()
                assert not named, f"{path}:{node.lineno}: {ast.unparse(node)}"
            elif isinstance(node, ast.List | ast.Tuple):
                words = {one.value for one in node.elts if isinstance(one, ast.Constant)}
                assert not words >= SHIPPED, f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_no_room_has_a_name_that_says_nothing() -> None:
    """A reader finds the room by its name."""
    empty_names = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert not [path for path in MODULES if path.stem in empty_names or path.parent.name in empty_names]


def lengths() -> dict[str, int]:
    return {name_of(path): len(path.read_text().splitlines()) for path in MODULES}


def test_no_package_is_a_crowd() -> None:
    """A package has at most 20 modules: more are packages that are missing."""
    crowds = Counter(path.parent for path in MODULES)
    assert not {name_of(folder): count for folder, count in crowds.items() if count > MOST_MODULES}


def test_module_names_are_nouns() -> None:
    """No module or package has the name of a participle; some are words of the field."""
    parts = {name for path in MODULES for name in (path.stem, path.parent.name)}
    assert not {name for name in parts if re.search(r"(^|_)\w{2,}ing$", name)} - WORDS_OF_THE_FIELD


def test_no_file_is_long() -> None:
    """No module has more than 500 lines, and nine of ten have at most 350."""
    by_length = sorted(lengths().values())
    assert not {name: length for name, length in lengths().items() if length > MOST_LINES}
    assert by_length[len(by_length) * 9 // 10] <= MOST_LINES_OF_NINE_IN_TEN


def test_only_one_module_makes_files_durable() -> None:
    """fsync and rename are called in `durable_files` alone; `witness/build` imports nothing of Aver."""
    moves = {"fsync", "fdatasync", "replace", "rename", "renames"}
    users = {name_of(path) for path in MODULES if calls_of_os(path) & moves}
    assert users == {"durable_files.py"}


def test_only_the_coordinators_program_imports_the_coordinator() -> None:
    """Every other room reaches it through its socket."""
    users = {name_of(path).split("/")[0] for path in MODULES if any(is_coordinator(one) for one in imports_of(path))}
    assert users == {"coordinator"}


def is_coordinator(module: str) -> bool:
    return f"{module}.".startswith("aver.coordinator.")


@pytest.mark.parametrize("name", sorted({*HELPS, *COMMANDS}))
def test_every_command_has_a_test_file_of_its_name(name: str) -> None:
    """`test_NAME.py`, or a small family `test_NAME_*.py`: who changes a command finds its tests by its name."""
    tests = Path(__file__).parent
    assert [*tests.glob(f"*/test_{name}.py"), *tests.glob(f"*/test_{name}_*.py")]

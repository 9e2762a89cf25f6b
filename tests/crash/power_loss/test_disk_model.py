"""The model loses what a disk may lose, keeps what was synced, and so finds a writer that leaves a sync out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from power_loss.disk import Disk, Tree
from power_loss.programs import first_wrong, record_program
from power_loss.states import State, choose, survivors, trees
from power_loss.trace import Kind, Op, parse, record_of_mark

NEW = b"n" * 1000
WRITERS = {
    "whole": """
        fd = os.open(root / "a.tmp", os.O_WRONLY | os.O_CREAT); os.write(fd, new); os.fsync(fd); os.close(fd)
        os.rename(root / "a.tmp", root / "a"); sync(root)""",
    "file not synced": """
        fd = os.open(root / "a.tmp", os.O_WRONLY | os.O_CREAT); os.write(fd, new); os.close(fd)
        os.rename(root / "a.tmp", root / "a"); sync(root)""",
    "folder not synced": """
        fd = os.open(root / "a.tmp", os.O_WRONLY | os.O_CREAT); os.write(fd, new); os.fsync(fd); os.close(fd)
        os.rename(root / "a.tmp", root / "a")""",
    "synced after the rename": """
        fd = os.open(root / "a.tmp", os.O_WRONLY | os.O_CREAT); os.write(fd, new)
        os.rename(root / "a.tmp", root / "a"); os.fsync(fd); sync(root)""",
    "written in place": """
        fd = os.open(root / "a", os.O_WRONLY); os.write(fd, new); os.fsync(fd); sync(root)""",
    "folder of the folder not synced": """
        os.mkdir(root / "b"); fd = os.open(root / "b" / "c", os.O_WRONLY | os.O_CREAT); os.write(fd, new)
        os.fsync(fd); sync(root / "b"); os.unlink(root / "a"); os.link(root / "b" / "c", root / "a")""",
}
PROGRAM = """
def sync(folder):
    fd = os.open(folder, os.O_RDONLY); os.fsync(fd); os.close(fd)
old, new = b"o" * 600, b"n" * 1000
fd = os.open(root / "a", os.O_WRONLY | os.O_CREAT); os.write(fd, old); os.fsync(fd); os.close(fd); sync(root)
done("old")
def write():{writer}
write()
done("new")
"""


def _wrong(tree: Tree, done: set[str]) -> str | None:
    """A file that is replaced is the old one or the new one, and the new one when that was said."""
    found = tree["a"].data if "a" in tree else None
    allowed = {"new": {NEW}, "old": {b"o" * 600, NEW}}.get("new" if "new" in done else "old" if "old" in done else "")
    return f"{found!r:.60} after {done}" if allowed is not None and found not in allowed else None


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_that_leaves_a_sync_out_is_found(tmp_path: Path, writer: str) -> None:
    """And one that leaves none out is not."""
    ops = record_program(tmp_path, PROGRAM.format(writer=WRITERS[writer]))
    found = first_wrong(ops, _wrong)
    assert (found is None) == (writer == "whole"), found


def _all_states(ops: list[Op], count: int = 400) -> list[Tree]:
    disk = Disk()
    for op in ops:
        disk.apply(op)
    return [survivors(disk, random.Random(number)) for number in range(count)]


CREATE = Op(Kind.CREATE, 5, 0o600, "a")
SYNC_ROOT = Op(Kind.SYNC, 1, 0, ".")


def test_a_write_is_torn_at_512_and_at_4096() -> None:
    """Any of its sectors may be missing; zeros stand where none was before."""
    data = bytes(range(1, 17)) * 512  # 8,192 bytes
    found = {
        tree["a"].data for tree in _all_states([CREATE, SYNC_ROOT, Op(Kind.WRITE, 5, 0, data=data)]) if "a" in tree
    }
    assert {b"", data, data[:4096], data[:512]} <= found
    assert bytes(4096) + data[4096:] in found
    assert bytes(512) in {one[:512] for one in found if one[512:1024] == data[512:1024]}
    assert all(
        one[at : at + 512] in (data[at : at + 512], bytes(512), b"") for one in found for at in range(0, 8192, 512)
    )


def test_what_was_synced_stays() -> None:
    """Also what a later write, which is not synced, does not touch."""
    ops = [CREATE, Op(Kind.WRITE, 5, 0, data=b"x" * 512), Op(Kind.SYNC, 5), SYNC_ROOT]
    ops.append(Op(Kind.WRITE, 5, 512, data=b"y" * 512))
    found = {tree["a"].data for tree in _all_states(ops)}
    assert found == {b"x" * 512, b"x" * 512 + b"y" * 512, b"x" * 512 + bytes(512)}


def test_a_truncation_may_be_lost_alone() -> None:
    """The write after it survives, and behind it the old bytes."""
    ops = [CREATE, Op(Kind.WRITE, 5, 0, data=b"x" * 1024), Op(Kind.SYNC, 5), SYNC_ROOT]
    ops += [Op(Kind.TRUNCATE, 5, 0), Op(Kind.WRITE, 5, 0, data=b"y" * 512)]
    found = {tree["a"].data for tree in _all_states(ops)}
    assert {b"", b"y" * 512, b"x" * 1024, b"y" * 512 + b"x" * 512} <= found


def test_a_rename_is_all_or_nothing() -> None:
    """The file has its old name or its new one; never both, never none once its first name was synced."""
    ops = [CREATE, SYNC_ROOT, Op(Kind.RENAME, 0, 0, "a", "b")]
    assert {tuple(tree) for tree in _all_states(ops)} == {("a",), ("b",)}


def test_a_removed_file_may_come_back_and_a_folder_take_all_with_it() -> None:
    """As long as the folder above was not synced."""
    ops = [Op(Kind.MKDIR, 6, 0, "d"), Op(Kind.CREATE, 5, 0o600, "d/a"), Op(Kind.SYNC, 6, 0, "d")]
    assert {tuple(tree) for tree in _all_states(ops)} == {(), ("d", "d/a")}
    ops += [SYNC_ROOT, Op(Kind.UNLINK, 0, 0, "d/a")]
    assert {tuple(tree) for tree in _all_states(ops)} == {("d",), ("d", "d/a")}
    ops.append(Op(Kind.SYNC, 6, 0, "d"))
    assert {tuple(tree) for tree in _all_states(ops)} == {("d",)}


def test_a_number_of_a_file_that_is_gone_is_another_file() -> None:
    """File systems give inode numbers again at once."""
    ops = [CREATE, Op(Kind.WRITE, 5, 0, data=b"old"), Op(Kind.SYNC, 5), SYNC_ROOT, Op(Kind.UNLINK, 0, 0, "a")]
    ops += [Op(Kind.CREATE, 5, 0o600, "b"), Op(Kind.WRITE, 5, 0, data=b"new"), Op(Kind.SYNC, 5)]
    for tree in _all_states(ops):
        assert {path: node.data for path, node in tree.items()}.items() <= {"a": b"old", "b": b"new"}.items()


def test_the_log_index_of_sqlite_is_not_on_the_disk() -> None:
    """Nor does its number stay that of an earlier file."""
    ops = [CREATE, Op(Kind.UNLINK, 0, 0, "a"), Op(Kind.CREATE, 5, 0o600, "a.db-shm"), Op(Kind.WRITE, 5, 0, data=b"x")]
    assert {node.data for tree in _all_states(ops) for node in tree.values()} <= {b""}
    assert {path for tree in _all_states(ops) for path in tree} == {"a"}


def test_a_seed_gives_the_same_states_again() -> None:
    """And so does the text of each state."""
    ops = [CREATE, *(Op(Kind.WRITE, 5, 512 * at, data=bytes([at]) * 512) for at in range(50))]
    chosen = choose(ops, 80, 3)
    assert chosen == choose(ops, 80, 3) != choose(ops, 80, 4)
    first = list(trees(ops, chosen))
    assert first == list(trees(ops, chosen))
    assert [next(trees(ops, [State.parse(str(state))])) for state in chosen] == first


def test_every_position_has_its_states() -> None:
    """As many states for each as for any other, when there are enough."""
    ops = [CREATE, *(Op(Kind.WRITE, 5, at, data=b"x") for at in range(9))]
    cuts = [state.cut for state in choose(ops, 33, 1)]
    assert {cut: cuts.count(cut) for cut in range(11)} == dict.fromkeys(range(11), 3)


def test_a_trace_that_is_cut_off_is_refused() -> None:
    """A trace proves nothing if something of it is missing."""
    record = record_of_mark({"done": 1})
    assert parse(record, "/x")[0].mark == {"done": 1}
    with pytest.raises(ValueError, match="middle"):
        parse(record[:-1], "/x")

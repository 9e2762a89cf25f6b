"""What is known of events that were committed and that the store has not got any more. Light: all that read it ask.

`committed`, a file beside the store, says how far it ever came: 8 hex digits of the store's id, the number of the
newest event, the next number of a run.
"""

from __future__ import annotations

import os

LOSSES = "lost"  # file of the home: a line for each time that the store had lost something
LONGEST_BYTES = 1 << 20
NAME = "committed"
HIGHEST = 1 << 53  # no store has come so far
_SIZE = 49
_HEX = b"0123456789abcdef"


def parse(data: bytes) -> tuple[str, int, int] | None:
    """The three; None if nobody's count looks like that."""
    home_id, seq, next_id = data[:8], data[9:28], data[29:48]
    if len(data) != _SIZE or data[8:9] + data[28:29] + data[48:] != b"  \n":
        return None
    if home_id.strip(_HEX) or not seq.isdigit() or not next_id.isdigit():
        return None
    found = home_id.decode(), int(seq), int(next_id)
    return found if max(found[1:]) < HIGHEST else None


def read_count(database: str) -> int:
    """The number of the newest event that was ever committed to a store at this path; 0: not known.

    Read it before the store, which is ahead of it.
    """
    fd = -1
    try:
        path = os.path.join(os.path.dirname(database), NAME)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        found = parse(os.pread(fd, 4096, 0))
    except OSError:
        return 0
    finally:
        if fd >= 0:
            os.close(fd)
    return 0 if found is None else found[1]


def read_losses(home: str) -> list[str]:
    """What was said of losses of the store, the last one last. Somebody who has read it removes the file."""
    try:
        fd = os.open(os.path.join(home, LOSSES), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return file.read(LONGEST_BYTES).decode(errors="replace").splitlines() if file.seekable() else []
    except OSError:
        return []


def loss_words(home: str, committed: int, last_seq: int) -> str | None:
    """A line for whoever reads the store, if it lacks something.

    `committed`: by `read_count`, before the store was opened. Until the next coordinator begins, it alone tells; that
    one looks what runs, and says all that it knows.
    """
    if read_losses(home):
        return "the store of this home has lost events: `aver status` says which"
    if committed > last_seq:
        return f"the store of this home has lost events, of {committed} that were committed: see `aver doctor`"
    return None

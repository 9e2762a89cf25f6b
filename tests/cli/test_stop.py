"""`aver stop`."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from product import Product, wait_for_file

from live_home import is_alive


def test_stop_says_so_when_the_store_is_closed(aver: Product, aver_home: Path) -> None:
    """Who copies the store after it has all that was shown in one file."""
    for number in (1, 2, 3):
        aver("run", "--", "true")
        pid = aver("stop", "--json").document["pid"]
        assert not is_alive(pid)
        shutil.copy(aver_home / "aver.db", aver.folder / f"copy-{number}")
        with contextlib.closing(sqlite3.connect(aver.folder / f"copy-{number}")) as copy:
            assert copy.execute("SELECT state FROM jobs WHERE id = ?", (number,)).fetchall() == [("COMPLETED",)]


def test_stop_leaves_jobs_running(aver: Product) -> None:
    """The next command finds them again."""
    number = aver.submit("--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.05; done")
    wait_for_file(aver.folder / "started")
    assert aver("stop").status == 0
    (aver.folder / "go").touch()
    assert aver("watch", str(number), "-e").status == 0

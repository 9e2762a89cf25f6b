"""A folder in which every look hangs, as on a network disk whose server is gone: FUSE without anybody who answers."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

NO_SETUID_NO_DEVICES = 6
DETACH = 2


@contextlib.contextmanager
def hanging(folder: Path) -> Iterator[None]:
    """Whoever looks into the folder waits until this is over, and is told then that nobody is there."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"needs FUSE: {error.strerror}")
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"hanging", os.fsencode(folder), b"fuse", NO_SETUID_NO_DEVICES, options):
        os.close(device)
        pytest.skip(f"needs the right to mount: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(os.fsencode(folder), DETACH)
        os.close(device)

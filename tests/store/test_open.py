"""Telling file systems apart, and SQLite's errors as sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.store.open import is_network_magic, is_on_network


@pytest.mark.parametrize("magic", [0x6969, 0xFF534D42, 0xFE534D42, 0x0BD00BD0, 0x47504653, 0x65735546])
def test_network_file_systems_are_known(magic: int) -> None:
    """NFS, CIFS, SMB2, Lustre, GPFS and FUSE, also where the number comes sign-extended."""
    assert is_network_magic(magic)
    assert is_network_magic(magic - (1 << 32) if magic >> 31 else magic)


@pytest.mark.parametrize("magic", [0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630])
def test_local_file_systems_are_known(magic: int) -> None:
    """ext4, XFS, btrfs, tmpfs and overlayfs."""
    assert not is_network_magic(magic)


def test_a_local_folder_is_local_and_an_unknown_one_is_not_trusted(tmp_path: Path) -> None:
    """/proc is never on a network; a folder that can't be asked counts as one that is."""
    assert not is_on_network(Path("/proc"))
    assert is_on_network(tmp_path / "gone")

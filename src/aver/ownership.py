"""Whose a folder is: Aver trusts what only this user, or root, can have put where it lies.

The check of a home, for every client and for the coordinator, before anything in it is read or written. Imports
little: every command pays for it, with one lstat for each folder above the home and for each entry in it.
"""

from __future__ import annotations

import os
import stat
import sys

from aver.errors import CantWriteError, UsageError
from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = 0
MOST_LINKS = 40  # as the kernel follows
_ACL = "system.posix_acl_access"


class _Place:
    """A folder of Aver's own, and how a sentence names it. `mark`: the entry without which it is not Aver's yet."""

    def __init__(self, path: str, name: str, setting: str, mark: str) -> None:
        self.path = path
        self.name = name
        self.setting = setting
        self.mark = mark

    def is_strange(self, names: list[str]) -> bool:
        """Whether these entries say that the folder is used for something else."""
        return bool(names and self.mark) and self.mark not in names

    def cant_use(self, why: str, first: str = "") -> str:
        return (
            f"{self.name} {self.path} can't be used: {why}; {first}set {self.setting} to a folder that only you "
            "can write"
        )

    def has_other_files(self) -> UsageError:
        return UsageError(
            f"{self.setting} {self.path} has other files in it and others can read it; "
            "choose an empty folder, or chmod 700 it first"
        )


def check_home(home: str) -> None:
    """Refuse a home that another user could have put there or written in: UsageError, one line.

    A missing home is fine. One that others can write, and in which everything is ours, is closed to them.
    """
    _check(_home(home))


def make_home(home: str) -> None:
    """Make the home and the missing folders above it, each with mode 0700 whatever the umask.

    UsageError as `check_home`, also for a folder with other files in it that others can read. OSError if a folder
    can't be made.
    """
    _make(_home(home))


def check_shared(folder: str) -> None:
    """As `check_home`, of the folder that a home shares with the nodes of a cluster."""
    _check(_shared(folder))


def make_shared(folder: str) -> None:
    """As `make_home`, of the folder that a home shares with the nodes of a cluster."""
    _make(_shared(folder))


def check_public(path: str, name: str, setting: str) -> None:
    """Refuse a folder, open to all for reading, that is not root's or ours, or that others can write: UsageError."""
    place = _Place(path, name, setting, "")
    found = _find(place)
    if found.info is None:
        return
    if not stat.S_ISDIR(found.info.st_mode):
        raise UsageError(f"{setting} {path} is not a folder")
    if not _is_trusted(found.info.st_uid):
        raise UsageError(place.cant_use(f"it belongs to {_user(found.info.st_uid)}"))
    if others_can_write(found.path, found.info):
        raise UsageError(place.cant_use(f"others can write it (mode {stat.S_IMODE(found.info.st_mode):04o})"))


def _home(path: str) -> _Place:
    return _Place(path, "the home", "AVER_HOME", "aver.db")


def _shared(path: str) -> _Place:
    return _Place(path, "the cluster's folder", "slurm.folder", "")


def _check(place: _Place) -> None:
    _check_found(place, _find(place))


def _make(place: _Place) -> None:
    found = _find(place)
    while found.info is None:
        make_folder(found.path)
        found = _find(place)
    _check_found(place, found)
    if found.info.st_mode & 0o077:
        if place.is_strange(os.listdir(found.path)):
            raise place.has_other_files()
        os.chmod(found.path, 0o700)


def make_folder(path: str) -> None:
    """Make a folder with mode 0700 whatever the umask; one that is there is left as it is. OSError if that fails.

    Its name is durable when this returns: what is in it is lost with it. Where the folder above can be written and not
    be read, it can't be synced.
    """
    from aver.durable_files import sync_folder  # only who makes a folder pays for it

    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    os.chmod(path, 0o700)
    try:
        sync_folder(os.path.dirname(path))
    except PermissionError:
        pass


def check_peer(credentials: bytes, home: str) -> None:
    """Refuse a coordinator of another user: `credentials` are SO_PEERCRED's of the connection, before it is used."""
    uid = int.from_bytes(credentials[4:8], sys.byteorder)
    if uid != os.geteuid():
        raise UsageError(
            f"who answers in the home {home} is {_user(uid)}, not you: nothing was sent; "
            "end that process, or set AVER_HOME to a folder that only you can write"
        )


def others_can_write(path: str, info: os.stat_result) -> bool:
    """Whether somebody else may write it. A group that has this user as its only member is nobody else."""
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and not _is_own_group(path, info.st_gid)


class _Found:
    """Where a path leads. `info` None: there is nothing yet at `path`, which is to be made next."""

    def __init__(self, path: str, info: os.stat_result | None) -> None:
        self.path = path
        self.info = info


def _find(place: _Place) -> _Found:
    """Go to the home folder by folder and link by link; refuse what somebody else could replace on the way."""
    names = place.path.split("/")[::-1]
    here, info, links = "/", os.lstat("/"), 0
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            info = os.lstat(here)
            continue
        below = os.path.join(here, name)
        try:
            found = os.lstat(below)
        except FileNotFoundError:
            _check_folder(place, here, info, None)
            return _Found(below, None)
        except OSError as error:
            raise CantWriteError(place.cant_use(f"{below}: {error.strerror}")) from None
        _check_folder(place, here, info, found)
        if not stat.S_ISLNK(found.st_mode):
            here, info = below, found
            continue
        links += 1
        if links > MOST_LINKS:
            raise CantWriteError(place.cant_use(f"{below}: too many symbolic links"))
        target = os.readlink(below)
        names += target.split("/")[::-1]
        if target.startswith("/"):
            here, info = "/", os.lstat("/")
    return _Found(here, info)


def _check_folder(place: _Place, folder: str, info: os.stat_result, entry: os.stat_result | None) -> None:
    """Refuse a folder in which somebody else could replace this entry, or make it once it is missing."""
    if not _is_trusted(info.st_uid):
        raise UsageError(place.cant_use(f"{folder} belongs to {_owner(info.st_uid)}"))
    if not others_can_write(folder, info):
        return
    if not info.st_mode & stat.S_ISVTX:
        text = f"others can rename what is in {folder} (mode {stat.S_IMODE(info.st_mode):04o})"
        raise UsageError(place.cant_use(text, f"chmod go-w {folder}, or "))
    if entry is not None and not _is_trusted(entry.st_uid):
        raise UsageError(place.cant_use(f"its entry in {folder} belongs to {_owner(entry.st_uid)}"))


def _check_found(place: _Place, found: _Found) -> None:
    path, info = found.path, found.info
    if info is None:
        return
    if not stat.S_ISDIR(info.st_mode):
        raise UsageError(f"{place.setting} {place.path} is not a folder")
    if info.st_uid != os.geteuid():
        raise UsageError(place.cant_use(f"it belongs to {_owner(info.st_uid)}"))
    names = []
    for entry, entry_info in _entries(place, path):
        names.append(os.path.basename(entry))
        _check_owner(place, entry, entry_info)
    if names and others_can_write(path, info):
        _close(place, path, info, names)


def _close(place: _Place, path: str, info: os.stat_result, names: list[str]) -> None:
    """Close an open home to others, if everything in it is ours and was so all the time; else leave it as it was."""
    if place.is_strange(names):
        raise place.has_other_files()
    try:
        os.chmod(path, 0o700)  # first, so that nobody puts in something while we look
    except OSError as error:
        raise UsageError(place.cant_use(f"others can write it, and it can't be closed: {error.strerror}")) from None
    try:
        _check_tree(place, path)
    except UsageError:
        os.chmod(path, stat.S_IMODE(info.st_mode))
        raise


def _check_tree(place: _Place, folder: str) -> None:
    for entry, info in _entries(place, folder):
        _check_owner(place, entry, info)
        is_file = stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)
        if is_file and others_can_write(entry, info):
            text = f"others could write {entry} while the folder above was open to them"
            raise UsageError(place.cant_use(text, f"see that nobody did, and chmod -R go-w {place.path}; or "))
        if stat.S_ISDIR(info.st_mode):
            _check_tree(place, entry)


def _entries(place: _Place, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """What is in it now; entries that go away meanwhile, as a coordinator's do, are left out."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise UsageError(place.cant_use(f"{folder}: {error.strerror}")) from None
    for name in names:
        path = os.path.join(folder, name)
        try:
            yield path, os.lstat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(place.cant_use(f"{path}: {error.strerror}")) from None


def _check_owner(place: _Place, entry: str, info: os.stat_result) -> None:
    if info.st_uid != os.geteuid():
        raise UsageError(
            f"{place.name} {place.path} can't be used: {entry} belongs to {_user(info.st_uid)}, not to you; "
            f"remove it if you did not put it there, or set {place.setting} to another folder"
        )


def _is_trusted(uid: int) -> bool:
    return uid in (ROOT, os.geteuid()) or _is_unmapped_root(uid)


def _is_unmapped_root(uid: int) -> bool:
    """Whether root's files may look like this uid's: in a user namespace without a root, all strangers look alike."""
    try:
        with open("/proc/sys/kernel/overflowuid") as file:
            if uid != int(file.read()):
                return False
        with open("/proc/self/uid_map") as file:
            return all(int(line.split()[0]) > ROOT for line in file)
    except (OSError, ValueError, IndexError):
        return False


def _is_own_group(path: str, gid: int) -> bool:
    """Whether the group is root's or this user's own, with nobody else in it, and no list names anybody else."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
        has_list = _ACL in os.listxattr(path, follow_symlinks=False)
    except (KeyError, OSError):
        return False
    is_private = gid == ROOT or (user.pw_gid == gid and group.gr_name == user.pw_name)
    return is_private and not has_list and set(group.gr_mem) <= {user.pw_name, "root"}


def _owner(uid: int) -> str:
    """Whose it is, and not ours. Root may have come by sudo, or to a file system that gives root no rights."""
    if os.geteuid() != ROOT:
        return f"{_user(uid)}, not to you"
    return f"{_user(uid)}, not to root (run this without sudo, as that user; root's files on NFS may be nobody's)"


def _user(uid: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"

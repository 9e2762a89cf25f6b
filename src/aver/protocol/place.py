"""Where the home is, who asks, and whose version answers, without the imports of `aver.home` and `getpass`."""

from __future__ import annotations

import os

from aver.version import __version__


def home_folder() -> str:
    """AVER_HOME, as `aver.home` finds it."""
    named = os.environ.get("AVER_HOME")
    if named:
        return os.path.abspath(named)
    state = os.environ.get("XDG_STATE_HOME")
    base = state if state and os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "aver")


def has_other_version(home: str) -> bool:
    """Whether the text of the home's lock names a coordinator of another version of Aver. No text: nothing is known."""
    try:
        with open(os.path.join(home, "lock"), "rb") as file:
            text = file.read(4096)
    except OSError:
        return False
    return bool(text) and f'"version": "{__version__}"'.encode() not in text


def user_name() -> str:
    """The name of the calling user, as `getpass.getuser` finds it."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if os.environ.get(variable):
            return os.environ[variable]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"

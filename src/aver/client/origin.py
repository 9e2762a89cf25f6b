"""The origin of a submission: user, host, folder and inherited environment, read from this process."""

from __future__ import annotations

import getpass
import os
import resource
import socket

from aver.errors import UsageError
from aver.model.job import Origin


def user_name() -> str:
    """Return the name of the calling user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def origin_of(
    typed: tuple[str, ...], secrets: tuple[str, ...], folder: str | None = None, file: str | None = None
) -> Origin:
    """Collect the origin of a submission. `folder` defaults to the current one; `file` is the flow's file."""
    if folder is None:
        try:
            folder = os.getcwd()
        except OSError as error:
            raise UsageError(
                f"the folder that this was typed in is gone ({error.strerror}); cd to another one"
            ) from None
    umask = os.umask(0o077)
    os.umask(umask)
    numbers = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
    return Origin(
        user=user_name(),
        uid=os.getuid(),
        host=socket.gethostname(),
        folder=folder,
        umask=umask,
        limits=tuple((number, *resource.getrlimit(number)) for number in numbers),
        secrets=secrets,
        command=typed,
        file=None if file is None else os.path.join(folder, file),
    )

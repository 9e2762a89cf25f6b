"""What is said, once in a home, of jobs that a logout would end. Imports little: every submission pays for it."""

from __future__ import annotations

import os

from aver.durable_files import replace_file
from aver.home import Home

TOLD = "logout-told"


def logout_notice(home: Home, engine: str) -> str | None:
    """The sentence, the first time that it is true of jobs of this home on this engine; None otherwise."""
    told = home.path / TOLD
    if not os.path.isdir("/run/systemd/system") or told.exists():
        return None
    from aver.engines.local.login import ends_at_logout, has_linger, may_linger  # only where a logout may end jobs
    from aver.engines.registry import capabilities_of

    pid = home.holder().get("pid")
    if not isinstance(pid, int) or capabilities_of(engine).outlives_machine:
        return None
    why = ends_at_logout(pid)
    if why is None:
        return None
    try:
        replace_file(told, b"", 0o600)
    except OSError:
        return None  # it would be said every time
    if has_linger():
        return f"jobs end when you log out: {why.what}; {why.remedy}"
    remedy = "`aver service enable`" if may_linger() else why.remedy
    return f"jobs end when you log out: {why.what}; {remedy} lets them go on"

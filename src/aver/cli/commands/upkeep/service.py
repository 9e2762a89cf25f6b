"""`aver service`: have the coordinator start by itself, at boot and after a crash."""

from __future__ import annotations

import click

from aver.cli.session import Session
from aver.client.service import Service, disable, enable, find_service

VERBS = {"enable": enable, "disable": disable, "status": find_service}


@click.command("service")
@click.argument("verb", metavar="enable|disable|status", type=click.Choice(tuple(VERBS)))
def command(verb: str) -> int:
    """Start the coordinator at boot and after a crash, so that pending jobs continue by themselves.

    With systemd: a unit of your own service manager, and lingering, so that jobs also outlive your logout. Without
    systemd: a line of cron. Exits 1 if the coordinator is not started by itself after a boot, and says what is
    missing.

    \b
    Examples:
      aver service enable
      aver service status
      aver service disable
    """
    session = Session()
    found = VERBS[verb](session.home)
    for line in _lines(found):
        session.output.line(line)
    return 0 if verb == "disable" or (found.is_enabled and not found.missing) else 1


def _lines(found: Service) -> list[str]:
    if found.kind == "cron":
        return [f"cron: {found.name}" if found.is_enabled else "cron: not enabled"]
    enabled = "enabled" if found.is_enabled else "not enabled"
    active = ", runs" if found.is_active else ""
    return [f"systemd: {found.name} {enabled}{active}", *([found.missing] if found.missing else [])]

"""`aver schedule`: submit a flow or a script again and again, at times that cron's five fields name."""

from __future__ import annotations

import os
import time

import click

from aver.cli.output.table import Table, show_table
from aver.cli.output.views import moment, near_moment
from aver.cli.session import Session
from aver.client.schedules import add_schedule, read_progress, read_schedules, remove_schedule
from aver.client.service import find_service
from aver.errors import AverError, UsageError
from aver.spec.cron import next_time, parse_cron

HEADS = ("ID", "FILE", "WHEN", "NEXT", "LAST", "RUN", "NOTE")


@click.command("schedule")
@click.argument("words", metavar="[FILE WHEN | remove ID...]", nargs=-1)
@click.option("--overlap", is_flag=True, help="Submit even while the last run is not settled (default: skip).")
def command(words: tuple[str, ...], overlap: bool) -> None:
    """Submit a flow or a script at fixed times, or list and remove schedules.

    WHEN is cron's: minute hour day month weekday, or @hourly, @daily, @weekly, @monthly. FILE is read each time, with
    the environment and the folder of this command. After missed times, FILE is submitted once when a coordinator runs
    again; while the last run is not settled, times are skipped. The coordinator keeps running while there are
    schedules; `aver service enable` starts it after a reboot.

    \b
    Examples:
      aver schedule nightly.yaml "0 3 * * *"
      aver schedule report.sh "*/15 8-18 * * mon-fri"
      aver schedule
      aver schedule remove 1
    """
    session = Session()
    match words:
        case () | ("list",):
            _show(session)
        case ("remove", *numbers) if numbers:
            for number in numbers:
                if not number.isdigit() or not remove_schedule(session.home, int(number)):
                    raise UsageError(f"no schedule {number}; `aver schedule` lists them")
                session.output.line(f"schedule {number} removed; its runs stay")
            if session.home.has_coordinator():
                session.connect().close()  # it leaves when it has nothing to do
        case (file, when):
            _add(session, file, when, overlap)
        case _:
            raise UsageError('schedule: write it as  aver schedule FILE "0 3 * * *"  or  aver schedule remove ID')


def _add(session: Session, file: str, when: str, overlaps: bool) -> None:
    try:
        cron = parse_cron(when)
    except ValueError as error:
        raise UsageError(str(error)) from None
    from aver.spec.load import load  # YAML is heavy, and lists do not need it

    load(file)  # what is wrong with it is said now
    now = time.time()
    schedule = add_schedule(session.home, file, when, now, os.environ, overlaps)
    session.connect().close()
    session.output.line(f"schedule {schedule.id}: next at {moment(next_time(cron, now))}")
    try:
        stays = find_service(session.home).is_enabled
    except (AverError, OSError):
        stays = False
    if not stays:
        session.output.note(
            "after a reboot schedules wait for the next submission; `aver service enable` starts them at boot"
        )


def _show(session: Session) -> None:
    found = read_schedules(session.home)
    if not found:
        session.output.note('no schedules; `aver schedule FILE "0 3 * * *"` makes one')
        return
    show = near_moment if session.output.out_is_terminal else moment
    rows = []
    for one in found:
        done = read_progress(session.home, one)
        due = next_time(parse_cron(one.cron), done.due)
        last = "-" if done.due == one.created_at else show(done.due)
        rows.append((str(one.id), one.file, one.cron, show(due), last, str(done.run or "-"), done.note or "-"))
    show_table(session.output, Table(HEADS, tuple(rows), right=frozenset({0, 5}), wide=1))
    if not session.home.has_coordinator():
        session.output.note("no coordinator runs: schedules wait for the next submission, or for `aver service enable`")

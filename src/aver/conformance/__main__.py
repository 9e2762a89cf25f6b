"""Run the matrix of outcomes against a real Slurm, Aver's own commands, or any folder with such commands."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time

from aver.conformance.commands import Commands
from aver.conformance.home import open_commands
from aver.conformance.model import VERSIONS, Case, release
from aver.conformance.parser import all_cases
from aver.conformance.report import Report, as_json, as_table, as_tables, generated_part, release_of, summary
from aver.conformance.runner import run_cases
from aver.errors import AverError, UsageError


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="aver conformance", description=__doc__)
    parser.add_argument(
        "--against",
        action="append",
        metavar="slurm|local|FOLDER",
        help="slurm: the commands on PATH; local: those of `aver env`; or a folder with them. May be repeated "
        "(default: local)",
    )
    parser.add_argument("--case", action="append", metavar="GLOB", help="only the cases that match; may be repeated")
    parser.add_argument("--as", dest="user", default="", metavar="USER", help="as root: run the commands as this user")
    parser.add_argument(
        "--release",
        choices=[release(version) for version in VERSIONS],
        default="",
        metavar="RELEASE",
        help="local: the release of Slurm that the commands are of, such as 22.05 (default: the newest)",
    )
    parser.add_argument("--without", action="append", default=[], metavar="NEED", help="skip the cases that need this")
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="cases at a time (default: 80 for slurm, else 16)"
    )
    parser.add_argument(
        "--timeout", type=float, default=240, metavar="SECONDS", help="for all cases together (default: 240)"
    )
    parser.add_argument("--json", action="store_true", help="every cell as JSON")
    parser.add_argument("--all", action="store_true", help="show also the cells that are as expected")
    parser.add_argument("--tables", action="store_true", help="print what the commands printed, as rows of a case file")
    parser.add_argument("--list", action="store_true", help="list the cases and run nothing")
    parser.add_argument(
        "--page", action="store_true", help="print the generated part of docs/en/reference/conformance.md"
    )
    return parser.parse_args(arguments)


def chosen(globs: list[str] | None) -> list[Case]:
    """The cases whose names match; raises UsageError if there are none."""
    found = [case for case in all_cases() if not globs or any(fnmatch.fnmatch(case.name, glob) for glob in globs)]
    if not found:
        raise UsageError(f"conformance: no case is called {' or '.join(globs or [])}; --list shows them")
    return found


def report_on(commands: Commands, cases: list[Case], given: argparse.Namespace) -> Report:
    """Run the cases with the expectations of the release that the commands are of."""
    began = time.monotonic()
    version = commands.version()
    lacks = {**commands.missing_needs(), **{need: f"without {need}" for need in given.without}}
    at_once = given.jobs or (80 if commands.name == "slurm" else 16)
    outcomes = run_cases([case.at(release_of(version)) for case in cases], commands, lacks, at_once, given.timeout)
    return Report(commands.name, version, outcomes, time.monotonic() - began)


def main(arguments: list[str] | None = None) -> int:
    """0: every cell is as expected; 1: not; else the exit status of the error."""
    given = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        cases = chosen(given.case)
        if given.list:
            print("\n".join(f"{case.name:34} {case.shows}" for case in cases))
            return 0
        if given.page:
            print(generated_part())
            return 0
        user = given.user or (os.environ.get("AVER_SLURM_LAB_USER", "") if os.geteuid() == 0 else "")
        reports = []
        for against in given.against or ["local"]:
            with open_commands(against, user if against == "slurm" else given.user, given.release) as commands:
                reports.append(report_on(commands, cases, given))
    except AverError as error:
        print(f"aver {error}", file=sys.stderr)
        return error.exit_status
    if given.json:
        print(as_json(reports))
    elif given.tables:
        print("\n".join(as_tables(report) for report in reports), end="")
    else:
        print(as_table(reports, "all" if given.all else "wrong"))
    for report in reports:
        print(summary(report), file=sys.stderr)
    return 0 if all(report.holds for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())

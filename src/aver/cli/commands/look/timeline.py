"""`aver timeline`: each transition of a job with its evidence, through all attempts."""

from __future__ import annotations

import click

from aver.cli.explanation import events_of
from aver.cli.facts import jobs_facts
from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import Timeline, TransitionFacts
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.render.timeline import transitions


@click.command("timeline")
@click.argument("address", metavar="JOB", type=ADDRESS)
@json_option
def command(address: str, as_json: bool) -> None:
    """Show every state change of a job with its evidence.

    All attempts, in order: when, the state that it led to, who said it, and what it means. Below
    it are the source's own words.

    \b
    Examples:
      aver timeline 7
      aver timeline '3/train[seed=2]'
      aver timeline 7 --json
    """
    session = Session()
    session.refresh()
    job = session.find_job(address)
    session.mask([job.run])
    found = transitions(events_of(session, job), job.id)
    rows = tuple(
        TransitionFacts(
            one.told.at, one.told.attempt, one.state and one.state.value, one.told.source, one.told.what, one.told.said
        )
        for one in found
    )
    answer(session.output, Timeline(jobs_facts(session, [job])[0], rows), as_json)

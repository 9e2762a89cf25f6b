"""`aver docs`: the documentation in the terminal, and man pages made of the help."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from aver.cli.docs.page_view import terminal_lines
from aver.cli.docs.topics import LANGUAGES, SOURCE, find_topic, language_of, page_text, topics
from aver.cli.output.table import Table, show_table
from aver.cli.output.text import Output
from aver.errors import AverError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class TopicType(click.ParamType[str]):
    """A topic; a shell completes the short names, and the long ones after a slash."""

    name = "topic"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            known = topics(language_of(os.environ))
        except AverError:
            return []
        names = [(topic.name if "/" in incomplete else topic.short, topic.about) for topic in known]
        return [CompletionItem(name, help=about) for name, about in names if name.startswith(incomplete)]


@click.command("docs")
@click.argument("topic", required=False, type=TopicType())
@click.option("--list", "as_list", is_flag=True, help="Print only the names of the topics.")
@click.option(
    "--lang",
    "language",
    type=click.Choice(LANGUAGES),
    help="Language of the page (default: that of the locale, else English).",
)
@click.option("--man", "man_folder", metavar="FOLDER", help="Write man pages of all commands to FOLDER/man1.")
def command(topic: str | None, as_list: bool, language: str | None, man_folder: str | None) -> None:
    """Show a page of the documentation, or list the topics.

    On a terminal the page goes through $PAGER; elsewhere it is the Markdown of the page. A page that is not translated
    is shown in English.

    \b
    Examples:
      aver docs
      aver docs flow-format
      aver docs exit-statuses --lang zh
      aver docs upkeep | grep systemd
      aver docs --man ~/.local/share/man && man aver run
    """
    output = Output.standard()
    if sum((topic is not None, as_list, man_folder is not None)) > 1:
        raise UsageError("docs: give a topic, --list or --man, not two of them")
    if man_folder is not None:
        _write_man_pages(output, man_folder)
        return
    wanted = language or language_of(os.environ)
    known = topics(wanted)
    if as_list:
        for one in known:
            output.line(one.short)
    elif topic is None:
        show_table(output, Table(("TOPIC", "ABOUT"), tuple((one.short, one.about) for one in known)))
        output.note("`aver docs TOPIC` shows a page")
    else:
        _show(output, topic, wanted)


def _show(output: Output, topic: str, language: str) -> None:
    from aver.cli.group import HELPS

    found = find_topic(topic, topics(language), HELPS)
    text = page_text(found.name, language)
    if text is None:
        output.note(f"{found.short} is not translated yet: this is the English page")
        text = page_text(found.name, SOURCE) or ""
    if output.out_is_terminal:
        output.page(terminal_lines(text, output.width, output.has_colours))
    else:
        output.raw(text.encode())


def _write_man_pages(output: Output, folder: str) -> None:
    from aver.cli.docs.man_pages import write_man_pages
    from aver.cli.group import HELPS, make_group

    paths = write_man_pages(os.path.expanduser(folder), make_group(), HELPS)
    output.note(f"{len(paths)} man pages in {os.path.dirname(paths[0])}; `man -M {folder} aver` shows the first")

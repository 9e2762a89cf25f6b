"""`aver completion SHELL`: the script that makes the shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from aver.cli.output.text import Output
from aver.errors import InternalError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell's completion script.

    \b
    Examples:
      aver completion bash > ~/.local/share/bash-completion/completions/aver
      aver completion zsh > ~/.zfunc/_aver          with fpath+=~/.zfunc before compinit
      aver completion fish > ~/.config/fish/completions/aver.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"click has no completion for {shell}")
    root = ctx.find_root()
    Output.standard().line(kind(root.command, {}, "aver", "_AVER_COMPLETE").source().strip())

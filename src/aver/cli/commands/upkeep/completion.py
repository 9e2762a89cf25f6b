"""`aver completion SHELL`: the script that makes the shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import ZshComplete

from aver.cli.output.text import Output

VARIABLE = "_AVER_COMPLETE"  # click's, by which a shell asks for completions
# Names of jobs have =, commas and brackets in them. Bash splits words at = and replaces only what follows the last.
BASH = r"""_aver_completion() {
    local line=${COMP_LINE:0:COMP_POINT} head= current quote= type value
    local -a words
    read -ra words <<< "$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    current=${words[-1]}
    case $current in
        [\'\"]*) quote=1 ;;
        *[=:]*) head=${current%"${current##*[=:]}"} ;;
    esac
    while IFS=, read -r type value; do
        if [[ $type == file ]]; then
            compopt -o default
        elif [[ $type == dir ]]; then
            compopt -o dirnames
        elif [[ $type == plain ]]; then
            value=${value#"$head"}
            [[ $quote || $value != *[[:space:]\'\"\\\$\`\;\&\|\<\>\(\)\*\?\!\#]* ]] || printf -v value %q "$value"
            COMPREPLY+=("$value")
        fi
    done < <(COMP_WORDS=$line COMP_CWORD=$((${#words[@]} - 1)) _AVER_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _aver_completion aver"""
FISH = """function _aver_completion
    for completion in (_AVER_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) aver)
        set -l parts (string split -m 1 "," $completion)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command aver --arguments "(_aver_completion)\""""


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
    zsh = ZshComplete(ctx.find_root().command, {}, "aver", VARIABLE).source().strip()
    Output.standard().line({"bash": BASH, "zsh": zsh, "fish": FISH}[shell])

"""`{name}` in the text of a shell: the program gets exactly the value, or the text is refused."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aver.plan.shell_text import fill_shell, places_in, used_in

BASH = ("bash", "-eo", "pipefail")
SH = ("sh", "-e")
VALUES = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | st.lists(
    st.sampled_from([
        " ", "\n", "\t", "'", '"', "$(touch hit)", "`touch hit`", "${HOME}", "$x", "\\", "-", "--", "*", "~", "!", "#",
        "{v}", "{w}", "}", ")", ";", "&", "|", ">", "<", "EOF", "2", "if", "A=1", "a,b", "1..3", "é", "😀", "\r", "=",
    ]), max_size=6,
).map("".join)  # fmt: skip

# What each shows, in the order in which it does.
TEXTS = {
    "show {v}": "v",
    "show '{v}'": "v",
    'show "{v}"': "v",
    "show {v} '{v}' \"{v}\" {w}": "vvvw",
    'show "$(printf %s "{v}"; echo .)" | sed -z "s/\\.$//"': "v",
    "show \"$(printf '%s.' '{v}')\" | sed -z 's/\\.$//'": "v",
    "show \"$(printf '%s.' \"$(printf %s {v}'.' # it's (\n)\")\" | sed -z 's/\\.\\.$//'": "v",
    'x={v}; show "$x"': "v",
    "x='{v}'\nshow \"$x\" # it's {v}": "v",
    'show "${HOME:+}{v}" # "{w}': "v",
    "if true; then show {v}; fi": "v",
    "( show {v} ); { show '{w}'; }": "vw",
    "show \\\n  {v}": "v",
    "show a\\\n#{v} | tail -zc+3": "v",
    "case a in a) show {v};; esac": "v",
    "echo 'it'\\''s' >/dev/null; show \"{v}\"": "v",
    'cat <<EOF >/dev/null\nit\'s $HOME\nEOF\nshow "{v}"': "v",
    "cat <<'A' <<-B >/dev/null\nit's \"\nA\n\tx\n\tB\nshow {v}": "v",
    'echo $((1 + (2 << 1))) >/dev/null; show "{v}"': "v",
    'echo `echo "it\'s"` >/dev/null 2>&1 || true; show {v}': "v",
    "show {v}>&1": "v",
    "set -- '{v}'; show \"$1\"": "v",
    'f() { show "$1"; }; f {v}': "v",
    "show '\\{v}' | tail -zc+2": "v",
    'x={v}; [ "$x" = {v} ] && show "${x}" {w}': "vw",
}
BASH_TEXTS = {
    "show <(:) {v} | tail -zn1": "v",
    "echo $'it\\'s' >/dev/null; show {v}": "v",
    'cat <<< {v} >/dev/null; show "{w}"': "w",
    'a=(x {v}); show "${a[1]}"': "v",
    '[[ {v} == "{v}" ]] && show {v}': "v",
    "for ((i = 0; i < 1 << 0; i++)); do show {v}; done": "v",
    "((1 + 1)); show '{v}'": "v",
}
SHOW = "show() { for one; do printf '%s\\0' \"$one\"; done; }\n"


def said(shell: tuple[str, ...], text: str, folder: str) -> list[str]:
    done = subprocess.run([*shell, "-c", SHOW + text], capture_output=True, cwd=folder, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    ("shell", "text"),
    [(shell, text) for shell in (BASH, SH) for text in (*TEXTS, *(BASH_TEXTS if shell is BASH else ()))],
)
def test_the_program_gets_exactly_the_value(
    text: str, shell: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is in the value and however the place is quoted: nothing is run, split or changed."""
    folder = tmp_path_factory.mktemp("shell")
    shows = (TEXTS | BASH_TEXTS)[text]

    @settings(max_examples=15, deadline=None)
    @given(v=VALUES, w=VALUES)
    @example(v="a b", w="'")
    @example(v='$(touch hit) "`touch hit`" \\', w="-n")
    @example(v="\n", w="\\\n")
    @example(v="2", w="if")
    @example(v="", w="{v}")
    def check(v: str, w: str) -> None:
        values = {"v": v, "w": w}
        assert said(shell, fill_shell(text, values, shell), str(folder)) == [values[name] for name in shows]
        assert not list(folder.iterdir())

    check()


UNKNOWN = {
    "cat <<EOF\n{v}\nEOF": "inside a here-document",
    "cat <<'EOF'\n{v}\nEOF": "inside a here-document",
    "cat <<EOF\n{v}": "inside a here-document",
    "cat <<{v}\nx\n": "behind <<",
    "x=`echo {v}`": "inside `...`",
    'echo "`echo {v}`"': "inside `...`",
    "echo ${x:-{v}}": "inside ${...}",
    'echo "${x:-$(echo {v})}"': "inside ${...}",
    "echo \"${x:-'a'}\" {v}": "behind quotes in ${...}",
    "echo $'{v}'": "inside $'...'",
    'echo "$(case a in a) echo {v};; esac)"': "behind case",
    'echo "{v}': "without its end",
    "echo '{v}": "without its end",
    "((echo {v}) | cat)": "behind ((",
    'cat <<EOF "a\n{v}"\nEOF': "beside a here-document",
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_place_that_can_not_be_followed_is_refused(text: str) -> None:
    """No command is made of it, and it is said why."""
    assert [UNKNOWN[text] in place.why for place in places_in(text, BASH)] == [True]
    with pytest.raises(ValueError, match="no value can be put in"):
        fill_shell(text, {"v": "x"}, BASH)
    assert fill_shell(text, {}, BASH) == text
    assert not used_in(text, BASH)


@pytest.mark.parametrize("shell", [("python3",), ("fish",), ("ssh", "host", "bash"), ()])
def test_text_for_another_language_is_refused(shell: tuple[str, ...]) -> None:
    """Its quotes are not known."""
    with pytest.raises(ValueError, match="quotes are not known"):
        fill_shell("print('{v}')", {"v": "x"}, shell)


@pytest.mark.parametrize("shell", [("/usr/bin/env", "bash"), ("apptainer", "exec", "x.sif", "/bin/sh", "-e"), ("zsh",)])
def test_a_shell_is_known_by_its_name(shell: tuple[str, ...]) -> None:
    assert fill_shell("echo {v}", {"v": "a b"}, shell) == "echo 'a b'"


@pytest.mark.parametrize("value", ["3", "0", "-3"])
def test_whole_numbers_in_arithmetic(value: str) -> None:
    """Nothing else is a value there."""
    text = fill_shell("echo $((10 - {v})); for ((i = {v}; i < {v}; i++)); do :; done", {"v": value}, BASH)
    done = subprocess.run(["bash", "-c", text], capture_output=True, check=True)
    assert int(done.stdout) == 10 - int(value)
    for odd in ("x", "08", "a[$(touch hit)]", "1 + 1", ""):
        with pytest.raises(ValueError, match="not a whole number"):
            fill_shell("echo $(({v}))", {"v": odd}, BASH)


def test_what_is_no_place() -> None:
    """An escaped brace, a comment, what the shell expands, and names that are not declared."""
    text = "echo \\{v} \"\\{v}\" ${v} '${v}' $${v} {x} {} {v # {v}\n# {v}"
    assert fill_shell(text, {"v": "a"}, BASH) == text
    assert fill_shell("awk '{print $1}' {{v}}", {"v": "a"}, BASH) == "awk '{print $1}' {'a'}"

"""`sbatch`: submit a batch script to this machine, as Slurm's sbatch submits it to a cluster.

Reads the options and the script; the coordinator works out what they mean, and answers when the job is durable. With
--wait it waits, across the coordinator's restarts, and exits as the job did. Imports little: it is called in loops.
"""

from __future__ import annotations

import os
import time

from aver.fast_start import TYPE_CHECKING
from aver.protocol import fast_client
from aver.protocol.limits import limits_sentence
from aver.protocol.place import home_folder, user_name
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded, tell
from aver.slurm_cli.sbatch.script import BatchScript, add_file, find_script
from aver.slurm_cli.settings import names_only, secret_names, version_line
from aver.spec.getopt import BadOption, Parsed, Table, parse
from aver.spec.sbatch import lines
from aver.spec.sbatch.table import (
    ABOUT,
    NOT_SERVED,
    VARIABLES,
    from_environment,
    memory_conflict,
    sbatch_table,
    without_lesser_memory,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

USAGE_STATUS = 255
LONGEST_KEY = 200  # as in client.submit, which is slow to import
PBS, LSF = "#PBS", "#BSUB"
_SAID = ".said"
_PAUSE_S = 0.1
_TRIES = 5


def main(words: Sequence[str]) -> int:
    return guarded("sbatch", _sbatch, words)


def _sbatch(words: Sequence[str]) -> int:
    key, words = _own_key(words)
    options = sbatch_table()
    try:
        parsed = parse(options, words, stops_at_operand=True)
    except BadOption as error:
        raise _usage(error) from None
    for name, _ in parsed.given:
        if name in ABOUT:
            return _about(name)
    home = home_folder()
    try:
        script = find_script(parsed.get("wrap"), parsed.operands)
    except Refusal:
        if parsed.given:  # a wrong option is said first
            _ask(home, {"op": "sbatch", "options": [[name, text or ""] for name, text in parsed.given]})
        raise
    given = _in_order(parsed, script, options)
    if (added := next((text for name, text in reversed(given) if name == "bbf"), None)) is not None:
        add_file(script, added)
    if any(name == "verbose" for name, _ in given):
        from aver.slurm_cli.settings import defined_options, verbosity

        if verbosity([(name, text) for name, text in given]):
            say(*defined_options("sbatch", [(name, text) for name, text in given]))
    if any(name in ("partition", "constraint", "licenses", "nodelist", "exclude") for name, _ in given):
        _check_names(dict(given))
    reply = _ask(
        home,
        {
            "op": "sbatch",
            "options": given,
            "script": script.text,
            "name": script.name,
            "path": script.path,
            "args": parsed.operands[1:],
            "origin": _origin(words),
            "env": [f"{name}={value}" for name, value in os.environ.items()],
            "key": key or os.urandom(12).hex(),
            "is_again": bool(key),
        },
    )
    return _answer(home, reply)


def _check_names(said: dict[str, str]) -> None:
    """Refuse names that this machine has not, where the settings say so."""
    from aver.slurm_cli.settings import node_name, refuses_unknown_names

    if not refuses_unknown_names():
        return
    from aver.spec.sbatch.call import BatchRefused, check_names

    try:
        check_names(said, node_name())
    except BatchRefused as refused:
        raise Refusal(str(refused), refused.exit_status) from None


def _own_key(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The key of `--key`, which is not Slurm's and comes before all of Slurm's options; empty without it."""
    first, has_value, key = words[0].partition("=") if words else ("", "", "")
    if first != "--key":
        return "", words
    if not has_value:
        key = words[1] if len(words) > 1 else ""
    if not key.isprintable() or not 1 <= len(key) <= LONGEST_KEY:
        raise Refusal(f"sbatch: error: a key has 1 to {LONGEST_KEY} printable characters", USAGE_STATUS)
    return key, words[1 if has_value else 2 :]


def _in_order(parsed: Parsed, script: BatchScript, options: Table) -> list[list[str]]:
    """All options as [name, text]: of #SBATCH lines, of variables, of flags; of two the later one counts."""
    found: list[tuple[str, str | None]] = []
    for number, line in lines.magic_lines(script.text):
        try:
            said = parse(options, lines.split_line(line))
        except BadOption as error:
            raise _usage(error) from None
        except lines.OpenQuote as error:
            where = f"{script.shown}: line {number}"
            raise Refusal(f"sbatch: fatal: {where}: Unmatched `{error.args[0]}` in [{line.strip()}]") from None
        if said.operands:
            text = f"sbatch: error: Invalid directive found in batch script: {said.operands[0]}"
            raise Refusal(text, USAGE_STATUS)
        found += said.given
    typed = [name for name, _ in (*found, *parsed.given)]
    of_variables = from_environment(VARIABLES, os.environ, options)
    conflict = memory_conflict(typed, [name for name, _ in of_variables])
    if conflict is not None:
        raise Refusal(f"sbatch: {conflict}")
    later = [*without_lesser_memory(of_variables, typed), *parsed.given]
    is_said = any(name == "ignore-pbs" for name, _ in (*found, *parsed.given))
    if (
        (f"\n{PBS}" in script.text or f"\n{LSF}" in script.text)
        and not is_said
        and os.environ.get("SBATCH_IGNORE_PBS", "0") == "0"
    ):
        found += _of_pbs(script)
    found += later
    for name, _ in found:
        if name in NOT_SERVED:
            raise Refusal(f"sbatch: error: --{name} is not supported by aver")
    return [[name, text or ""] for name, text in found if name not in ABOUT]


def _of_pbs(script: BatchScript) -> list[tuple[str, str | None]]:
    from aver.spec.sbatch.pbs import lsf_options, pbs_options

    try:
        return lsf_options(script.text) if f"\n{LSF}" in script.text else pbs_options(script.text)
    except BadOption as error:
        raise _usage(error) from None
    except lines.OpenQuote as error:
        raise Refusal(f"sbatch: fatal: {script.shown}: Unmatched `{error.args[0]}` in a #PBS or #BSUB line") from None


def _usage(error: BadOption) -> Refusal:
    return Refusal(f'sbatch: {error}\nTry "sbatch --help" for more information', USAGE_STATUS)


def _origin(typed: Sequence[str]) -> dict[str, Any]:
    """Who submits, from where, and what the job inherits, as `model.job.Origin` is written."""
    import resource

    try:
        folder = os.getcwd()
    except OSError:
        raise Refusal("sbatch: error: getcwd failed: No such file or directory") from None
    umask = os.umask(0o077)
    os.umask(umask)
    numbers = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
    return {
        "user": user_name(),
        "uid": os.getuid(),
        "host": os.uname().nodename,
        "folder": folder,
        "umask": umask,
        "limits": [[number, *resource.getrlimit(number)] for number in numbers],
        "secrets": secret_names(),
        "command": ["sbatch", *_without_values(typed)],
    }


def _without_values(typed: Sequence[str]) -> list[str]:
    """What was typed, without the values of --export: environment values are never stored."""
    words: list[str] = []
    for word in typed:
        before = words[-1] if words else ""
        if word.startswith("--export="):
            word = "--export=" + names_only(word[9:])
        elif before == "--export":
            word = names_only(word)
        words.append(word)
    return words


def _receive(home: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply. If it is lost, ask again with the same key; at last look for that key in the store.

    Lost or AverError means that nothing was submitted, unless its text says so.
    """
    from aver.errors import AverError

    lost: Exception | None = None
    for _ in range(_TRIES):
        try:
            wire = fast_client.connect(home)
        except (fast_client.Lost, AverError) as error:
            if lost is None:
                raise
            lost = error
            break
        try:
            wire.send({**request, "is_again": True} if lost else request)
            return wire.receive()
        except fast_client.Lost as error:
            lost = error
        finally:
            wire.close()
    assert lost is not None
    if "key" not in request:
        raise lost
    return _found(home, request, lost)


def _found(home: str, request: dict[str, Any], lost: Exception) -> dict[str, Any]:
    """Make the reply of a run that the store has under the request's key; AverError if it has none."""
    from pathlib import Path

    from aver.client.submit import look_up
    from aver.home import Home

    run = look_up(Home(Path(home)), request["key"], lost).run
    options = dict(request["options"])
    return {"ok": True, "run": run, "given": list(options), "ignored": [], "clusters": options.get("clusters")}


def _ask(home: str, request: dict[str, Any]) -> dict[str, Any]:
    from aver.errors import AverError

    try:
        reply = _receive(home, request)
    except fast_client.Lost as error:
        why = f"Unable to contact slurm controller ({error})"
        raise Refusal(f"sbatch: error: Batch job submission failed: {why}") from None
    except AverError as error:
        raise Refusal(f"sbatch: error: Batch job submission failed: {error}") from None
    if reply.get("ok") is not True:
        text = str(reply.get("error"))
        if "sbatch: error: " not in text:
            text = f"sbatch: error: Batch job submission failed: {text}"
        raise Refusal(text, int(reply.get("status") or 1))
    return reply


def _answer(home: str, reply: dict[str, Any]) -> int:
    number, given = int(reply["run"]), reply["given"]
    _note_without_meaning(home, reply["ignored"], given)
    if "test-only" in given:
        if "quiet" not in given:
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(max(time.time(), reply["begin_at"] or 0.0)))
            where = f"on nodes {os.uname().nodename.partition('.')[0]} in partition {reply['partition']}"
            say(f"sbatch: Job {number} to start at {at} using {reply['cpus']} processors {where}")
        return 0
    if reply.get("lower_limits") and "quiet" not in given:
        say(f"sbatch: warning: {limits_sentence(reply['lower_limits'])}")
    if "parsable" in given:
        tell(f"{number};{reply['clusters']}" if reply["clusters"] else str(number))
    elif "quiet" not in given:
        tell(f"Submitted batch job {number}")
    return _wait(home, number) if "wait" in given else 0


def _wait(home: str, number: int) -> int:
    """Until all of it is settled; the highest exit code, or 1 where there is none, as Slurm has it.

    0 only if all COMPLETED: also what exits 0 when its time limit has passed or it is cancelled is no success.
    """
    while True:
        try:
            wire = fast_client.connect(home)
            wire.send({"op": "watch", "ids": [number]})
            reply = wire.receive()
            while number not in reply.get("settled", ()):
                if reply.get("ok") is False:
                    raise Refusal(f"sbatch: error: {reply.get('error')}")
                reply = wire.receive()
            wire.close()
            break
        except fast_client.Lost:
            time.sleep(_PAUSE_S)  # it comes back; the job runs on meanwhile
    from pathlib import Path

    from aver.model.states import State
    from aver.store.read.reader import Reader

    without_code = (State.OUT_OF_MEMORY, State.UNVERIFIED, State.NODE_FAIL, State.BOOT_FAIL, State.SKIPPED)
    reader = Reader.open(Path(home) / "aver.db")
    assert reader is not None
    with reader:
        codes = [1]
        for row in reader.jobs(run=number):
            is_plain = row.exit is not None and not row.exit.signal and row.state not in without_code
            code = row.exit.code if is_plain and row.exit is not None else 1
            codes.append(code if row.state is State.COMPLETED else code or 1)
    return max(codes[1:], default=1)


def _note_without_meaning(home: str, options: list[str], given: list[str]) -> None:
    """Say of each option that means nothing here that it does: once for each home, with -v each time."""
    if not options or "quiet" in given:
        return
    path = os.path.join(home, _SAID)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            known = set(file.read().split())
    except OSError:
        known = set()
    fresh = [option for option in options if "verbose" in given or option not in known]
    if not fresh:
        return
    say(f"sbatch: aver: accepted, and without meaning on one machine: {', '.join(fresh)}")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(handle, "".join(f"{option}\n" for option in fresh if option not in known).encode())
        os.close(handle)
    except OSError:
        return  # it is said again next time


def _about(name: str) -> int:
    if name == "version":
        tell(version_line())
        return 0
    from aver.slurm_cli import help as texts
    from aver.spec.sbatch.call import idle_options
    from aver.spec.sbatch.table import sbatch_table

    table = sbatch_table()
    if name == "help":
        what = (
            "Submits a batch script to this machine. Options come from the command line, else from SBATCH_* variables, "
            "else from the script's #SBATCH lines."
        )
        show(texts.page(table, "sbatch [OPTIONS...] executable [args...]", idle_options(table), what))
    else:
        show(texts.usage(table, "sbatch", "executable [args...]"))
    return 0

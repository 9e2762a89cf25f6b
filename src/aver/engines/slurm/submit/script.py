"""The batch script that sbatch gets on its standard input: one job's command, or one for each member of an array.

Pure. In the words of POSIX sh, but run by bash, since dash drops variables that it can't name: exported functions
(`module`) among them. In its POSIX mode bash reads no start-up file. Every value is quoted; bytes that are not UTF-8
come as surrogates and leave as they were. No value of the user's environment is in it but `Member.env`, and no name of
it is touched: ours begin with `_aver_`. What always holds on the node:

- the last thing is an `exec`, so that Slurm sees the wait status of the work itself;
- where the witness has the hash that it was put there with and runs, and the records' folder can be written, it is the
  work's parent, and the record is
  `RECORDS/KEY.rRESTARTS` with the same key; where not, the command runs all the same;
- a script's text is in here whole: of the shared folder nothing but the witness and the records are needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from aver.model.record import Record

_IS_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+").fullmatch
_STEP_LIMITS = tuple(f'${{AVER_STEP_{name}:+--{name.lower()} "$AVER_STEP_{name}"}}' for name in ("TIME", "WARN"))
_IS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


class Witness(Record):
    """The witness where the nodes see it, and the SHA-256 that it must have there to be run."""

    path: str
    sha256: str


class Program(Record):
    """A command as it is; without a slash it is looked up in the PATH of the node."""

    args: tuple[str, ...]


class Text(Record):
    """A script's text, of any size that sbatch takes: `interpreter FILE args`, where FILE is a file on the node."""

    text: str
    interpreter: tuple[str, ...]
    args: tuple[str, ...] = ()


class Member(Record):
    """One job. Folder and files are None where sbatch's own options name them; times and warning as the witness has
    them (`docs/design/witness.md`)."""

    key: str
    work: Program | Text
    name: str | None = None  # what the program finds in SLURM_JOB_NAME, since Slurm's own name of it is the key
    folder: str | None = None
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None  # None: where stdout goes, if that is named
    append: bool = False
    own_parts: int = 0  # of stdout, as the witness has them
    env: tuple[tuple[str, str], ...] = ()  # of this member alone; it is in the script, readable by who may read that
    time_ms: int | None = None
    warn: str | None = None  # SIGNAL LEAD_MS SCOPE
    kill_wait_ms: int | None = None
    files: tuple[str, ...] = ()  # as the witness has them, and the next
    clean: str = ""
    is_elsewhere: bool = False
    has_step_limits: bool = False  # limit and warning are in AVER_STEP_TIME and AVER_STEP_WARN when it starts
    has_own_tasks: bool = False  # `env` says what is said of its tasks, in place of what is said of its step
    has_step_nodes: bool = False  # its nodes are in AVER_STEP_NODES, with what it has on each of them


def batch_script(members: Sequence[Member], *, witness: Witness, records: str, shim: str | None = None) -> bytes:
    """The script of a job, or of an array whose task I is `members[I]`.

    `shim`: the folder with our `srun`, put first in PATH where it is. ValueError if something has a NUL byte, which
    no shell can say, or if there is no member.
    """
    if not members:
        raise ValueError("a batch script without a job")
    numbers: dict[str, int] = {}
    for member in members:
        if isinstance(member.work, Text):
            numbers.setdefault(member.work.text, len(numbers))
    parts = [_HEAD, IS_WITNESS, witness_settings(witness)]
    parts.append(f"_aver_records={quote(records)} _aver_shim={quote(shim or '')}\n")
    parts += [_function(number, text) for text, number in numbers.items()]
    if len(members) == 1:
        parts.append(_settings(members[0], numbers))
    else:
        parts.append("case $SLURM_ARRAY_TASK_ID in\n")
        parts += [f"{index})\n{_settings(member, numbers)};;\n" for index, member in enumerate(members)]
        parts.append(_NO_MEMBER)
    parts.append(_TAIL)
    script = "".join(parts)
    if "\0" in script:
        raise ValueError("a command, a script or a file name of a batch job can't contain a NUL byte")
    return os.fsencode(script)


def witness_settings(witness: Witness) -> str:
    """The line that `IS_WITNESS` goes by."""
    return f"_aver_witness={quote(witness.path)} _aver_hash={quote(witness.sha256)}\n"


def quote(text: str) -> str:
    """One word of sh. sbatch refuses scripts with DOS line ends, so a carriage return is `$_aver_cr`."""
    if _IS_PLAIN(text):
        return text
    quoted = "'" + text.replace("'", "'\"'\"'") + "'"
    return quoted.replace("\r", "'\"$_aver_cr\"'")


def _function(number: int, text: str) -> str:
    """`_aver_text_N` prints the text."""
    print_it = "cat"
    if "\r" in text:  # which sbatch refuses
        text = text.replace("#", "#h").replace("\r", "#r")
        print_it = 'LC_ALL=C sed "s/#r/$_aver_cr/g; s/#h/#/g"'
    end = "AVER_END"
    while f"\n{end}\n" in f"\n{text}\n":
        end += "_"
    whole, newline, last = text.rpartition("\n")
    rest = f"printf %s {quote(last)} | {print_it}\n" if last else ""
    return f"_aver_text_{number}() {{\n{print_it} <<'{end}'\n{whole}{newline}{end}\n{rest}}}\n"


def _settings(member: Member, numbers: dict[str, int]) -> str:
    lines = [f"_aver_key={quote(member.key)}"]
    match member.work:
        case Program(args=args):
            words = [quote(word) for word in args]
        case Text(text=text, interpreter=interpreter, args=args):
            lines.append(f"_aver_put _aver_text_{numbers[text]}")
            words = [*map(quote, interpreter), '"$_aver_file"', *map(quote, args)]
    odd = [f"{name}={value}" for name, value in member.env if not _IS_NAME(name)]
    if odd:  # names that no shell can say
        words = ["env", *map(quote, odd), *words]
    limits = _STEP_LIMITS if member.has_step_limits else ()
    lines.append(" ".join(["set --", *limits, *map(quote, _options(member)), "--", *words]))
    if member.has_step_limits:
        lines.append("unset AVER_STEP_TIME AVER_STEP_WARN")
    if member.has_own_tasks or member.has_step_nodes:
        lines.append(_STEP_TASKS)
    if member.has_step_nodes:
        lines.append(_STEP_NODES)
    pairs = [(name, value) for name, value in member.env if _IS_NAME(name)]
    if member.name is not None:
        pairs.append(("SLURM_JOB_NAME", member.name))
    lines += [f"export {name}={quote(value)}" for name, value in pairs]
    return "".join(line + "\n" for line in lines)


def _options(member: Member) -> Iterable[str]:
    """Of the witness; each has one value."""
    for name, value in (
        ("--time", member.time_ms), ("--warn", member.warn), ("--kill-wait", member.kill_wait_ms),
        ("--folder", member.folder), ("--stdin", member.stdin), ("--stdout", member.stdout),
        ("--stderr", member.stderr), ("--append", 1 if member.append else None),
        ("--own", member.own_parts or None), ("--elsewhere", 1 if member.is_elsewhere else None),
    ):  # fmt: skip
        if value is not None:
            yield from (name, str(value))
    for file in member.files:
        yield from ("--file", file)
    if member.clean:
        yield from ("--clean", member.clean)


_STEP_TASKS = "unset SLURM_NTASKS SLURM_NPROCS SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_TRES_PER_TASK"
_STEP_NODES = """\
unset SLURM_DISTRIBUTION ${!SLURM_CPU_BIND*} ${!SLURM_STEP*}
_aver_many=${AVER_STEP_NODES//[!,]/}
_aver_many=$((${#_aver_many} + 1))
export SLURM_JOB_NODELIST=$AVER_STEP_NODES SLURM_NODELIST=$AVER_STEP_NODES
export SLURM_JOB_NUM_NODES=$_aver_many SLURM_NNODES=$_aver_many
_aver_many="(x$_aver_many)" _aver_many=${_aver_many#"(x1)"}
export SLURM_TASKS_PER_NODE="1$_aver_many" SLURM_JOB_CPUS_PER_NODE="$AVER_STEP_CPUS$_aver_many"
export SLURM_MEM_PER_NODE=$AVER_STEP_MIB
export SLURM_EXACT=1 SLURM_TASK_PROLOG=$AVER_STEP_PROLOG
export AVER_NODE_CPUS=$AVER_STEP_CPUS AVER_OTHER_NODES=$AVER_STEP_OTHERS
unset ${!AVER_STEP_*}"""

IS_WITNESS = """\
_aver_is_witness() { # whether $_aver_witness is the file that Aver put there, and runs here
    [ -f "$_aver_witness" ] || return 1
    _aver_sum=$({ sha256sum <"$_aver_witness"; } 2>/dev/null) || return 1
    if [ "${_aver_sum%% *}" != "$_aver_hash" ]; then
        printf 'aver: %s is not the witness that was put there: not run\\n' "$_aver_witness" >&2
        return 1
    fi
    "$_aver_witness" --version >/dev/null 2>&1
}
"""

_HEAD = """\
#!/bin/bash --posix
# Aver's: a command under its witness, which leaves an exit record. Without a witness it runs all the same.
_aver_cr=$(printf '\\r')
_aver_fail() {
    printf 'aver: %s\\n' "$1" >&2
    exit 126
}
_aver_put() { # the text to a file that has no name any more; $_aver_file opens it
    for _aver_folder in "${TMPDIR:-/tmp}" /tmp /dev/shm "$_aver_records"; do
        _aver_folder=$(umask 077 && mktemp -d "$_aver_folder/aver.XXXXXXXXXX" 2>/dev/null) || continue
        if "$1" >"$_aver_folder/script"; then
            exec 9<"$_aver_folder/script"
            _aver_file=/proc/$$/fd/9 # the witness keeps it open, also for an interpreter that closes what it inherits
        fi
        rm -rf "$_aver_folder"
        [ -z "$_aver_file" ] || return 0
    done
    _aver_fail "no folder on this node has room for the job's script"
}
_aver_file=
"""

_NO_MEMBER = """\
*) _aver_fail "this array has no task '$SLURM_ARRAY_TASK_ID'" ;;
esac
"""

_TAIL = """\
AVER_RECORD_KEY=$_aver_key.r${SLURM_RESTART_COUNT:-0}
if _aver_is_witness && [ -w "$_aver_records" ]; then
    export AVER_RECORD_KEY AVER_RECORDS="$_aver_records"
    [ ! -x "$_aver_shim/srun" ] || export PATH="$_aver_shim:$PATH"
    exec "$_aver_witness" once --record "$_aver_records/$AVER_RECORD_KEY" --key "$AVER_RECORD_KEY" "$@"
fi
unset AVER_RECORD_KEY AVER_RECORDS
_aver_folder=. _aver_in= _aver_out= _aver_err= _aver_mode= _aver_own=
while [ "$1" != -- ]; do
    case $1 in
    --folder) _aver_folder=$2 ;;
    --stdin) _aver_in=$2 ;;
    --stdout) _aver_out=$2 ;;
    --stderr) _aver_err=$2 ;;
    --append) _aver_mode=a ;;
    --own) _aver_own=$2 ;;
    esac
    shift 2
done
shift
cd "$_aver_folder" || _aver_fail "can't change to the folder $_aver_folder"
if [ -n "$_aver_in" ]; then
    true <"$_aver_in" || _aver_fail "can't open $_aver_in"
    exec <"$_aver_in"
fi
if [ -n "$_aver_own" ] && { [ -e "$_aver_out" ] || [ -L "$_aver_out" ]; }; then
    [ -f "$_aver_out" ] && [ ! -L "$_aver_out" ] && [ -O "$_aver_out" ] || _aver_fail "$_aver_out is not yours alone"
fi
if [ "$_aver_own" = 2 ]; then
    [ ! -L "${_aver_out%/*}" ] && [ -O "${_aver_out%/*}" ] || _aver_fail "${_aver_out%/*} is not yours alone"
fi
[ -n "$_aver_err" ] || _aver_err=$_aver_out
for _aver_name in "$_aver_out" "$_aver_err"; do
    [ -z "$_aver_name" ] || true >>"$_aver_name" || _aver_fail "can't open $_aver_name"
    [ -z "$_aver_name" ] || [ -n "$_aver_mode" ] || [ ! -f "$_aver_name" ] || : >"$_aver_name"
done
[ -z "$_aver_out" ] || exec >>"$_aver_out"
if [ -n "$_aver_err" ] && [ "$_aver_err" = "$_aver_out" ]; then
    exec 2>&1
elif [ -n "$_aver_err" ]; then
    exec 2>>"$_aver_err"
fi
exec "$@"
"""

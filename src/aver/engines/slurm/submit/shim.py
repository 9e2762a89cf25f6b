"""The `srun` that comes first in PATH inside Aver's jobs: it puts the witness before the command of each task.

Everything else goes to the real srun unchanged: the next one in PATH after its own folder. Where it is not sure of what
it reads (an option that it does not know, a step of several components, a container, a terminal) it inserts nothing: a
task without a record is better than a job that breaks. It runs in bash, as the batch script does and for the same
reason. The options are those of Slurm 20.11 to 25.11.
"""

from __future__ import annotations

import os
from pathlib import Path

from aver.durable_files import replace_file
from aver.engines.slurm.submit.script import IS_WITNESS, Witness, quote, witness_settings

# name, or name:letter
FLAGS = (
    "contiguous disable-status:X exact hold:H interactive label:l no-allocate:Z "
    "overcommit:O oversubscribe:s preserve-env:E quiet:Q quit-on-interrupt reboot share spread-job "
    "stepmgr unbuffered:u use-min-nodes verbose:v wait-for-children"
)
VALUES = (
    "accel-bind account:A acctg-freq bb bbf begin:b chdir:D cluster-constraint comment constraint:C core-spec:S "
    "cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task:c deadline delay-boot dependency:d "
    "distribution:m epilog error:e exclude:x export extra extra-node-info:B gid gpu-bind gpu-freq gpus:G "
    "gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input:i job-name:J licenses:L mail-type "
    "mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network nodelist:w nodes:N "
    "ntasks:n ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output:o partition:p "
    "power prefer priority profile prolog qos:q relative:r reservation segment signal slurmd-debug "
    "sockets-per-node switches task-epilog task-prolog tasks-per-node thread-spec threads:T threads-per-core "
    "time:t time-min tmp treewidth tres-bind tres-per-task uid wait:W wckey"
)
MAYBE = (
    "compress exclusive external-launcher immediate:I kill-on-bad-exit:K nice no-kill:k oom-kill-step overlap "
    "propagate resv-ports send-libs x11"
)
# With these the command is not that of each task, or runs where the witness is not.
OTHER_FLAGS = "multi-prog"
OTHER_VALUES = "bcast-exclude clusters:M container het-group jobid"
OTHER_MAYBE = "bcast pty"
# Not here, as any option that is not known: help version.


def srun_shim(witness: Witness, records: str) -> bytes:
    """The text of the `srun` that uses this witness and leaves its records in this folder."""
    values, others = _longs(VALUES), _longs(OTHER_VALUES)
    return os.fsencode(
        _SHIM.format(
            is_witness=IS_WITNESS,
            settings=witness_settings(witness),
            records=quote(records),
            flags="|".join(_longs(FLAGS)),
            values="|".join(values),
            glued="|".join(f"{name}=*" for name in values),
            maybe="|".join(_either(MAYBE)),
            flag_letters=_letters(FLAGS),
            value_letters=_letters(VALUES),
            maybe_letters=_letters(MAYBE),
            others="|".join([*_longs(OTHER_FLAGS), *(f"{name}=*" for name in others), *_either(OTHER_MAYBE)]),
            other_values="|".join(others),
            other_letters=_letters(OTHER_VALUES),
        )
    )


def install_shim(folder: Path, witness: Witness, records: str) -> Path:
    """Put `srun` in this folder, in one step, and return its path; OSError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "srun"
    text = srun_shim(witness, records)
    if path.exists() and path.read_bytes() == text and os.access(path, os.X_OK):
        return path
    replace_file(path, text, 0o755)
    return path


def _longs(words: str) -> list[str]:
    return ["--" + word.partition(":")[0] for word in words.split()]


def _either(words: str) -> list[str]:
    return [word for name in _longs(words) for word in (name, f"{name}=*")]


def _letters(words: str) -> str:
    return "".join(word.partition(":")[2] for word in words.split())


_SHIM = """\
#!/bin/bash --posix
# Aver's srun: each task's command under its witness, which leaves an exit record. The rest is the real srun's.
_aver_cr=$(printf '\\r')
{settings}_aver_records={records}
{is_witness}
_aver_find() {{ # the first $1 in PATH, or the first after the file $2 if that is in PATH; to $_aver_found
    _aver_rest=$PATH: _aver_found=
    while [ -n "$_aver_rest" ]; do
        _aver_folder=${{_aver_rest%%:*}}
        _aver_folder=${{_aver_folder:-.}}
        _aver_rest=${{_aver_rest#*:}}
        if [ "$_aver_folder/$1" -ef "$2" ]; then
            _aver_found=
        elif [ -z "$_aver_found" ] && [ -f "$_aver_folder/$1" ] && [ -x "$_aver_folder/$1" ]; then
            _aver_found=$_aver_folder/$1
        fi
    done
}}
_aver_plain() {{
    _aver_exclude
    exec "$_aver_srun" "${{_aver_only[@]}}" "${{_aver_words[@]}}"
}}
_aver_exclude() {{ # in a part of an allocation: our --exclude, and joined with it the last one in $_aver_words
    local at=$_aver_excluded_at text line more=
    [ -n "$AVER_OTHER_NODES" ] || return 0
    _aver_only=("--exclude=$AVER_OTHER_NODES" "${{_aver_only[@]}}")
    [ -n "$at" ] || return 0
    text=${{_aver_words[at]#"$_aver_excluded_by"}}
    case $text in
    */*) # a file; of one that can't be read srun says so
        [ -r "$text" ] || return 0
        while read -r line || [ -n "$line" ]; do
            line=${{line%%#*}}
            line=${{line//[[:space:]]/}}
            more+=${{line:+,$line}}
        done <"$text"
        ;;
    *) more=,$text ;;
    esac
    _aver_words[at]=$_aver_excluded_by$AVER_OTHER_NODES$more
}}

_aver_note() {{ # OPTION VALUE, and what stands before the value in its word
    case $1 in
    -J | --job-name) _aver_named=yes ;;
    -n | --ntasks) _aver_tasks=$2 ;;
    --ntasks-per-node | --tasks-per-node) _aver_each=$2 ;;
    -N | --nodes) _aver_nodes=$2 ;;
    -c | --cpus-per-task) _aver_has_cpus=yes _aver_cpus=$2 _aver_says_cpus=yes ;;
    --exact | --overlap) _aver_has_cpus=yes ;;
    -O | --overcommit) _aver_overcommits=yes ;;
    -x | --exclude) _aver_excluded_at=$_aver_count _aver_excluded_by=$3 ;;
    esac
}}

_aver_inherits() {{ # whether srun goes by the job's SLURM_CPUS_PER_TASK: in all releases but these
    case $("$_aver_srun" --version 2>/dev/null) in *" 22.05"* | *" 23.02"*) return 1 ;; esac
}}

_aver_share() {{ # in a part of an allocation: a task on each node, the CPUs of a node shared by its tasks
    local tasks=$_aver_tasks each=$_aver_each nodes=${{_aver_nodes:-$SLURM_JOB_NUM_NODES}}
    if [ -z "$tasks$each" ]; then # a batch script's own
        [ -z "$_aver_nodes" ] || each=$SLURM_NTASKS_PER_NODE
        [ -n "$each" ] || tasks=$SLURM_NTASKS
    fi
    if [ -n "$AVER_TASK_CPUS" ] && [ -n "$SLURM_CPUS_PER_TASK" ] && [ -z "$_aver_says_cpus" ] && _aver_inherits; then
        _aver_has_cpus=yes _aver_cpus=$SLURM_CPUS_PER_TASK
    fi
    nodes=${{nodes#*-}} # the most of them
    [[ $nodes$tasks$each =~ ^[0-9]+$ ]] && [ "$nodes" -gt 0 ] || return 0
    if [ -z "$tasks" ]; then
        tasks=$((nodes * ${{each:-1}}))
        _aver_only+=("-n$tasks")
    fi
    if [[ $_aver_cpus =~ ^[0-9]+$ ]] && [ -z "$_aver_overcommits$SLURM_OVERCOMMIT" ] &&
        [ "$((tasks * _aver_cpus))" -gt "$((nodes * AVER_NODE_CPUS))" ]; then # the allocation may have them, for others
        echo "srun: error: Unable to create step for job $SLURM_JOB_ID: More processors requested than permitted" >&2
        exit 1
    fi
    [ -n "$each" ] || each=$(((tasks + nodes - 1) / nodes))
    [ -n "$_aver_has_cpus" ] || [ "$each" -lt 1 ] || [ "$each" -gt "$AVER_NODE_CPUS" ] ||
        _aver_only+=("-c$((AVER_NODE_CPUS / each))")
}}

_aver_find srun "$0"
_aver_srun=$_aver_found
if [ -z "$_aver_srun" ]; then
    echo "srun: command not found (this is Aver's $0, and there is no other in PATH)" >&2
    exit 127
fi
_aver_words=("$@") _aver_only=() _aver_count=0 _aver_is_plain=
_aver_named= _aver_tasks= _aver_each= _aver_nodes= _aver_has_cpus= _aver_cpus=1 _aver_overcommits= _aver_says_cpus=
_aver_excluded_at= _aver_excluded_by=
if [ -z "$AVER_RECORD_KEY" ] || [ -z "$SLURM_JOB_ID" ] || [ -n "$SLURM_CONTAINER$SLURM_BCAST" ] || ! _aver_is_witness
then
    [ -n "$AVER_OTHER_NODES" ] || _aver_plain
    _aver_is_plain=yes
fi

_aver_pending= # an option whose value is the next word
while [ $# -gt 0 ]; do # up to the command
    if [ -n "$_aver_pending" ]; then
        _aver_note "$_aver_pending" "$1"
        _aver_pending=
    else
        case $1 in
        --)
            _aver_count=$((_aver_count + 1))
            shift
            break
            ;;
        {flags} | {glued} | {maybe}) _aver_note "${{1%%=*}}" "${{1#*=}}" "${{1%%=*}}=" ;;
        {values}) _aver_pending=$1 ;;
        {others}) _aver_is_plain=yes ;;
        {other_values}) _aver_is_plain=yes _aver_pending=$1 ;;
        --*) _aver_plain ;;
        -?*)
            _aver_letters=${{1#-}}
            while [ -n "$_aver_letters" ]; do
                case $_aver_letters in
                [{other_letters}]*) _aver_is_plain=yes ;;
                esac
                _aver_rest=${{_aver_letters#?}}
                case $_aver_letters in
                [{flag_letters}]*)
                    _aver_note "-${{_aver_letters%"$_aver_rest"}}"
                    _aver_letters=$_aver_rest
                    ;;
                [{value_letters}{other_letters}])
                    _aver_pending=-$_aver_letters
                    break
                    ;;
                [{value_letters}{maybe_letters}{other_letters}]*)
                    _aver_note "-${{_aver_letters%"$_aver_rest"}}" "$_aver_rest" "${{1%"$_aver_rest"}}"
                    break
                    ;;
                *) _aver_plain ;;
                esac
            done
            ;;
        *) break ;;
        esac
    fi
    _aver_count=$((_aver_count + 1))
    shift
done
[ $# -gt 0 ] && [ -z "$_aver_is_plain" ] || _aver_plain
for _aver_word in "$@"; do
    [ "$_aver_word" != : ] || _aver_plain # a step of several components
done
_aver_exclude
_aver_options=("${{_aver_words[@]:0:_aver_count}}")

_aver_program=$1
shift
_aver_name=() _aver_task=("$_aver_witness" task --records "$_aver_records" --key "$AVER_RECORD_KEY")
[ -z "$AVER_WARN_SIGNAL" ] || _aver_task+=(--heed "$AVER_WARN_SIGNAL")
if [ -z "$_aver_named" ]; then # a step has its command's name, and its tasks know that of the job
    _aver_name=("--job-name=${{_aver_program##*/}}")
    _aver_task+=(--env "SLURM_JOB_NAME=$SLURM_JOB_NAME")
fi
case $_aver_program in
*/*) ;;
*) # srun looks here, not on the node
    _aver_find "$_aver_program" ""
    _aver_program=${{_aver_found:-$_aver_program}}
    ;;
esac
if [ "${{SLURM_JOB_NUM_NODES:-1}}" != 1 ]; then # a node may not have the witness
    _aver_guard='[ -x "$0" ] && exec "$0" "$@"; while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
    _aver_task=(/bin/bash --posix -c "$_aver_guard" "${{_aver_task[@]}}")
fi
[ -z "$AVER_NODE_CPUS" ] || _aver_share
_aver_options=("${{_aver_name[@]}}" "${{_aver_only[@]}}" "${{_aver_options[@]}}")
exec "$_aver_srun" "${{_aver_options[@]}}" "${{_aver_task[@]}}" -- "$_aver_program" "$@"
"""

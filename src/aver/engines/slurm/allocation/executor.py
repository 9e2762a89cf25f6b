"""The batch script of an allocation: it takes orders from the shared folder and runs each as a step of srun.

Pure text; bash 4.2 or newer and Slurm's commands are all that the node needs. The folder of a run has

- `in/SEQ_CPUS_MIB_GPUS_SECONDS_KEY`: an order that nobody has taken. What it asks for is in its name, the rest in its
  lines; SECONDS must be left for it (0: any time will do), MIB 0 is no limit; CPUS `4x2` are 4 on each of 2 nodes for
  the steps that it makes, and MIB and GPUS are of each node as well; `4x2e` and `4e`: its lines name nodes that it does
  not run on;
- `orders/KEY.sh`: what runs;
- `started/NAME@JOB@NODES`: taken by the allocation JOB. It is a rename, so of an executor and a cancellation one wins;
- `steps/KEY/STEP`: a step that a job of `4x2` made itself. Slurm would let it outlive the job;
- `done/KEY`: srun has ended, with this exit status, and a newline when it is whole; `said/KEY` is what srun printed;
- `allocs/JOB`: the nodes of an allocation that has begun, `NAME CPUS MIB GPUS` each;
- `close`: nothing will come any more.

What always holds: an order is started once, by whoever renamed it. The executor needs no coordinator, and what it has
not taken the next allocation's takes. The oldest order that does not fit now has a node held for it: what starts past
it there must leave its room free, so nothing big waits for ever. A job of `4x2` is one process on the first of its
nodes, which takes no CPU from the steps that it makes; they have its nodes alone, and end with it. Ours begin with
`_aver_`: the environment is the jobs' own.
"""

from __future__ import annotations

import os

from aver.engines.slurm.submit.script import quote

LONGEST_MINUTES = 527_040  # a year: of an allocation without a limit
WARN_SLACK_S = 90  # Slurm looks at limits every 30 s and waits between TERM and KILL: our own limit comes after both


def executor_script(folder: str, headroom_s: int) -> bytes:
    """The script for sbatch. ValueError if the folder can't be said in a script."""
    if "\0" in folder or "\n" in folder:
        raise ValueError("the folder of an allocation can't have a newline in its path")
    settings = f"_aver_folder={quote(folder)} _aver_headroom={headroom_s}\n"
    constants = f"_aver_longest={LONGEST_MINUTES} _aver_slack={WARN_SLACK_S}\n"
    return os.fsencode("#!/bin/bash\n" + settings + constants + TIMES + _BODY)


TIMES = """\
_aver_minutes() { # REMAINING_S HEADROOM_S: whole minutes that a step may have, to $_aver_reply; 0: nothing may start
    _aver_reply=$((($1 - $2) / 60))
    [ "$(($1 - $2))" -ge 60 ] || _aver_reply=0
}
_aver_seconds() { # [DAYS-][[HOURS:]MINUTES:]SECONDS as squeue prints them, to $_aver_reply; fails for anything else
    [[ $1 =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]] || return 1
    _aver_reply=$((((10#0${BASH_REMATCH[2]} * 24 + 10#0${BASH_REMATCH[4]}) * 60 + 10#${BASH_REMATCH[5]}) * 60))
    _aver_reply=$((_aver_reply + 10#${BASH_REMATCH[6]}))
}
_aver_limits() { # MINUTES OWN_S SIGNAL LEAD_S SCOPE: for srun in $_aver_time, for the witness in AVER_STEP_*
    _aver_time=$1
    unset AVER_STEP_TIME AVER_STEP_WARN
    local end=$(($1 * 60)) limit=
    if [ "$2" -gt 0 ] && [ "$2" -le "$end" ]; then
        end=$2 limit=$2
        _aver_time=$((($2 + 59) / 60))
    fi
    if [ "$3" -gt 0 ]; then # a step's own --signal is taken by srun and comes to nothing, so the witness warns
        [ -n "$limit" ] || limit=$((end + _aver_slack))
        export AVER_STEP_WARN="$3 $((($4 + limit - end) * 1000)) $5"
    fi
    [ -z "$limit" ] || export AVER_STEP_TIME=$((limit * 1000))
}
"""

_BODY = """\
_aver_now() { printf -v _aver_reply '%(%s)T' -1; }
_aver_say() { printf '%(%H:%M:%S)T %s\\n' -1 "$1" >&2; }
_aver_ask_end() { # when this allocation ends, to $_aver_end; what was known stays where squeue does not say
    local left
    _aver_now
    _aver_asked=$_aver_reply
    left=$(squeue -h -j "$SLURM_JOB_ID" -o %L 2>/dev/null)
    if _aver_seconds "$left"; then
        _aver_end=$((_aver_asked + _aver_reply))
    elif [ "$left" = UNLIMITED ]; then
        _aver_end=$((_aver_asked + _aver_longest * 60))
    elif [ -z "$_aver_end" ] && [[ $SLURM_JOB_END_TIME =~ ^[0-9]+$ ]]; then
        _aver_end=$SLURM_JOB_END_TIME
    fi
}
_aver_left() { # how many minutes a step may have now, to $_aver_reply
    _aver_now
    if [ -z "$_aver_end" ] || [ "$((_aver_reply - _aver_asked))" -ge 60 ]; then
        _aver_ask_end
        _aver_now
    fi
    [ -n "$_aver_end" ] || { _aver_reply=0; return; }
    _aver_minutes "$((_aver_end - _aver_reply))" "$_aver_headroom"
}
_aver_learn() { # nodes, and what each has for us: free counts that go down and up
    local words word counts=() nodes=() list mib=0 gpus=0 many node place=0
    for word in ${SLURM_JOB_CPUS_PER_NODE//,/ }; do
        many=1
        [[ $word =~ ^([0-9]+)\\(x([0-9]+)\\)$ ]] && many=${BASH_REMATCH[2]} word=${BASH_REMATCH[1]}
        while [ "$many" -gt 0 ]; do counts+=("$word"); many=$((many - 1)); done
    done
    for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
        _aver_nodes+=("$node")
        _aver_cpus[$node]=${counts[place]:-1} _aver_mib[$node]=-1 _aver_gpus[$node]=0
        place=$((place + 1))
    done
    words=$(scontrol -d -o show job "$SLURM_JOB_ID")
    for word in $words; do
        case $word in
        Nodes=*) list=${word#Nodes=} ;;
        Mem=*) [ -z "$list" ] || mib=${word#Mem=} ;;
        GRES=*)
            [ -n "$list" ] || continue
            gpus=0
            for many in ${word//,gpu/ gpu}; do
                [[ $many =~ gpu(:[^:\\(]*)?:([0-9]+)(\\(|$) ]] && gpus=$((gpus + BASH_REMATCH[2]))
            done
            for node in $(scontrol show hostnames "$list"); do
                [[ $mib =~ ^[1-9][0-9]*$ ]] && _aver_mib[$node]=$mib
                _aver_gpus[$node]=$gpus
            done
            list=
            ;;
        esac
    done
    for node in "${_aver_nodes[@]}"; do
        _aver_has_gpus=$((_aver_has_gpus + _aver_gpus[$node]))
        _aver_free "$node"
        _aver_whole[$node]=$_aver_reply
        printf '%s %s\\n' "$node" "$_aver_reply"
    done >"allocs/.$SLURM_JOB_ID"
    mv "allocs/.$SLURM_JOB_ID" "allocs/$SLURM_JOB_ID"
}
_aver_bar() { # NAME: the nodes that its lines leave out, to $_aver_barred; fails where they can't be read
    local lines node
    mapfile -t lines 2>/dev/null <"in/$1"
    [ -n "${lines[6]}" ] || return 1
    for node in ${lines[6]}; do _aver_barred[$node]=1; done
    _aver_reply=${lines[6]}
}
_aver_place() { # CPUS MIB GPUS NAME NODES: so many nodes with room, to $_aver_places; fails where there are too few
    local node
    _aver_places=()
    for node in "${_aver_nodes[@]}"; do
        [ -z "${_aver_barred[$node]}" ] || continue
        _aver_free "$node"
        _aver_holds "$1" "$2" "$3" $_aver_reply || continue
        if [ -n "${_aver_spare[$node]}" ] && [ "$4" != "$_aver_waiter" ]; then
            _aver_holds "$1" "$2" "$3" ${_aver_spare[$node]} || continue
        fi
        _aver_places+=("$node")
        [ "${#_aver_places[@]}" -lt "$5" ] || return 0
    done
    return 1
}
_aver_free() { _aver_reply="${_aver_cpus[$1]} ${_aver_mib[$1]} ${_aver_gpus[$1]}"; }
_aver_holds() { # CPUS MIB GPUS, and what there is of each; no MIB: nothing is asked for, or (-1) nobody knows
    [ "$4" -ge "$1" ] && [ "$6" -ge "$3" ] && { [ "$2" -eq 0 ] || [ "$5" -lt 0 ] || [ "$5" -ge "$2" ]; }
}
_aver_hold() { # NAME CPUS MIB GPUS NODES: hold the emptiest nodes that are large enough for what does not fit now
    local node best most held=()
    local -A is_held=()
    while [ "${#held[@]}" -lt "$5" ]; do
        best= most=-1
        for node in "${_aver_nodes[@]}"; do
            if [ -z "${is_held[$node]}${_aver_barred[$node]}" ] && _aver_holds "$2" "$3" "$4" ${_aver_whole[$node]} &&
                [ "${_aver_cpus[$node]}" -gt "$most" ]; then
                best=$node most=${_aver_cpus[$node]}
            fi
        done
        [ -n "$best" ] || return 0 # it never fits
        held+=("$best") is_held[$best]=1
    done
    _aver_waiter=$1
    for node in "${held[@]}"; do
        _aver_spare[$node]=${_aver_whole[$node]}
        _aver_spend "$node" - "$2" "$3" "$4"
    done
}
_aver_spend() { # NODE SIGN CPUS MIB GPUS of what may start there past the waiter
    set -- "$@" ${_aver_spare[$1]}
    [ "$7" -lt 0 ] || set -- "$1" "$2" "$3" "$4" "$5" "$6" "$(($7 $2 $4))" "$8"
    _aver_spare[$1]="$(($6 $2 $3)) $7 $(($8 $2 $5))"
}
_aver_let_go() { _aver_waiter= _aver_spare=(); }
_aver_take() { # SIGN CPUS MIB GPUS WAITER NODE...: room goes (-) or comes back (+); WAITER was passed by
    local node
    for node in "${@:6}"; do
        _aver_cpus[$node]=$((_aver_cpus[$node] $1 $2)) _aver_gpus[$node]=$((_aver_gpus[$node] $1 $4))
        [ "${_aver_mib[$node]}" -lt 0 ] || _aver_mib[$node]=$((_aver_mib[$node] $1 $3))
        if [ -n "${_aver_spare[$node]}" ] && [ "$5" = "$_aver_waiter" ]; then
            _aver_spend "$node" "$1" "$2" "$3" "$4"
        fi
    done
}
_aver_several() { # KEY CPUS MIB: what a job whose steps have $_aver_places must know, in AVER_STEP_*
    local IFS=, node text others=()
    for node in "${_aver_nodes[@]}"; do
        [[ ,${_aver_places[*]}, == *,$node,* ]] || others+=("$node")
    done
    mkdir -p "steps/$1"
    text='#!/bin/bash\\n[ "$SLURM_LOCALID" != 0 ] || : >%q/"$SLURM_STEP_ID"\\n'
    printf "$text" "$_aver_folder/steps/$1" >"steps/$1.sh"
    chmod +x "steps/$1.sh"
    export AVER_STEP_NODES="${_aver_places[*]}" AVER_STEP_OTHERS="${others[*]}" AVER_STEP_CPUS=$2 AVER_STEP_MIB=$3
    export AVER_STEP_PROLOG=$_aver_folder/steps/$1.sh
}
_aver_end_steps() { # KEY: end the steps that a job left behind; its nodes are free when they are gone
    local listed step left tries=0
    while [ "$((tries += 1))" -le 120 ]; do
        left=("steps/$1"/*)
        [ "${#left[@]}" -gt 0 ] || break # it made none
        listed=$(squeue -h --steps -j "$SLURM_JOB_ID" -o %i 2>/dev/null) || listed=unknown
        left=()
        for step in "steps/$1"/*; do
            step=$SLURM_JOB_ID.${step##*/}
            [ "$listed" != unknown ] && [[ $'\\n'$listed$'\\n' != *$'\\n'$step$'\\n'* ]] || left+=("$step")
        done
        [ "${#left[@]}" -gt 0 ] || break
        case $tries in
        1) scancel --signal=TERM "${left[@]}" ;;
        *[05]) scancel "${left[@]}" ;;
        esac >/dev/null 2>&1
        sleep 0.5
    done
    rm -rf "steps/$1" "steps/$1.sh"
}
_aver_start() { # NAME CPUS MIB GPUS KEY MINUTES HAS_STEPS: claim it, run it on $_aver_places in the background
    local node=${_aver_places[0]} shown=${_aver_places[0]} lines own
    mapfile -t lines 2>/dev/null <"in/$1" # step's name, own limit, signal, lead, scope, deadline
    own=${lines[1]:-0}
    if [ "${lines[5]:-0}" -gt 0 ]; then
        _aver_now
        [ "$_aver_reply" -lt "${lines[5]}" ] || return 1 # it is too late for it
        [ "$own" -gt 0 ] && [ "$own" -le "$((lines[5] - _aver_reply))" ] || own=$((lines[5] - _aver_reply))
    fi
    if [ "${#_aver_places[@]}" -gt 1 ]; then
        shown=$(IFS=,; scontrol show hostlistsorted "${_aver_places[*]}")
        [ -n "$shown" ] && [ "${#shown}" -le 80 ] || shown=$node+$((${#_aver_places[@]} - 1))
    fi
    local file=started/$1@$SLURM_JOB_ID@$shown
    mv "in/$1" "$file" 2>/dev/null || [ -e "$file" ] || return 1 # cancelled, or another allocation's
    _aver_limits "$6" "$own" "${lines[2]:-0}" "${lines[3]:-0}" "${lines[4]:-p}"
    local words=(--exact -N1 -n1 "-c$2" "--mem=${3}M" "-w$node" "--time=$_aver_time" "--job-name=${lines[0]}")
    [ "$3" -gt 0 ] || words[4]=--mem=0
    if [ "$4" -gt 0 ]; then words+=("--gres=gpu:$4"); elif [ "$_aver_has_gpus" -gt 0 ]; then words+=(--gres=none); fi
    [ "$1" != "$_aver_waiter" ] || _aver_let_go
    _aver_rooms[$5]="$2 $3 $4 ${_aver_waiter:--} ${_aver_places[*]}"
    _aver_take - ${_aver_rooms[$5]}
    _aver_running=$((_aver_running + 1))
    {
        if [ -n "$7" ]; then
            _aver_several "$5" "$2" "$3"
            words+=(--overlap)
        fi
        srun "${words[@]}" --input=none /bin/bash --posix "orders/$5.sh" </dev/null >"said/$5" 2>&1 5>&-
        _aver_reply=$?
        [ -z "$7" ] || _aver_end_steps "$5" 5>&-
        printf '%s\\n' "$_aver_reply" >"done/$5"
        [ "$_aver_reply" -ne 1 ] || case $(<"said/$5") in *"srun: error: Unable to c"*) _aver_reply=255 ;; esac
        printf '%s %s\\n' "$5" "$_aver_reply" >&5
    } &
}
_aver_scan() { # start what fits, the oldest first
    local name rest cpus mib gpus seconds key nodes has_steps shape path minutes
    local -A full=()
    _aver_left
    minutes=$_aver_reply
    [ "$minutes" -gt 0 ] || return 0
    [ -e "in/$_aver_waiter" ] || _aver_let_go # cancelled, or another allocation's
    for path in in/*; do
        name=${path#in/} rest=${path#in/*_}
        cpus=${rest%%_*} rest=${rest#*_}
        mib=${rest%%_*} rest=${rest#*_}
        gpus=${rest%%_*} rest=${rest#*_}
        seconds=${rest%%_*} key=${rest#*_}
        nodes=1 has_steps= shape=
        _aver_barred=()
        case $cpus in
        *e)
            _aver_bar "$name" || continue # cancelled, or another allocation's
            cpus=${cpus%e} shape=$_aver_reply
            ;;
        esac
        case $cpus in *x*) nodes=${cpus#*x} cpus=${cpus%x*} has_steps=1 ;; esac
        shape=$cpus.$mib.$gpus.$nodes.$shape
        if [ "$seconds" -gt "$((minutes * 60))" ]; then
            [ "$name" != "$_aver_waiter" ] || _aver_let_go
            continue
        fi
        [ -z "${full[$shape]}" ] || continue
        if _aver_place "$cpus" "$mib" "$gpus" "$name" "$nodes"; then
            _aver_start "$name" "$cpus" "$mib" "$gpus" "$key" "$minutes" "$has_steps"
        else
            full[$shape]=1
            [ -n "$_aver_waiter" ] || _aver_hold "$name" "$cpus" "$mib" "$gpus" "$nodes"
            _aver_barred=()
            _aver_place 1 0 0 "" 1 || return 0 # no cpu is free
        fi
        [ -z "$_aver_stop" ] || return 0
    done
}
_aver_ended() { # KEY STATUS of a step
    _aver_take + ${_aver_rooms[$1]}
    unset '_aver_rooms[$1]'
    _aver_running=$((_aver_running - 1))
    [ "$2" -lt 128 ] || _aver_doubt=1
}
_aver_wait() { # for the end of a step, or a while; fails where there was none. All that have ended are heard
    local line='' rest=''
    if ! read -r -t "$1" -u 5 line; then
        [ -n "$line" ] || return 1
        read -r -u 5 rest # the time was over in the middle of a line
    fi
    _aver_ended $line$rest
    while read -t 0 -u 5; do
        read -r -u 5 line
        _aver_ended $line
    done
}
_aver_ask_state() { # a step that was killed, or was not made: is the allocation itself being ended?
    case $(squeue -h -j "$SLURM_JOB_ID" -o %T 2>/dev/null) in
    RUNNING) _aver_doubt= ;;
    '') ;; # no answer: nothing is started meanwhile
    *) _aver_stop=1 ;;
    esac
}

cd "$_aver_folder" || exit 1
for _aver_name in $(compgen -e SLURM_); do # srun takes these for its options; a step's are its own
    case $_aver_name in
    SLURM_JOB_ID | SLURM_JOBID | SLURM_CONF | SLURM_JWT | SLURM_JOB_END_TIME) ;;
    SLURM_CLUSTER* | SLURM_WORKING_CLUSTER | SLURM_JOB_NODELIST | SLURM_JOB_CPUS_PER_NODE) ;;
    SLURM_SUBMIT_* | SLURM_JOB_USER | SLURM_JOB_UID) ;;
    SLURM_JOB_PARTITION | SLURM_JOB_ACCOUNT | SLURM_JOB_QOS | SLURM_TOPOLOGY_*) ;;
    *) unset "$_aver_name" ;;
    esac
done
_aver_pipe=$(mktemp -u "${TMPDIR:-/tmp}/aver.XXXXXXXXXX") && mkfifo -m 600 "$_aver_pipe" || exit 1
exec 5<>"$_aver_pipe" # ends of steps come through here
rm -f "$_aver_pipe"
declare -A _aver_cpus=() _aver_mib=() _aver_gpus=() _aver_whole=() _aver_spare=() _aver_rooms=() _aver_barred=()
_aver_let_go
_aver_nodes=() _aver_running=0 _aver_has_gpus=0 _aver_end= _aver_asked=0
_aver_stop= _aver_doubt= _aver_quiet=0 _aver_pause=0.5
trap '_aver_stop=1' TERM
set -f # node lists have brackets
_aver_learn
set +f
shopt -s nullglob
_aver_say "began on ${_aver_nodes[*]}"
while :; do
    [ -z "$_aver_doubt" ] || _aver_ask_state
    [ -n "$_aver_stop$_aver_doubt" ] || _aver_scan
    if [ "$_aver_running" -eq 0 ]; then
        [ -z "$_aver_stop" ] || break
        [ ! -e close ] || break
        [ -e "$_aver_folder" ] || [ ! -d "${_aver_folder%/*}" ] || break # the run is over, and its folder was removed
        _aver_left
        [ "$_aver_reply" -gt 0 ] || break
    fi
    if _aver_wait "$_aver_pause"; then
        _aver_quiet=0 _aver_pause=0.5
    elif [ "$((_aver_quiet += 1))" -gt 60 ]; then
        _aver_pause=2
    fi
done
_aver_say "leaves"
{ : >"allocs/.left-$SLURM_JOB_ID"; } 2>/dev/null
exit 0
"""

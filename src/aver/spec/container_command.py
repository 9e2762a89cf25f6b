"""The command line that runs a job in an image, with apptainer, podman or docker.

A shell starts the engine and hands signals on to it. In the container the program's parent is the witness (`once`),
which leaves its exit record in a folder that both see; the shell then ends as the program ended. So exit codes and
signals are the program's own, where an engine alone would say 137 for both `exit 137` and KILL. The witness inside
ends all of it when the shell is gone: a container of docker's daemon is no descendant of ours that we could end. It
also counts who took the job's warning; if nobody did, the shell says so by its name, which its witness reads. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from aver.model.job import CONTAINER, Argv, Container, JobSpec, Scope
from aver.model.threads import VARIABLES
from aver.plan.placeholders import PARAMETER

ENGINES = ("podman", "apptainer", "docker")
_OWN = ("AVER_RUN", "AVER_JOB", "AVER_JOB_NAME", "AVER_ATTEMPT", "AVER_CPUS", CONTAINER)
_NAMES = (*_OWN, "CUDA_VISIBLE_DEVICES", *VARIABLES)
_RUN = 'run --rm --network=host --log-driver=none --cidfile "$d/id"'
_ENGINE_WORDS = {
    # Without cgroups of its own the container is in the job's: memory, CPUs and clean-up are the witness's.
    "podman": f"podman {_RUN} --cgroups=disabled --security-opt label=disable",
    "docker": f'docker {_RUN} --user "$(id -u):$(id -g)" '
    "--cpuset-cpus \"$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)\"",
    "apptainer": "apptainer exec",
}
_SIGNALS = "HUP INT QUIT USR1 USR2 ALRM TERM"
_START = f"""\
d=$(mktemp -d "${{TMPDIR:-/tmp}}/aver-XXXXXXXX") || exit 125
w=$(readlink "/proc/$PPID/exe")
case $w in */aver-witness*" (deleted)") cp "/proc/$PPID/exe" "$d/aver-witness" && w=$d/aver-witness;; esac
mkfifo "$d/alive" && exec 4<>"$d/alive" || exit 125
p= g=
for s in {_SIGNALS}; do trap "g=\\"\\$g $s\\"; [ -z \\"\\$p\\" ] || kill -$s \\$p" $s; done
exec 3<&0
"""
_END = """\
p=$!
exec 3<&-
for s in $g; do kill -$s $p; done
while :; do wait $p; r=$?; kill -0 $p 2>/dev/null || break; done
l=
[ -f "$d/end" ] && read -r l <"$d/end"
[ -z "$g" ] || REMOVE
case $l in
*'"to":'[1-9]*) ;;
*'"blocked":'*) printf aver-blocked >/proc/$$/comm;;
*'"raw":'*) printf aver-unheard >/proc/$$/comm;;
esac
rm -rf "$d"
case $l in
*'"raw":'[0-9]*) l=${l#*'"raw":'}; l=${l%%,*};;
*'"launch":{'*) [ $r != 127 ] || echo TOLD >&2; exit $r;;
*) exit $r;;
esac
s=$((l & 127))
[ $s != 0 ] || exit $((l >> 8))
ulimit -c 0
trap - $s 2>/dev/null
kill -$s $$
exit $((128 + s))
"""


def in_container(spec: JobSpec, name: str, args: tuple[str, ...], folders: Sequence[str] = ()) -> tuple[str, ...]:
    """The command as the job's engine starts it; as it is without a container. `folders` are seen inside as well."""
    container = spec.setup.container
    if container is None:
        return args
    # An engine that was signalled may leave the container itself behind.
    remove = ":" if container.engine == "apptainer" else f'{container.engine} rm -f "$(cat "$d/id")" >/dev/null 2>&1'
    end = _END.replace("REMOVE", remove).replace("TOLD", shlex.quote(_told(spec, container)))
    text = _START + _commands(spec, container, folders) + end
    return ("/bin/sh", "-c", text, name, *args)


def _commands(spec: JobSpec, container: Container, folders: Sequence[str]) -> str:
    """What puts the witness before the program where there is one, and starts the engine."""
    image, engine = shlex.quote(container.image), _ENGINE_WORDS[container.engine]
    warning = spec.step_warning or spec.warning
    heed = "" if warning is None else f"--heed {warning.signal} "
    once = f"once --record /.aver/end --lease /.aver/alive --relay {_relay(spec)} {heed}--"
    words = [engine, *map(shlex.quote, container.options)]
    if container.engine == "apptainer":
        words += [f"--bind {shlex.quote(one)}" for one in _binds(folders, container.mounts)]
        words += ['--bind "$PWD:$PWD"', '--pwd "$PWD"']
        seen = f'--bind "$w:/.aver-witness:ro" --bind "$d:/.aver" {image} /.aver-witness {once}'
        alone = f'set -- {image} "$@"'
    else:
        words += [f"-v {shlex.quote(one)}" for one in _binds(folders, container.mounts)]
        words += [f"-e {name}" for name in _environment(spec)]
        words += ['-v "$PWD:$PWD"', '-w "$PWD"', *(["-i"] if spec.streams.stdin is not None else [])]
        seen = f'-v "$w:/.aver-witness:ro" -v "$d:/.aver" --entrypoint /.aver-witness {image} {once}'
        alone = f'a=$1; shift; set -- --entrypoint "$a" {image} "$@"'
    return (
        f'case $w in */aver-witness*) set -- {seen} "$@";; *) {alone};; esac\n{" ".join(words)} "$@" <&3 3<&- 4<&- &\n'
    )


def _relay(spec: JobSpec) -> str:
    """Whom signals are for that come to the container: as `model.job.Scope` has it without one."""
    if spec.warning is not None and spec.warning.scope is Scope.SCRIPT:
        return "b"
    return "a" if isinstance(spec.command, Argv) else "p"


def _binds(folders: Sequence[str], mounts: Iterable[str]) -> list[str]:
    """Each as SOURCE:TARGET[:OPTIONS]; a path alone is the same inside."""
    found = [f"{folder}:{folder}" for folder in folders]
    for mount in mounts:
        source, _, rest = mount.partition(":")
        found.append(mount if rest.startswith("/") else f"{source}:{source}" + (f":{rest}" if rest else ""))
    return found


def _environment(spec: JobSpec) -> list[str]:
    """Names of variables that the container gets; their values are in nobody's command line."""
    axes = [] if spec.matrix is None else [name for name, _ in spec.matrix.axes]
    given = [] if spec.matrix is None else [name for row in spec.matrix.include for name, _ in row]
    params = [f"{PARAMETER}{name}" for name in (*axes, *given, *(name for name, _ in spec.params))]
    return list(dict.fromkeys([*_NAMES, *params, *(name for name, _ in spec.env)]))


def _told(spec: JobSpec, container: Container) -> str:
    if isinstance(spec.command, Argv):
        return f"aver: the program is not in the image {container.image}"
    return f"aver: the shell is not in the image {container.image}; choose one that is, such as shell: sh"

"""A command on another host, through the system's ssh and the user's own configuration of it.

One connection is shared by all calls (ControlMaster). The coordinator never asks anybody for anything (BatchMode): who
must type a password or a code opens the connection with `aver connect`. What always holds:

- The command's text is sent after the host's login shell has said that it is there. A call that never heard so has
  done nothing, for certain; a connection that is lost later is `Trouble` that may have begun.
- The host's shell says the command's own exit status. Without that word the status is unknown, whatever ssh says.
- A text that arrives late is not run, and what runs is ended at its time limit: see `longest_s`.
- Words and values go through the connection's stdin: no command line of this machine shows them.

The host's environment is that of a login shell of bash, where sites put Slurm into PATH, without Slurm's own variables.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import shlex
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from aver.engines.slurm.commands.call import Call, Here, Reply, Trouble, converse
from aver.model.host_name import is_host
from aver.model.record import replace

UNREACHABLE = "HostUnreachable"
LATE_S = 20  # a text that arrives later after the shell's first word is not run
LONGEST_SOCKET_BYTES = 85  # of 107: ssh binds a longer name first
PERSIST = "15m"
_IS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "KRB5CCNAME")
_OPTIONS = (
    "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=3", "ControlMaster=auto",
    f"ControlPersist={PERSIST}", "ClearAllForwardings=yes", "RequestTTY=no", "RemoteCommand=none", "LogLevel=ERROR",
)  # fmt: skip
_CLEAN = (
    "unset _aver_text _aver_since _aver_said",
    "for _aver_name in ${!SLURM_@} ${!SBATCH_@} ${!SALLOC_@} ${!SQUEUE_@} ${!SACCT_@} ${!SINFO_@} ${!SRUN_@}; do",
    "case $_aver_name in SLURM_CONF|SLURM_JWT) ;; *) unset $_aver_name ;; esac; done",
)
_MISSING, _NO_FOLDER = "missing", "folder"


@dataclass(frozen=True, slots=True)
class Ssh:
    """A `Transport` to one host. `words`: ssh as the settings have it; `agent`: the submitter's SSH_AUTH_SOCK."""

    host: str
    words: tuple[str, ...] = ("ssh",)
    agent: str | None = None
    _found: dict[str, str] = field(default_factory=dict, compare=False)

    def run(self, call: Call) -> Reply | Trouble:
        return self.run_after("", call)

    def run_after(self, before: str, call: Call) -> Reply | Trouble:
        """The same, with lines of bash in front, which may `return` a status instead."""
        lines = [
            f"_aver_program=$(type -P -- {shlex.quote(call.words[0])}) || {{ _aver_said={_MISSING}; return; }}",
            "_aver_env=$(type -P env) _aver_timeout=$(type -P timeout)",  # the call's PATH is for what it starts
            f'_aver_words=(${{_aver_timeout:+"$_aver_timeout" -k 5 {max(1, math.ceil(call.timeout_s))}}})',
            *(f"export {name}={shlex.quote(value)}" for name, value in call.env.items() if _IS_NAME(name)),
        ]
        odd = [shlex.quote(f"{name}={value}") for name, value in call.env.items() if not _IS_NAME(name)]
        if odd:
            lines.append(f'_aver_words+=("$_aver_env" {" ".join(odd)})')
        if call.umask >= 0:
            lines.append(f"umask {call.umask:04o}")
        if call.cwd is not None:
            lines.append(f"cd -- {shlex.quote(call.cwd)} 2>/dev/null || {{ _aver_said={_NO_FOLDER}; return; }}")
        lines += [before] if before else []
        rest = " ".join(map(shlex.quote, call.words[1:]))
        lines.append(f'"${{_aver_words[@]}}" "$_aver_program" {rest}')
        answer = self._ask("\n".join(lines), call)
        if isinstance(answer, Trouble):
            return answer
        status, reply = answer
        if status in (_MISSING, _NO_FOLDER):
            what = call.words[0] if status == _MISSING else call.cwd
            return Trouble(f"{what}: not found on {self.host}", began=False)
        return self._reply(status, reply)

    def run_text(self, text: str, timeout_s: float, stdin: bytes = b"") -> Reply | Trouble:
        """Run lines of bash, whose status is that of the last one or of `return`."""
        answer = self._ask(text, Call(("bash",), {}, timeout_s, stdin))
        return answer if isinstance(answer, Trouble) else self._reply(*answer)

    def command(self, *options: str, asks: bool = False) -> list[str]:
        """The words that call ssh, up to the host's name. `asks`: somebody is there to answer its questions."""
        words = [*self.words, "-T", "-o", f"BatchMode={'no' if asks else 'yes'}"]
        for option in (*_OPTIONS, *options):
            words += ["-o", option]
        path = self._control_path()
        return [*words, "-o", f"ControlPath={path}"] if path else words

    def environment(self) -> dict[str, str]:
        """Of the ssh on this machine."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        if self.agent is not None:
            kept["SSH_AUTH_SOCK"] = self.agent
        return {"PATH": os.defpath, **kept, "LC_ALL": "C"}

    def longest_s(self, timeout_s: float) -> float:
        """Seconds after which nothing of a call can run any more, even if the connection was lost."""
        return 2 * timeout_s + _late_s(timeout_s) + 10

    def _ask(self, text: str, call: Call) -> Trouble | tuple[str, Reply]:
        """Run the text: the word that says how it ended, and what it printed."""
        if "\0" in text:
            return Trouble(f"{call.words[0]}: a word has a NUL byte", began=False)
        mark = f"aver-{secrets.token_hex(12)}"
        begin = (
            f'printf "%s\\n" {mark}; printf "%s\\n" {mark} >&2; _aver_since=$SECONDS; IFS= read -r -d "" _aver_text '
            f'&& [ $((SECONDS - _aver_since)) -le {_late_s(call.timeout_s)} ] && eval "$_aver_text"'
        )
        whole = "\n".join([
            *_CLEAN, "_aver_do() {", text, "}", "_aver_do" + ("" if call.stdin else " </dev/null"),
            f"printf '\\n%s %s\\n' {mark} \"${{_aver_said:-$?}}\"",
        ])  # fmt: skip
        if not is_host(self.host):
            return Trouble(f"{self.host!r} is not the name of a host", began=False, reason=UNREACHABLE)
        words = (*self.command(), "--", self.host, f"exec bash -lc '{begin}'")
        stdin = whole.encode("utf-8", "surrogateescape") + b"\0" + call.stdin
        sent = Call(words, self.environment(), call.timeout_s, stdin)
        reply = converse(sent, ready=f"{mark}\n".encode())
        _, began, out = reply.out.partition(f"{mark}\n")
        err = reply.err.partition(f"{mark}\n")[2] if f"{mark}\n" in reply.err else reply.err
        printed, ended, status = out.rpartition(f"\n{mark} ")
        if ended and "\n" in status:
            return status.partition("\n")[0], Reply(0, printed, err, reply.took_s)
        if isinstance(reply, Trouble):
            why = reply.text
        elif began:
            why = "the connection was lost"
        else:
            why = err.strip().rpartition("\n")[2] or f"ssh: exit status {reply.status}"
        text = f"{self.host}: {why}"
        return Trouble(text[:500], bool(began), out, err, reply.took_s, UNREACHABLE)

    def _reply(self, status: str, reply: Reply) -> Reply | Trouble:
        if not status.isdecimal():
            return Trouble(f"{self.host}: its shell said {status[:80]!r}", True, reply.out, reply.err, reply.took_s)
        return replace(reply, status=int(status))

    def _control_path(self) -> str:
        """Our own socket; empty where the user's configuration has one for this host."""
        if "socket" not in self._found:
            asked = Here().run(Call((*self.words, "-G", "--", self.host), self.environment(), 10.0))
            lines = asked.out.splitlines() if isinstance(asked, Reply) and asked.status == 0 else []
            theirs = [line for line in lines if line.startswith("controlpath ") and line != "controlpath none"]
            self._found["socket"] = "" if theirs else _socket_path([*self.words, self.host])
        return self._found["socket"]


def _late_s(timeout_s: float) -> int:
    return min(LATE_S, math.ceil(timeout_s))


def _socket_path(words: Sequence[str]) -> str:
    """A short name in a folder that is ours alone; empty if there is none: then each call connects by itself."""
    name = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
    for place in places:
        folder = os.path.join(place, f"aver-ssh-{os.geteuid()}")
        path = os.path.join(folder, name)
        if not os.path.isabs(place) or len(os.fsencode(path)) > LONGEST_SOCKET_BYTES or "%" in path:
            continue
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            found = os.lstat(folder)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return path
    return ""

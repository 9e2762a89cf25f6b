"""Handing orders to the sbatch of another host, and hearing the records that lie there.

The script goes over the connection as sbatch's stdin. The job's environment is that of a login shell of the host, with
the variables of the flow: this machine's PATH and HOME mean nothing there. As with sbatch of here, whatever is not
clearly an answer is `Lost`, and the host's Slurm is asked for the name before anything is handed over again.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Collection, Iterator, Sequence

from aver.engines.api import Order
from aver.engines.slurm.batches import Batch, Shelf
from aver.engines.slurm.commands.call import Call, Commands, Reply, Trouble
from aver.engines.slurm.remote.host import Host, Layout
from aver.engines.slurm.submit.sbatch_answer import Answer, Refusal, Unreachable, read_submission
from aver.engines.slurm.submit.sbatch_call import chunks, member_of, sbatch_words, split_env
from aver.engines.slurm.submit.script import batch_script
from aver.engines.slurm.track.exit_records import LARGEST_RECORD_BYTES, parse_record, record_name
from aver.model.evidence import WitnessRecord
from aver.model.record import Record, replace

OF_HERE = ("AVER_HOME",)
MARGIN_S = 300  # of the folder's clock: a shared folder may show a file this late
ALL_EACH = 20  # every so often all records are looked at, however old they are
_REFUSED = re.compile(r"^aver: (.*)$", re.MULTILINE)


class RemoteHander(Record):
    """As `handing.Hander`, for a host."""

    host: Host
    commands: Commands
    timeout_s: float

    def chunks(self, orders: Sequence[Order], most: int) -> list[list[Order]]:
        return chunks(orders, most)

    def hand_over(self, batch: Batch, orders: Sequence[Order], shelf: Shelf) -> Answer:
        """Make the batch durable here and call sbatch there."""
        layout = self.host.layout()
        if isinstance(layout, Trouble):
            return Unreachable(layout.reason, layout.text)
        orders = [moved(order, layout) for order in orders]
        try:
            common, own = split_env([order.env for order in orders])
            members = [member_of(order, env, batch.is_array) for order, env in zip(orders, own, strict=True)]
            script = batch_script(members, witness=layout.witness, records=layout.records, shim=layout.shim)
            sbatch = self.commands.words("sbatch")
        except ValueError as error:
            return Refusal(f"it can't be handed to sbatch: {error}")
        batch.made_at = time.time()  # see `is_at_it`: the host may have been long in answering
        try:
            shelf.put(batch)
        except OSError as error:
            return Unreachable("CantWrite", f"can't write what is handed to sbatch: {error.strerror}")
        words = (*sbatch, *sbatch_words(batch, orders[0]))
        call = Call(words, dict(common), self.timeout_s, script, umask=orders[0].umask)
        reply = self.host.ssh.run_after(_made_ready(orders, layout.folder), call)
        if isinstance(reply, Reply) and reply.status == 1 and (said := _REFUSED.search(reply.err)) is not None:
            return Refusal(f"{said[1]} (on {self.host.ssh.host})")
        return read_submission(reply)

    def is_at_it(self, batch: Batch) -> bool:
        """Whether something may still hand this batch over: the host ends it after a time, and runs nothing late."""
        age_s = time.time() - batch.made_at
        return -60 < age_s < self.host.ssh.longest_s(self.timeout_s)


class RemoteRecords:
    """As `exit_records.Records`: one call for all that is new."""

    def __init__(self, host: Host, timeout_s: float) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self._since: int | None = None  # of the folder's clock; None: all are new
        self._count = 0
        self.trouble = ""
        self._seen: dict[str, str] = {}
        self._to_remove: set[str] = set()

    def new(self, names: Collection[str]) -> Iterator[tuple[str, str, str, WitnessRecord]]:
        self.trouble = ""
        layout = self._host.layout()
        if isinstance(layout, Trouble):
            self.trouble = layout.text
            return
        looks_at_all = self._since is None or self._count % ALL_EACH == 0
        since = "" if looks_at_all or self._since is None else f"-newermt @{self._since - MARGIN_S}"
        self._count += 1
        reply = self._host.ssh.run_text(
            _HEAR.format(records=shlex.quote(layout.records), since=since, size=LARGEST_RECORD_BYTES // 512),
            self._timeout_s,
        )
        if isinstance(reply, Trouble):
            self.trouble = reply.text
            return
        if reply.status != 0:  # the folder is gone: there are no records, and accounting has the word
            return
        clock, _, text = reply.out.partition("\n")
        if not clock.isdecimal():
            return
        for line in text.split("\n"):
            path, _, record = line.partition("\0")
            name = record_name(path.removeprefix("./"))
            if name is None or name[0] not in names or self._seen.get(path) == record:
                continue
            found = parse_record((record + "\n").encode("utf-8", "surrogateescape"))
            if found is not None and found[1].key == path.removeprefix("./"):
                self._seen[path] = record
                yield *name, *found
        self._since = int(clock)

    def remove(self, keys: Collection[str]) -> None:
        """What can't be removed now is removed with the next."""
        self._to_remove.update(keys)
        layout = self._host.layout()
        if isinstance(layout, Trouble) or not self._to_remove:
            return
        gone = sorted(self._to_remove)
        text = f'cd -- {shlex.quote(layout.records)} && while read -r key; do rm -rf -- "$key".r*; done'
        reply = self._host.ssh.run_text(text, self._timeout_s, "".join(f"{key}\n" for key in gone).encode())
        if isinstance(reply, Reply) and reply.status == 0:
            self._to_remove.clear()
        self._seen = {path: record for path, record in self._seen.items() if not _is_of(path, set(gone))}


def _is_of(path: str, keys: set[str]) -> bool:
    name = record_name(path.removeprefix("./"))
    return name is not None and name[0].rpartition(".r")[0] in keys


def moved(order: Order, layout: Layout) -> Order:
    """The order with the host's paths."""
    folders = order.sync.folders if order.sync is not None else ()

    def there(path: str | None) -> str | None:
        return None if path is None else layout.there(path, folders)

    return replace(
        order,
        folder=layout.there(order.folder, folders),
        stdin=there(order.stdin), stdout=there(order.stdout), stderr=there(order.stderr),
        env=tuple(pair for pair in order.env if pair.partition("=")[0] not in OF_HERE),
        own_parts=order.own_parts if there(order.stdout) == order.stdout else 0,  # a copy is in a folder of ours
    )  # fmt: skip


def copies_of(orders: Sequence[Order], base: str) -> list[str]:
    """Folders of copies that these orders, which have the host's paths, need."""
    outputs = (path for order in orders for path in (order.stdout, order.stderr) if path is not None)
    folders = dict.fromkeys((*(order.folder for order in orders), *map(os.path.dirname, outputs)))
    return [one for one in folders if one.startswith(f"{base}/")]


def _made_ready(orders: Sequence[Order], base: str) -> str:
    """Lines that make the folders of copies, and refuse what the host does not have: Slurm would run it elsewhere."""
    folders = dict.fromkeys(order.folder for order in orders)
    outputs = dict.fromkeys(
        os.path.dirname(path) for order in orders for path in (order.stdout, order.stderr) if path is not None
    )
    ours = copies_of(orders, base)
    lines = [f"mkdir -p -- {shlex.join(ours)} || return 1"] if ours else []
    for folder in (*folders, *outputs):
        if folder not in ours:
            name = shlex.quote(folder)
            lines.append(f'[ -d {name} ] || {{ printf "aver: %s\\n" "there is no folder "{name}": name it under '
                         'sync in the flow, or run where both machines see it" >&2; return 1; }')  # fmt: skip
    return "\n".join(lines)


_HEAR = """\
cd -- {records} && touch .clock && stat -c %Y .clock || return 1
find . -maxdepth 1 -type f -name '*.r[0-9]*' -size -{size} {since} -print0 | LC_ALL=C xargs -0 -r grep -aHZ -m1 ''
return 0
"""

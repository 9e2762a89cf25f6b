"""One question to the queue, one to accounting, for all jobs: in as many calls as a command line's length asks for.

What the site has is asked once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aver.engines.slurm.commands import sacct, squeue
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.commands.rows import AccountRow, Accounts, Disabled, NoAnswer, Queue, QueueRow
from aver.engines.slurm.commands.scontrol import Facts, ask_facts


class Questions:
    """Counts its calls, so that anybody can see how much it asks."""

    def __init__(self, commands: Commands, timeout_s: float) -> None:
        self.commands = commands
        self._timeout_s = timeout_s
        self.calls: Counter[str] = Counter()
        self._facts: Facts | None = None

    def queue(self, ids: Sequence[int], names: Sequence[str]) -> Queue | NoAnswer:
        """What the queue has of these; an answer only if every part of the question was answered."""
        rows: list[QueueRow] = []
        is_whole = True
        parts = [(squeue.by_ids(part), len(part)) for part in squeue.chunks([str(one) for one in ids])]
        parts += [(squeue.by_names(part), 0) for part in squeue.chunks(names)]
        for words, asked in parts:
            self.calls["squeue"] += 1
            answer = squeue.read_queue(self.commands.call(words, timeout_s=self._timeout_s), asked)
            if isinstance(answer, NoAnswer):
                return answer
            rows += answer.rows
            is_whole = is_whole and answer.is_whole
        return Queue(tuple(rows), is_whole)

    def accounting(self, ids: Sequence[int], names: Sequence[str], since: float) -> Accounts | Disabled | NoAnswer:
        """What accounting has of these, from `since` on."""
        rows: list[AccountRow] = []
        is_whole = True
        parts = [sacct.by_ids(part, since) for part in squeue.chunks([str(one) for one in ids])]
        parts += [sacct.by_names(part, since) for part in squeue.chunks(names)]
        for words in parts:
            self.calls["sacct"] += 1
            answer = sacct.read_accounts(self.commands.call(words, timeout_s=self._timeout_s))
            if isinstance(answer, (Disabled, NoAnswer)):
                return answer
            rows += answer.rows
            is_whole = is_whole and answer.is_whole
        return Accounts(tuple(rows), is_whole)

    def facts(self) -> Facts:
        """What the site has; nothing is known of it until it answers."""
        if self._facts is None:
            self.calls["scontrol"] += 1
            facts = ask_facts(self.commands, self._timeout_s)
            if not isinstance(facts, Facts):
                return Facts()
            self._facts = facts
        return self._facts

    def forget_facts(self) -> None:
        """Forget the site's facts, which have changed; the next question asks for them again."""
        self._facts = None

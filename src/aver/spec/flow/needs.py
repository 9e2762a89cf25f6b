"""`needs:` of a job, in all its forms.

    needs: prep
    needs: [prep, "shard-*", "train[seed=2]"]
    needs: {prep: any, build: failure, train: [TIMEOUT, CHECKPOINTED]}
    needs: {all_of: [prep], any_of: [mirror-a, mirror-b]}
    needs: ["prep[sample={sample}]"]             each member its own
    needs: {prep: same}                          the same, for all axes that both have

Whether the jobs exist is checked later, by `spec.flow.graph`, when all of them are known.
"""

from __future__ import annotations

from aver.model.job import Need, Needs, Outcome
from aver.model.record import Record
from aver.model.states import SETTLED, State
from aver.plan.address import SAME, Address, parse_address
from aver.spec.document import Entry, Mapping, Scalar, Sequence, Value
from aver.spec.mistakes import did_you_mean, shown
from aver.spec.values import Reader

GROUPS = ("all_of", "any_of")
_OUTCOMES = tuple(outcome.value for outcome in Outcome)
_STATES = tuple(sorted(state.value for state in SETTLED))


class NeedAt(Record, eq=False):
    """A need, its address, and where it was written."""

    need: Need
    address: Address
    place: Scalar


class ReadNeeds(Record, eq=False):
    """What was read; jobs that share one YAML alias share one of these."""

    needs: Needs
    written: tuple[NeedAt, ...]


NO_NEEDS = ReadNeeds(Needs(), ())


def read_needs(entry: Entry, reader: Reader) -> ReadNeeds:
    """All needs that could be read; mistakes are noted."""
    reading = _Reading(entry.key, reader)
    value = entry.value
    all_of: list[Need] = []
    any_of: list[tuple[Need, ...]] = []
    if isinstance(value, Mapping):
        for name, part in value.entries.items():
            if name == "all_of":
                all_of += reading.several(part.value)
            elif name == "any_of":
                any_of += reading.groups(part)
            else:
                all_of += reading.edge(part)
    else:
        all_of += reading.several(value)
    if not reading.written:
        return NO_NEEDS
    return ReadNeeds(Needs(tuple(all_of), tuple(any_of)), tuple(reading.written))


class _Reading:
    def __init__(self, key: Scalar, reader: Reader) -> None:
        self.key = key
        self.reader = reader
        self.written: list[NeedAt] = []

    def several(self, value: Value) -> list[Need]:
        """A name, a list of names and maps, or a map of names."""
        match value:
            case Scalar():
                return self.name(value)
            case Mapping():
                return [need for part in value.entries.values() for need in self.edge(part)]
            case Sequence():
                found: list[Need] = []
                for item in value.items:
                    if isinstance(item, Sequence):
                        self.reader.wrong(Entry(self.key, item), "must be a list of names, not of lists")
                    else:
                        found += self.several(item)
                return found

    def groups(self, part: Entry) -> list[tuple[Need, ...]]:
        """`any_of`: one group, or a list of groups."""
        value = part.value
        if isinstance(value, Sequence) and value.items and all(isinstance(one, Sequence) for one in value.items):
            groups = [tuple(self.several(item)) for item in value.items]
        else:
            groups = [tuple(self.several(value))]
        kept = [group for group in groups if group]
        if len(kept) < len(groups) and not len(self.reader.mistakes):
            self.reader.wrong(part, "is an empty list: it could never be met")
        return kept

    def name(self, value: Scalar, outcome: Outcome = Outcome.SUCCESS, states: tuple[State, ...] = ()) -> list[Need]:
        text = self.reader.text_of(Entry(self.key, value), value)
        if text is None:
            return []
        if not text.strip():
            self.reader.wrong(Entry(self.key, value), "has an empty name")
            return []
        try:
            address = parse_address(text)
        except ValueError as error:
            self.reader.wrong(Entry(self.key, value), f"is wrong: {error}")
            return []
        need = Need(text, outcome, states)
        self.written.append(NeedAt(need, address, value))
        return [need]

    def edge(self, part: Entry) -> list[Need]:
        """`name: outcome`, `name: STATE`, `name: [STATE, STATE]` or `name: same`."""
        value = part.value
        if isinstance(value, Scalar) and value.value == SAME:
            text = f"{part.key.text}[{SAME}]"
            return self.name(part.key._replace(text=text, value=text))
        if part.key.text in GROUPS:
            self.reader.mistakes.add(part.key, f"{shown(part.key.text)} can't stand inside a list of needs")
            return []
        if isinstance(value, Scalar) and value.value in _OUTCOMES:
            return self.name(part.key, Outcome(str(value.value)))
        items = value.items if isinstance(value, Sequence) else (value,)
        states = [self._state(part, item) for item in items]
        known = tuple(state for state in states if state is not None)
        if not items:
            self.reader.wrong(part, "has an empty list of states")
        return self.name(part.key, Outcome.SUCCESS, known)

    def _state(self, part: Entry, item: Value) -> State | None:
        text = self.reader.text_of(part, item)
        if text is None:
            return None
        if text in _STATES:
            return State(text)
        known = (*_OUTCOMES, SAME, *_STATES)
        hint = f'write "{text.upper()}"' if text.upper() in _STATES else did_you_mean(text, known)
        hint = hint or "write success, failure, any, same, or a list of states such as [FAILED, TIMEOUT]"
        self.reader.wrong(Entry(part.key, item), f"can't end as {shown(text)}", hint)
        return None

"""The planner against a model that is too simple to be wrong and too slow to be used.

The model works everything out again from the states of all jobs after each event. Hypothesis draws
flows (edges, conditions, matrices, needs of single members, groups, globs), outcomes, corrections, retries,
cancellations, generated jobs and crashes; after each event planner and model must agree on every job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.model.job import Argv, Condition, FlowSpec, JobSpec, Matrix, Need, Needs, Outcome
from aver.model.reasons import CONDITION_NOT_MET, counts_as_success, parse_need_reason
from aver.model.states import State
from aver.plan import planner
from aver.plan.matrix import FlowIndex, Members
from aver.plan.placeholders import fill
from aver.plan.planner import Cancel, CancelAll, Instruction, Plan, RunCancel, Skip, SkipAll, Start, Unskip

FAILURES = {"FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "DEADLINE"}
ENDS = [
    State.COMPLETED,
    State.COMPLETED,
    State.COMPLETED,
    State.FAILED,
    State.OUT_OF_MEMORY,
    State.CANCELLED,
    State.UNVERIFIED,
    State.CHECKPOINTED,
]


@dataclass
class Model:
    """What must be so. Knows jobs by name only."""

    specs: dict[str, JobSpec] = field(default_factory=dict)
    spec_of: dict[str, JobSpec] = field(default_factory=dict)
    state: dict[str, State | None] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    means: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # (job, text) to names
    run_cancel: RunCancel = RunCancel.NO
    was_skipped: set[str] = field(default_factory=set)  # before this event

    def add(self, flow: FlowSpec) -> None:
        index = FlowIndex(flow)
        for job, name in enumerate(index.names()):
            self.spec_of[name] = index.spec(job)
            self.state[name] = None
        for spec in flow.jobs:
            self.specs[spec.name] = spec
        for job in index.names():
            for need in every(self.spec_of[job]):
                self.means[job, need.job] = [
                    name for name, its in self.spec_of.items() if matches(need.job, name, its.name, values_of(job))
                ]

    def above(self, job: str) -> list[str]:
        return list(dict.fromkeys(up for need in every(self.spec_of[job]) for up in self.means[job, need.job]))

    def edge(self, job: str, need: Need) -> str:
        states = [self.state[name] for name in self.means[job, need.job]]
        ended = [state for state in states if state is not None]
        if not need.states and need.outcome is Outcome.FAILURE:
            if any(state in FAILURES for state in ended):
                return "met"
            return "dead" if len(ended) == len(states) else "waiting"
        wanted: set[State] = set(need.states) or ({State.COMPLETED} if need.outcome is Outcome.SUCCESS else set(State))
        if any(state not in wanted for state in ended):
            return "dead"
        return "met" if len(ended) == len(states) else "waiting"

    def trouble(self, name: str, known: dict[str, str] | None = None) -> str:
        known = {} if known is None else known
        if name not in known:
            known[name] = self._trouble(name, known)
        return known[name]

    def _trouble(self, name: str, known: dict[str, str]) -> str:
        state = self.state[name]
        if state is None:
            return "unknown"
        if state is not State.SKIPPED:
            return "tainted" if state in FAILURES else "clean"
        above = {self.trouble(up, known) for up in self.above(name)}
        return "tainted" if "tainted" in above else "unknown" if "unknown" in above else "clean"

    def gate(self, job: str) -> str:
        spec, above = self.spec_of[job], self.above(job)
        if spec.condition is Condition.NEEDS:
            terms = [self.edge(job, need) for need in spec.needs.all_of]
            for group in spec.needs.any_of:
                edges = {self.edge(job, need) for need in group}
                terms.append("met" if "met" in edges else "waiting" if "waiting" in edges else "dead")
            return "dead" if "dead" in terms else "waiting" if "waiting" in terms else "met"
        are_settled = all(self.state[up] is not None for up in above)
        if spec.condition is Condition.ALWAYS:
            return "met" if are_settled else "waiting"
        known: dict[str, str] = {}
        troubles = {self.trouble(up, known) for up in above}
        if troubles <= {"clean"}:
            return "dead"
        return "met" if are_settled and "tainted" in troubles else "waiting"

    def take_back(self) -> None:
        self.was_skipped = {name for name, state in self.state.items() if state is State.SKIPPED}
        again = True
        while again:
            again = False
            for name, state in self.state.items():
                if state is State.SKIPPED and self.gate(name) != "dead":
                    self.state[name] = None
                    again = True

    def go_on(self) -> None:
        """What was skipped before the run was cancelled stays so while its cause does; all else is cancelled."""
        self.follow()
        for name in self.was_skipped:
            if self.state[name] is None and self.is_cancelled(name):
                self.state[name] = State.CANCELLED
        self.was_skipped = set()
        self.follow()

    def is_cancelled(self, name: str) -> bool:
        is_spared = self.spec_of[name].condition is Condition.ALWAYS and self.run_cancel is RunCancel.FINISHERS_RUN
        return self.run_cancel is not RunCancel.NO and not is_spared

    def follow(self) -> None:
        again = True
        while again:
            again = False
            for name, state in self.state.items():
                if state is not None or name in self.started:
                    continue
                gate = self.gate(name)
                if self.is_cancelled(name) and name not in self.was_skipped:
                    self.state[name] = State.CANCELLED
                elif gate == "dead":
                    self.state[name] = State.SKIPPED
                elif gate == "met" and not self.is_cancelled(name):
                    self.started.add(name)
                else:
                    continue
                again = True

    def settle(self, name: str, state: State) -> None:
        self.state[name] = None
        self.take_back()
        self.state[name] = state
        self.started.discard(name)
        self.go_on()

    def reopen(self, names: list[str]) -> None:
        self.run_cancel = RunCancel.NO
        for name in names:
            self.state[name] = None
        self.take_back()
        self.go_on()


def every(spec: JobSpec) -> list[Need]:
    return [*spec.needs.all_of, *(need for group in spec.needs.any_of for need in group)]


def values_of(name: str) -> dict[str, str]:
    """`{"m": "1"}` of `a0[m=1]`."""
    inside = name.partition("[")[2].rstrip("]")
    return dict(pair.split("=") for pair in inside.split(",")) if inside else {}


def matches(text: str, name: str, spec_name: str, own: dict[str, str]) -> bool:
    """Whether a need in a job with these values means the job of this name."""
    base, its = text.partition("[")[0], values_of(name)
    if base != spec_name and not (base.endswith("*") and spec_name.startswith(base[:-1])):
        return False
    if text.endswith("[same]"):
        return all(its[axis] == own[axis] for axis in its.keys() & own.keys())
    wanted = {axis: own.get(value[1:-1], value) for axis, value in values_of(text).items()}
    return all(axis in its and value in ("*", its[axis]) for axis, value in wanted.items())


@st.composite
def flows(draw: st.DrawFn, prefix: str, known: tuple[JobSpec, ...] = ()) -> FlowSpec:
    specs: list[JobSpec] = []
    for at in range(draw(st.integers(1, 6))):
        above = (*known, *specs)
        matrix = draw(matrices())
        needs = Needs()
        if above:
            some = edges(above, prefix, axes_of(matrix))
            all_of = draw(st.lists(some, max_size=3))
            any_of = draw(st.lists(st.lists(some, min_size=1, max_size=3), max_size=1))
            needs = Needs(tuple(all_of), tuple(tuple(group) for group in any_of))
        condition = draw(st.sampled_from([*[Condition.NEEDS] * 3, Condition.ALWAYS, *[Condition.FAILURE] * 2]))
        background = draw(st.booleans())
        name = f"{prefix}{at}"
        specs.append(
            JobSpec(name, Argv(("true",)), needs=needs, condition=condition, matrix=matrix, background=background)
        )
    return FlowSpec(prefix, tuple(draw(st.permutations(specs))))


@st.composite
def matrices(draw: st.DrawFn) -> Matrix | None:
    """None, one axis or two, with fewer or more values; some as a zip, or with a member left out."""
    size = draw(st.sampled_from([None, None, 1, 2, 3]))
    if size is None:
        return None
    axes = [("m", tuple(str(n) for n in range(size)))]
    width = draw(st.sampled_from([None, None, 1, 2]))
    if width is not None:
        axes.insert(draw(st.integers(0, 1)), ("k", tuple(str(n) for n in range(width))))
    is_zip = width == size and draw(st.booleans())
    gaps = ((("m", "0"), ("k", "0")),) if width == size == 2 and draw(st.booleans()) else ()
    return Matrix(tuple(axes), is_zip, exclude=gaps)


def axes_of(matrix: Matrix | None) -> dict[str, tuple[str, ...]]:
    return {} if matrix is None else dict(matrix.axes)


def rows(matrix: Matrix | None, axes: list[str]) -> set[tuple[str, ...]]:
    return {tuple(dict(member.values)[axis] for axis in axes) for member in Members(matrix)} if matrix else set()


@st.composite
def edges(draw: st.DrawFn, above: tuple[JobSpec, ...], prefix: str, own: dict[str, tuple[str, ...]]) -> Need:
    spec = draw(st.sampled_from(above))
    texts = [spec.name]
    axes = axes_of(spec.matrix)
    if spec.matrix is not None:
        texts += [f"{spec.name}[m=1]" if ("1",) in rows(spec.matrix, ["m"]) else spec.name, f"{spec.name}[m=*]"]
    for axis in axes:
        texts += [
            f"{spec.name}[{axis}={{{mine}}}]"
            for mine, its in own.items()
            if {(one,) for one in its} <= rows(spec.matrix, [axis])
        ]
    shared = [axis for axis in own if axis in axes]
    if shared and set(product(*[own[axis] for axis in shared])) <= rows(spec.matrix, shared):
        texts += [f"{spec.name}[same]"] * 2
    if not spec.name.startswith(prefix):
        texts.append(f"{spec.name[0]}*")
    states = draw(st.sampled_from([(), (), (), (State.COMPLETED, State.FAILED), (State.SKIPPED,)]))
    outcome = draw(st.sampled_from([Outcome.SUCCESS, Outcome.SUCCESS, Outcome.ANY, Outcome.FAILURE]))
    return Need(draw(st.sampled_from(texts)), outcome, states)


@pytest.fixture(autouse=True, scope="module", params=[2, 32])
def many(request: pytest.FixtureRequest) -> Iterator[None]:
    """How many jobs in a row are told as one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planner, "MANY", request.param)
        yield


def each_job(instructions: list[Instruction]) -> Iterator[Start | Skip | Unskip | Cancel]:
    for one in instructions:
        match one:
            case SkipAll():
                yield from (Skip(job, one.reason, one.detail) for job in range(one.first, one.last + 1))
            case CancelAll():
                yield from map(Cancel, range(one.first, one.last + 1))
            case _:
                yield one


class Run:
    """Plan and model side by side, and what a coordinator would have stored."""

    def __init__(self, flow: FlowSpec) -> None:
        self.flows = [flow]
        self.plan = Plan(flow)
        self.model = Model()
        self.model.add(flow)
        self.names = list(FlowIndex(flow).names())
        self.stored: dict[str, State | None] = dict.fromkeys(self.names)
        self.started: set[str] = set()
        self.model.go_on()
        self.apply(self.plan.begin())

    def number(self, name: str) -> int:
        return self.names.index(name)

    def store(self, name: str, state: State | None) -> None:
        self.stored[name] = state
        self.started.discard(name)

    def apply(self, instructions: list[Instruction]) -> None:
        """Do as told, and compare everything."""
        for one in each_job(instructions):
            name = self.names[one.job]
            match one:
                case Start():
                    assert self.stored[name] is None
                    assert name not in self.started
                    self.started.add(name)
                case Skip():
                    assert self.stored[name] in (None, State.SKIPPED)
                    assert name not in self.started
                    self.stored[name] = State.SKIPPED
                    self.check_reason(name, one)
                case Unskip():
                    assert self.stored[name] in (None, State.SKIPPED)
                    self.stored[name] = None
                case Cancel():
                    assert self.stored[name] in (None, State.SKIPPED)
                    self.store(name, State.CANCELLED)
        assert self.stored == self.model.state
        assert self.started == self.model.started
        assert [self.plan.state(job) for job in range(self.plan.count)] == [self.stored[name] for name in self.names]
        self.check_summary()

    def check_reason(self, name: str, skip: Skip) -> None:
        spec = self.model.spec_of[name]
        if skip.reason == CONDITION_NOT_MET:
            assert spec.condition is Condition.FAILURE
            assert counts_as_success(skip.reason)
            return
        found = parse_need_reason(skip.reason)
        assert found is not None
        if found.need in self.model.state:
            assert found.need in set(self.model.above(name))
            assert self.model.state[found.need] is found.state
        else:  # as the need is written, with the member's values
            own = values_of(name)
            written = [fill(need.job, own) for need in every(spec)]
            assert found.need in written or any(text.endswith("[same]") for text in written)

    def check_summary(self) -> None:
        left = [name for name, state in self.stored.items() if state is None]
        assert self.plan.settled_count == len(self.stored) - len(left)
        assert self.plan.is_settled == (not left)
        needed = {spec.name for spec in self.model.specs.values() if not spec.background}
        waiting = list(needed)
        while waiting:
            name = waiting.pop()
            jobs = [job for job, its in self.model.spec_of.items() if its.name == name]
            above = {self.model.spec_of[up].name for job in jobs for up in self.model.above(job)} - needed
            needed |= above
            waiting += above
        assert self.plan.promoted == {name for name in needed if self.model.specs[name].background}
        assert self.plan.is_foreground_settled == (not any(self.model.spec_of[name].name in needed for name in left))
        for name in left:
            waits = self.plan.waits_for(self.number(name))
            is_waiting = name not in self.started and self.model.gate(name) == "waiting"
            if self.model.spec_of[name].condition is not Condition.FAILURE:
                assert bool(waits) == is_waiting

    def crash(self, running: set[str]) -> None:
        """A new plan from what was stored. Jobs that were only told to start are PENDING in the store."""
        self.plan = Plan(self.flows[0])
        for flow in self.flows[1:]:
            assert self.plan.add(flow) == []
        self.started &= running
        self.model.started &= running
        self.model.go_on()
        states = [State.RUNNING if name in running else self.stored[name] for name in self.names]
        self.apply(self.plan.restore(states, self.model.run_cancel))


@settings(max_examples=300)
@given(st.data())
def test_planner_and_model_agree_whatever_happens(data: st.DataObject) -> None:
    """Each job is settled once and as the model says: through outcomes, corrections, retries, cancels and crashes."""
    run = Run(data.draw(flows("a")))
    for _ in range(data.draw(st.integers(0, 25))):
        settled = [name for name, state in run.stored.items() if state is not None]
        started = sorted(run.started)
        kinds = ["end"] * 6 + ["crash", "cancel", "correct", "reopen", "cancel run", "add"]
        match data.draw(st.sampled_from(kinds)):
            case "end" if started:
                name, state = data.draw(st.sampled_from(started)), data.draw(st.sampled_from(ENDS))
                run.model.settle(name, state)
                run.store(name, state)
                run.apply(run.plan.settle(run.number(name), state))
            case "correct" if settled:
                name, state = data.draw(st.sampled_from(settled)), data.draw(st.sampled_from(ENDS))
                if run.stored[name] is not state:
                    run.model.settle(name, state)
                run.store(name, state)
                run.apply(run.plan.settle(run.number(name), state))
            case "reopen" if settled:
                names = data.draw(st.lists(st.sampled_from(settled), min_size=1, max_size=3, unique=True))
                run.model.reopen(names)
                for name in names:
                    run.store(name, None)
                run.apply(run.plan.reopen_all([run.number(name) for name in names]))
            case "cancel":
                name = data.draw(st.sampled_from(run.names))
                if run.stored[name] is None:
                    run.model.settle(name, State.CANCELLED)
                told = run.plan.cancel(run.number(name))
                run.apply(told)
                assert run.plan.cancel(run.number(name)) == []
            case "cancel run":
                how = data.draw(st.sampled_from((RunCancel.FINISHERS_RUN, RunCancel.NOW)))
                if run.model.run_cancel is not RunCancel.NOW:
                    run.model.run_cancel = how
                run.model.go_on()
                told = run.plan.cancel_run(how, most=data.draw(st.none() | st.integers(1, 3)))
                while run.plan.is_cancelling:
                    told += run.plan.cancel_more(most=2)
                run.apply(told)
                assert run.plan.cancel_run(how) == []
            case "add" if len(run.flows) < 3:
                known = tuple(spec for flow in run.flows for spec in flow.jobs)
                flow = data.draw(flows("bc"[len(run.flows) - 1], known))
                run.flows.append(flow)
                run.model.add(flow)
                run.names += FlowIndex(flow).names()
                run.stored.update(dict.fromkeys(FlowIndex(flow).names()))
                run.model.go_on()
                run.apply(run.plan.add(flow))
            case "crash":
                run.crash({name for name in started if data.draw(st.booleans())})
            case _:
                pass
    while run.started:
        name, state = sorted(run.started)[0], data.draw(st.sampled_from(ENDS))
        run.model.settle(name, state)
        run.store(name, state)
        run.apply(run.plan.settle(run.number(name), state))
    assert run.plan.is_settled, "a job waits for ever"
    assert run.plan.run_state() is not None


@settings(max_examples=100)
@given(flows("a"), st.data())
def test_the_order_in_which_jobs_end_changes_no_state(flow: FlowSpec, data: st.DataObject) -> None:
    """When each job's own outcome is fixed, two orders of the same ends settle every job in the same state."""
    outcome = {name: data.draw(st.sampled_from(ENDS)) for name in FlowIndex(flow).names()}
    results = []
    for _ in range(2):
        plan = Plan(flow)
        started = [one.job for one in plan.begin() if isinstance(one, Start)]
        while started:
            job = started.pop(data.draw(st.integers(0, len(started) - 1)))
            told = plan.settle(job, outcome[plan.name(job)])
            assert not any(isinstance(one, Unskip) for one in told), "the first verdict was not the right one"
            started += [one.job for one in told if isinstance(one, Start)]
        assert plan.is_settled
        results.append([plan.state(job) for job in range(plan.count)])
    assert results[0] == results[1]

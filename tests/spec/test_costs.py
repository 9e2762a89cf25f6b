"""Small files of large cost: what a few bytes ask for is counted before it is made.

Each text is read by a process of its own that the kernel ends at its limits: there is no clock in these tests.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from aver.model.job import Matrix
from aver.plan import matrix as expand
from aver.plan.matrix import Members
from aver.spec.flow.file import parse_flow

CPU_S = 10
MEMORY_BYTES = 700 << 20
READ = """
import sys
from aver.plan.matrix import FlowIndex
from aver.plan.planner import Plan
from aver.spec.flow.file import parse_flow
from aver.spec.mistakes import SpecError
try:
    flow = parse_flow(sys.stdin.buffer.read(), "flow.yaml", now=0.0)
except SpecError as error:
    print(error)
else:
    Plan(flow)
    print("jobs:", FlowIndex(flow).count)
"""


def read(text: str) -> str:
    """What is said of the flow, within the limits."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    done = subprocess.run(
        [sys.executable, "-c", READ], input=text.encode(), capture_output=True, preexec_fn=limit, check=False
    )
    assert done.returncode == 0, f"ended by {done.returncode}: {done.stderr.decode()[-300:]}"
    return done.stdout.decode().strip()


def matrix(inside: str) -> str:
    return f'jobs: {{a: {{run: "echo {{n}} {{m}}", matrix: {{{inside}}}}}}}'


def test_a_value_that_is_there_twice_among_many() -> None:
    """63 bytes."""
    said = read('jobs: {a: {run: "echo {n}", matrix: {n: [1..999999, 999999]}}}')
    assert 'has the value "999999" twice' in said


def test_a_zipped_member_that_is_there_twice_among_many() -> None:
    said = read(matrix("zip: true, n: [1..200000, 200000], m: [1..200000, 200000]"))
    assert 'has the member "200000,200000" twice' in said


def test_many_jobs_with_large_matrices() -> None:
    """Members of all jobs count together, and nothing of what is too much is made."""
    jobs = ", ".join(f'j{number}: {{run: "echo {{n}}", matrix: {{n: 1..900000}}}}' for number in range(1000))
    said = read(f"jobs: {{{jobs}}}")
    assert "more than 1000000 members or values together" in said
    assert len(said.splitlines()) == 1


def test_values_of_axes_count_together() -> None:
    """A product of one huge axis with others is refused before its values are made."""
    axes = ", ".join(f"n{number}: 1..999999" for number in range(200))
    said = read(matrix(f"zip: true, {axes}"))
    assert "more than 1000000 members or values together" in said


def test_a_matrix_that_many_jobs_share_is_read_once() -> None:
    """An alias is one matrix, however often it stands, and its members count each time."""
    jobs = ", ".join(f'j{number}: {{run: "echo {{n}}", matrix: *m}}' for number in range(400))
    text = f"x-m: &m {{n: 1..2400}}\njobs: {{{jobs}}}"
    flow = parse_flow(text, "flow.yaml", now=0.0)
    assert len({id(job.matrix) for job in flow.jobs}) == 1
    assert read(text) == "jobs: 960000"
    assert "more than 1000000" in read(text.replace("2400", "2600"))


def test_many_rules_for_many_members() -> None:
    """1,000 entries of `exclude` and of `include` in a product of 200,000."""
    exclude = ", ".join(f"{{n: {number}, m: {number % 20 + 1}}}" for number in range(1, 1001))
    include = ", ".join(f"{{n: {number}, m: 1000}}" for number in range(1, 1001))
    said = read(matrix(f"n: 1..10000, m: 1..20, exclude: [{exclude}], include: [{include}]"))
    assert said == "jobs: 200000"


def test_many_rules_that_add_a_name() -> None:
    """Each member has the value of its own entry."""
    include = ", ".join(f"{{n: {number}, extra: e{number}}}" for number in range(1, 1001))
    text = matrix(f"n: 1..1000, m: 1..200, include: [{include}]").replace("{m}", "{m} {extra}")
    assert read(text) == "jobs: 200000"


def test_rules_with_values_that_are_none_of_a_large_axis() -> None:
    exclude = ", ".join(f"{{n: x{number}}}" for number in range(1, 1001))
    said = read(matrix(f"n: 1..50000, m: 1..2, exclude: [{exclude}]"))
    assert 'names "n=x1", which is not a value of that axis' in said


def test_many_needs_of_members_of_a_large_matrix() -> None:
    """Exact members are found by their names."""
    rows = json.dumps([{"n": 0}])
    jobs = {f"j{number}": {"run": "true", "needs": f"big[n={number},m=1]"} for number in range(1, 2001)}
    jobs["big"] = {"run": "echo {n} {m}", "matrix": {"n": "0..20000", "m": "1..2", "exclude": json.loads(rows)}}
    assert read(json.dumps({"jobs": jobs})) == "jobs: 42000"


def test_many_patterns_for_members_of_a_large_matrix() -> None:
    """Each pattern is compared with each member: that is refused where it would be too much."""
    jobs = {f"j{number}": {"run": "true", "needs": f"big[n=*{number}]"} for number in range(1, 5001)}
    jobs["big"] = {"run": "echo {n}", "matrix": {"n": "0..90000"}}
    said = read(json.dumps({"jobs": jobs}))
    assert "compare" in said


@pytest.mark.parametrize(("axis", "left"), [("zip: true, m: 1..100000", 99000), ("m: 1..3", 297000)])
def test_many_rules_are_found_by_their_values(axis: str, left: int) -> None:
    rules = ", ".join(f"{{n: {number}}}" for number in range(1, 1001))
    assert read(matrix(f"n: 1..100000, {axis}, exclude: [{rules}]")) == f"jobs: {left}"


def test_rules_of_a_zip_that_fit_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that stand again and again are no help in finding a member: what that costs is limited."""
    ones, rows = ("0", "1") * 50, tuple(str(number) for number in range(100))
    monkeypatch.setattr(expand, "MOST_COMPARED", 60)
    assert len(Members(Matrix((("n", ones), ("m", rows)), zip=True, exclude=((("n", "0"),),)))) == 50
    with pytest.raises(ValueError, match="too many members"):
        Members(Matrix((("n", ones), ("m", rows)), zip=True, exclude=((("n", "0"),), (("n", "1"),))))


def test_many_places_of_many_values() -> None:
    """A text with 20,000 places, an axis with 20,000 values: each value is looked at once, not at each place."""
    values = ", ".join(f"v{number}" for number in range(20_000))
    job = f'run: "{"echo {n} " * 20_000}", matrix: {{n: [{values}]}}'
    assert read(f"jobs: {{a: {{{job}}}}}") == "jobs: 20000"


@pytest.mark.parametrize("place", ["`{n}` ", "$(({n} + 1)) "])
def test_many_places_where_no_value_can_be_put_in(place: str) -> None:
    """The first ones are named: looking up the line of each of 50,000 would take minutes."""
    said = read(f'jobs: {{a: {{run: "{place * 50_000}", matrix: {{n: [x, y]}}}}}}')
    assert len(said.splitlines()) == 20


def test_a_million_members_in_chains() -> None:
    """Each member needs that of the job before: no list of pairs is made, and the flow is planned within the limits."""
    needs = ("", ", needs: {a: same}", ', needs: ["b[n={n}]"]', ', needs: {"c[same]": any}')
    jobs = "".join(
        f'  {name}: {{matrix: [n], run: "echo {{n}}"{need}}}\n' for name, need in zip("abcd", needs, strict=True)
    )
    assert read(f"axes: {{n: 1..250000}}\njobs:\n{jobs}") == "jobs: 1000000"

"""The SQL of the writer. Each statement takes one parameter: a JSON document of rows, or a number.

The rows' columns are in the order in which `derive` and `encoding` write them.
"""

from __future__ import annotations

from aver.model.record import Record


class Statement(Record):
    sql: str
    parameter: str | int


def _value(at: int) -> str:
    return f"json_extract(value, '$[{at}]')"  # not ->>, which SQLite has only since 3.38


def _values(first: int, count: int) -> str:
    return ", ".join(_value(at) for at in range(first, first + count))


def _columns(count: int) -> str:
    return ", ".join(f"{_value(at)} AS c{at}" for at in range(count))


INSERT_EVENTS = f"""
INSERT INTO events (seq, at, run, job, attempt, kind, data)
SELECT {_values(0, 7)} FROM json_each(?)"""

INSERT_RUNS = f"""
INSERT INTO runs (state, round, id, name, submitted_at, first_job, jobs, is_single, user, folder, key)
SELECT 'PENDING', 1, {_values(0, 9)} FROM json_each(?)"""

INSERT_JOBS = f"""
INSERT INTO jobs (state, attempt, id, run, name, first_job, spec, member, reason, submitted_at, background)
SELECT 'PENDING', 0, {_values(0, 9)} FROM json_each(?)"""

RAISE_NEXT_ID = "UPDATE meta SET value = max(value, ?) WHERE key = 'next_id'"

GROW_RUNS = f"""
UPDATE runs SET jobs = jobs + n.more
FROM (SELECT {_value(0)} AS run, sum({_value(1)}) AS more FROM json_each(?) GROUP BY 1) AS n WHERE runs.id = n.run"""

UPDATE_JOBS = f"""
UPDATE jobs SET
    attempt = coalesce(c1, attempt), state = c2, reason = c3,
    exit = c4, verified = c5, source = c6, warnings = c7, detail = c8,
    ended_at = coalesce(iif(c9, ended_at, NULL), c10),
    started_at = coalesce(c12, iif(c11, NULL, started_at)),
    elapsed_s = coalesce(c13, iif(c11, NULL, elapsed_s)),
    derived = iif(c14 OR attempt < c1, 0, derived)
FROM (SELECT {_columns(15)} FROM json_each(?)) WHERE id = c0 AND attempt <= coalesce(c1, attempt)"""

RAISE_ATTEMPTS = f"""
UPDATE jobs SET attempt = c1, derived = 0
FROM (SELECT {_columns(2)} FROM json_each(?)) WHERE id = c0 AND attempt < c1"""

PUT_ATTEMPTS = f"""
REPLACE INTO attempts (state, reason, job, attempt, key, engine, request, planned_at)
SELECT 'PENDING', 'None', {_values(0, 6)} FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = {_value(0)})"""

UPDATE_ATTEMPTS = f"""
UPDATE attempts SET
    state = c2, reason = c3, exit = c4, verified = c5, source = c6, warnings = c7, detail = c8,
    ended_at = coalesce(iif(c9, ended_at, NULL), c10),
    started_at = coalesce(c11, started_at), elapsed_s = coalesce(c12, elapsed_s), user_s = coalesce(c13, user_s),
    sys_s = coalesce(c14, sys_s), peak_bytes = coalesce(c15, peak_bytes), node = coalesce(c16, node)
FROM (SELECT {_columns(17)} FROM json_each(?)) WHERE job = c0 AND attempt = c1"""

UPDATE_RUNS = f"""
UPDATE runs SET state = c1, round = c2, ended_at = c3
FROM (SELECT {_columns(4)} FROM json_each(?)) WHERE id = c0"""

PUT_STEPS = f"""
REPLACE INTO steps (state, reason, job, attempt, step, name, token, tasks, spec, started_at)
SELECT 'RUNNING', 'None', {_values(0, 8)} FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = {_value(0)})"""

PUT_TASKS = f"""
REPLACE INTO tasks (job, attempt, step, task, state, reason, exit, verified, source, warnings, detail,
    because, ended_at, started_at, elapsed_s, user_s, sys_s, peak_bytes, node, cause)
SELECT {_values(0, 20)} FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = {_value(0)})"""

# where nobody said how many tasks a step has, it has at least those that were heard of
WIDEN_STEPS = f"""
UPDATE steps SET tasks = c3
FROM (SELECT {_columns(4)} FROM json_each(?)) WHERE job = c0 AND attempt = c1 AND step = c2 AND tasks < c3"""

END_STEPS = f"""
UPDATE steps SET
    state = c3, reason = c4, exit = c5, verified = c6, source = c7, warnings = c8, detail = c9,
    ended_at = c10, derived = c11, first_failed = c12, srun_code = c13
FROM (SELECT {_columns(14)} FROM json_each(?)) WHERE job = c0 AND attempt = c1 AND step = c2"""

# max() of two values is NULL if one of them is: unknown stays unknown
RAISE_DERIVED = f"""
UPDATE jobs SET derived = max(derived, c2)
FROM (SELECT {_columns(3)} FROM json_each(?)) WHERE id = c0 AND attempt = c1"""

PRUNE = (
    "DELETE FROM tasks WHERE job IN (SELECT id FROM jobs WHERE run = ?)",
    "DELETE FROM steps WHERE job IN (SELECT id FROM jobs WHERE run = ?)",
    "DELETE FROM attempts WHERE job IN (SELECT id FROM jobs WHERE run = ?)",
    "DELETE FROM jobs WHERE run = ?",
    "DELETE FROM runs WHERE id = ?",
    """DELETE FROM events WHERE run = ?1 AND kind <> 'RunPruned'
        AND seq < (SELECT max(seq) FROM events WHERE run = ?1 AND kind = 'RunPruned')""",
)

"""The tables, and how a database gets from one version to the next.

`MIGRATIONS[n]` takes a database from version n to n + 1; a new database goes through all of them. The version
is SQLite's own `user_version`, so that it can be read before anything else. `docs/design/store.md` says
what each column means.
"""

from __future__ import annotations

APPLICATION_ID = 0x61766572  # "aver"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
        """CREATE TABLE events (
            seq INTEGER PRIMARY KEY, at REAL NOT NULL, run INTEGER NOT NULL, job INTEGER, attempt INTEGER,
            kind TEXT NOT NULL, data TEXT NOT NULL)""",
        "CREATE INDEX events_run ON events (run)",
        "CREATE INDEX events_job ON events (job) WHERE job IS NOT NULL",
        "CREATE INDEX events_flow ON events (run) WHERE kind IN ('RunSubmitted', 'JobsGenerated')",
        """CREATE TABLE runs (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, round INTEGER NOT NULL,
            submitted_at REAL NOT NULL, ended_at REAL, first_job INTEGER NOT NULL, jobs INTEGER NOT NULL,
            is_single INTEGER NOT NULL, user TEXT NOT NULL, folder TEXT NOT NULL)""",
        """CREATE INDEX runs_unsettled ON runs (id)
            WHERE state IN ('PENDING', 'SUBMITTED', 'RUNNING', 'SUSPENDED', 'COMPLETING', 'SETTLING')""",
        """CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, run INTEGER NOT NULL, name TEXT NOT NULL, first_job INTEGER NOT NULL,
            spec INTEGER NOT NULL, member INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
            exit INTEGER, verified INTEGER, source TEXT, warnings TEXT, detail TEXT, attempt INTEGER NOT NULL,
            submitted_at REAL NOT NULL, started_at REAL, ended_at REAL, elapsed_s REAL, background INTEGER NOT NULL)""",
        "CREATE INDEX jobs_run ON jobs (run)",
        """CREATE TABLE attempts (
            job INTEGER NOT NULL, attempt INTEGER NOT NULL, key TEXT NOT NULL, engine TEXT NOT NULL,
            state TEXT NOT NULL, reason TEXT NOT NULL, exit INTEGER, verified INTEGER, source TEXT, warnings TEXT,
            detail TEXT, planned_at REAL NOT NULL, started_at REAL, ended_at REAL, elapsed_s REAL, user_s REAL,
            sys_s REAL, peak_bytes INTEGER, node TEXT, request TEXT NOT NULL,
            PRIMARY KEY (job, attempt)) WITHOUT ROWID""",
        "INSERT INTO meta VALUES ('home', lower(hex(randomblob(4)))), ('next_id', 1)",
    ),
    (
        "ALTER TABLE jobs ADD COLUMN derived INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE steps (
            job INTEGER NOT NULL, attempt INTEGER NOT NULL, step INTEGER NOT NULL, name TEXT NOT NULL,
            token TEXT NOT NULL, tasks INTEGER NOT NULL, spec TEXT NOT NULL, started_at REAL NOT NULL,
            state TEXT NOT NULL, reason TEXT NOT NULL, exit INTEGER, verified INTEGER, source TEXT, warnings TEXT,
            detail TEXT, ended_at REAL, derived INTEGER, first_failed INTEGER, srun_code INTEGER,
            PRIMARY KEY (job, attempt, step)) WITHOUT ROWID""",
        """CREATE TABLE tasks (
            job INTEGER NOT NULL, attempt INTEGER NOT NULL, step INTEGER NOT NULL, task INTEGER NOT NULL,
            state TEXT NOT NULL, reason TEXT NOT NULL, exit INTEGER, verified INTEGER, source TEXT, warnings TEXT,
            detail TEXT, because INTEGER NOT NULL, ended_at REAL, started_at REAL, elapsed_s REAL, user_s REAL,
            sys_s REAL, peak_bytes INTEGER, node TEXT,
            PRIMARY KEY (job, attempt, step, task)) WITHOUT ROWID""",
    ),
    ("CREATE INDEX events_asked ON events (run) WHERE kind IN ('PersonAsked', 'FlowReplaced')",),
    (  # DerivedExitCode may be unknown: it was 0 where nobody saw a step's exit
        "ALTER TABLE jobs RENAME TO jobs_of_3",
        """CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, run INTEGER NOT NULL, name TEXT NOT NULL, first_job INTEGER NOT NULL,
            spec INTEGER NOT NULL, member INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
            exit INTEGER, verified INTEGER, source TEXT, warnings TEXT, detail TEXT, attempt INTEGER NOT NULL,
            submitted_at REAL NOT NULL, started_at REAL, ended_at REAL, elapsed_s REAL, background INTEGER NOT NULL,
            derived INTEGER DEFAULT 0)""",
        "INSERT INTO jobs SELECT * FROM jobs_of_3",
        "DROP TABLE jobs_of_3",
        "CREATE INDEX jobs_run ON jobs (run)",
        """UPDATE steps SET derived = iif(state = 'OUT_OF_MEMORY', 125, NULL)
            WHERE ended_at IS NOT NULL AND exit IS NULL AND derived = 0 AND state <> 'CANCELLED'""",
        """UPDATE jobs SET derived = (
            SELECT iif(count(*) = count(derived), max(jobs.derived, coalesce(max(steps.derived), 0)), NULL) FROM steps
            WHERE steps.job = jobs.id AND steps.attempt = jobs.attempt AND steps.ended_at IS NOT NULL)
            WHERE state <> 'PENDING' AND id IN (SELECT job FROM steps WHERE ended_at IS NOT NULL AND exit IS NULL)""",
    ),
    (  # what a task's record says beside its exit status, as data; `task_cause` is `encoding.task_cause_text`
        "ALTER TABLE tasks ADD COLUMN cause TEXT",
        """UPDATE tasks SET cause = (
            SELECT task_cause(json_extract(data, '$.said')) FROM events WHERE kind = 'TaskEnded'
            AND events.job = tasks.job AND events.attempt = tasks.attempt
            AND json_extract(data, '$.step') = tasks.step AND json_extract(data, '$.task') = tasks.task
            ORDER BY seq DESC LIMIT 1)
            WHERE state <> 'COMPLETED'""",
    ),
    (
        "ALTER TABLE runs ADD COLUMN key TEXT",
        "CREATE INDEX runs_key ON runs (key) WHERE key IS NOT NULL",
    ),
    (
        "ALTER TABLE runs ADD COLUMN unselected TEXT",
        """UPDATE runs SET unselected = (
            SELECT json_extract(data, '$.submission.flow.unselected') FROM events INDEXED BY events_flow
            WHERE run = runs.id AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = 'RunSubmitted')""",
    ),
    (  # to list jobs of a home that has a million of them
        """CREATE INDEX jobs_ended ON jobs (ended_at, state, run, name, started_at, elapsed_s)
            WHERE ended_at IS NOT NULL""",
        "CREATE INDEX jobs_unsettled ON jobs (state, run) WHERE ended_at IS NULL",
        "CREATE INDEX attempts_ended ON attempts (ended_at, peak_bytes) WHERE ended_at IS NOT NULL",
    ),
    (  # the engines of a run's jobs, sorted; later definitions count where they name one
        "ALTER TABLE runs ADD COLUMN engines TEXT",
        """UPDATE runs SET engines = (SELECT json_group_array(engine) FROM (
            SELECT coalesce(json_extract(job.value, '$.engine'), json_extract(data, '$.submission.engine'), 'local')
                AS engine
                FROM events INDEXED BY events_flow, json_each(json_extract(data, '$.submission.flow.jobs')) AS job
                WHERE run = runs.id AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = 'RunSubmitted'
            UNION SELECT json_extract(job.value, '$.engine')
                FROM events INDEXED BY events_flow, json_each(json_extract(data, '$.flow.jobs')) AS job
                WHERE run = runs.id AND kind IN ('RunSubmitted', 'JobsGenerated') AND kind = 'JobsGenerated'
                AND json_extract(job.value, '$.engine') IS NOT NULL
            UNION SELECT json_extract(job.value, '$.engine')
                FROM events INDEXED BY events_asked, json_each(json_extract(data, '$.flow.jobs')) AS job
                WHERE run = runs.id AND kind IN ('PersonAsked', 'FlowReplaced') AND kind = 'FlowReplaced'
                AND json_extract(job.value, '$.engine') IS NOT NULL))""",
        "CREATE INDEX runs_engines ON runs (engines)",
    ),
    (  # whether children that nobody waited for may have used more CPU time; see `encoding.SAYS_CPU_LEAST`
        "ALTER TABLE attempts ADD COLUMN is_cpu_least INTEGER",
        "ALTER TABLE tasks ADD COLUMN is_cpu_least INTEGER",
        """UPDATE attempts SET is_cpu_least = 1 WHERE (job, attempt) IN (
            SELECT job, attempt FROM events WHERE kind = 'Observed' AND instr(data, '\\"cpu\\":\\"least\\"'))""",
        """UPDATE tasks SET is_cpu_least = 1 WHERE (job, attempt, step, task) IN (
            SELECT job, attempt, json_extract(data, '$.step'), json_extract(data, '$.task') FROM events
            WHERE kind = 'TaskEnded' AND instr(data, '\\"cpu\\":\\"least\\"'))""",
    ),
    ("ALTER TABLE events ADD COLUMN said TEXT",),  # of an event, which is in `data` otherwise: see `encoding`
    (  # to cancel a run of a million jobs, and to say what became of them
        "CREATE INDEX events_ranges ON events (run) WHERE kind = 'JobsEnded'",
        """CREATE INDEX jobs_failed ON jobs (run, state, reason, attempt)
            WHERE state NOT IN
            ('COMPLETED', 'PENDING', 'SUBMITTED', 'RUNNING', 'SUSPENDED', 'COMPLETING', 'SETTLING')""",
    ),
)

VERSION = len(MIGRATIONS)

DERIVED_TABLES = ("runs", "jobs", "attempts", "steps", "tasks")

"""A job's own terminal: `host` keeps it inside the job, `window` shows it in ours."""

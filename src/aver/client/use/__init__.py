"""Memory and CPUs that running jobs of this machine use: now, and over time."""

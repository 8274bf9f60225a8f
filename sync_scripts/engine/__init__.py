"""A run from start to end: its steps, its row in sync_runs, its report and its exit code."""

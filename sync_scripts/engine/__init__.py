"""A run from its start to its end: steps, outcome, report, exit code."""

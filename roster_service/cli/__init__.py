"""The `roster` command: everything that an operator does beside the sync.

Exit codes: 0 done; 1 refused, with one sentence on standard error; 2 wrong usage. Every command takes `--json` and
then prints one JSON value on standard output.
"""

from roster_service.cli.main import main

__all__ = ["main"]

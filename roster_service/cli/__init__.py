"""The `roster` command, for all tasks of an operator except the sync itself.

Exit codes: 0 done; 1 refused, with one sentence on standard error; 2 wrong usage. With `--json`, every command prints
one JSON value on standard output.
"""

from roster_service.cli.main import main

__all__ = ["main"]

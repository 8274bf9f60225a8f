"""`python -m tests.audit`: asks the public list of vulnerabilities about every installed package.

Exits 1 where one is known to be vulnerable; in CI (the variable `CI` is set) also where a package was not checked,
unless `AUDIT=reported`, for a CI whose network has no such list. Elsewhere it says so and passes: a build without a
network is no fault of the packages.
"""

from __future__ import annotations

import os
import sys

from tests.audit.packages import judge, run_audit


def main() -> None:
    """Print the verdict; exit 1 where it fails."""
    verdict = judge(*run_audit(), strict=bool(os.environ.get("CI")) and os.environ.get("AUDIT") != "reported")
    print(verdict.words, file=sys.stderr if verdict.failed else sys.stdout)
    sys.exit(1 if verdict.failed else 0)


if __name__ == "__main__":
    main()

"""pip-audit on the packages of this environment, and what to make of its report."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

# Of one request; the list has one for every package.
SECONDS = 10


@dataclass(frozen=True)
class Verdict:
    """What is said, and whether a package must be replaced."""

    words: str
    failed: bool


def run_audit() -> tuple[str, str]:
    """pip-audit's report in JSON, and what it says beside it."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    done = subprocess.run([*command, "--timeout", str(SECONDS)], capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def judge(report: str, said: str) -> Verdict:
    """The verdict on a report; a report that is none, or that knows no package, means that the list is out of reach."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = said.strip().splitlines()[-1:] or ["no report"]
        return Verdict(f"audit: skipped, the list of vulnerabilities cannot be reached ({last[0][:200]})", failed=False)
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        return Verdict("audit: skipped, the list of vulnerabilities knows no package from here", failed=False)
    found = [
        f"  {package['name']} {package['version']}: {flaw['id']}, "
        f"mended in {', '.join(flaw['fix_versions']) or 'none yet'}"
        for package in known
        for flaw in package["vulns"]
    ]
    words = f"audit: {len(known)} of {len(packages)} packages are known, {len(found)} vulnerabilities"
    return Verdict("\n".join([words, *found]), failed=bool(found))

"""pip-audit on the packages of this environment, and the verdict on its report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of one request; the list has one for every package.
SECONDS = 10
# What requests and pip-audit say where there is no connection to the list.
NO_CONNECTION = re.compile(
    r"(?:Connection|ConnectTimeout|ReadTimeout|Proxy|SSL|NameResolution|NewConnection)Error|ConnectTimeout|ReadTimeout|"
    r"Max retries exceeded|[Cc]ould not connect|[Cc]onnection refused|Temporary failure in name resolution|"
    r"not redirecting properly"
)
# pip-audit's reason for the packages of this project, which are no packages of the list.
OWN = "marked as editable"


@dataclass(frozen=True)
class Verdict:
    """What is said, and whether the build must stop."""

    words: str
    failed: bool


def run_audit() -> tuple[str, str]:
    """pip-audit's report in JSON, and what it says beside it."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    done = subprocess.run([*command, "--timeout", str(SECONDS)], capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def judge(report: str, said: str, *, strict: bool) -> Verdict:
    """The verdict on a report.

    An audit that checked nothing says so: the list cannot be reached, it knows no package (as a mirror without it), or
    the audit broke off. `strict`, as in CI: such an audit fails, and so does one that leaves a package out.
    """
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (said.strip().splitlines()[-1:] or ["no report"])[0][:200]
        if NO_CONNECTION.search(said):
            return Verdict(f"audit: NOT CHECKED, the list of vulnerabilities cannot be reached ({last})", failed=strict)
        return Verdict(f"audit: NOT CHECKED, the audit broke off ({last})", failed=strict)
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        return Verdict("audit: NOT CHECKED, the list of vulnerabilities knows no package from here", failed=strict)
    found = [describe(package, flaw) for package in known for flaw in package["vulns"]]
    left = [
        f"  {package['name']}: not checked, {package['skip_reason']}"
        for package in packages
        if OWN not in package.get("skip_reason", OWN)
    ]
    words = f"audit: {len(known)} of {len(packages)} packages are known, {len(found)} vulnerabilities"
    return Verdict("\n".join([words, *found, *left]), failed=bool(found) or (strict and bool(left)))


def describe(package: Mapping[str, Any], flaw: Mapping[str, Any]) -> str:
    """A vulnerability of a package, as a line."""
    mended = ", ".join(flaw["fix_versions"]) or "none yet"
    return f"  {package['name']} {package['version']}: {flaw['id']}, mended in {mended}"

"""What is made of a report of pip-audit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .packages import judge

FLAW = {"id": "PYSEC-2026-1", "fix_versions": ["1.1"], "aliases": [], "description": ""}
GOOD = {"name": "flask", "version": "3.1", "vulns": []}
BAD = {"name": "lark", "version": "1.0", "vulns": [FLAW]}
UNMENDED = {"name": "click", "version": "1.0", "vulns": [FLAW | {"fix_versions": []}]}
STRANGE = {"name": "own", "skip_reason": "Dependency not found on PyPI"}

EDITABLE = {"name": "roster-service", "skip_reason": "distribution marked as editable"}

# The packages of a report -> what is said, whether it fails, and whether it fails in CI.
REPORTS: list[Any] = [
    pytest.param([GOOD, EDITABLE], "1 of 2 packages are known, 0 vulnerabilities", False, False, id="none"),
    pytest.param([GOOD, BAD], "lark 1.0: PYSEC-2026-1, mended in 1.1", True, True, id="one"),
    pytest.param([UNMENDED], "click 1.0: PYSEC-2026-1, mended in none yet", True, True, id="one without a cure"),
    pytest.param([GOOD, STRANGE], "own: not checked, Dependency not found", False, True, id="one that is not known"),
    pytest.param([STRANGE], "audit: NOT CHECKED", False, True, id="a list that knows nothing"),
    pytest.param([], "audit: NOT CHECKED", False, True, id="no package"),
]


@pytest.mark.shows(
    "Machine and database",
    "A known vulnerability of an installed package fails `make check`, as a find of ruff's security rules does.",
)
@pytest.mark.parametrize(("packages", "words", "failed", "strictly"), REPORTS)
def test_a_known_vulnerability_fails_and_in_ci_a_package_that_is_not_checked(
    packages: list[dict[str, Any]], words: str, failed: bool, strictly: bool
) -> None:
    report = json.dumps({"dependencies": packages, "fixes": []})
    verdicts = [judge(report, "", strict=strict) for strict in (False, True)]
    assert all(words in verdict.words for verdict in verdicts)
    assert [verdict.failed for verdict in verdicts] == [failed, strictly]


# The last lines of what pip-audit says.
UNREACHABLE = [
    "ERROR: connection refused\nrequests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded",
    "ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed",
    "requests.exceptions.ReadTimeout: Read timed out. (read timeout=10)",
    "requests.exceptions.SSLError: certificate verify failed",
]


@pytest.mark.parametrize("said", UNREACHABLE)
@pytest.mark.parametrize("strict", [False, True])
def test_a_list_that_cannot_be_reached_fails_in_ci_and_is_said(said: str, strict: bool) -> None:
    verdict = judge("", said, strict=strict)
    assert "NOT CHECKED, the list of vulnerabilities cannot be reached" in verdict.words
    assert said.splitlines()[-1][:50] in verdict.words
    assert verdict.failed is strict


@pytest.mark.parametrize("report", ["", "no JSON", "[]", "{}"])
@pytest.mark.parametrize("said", ["", "No module named 'pip_audit'", "pip_audit: ServiceError: 500"])
def test_an_audit_that_breaks_off_fails_in_ci(report: str, said: str) -> None:
    verdicts = [judge(report, said, strict=strict) for strict in (False, True)]
    assert all("NOT CHECKED, the audit broke off" in verdict.words for verdict in verdicts)
    assert [verdict.failed for verdict in verdicts] == [False, True]

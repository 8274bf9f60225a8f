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

REPORTS: list[Any] = [
    pytest.param([GOOD, STRANGE], "1 of 2 packages are known, 0 vulnerabilities", False, id="none"),
    pytest.param([GOOD, BAD], "lark 1.0: PYSEC-2026-1, mended in 1.1", True, id="one"),
    pytest.param([UNMENDED], "click 1.0: PYSEC-2026-1, mended in none yet", True, id="one without a cure"),
    pytest.param([STRANGE], "audit: skipped", False, id="a list that knows nothing"),
    pytest.param([], "audit: skipped", False, id="no package"),
]


@pytest.mark.parametrize(("packages", "words", "failed"), REPORTS)
def test_a_known_vulnerability_fails_and_nothing_else_does(
    packages: list[dict[str, Any]], words: str, failed: bool
) -> None:
    verdict = judge(json.dumps({"dependencies": packages, "fixes": []}), "")
    assert (words in verdict.words, verdict.failed) == (True, failed)


@pytest.mark.parametrize("report", ["", "no JSON", "[]", "{}"])
def test_no_report_means_that_the_list_is_out_of_reach(report: str) -> None:
    verdict = judge(report, "WARNING: x\nERROR: connection refused")
    assert "skipped" in verdict.words
    assert "connection refused" in verdict.words
    assert not verdict.failed

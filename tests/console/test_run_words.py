"""What a run did, in words."""

from __future__ import annotations

import pytest

from roster_service.console.filters import to_made

CASES = [
    pytest.param({}, "no record changed", id="nothing"),
    pytest.param({"users": {"unchanged": 4, "rejected": 1}}, "no record changed", id="nothing that counts"),
    pytest.param({"users": {"added": 1}}, "1 record added", id="one"),
    pytest.param(
        {"users": {"added": 1000, "tombstoned": 2}, "classes": {"added": 200, "changed": 3, "revived": 1}},
        "1,200 records added, 3 changed, 2 marked as deleted, 1 revived",
        id="each kind, over all types",
    ),
]


@pytest.mark.parametrize(("counts", "words"), CASES)
def test_what_a_run_did(counts: dict[str, dict[str, int]], words: str) -> None:
    assert to_made(counts) == words

"""What a run did, and what the fields of a record have, in words."""

from __future__ import annotations

from typing import Any

import pytest

from roster_service.console.filters import to_made, to_value

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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        ([], "none"),
        ("Zoë", "Zoë"),
        (True, "true"),
        (["03", "04"], "03, 04"),
        (
            [{"role": "aide", "org": {"sourcedId": "x"}}, {"role": "teacher"}],
            "role: aide, org: sourcedId: x; role: teacher",
        ),
    ],
)
def test_the_value_of_a_field(value: Any, words: str) -> None:
    assert to_value(value) == words

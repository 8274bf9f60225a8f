"""How far a request goes through the house: the modules that a filter passes once everything is warm."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import oneroster_filter

import roster_service

from .client import RosterClient

ROOTS = tuple(str(Path(str(package.__file__)).parent) for package in (roster_service, oneroster_filter))
# A request that needs one module more should have a reason for it.
# The 34th is the check of transport, which stands before every request so that no route can be forgotten.
MOST = 34


def test_a_warm_filter_passes_few_modules(client: RosterClient) -> None:
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOTS):
            passed.add(frame.f_code.co_filename)

    for is_warm in (False, False, True):
        before = sys.getprofile()
        sys.setprofile(note if is_warm else before)
        try:
            answer = client.call("v1p2", "/users", {"filter": "familyName~'s'", "limit": "2"})
        finally:
            sys.setprofile(before)
        assert answer.status == 200
    assert len(passed) > 20
    assert len(passed) <= MOST, sorted(passed)

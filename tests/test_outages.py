"""An outage is two log lines, however many requests fail meanwhile."""

from __future__ import annotations

import logging

import pytest

from roster_service.db.outages import Outage
from roster_service.logs import get_facts
from roster_service.metrics import FAILURES


@pytest.mark.parametrize("failures", [1, 1204])
def test_the_begin_and_the_end_are_logged(caplog: pytest.LogCaptureFixture, failures: int) -> None:
    outage = Outage("the thing", "requests wait")
    counter = FAILURES.labels("the thing")
    for _ in range(2):
        caplog.clear()
        before = counter._value.get()
        for _ in range(failures):
            outage.add_failure("SomeError")
        outage.end()
        outage.end()
        began, ended = caplog.records
        assert began.getMessage() == "the thing does not answer (SomeError); requests wait"
        assert ended.getMessage() == "the thing answers again"
        assert (began.levelno, ended.levelno) == (logging.ERROR, logging.WARNING)
        assert get_facts(ended)["failures"] == failures
        assert counter._value.get() == before + failures


def test_without_an_outage_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Outage("the thing", "requests wait").end()
    assert caplog.records == []

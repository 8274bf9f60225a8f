"""`/status` below each root: what the last run of each visible feed was, and nothing of other feeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.feeds.run_outcomes import OUTCOMES
from roster_service.feeds.sync_lock import FEED_CLASS
from roster_service.schemas.roster_status import FEED_STATES
from tests.vendor.client import VendorClient, add_account

from .client import VERSIONS, RosterClient
from .conftest import Served

each_version = pytest.mark.parametrize("version", VERSIONS)
RUN = "INSERT INTO sync_runs (feed_id, format, source, started_at, outcome, counts, seconds, message) "
OF_FEED = (
    "SELECT id, format, 'a', now() - interval '1 hour', '{}', '{{}}', '{{}}', '12 schools' "
    "FROM feeds WHERE name = 'springfield'"
)
UNDER_WAY = f"SELECT pg_advisory_lock({FEED_CLASS}, hashtext('springfield')); "
PAUSE = "UPDATE feeds SET pause_from = current_date - 1, pause_until = current_date + 1 WHERE name = 'springfield'"


@each_version
def test_the_feeds_that_the_caller_sees_are_listed(client: RosterClient, version: str) -> None:
    for vendor, names in (("both", ["shelbyville", "springfield"]), ("elementary", ["springfield"])):
        answer = client.call(version, "/status", vendor=vendor)
        assert [(feed["name"], feed["state"]) for feed in answer.json["feeds"]] == [(name, "done") for name in names]
        headers = client.call(version, "/orgs", "limit=1", vendor=vendor).headers
        assert answer.json["revision"] == int(headers["X-Roster-Revision"])
        for name in ("X-Roster-Revision", "X-Roster-As-Of", "X-Roster-Deletions-Since"):
            assert answer.headers[name] == headers[name]


STATES: list[Any] = [
    *(
        pytest.param(RUN + OF_FEED.format(outcome), state, id=outcome)
        for outcome, state in {
            "done": "done",
            "approved": "done",
            "unchanged": "unchanged",
            # Its process has ended: nobody holds the lock of its feed.
            "running": "failed",
            "held": "held",
            "partial": "done",
            "stale": "unchanged",
            "missing": "missing",
            "incomplete": "incomplete",
            "failed": "failed",
            "refused": "failed",
            "interrupted": "failed",
            "discarded": "failed",
            "replaced": "failed",
        }.items()
    ),
    pytest.param(UNDER_WAY + RUN + OF_FEED.format("running"), "running", id="a run under way"),
    pytest.param("UPDATE sync_runs SET started_at = now() - interval '30:01'", "missing", id="no run tonight"),
    pytest.param("UPDATE sync_runs SET started_at = now() - interval '29:59'", "done", id="a run tonight"),
    pytest.param(PAUSE, "paused", id="paused"),
    pytest.param("UPDATE feeds SET enabled = false", "paused", id="disabled"),
    pytest.param("UPDATE feeds SET state = 'removed'", "removed", id="removed"),
]


def test_each_outcome_has_a_state() -> None:
    assert {it.id for it in STATES} >= set(OUTCOMES)
    assert {it.state for it in OUTCOMES.values()} <= set(FEED_STATES)


@pytest.fixture(scope="module")
def own(make_served: Callable[..., Served]) -> Served:
    """An application whose feeds change."""
    return make_served()


@pytest.mark.parametrize(("change", "state"), STATES)
def test_the_state_is_that_of_the_last_run(own: Served, change: str, state: str) -> None:
    vendor = VendorClient(own.app)
    account = add_account(own.engine, f"status-{state}-{abs(hash(change))}", {"spr-district": ()})
    headers = {"x-api-key": account.api_key, "Authorization": f"Bearer {vendor.token(account)}"}
    with own.engine.connect() as connection:
        connection.execute(sa.text(change))
        connection.commit()
        try:
            bodies = [own.client.call(version, "/status", vendor="springfield").json for version in VERSIONS]
            bodies.append(vendor.send("/v1/status", method="GET", headers=headers).json)
        finally:
            connection.execute(sa.text("SELECT pg_advisory_unlock_all()"))
            connection.execute(sa.text("DELETE FROM sync_runs WHERE source = 'a'"))
            connection.execute(sa.text("UPDATE sync_runs SET started_at = now()"))
            connection.execute(
                sa.text("UPDATE feeds SET enabled = true, pause_from = NULL, pause_until = NULL, state = 'added'")
            )
            connection.commit()
    for body in bodies:
        assert [feed["state"] for feed in body["feeds"]] == [state]
        assert set(body["feeds"][0]) == {"name", "state", "ranAt", "revision"}
        assert "12 schools" not in str(body)


@each_version
def test_the_status_needs_a_token_of_the_version(client: RosterClient, version: str) -> None:
    other = next(it for it in VERSIONS if it != version)
    assert client.call(version, "/status", bearer=None).status == 401
    assert client.call(version, "/status", bearer=client.token(other)).status == 400
    assert client.call(version, "/status", vendor="nobody").status == 403
    assert client.call(version, "/status", method="POST").status == 400


@each_version
def test_a_parameter_is_refused_by_its_name(client: RosterClient, version: str) -> None:
    """Not those that libraries send with every request; and before the grants, as on every path."""
    for vendor in ("both", "nobody"):
        answer = client.call(version, "/status", "since=2026-11-22", vendor=vendor)
        assert (answer.status, "there is no parameter `since`; this path takes none" in answer.description) == (
            400,
            True,
        )
    assert client.call(version, "/status", "limit=1&offset=2").status == 200


def test_a_parameter_is_refused_on_the_vendor_interface(own: Served) -> None:
    vendor, account = VendorClient(own.app), add_account(own.engine, "status-parameter", {"spr-district": ()})
    headers = {"x-api-key": account.api_key, "Authorization": f"Bearer {vendor.token(account)}"}
    answer = vendor.send("/v1/status?since=2026-11-22", method="GET", headers=headers)
    assert (answer.outcome, answer.message) == ((400, "bad-request"), "this path takes no query parameters")

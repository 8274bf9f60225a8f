"""`/metrics`: who may read it, and that its figures are those of the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import Client, TestResponse

from tests.contract.client import ROOTS
from tests.contract.conftest import Served
from tests.postgres.databases import close_database

TOKEN = "a token of the tests, of more than 32 characters"
USERS = f"{ROOTS['v1p1']}/users"

# Each figure by its name and labels.
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def watched(make_served: Callable[..., Served]) -> Served:
    """An application that shows its metrics, on a database of its own."""
    return make_served(metrics_token=TOKEN)


def ask(served: Served, path: str = "/metrics", bearer: str | None = TOKEN) -> TestResponse:
    """The response to a request with a bearer token."""
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    with Client(served.app).get(path, headers=headers) as response:
        response.get_data()
        return response


def read_figures(served: Served) -> Figures:
    """All metrics, as a monitoring system reads them."""
    shown = ask(served)
    assert (shown.status_code, shown.headers["Cache-Control"]) == (200, "no-store")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(shown.text)
        for sample in family.samples
    }


def find(figures: Figures, name: str, **labels: object) -> float:
    """One figure; 0 where it was never counted."""
    return figures.get((name, frozenset((label, str(value)) for label, value in labels.items())), 0)


@pytest.mark.shows("Logs and transport", "`/metrics` opens with the token of the settings alone.")
@pytest.mark.parametrize("bearer", [None, "", "x", TOKEN + "x", TOKEN[:-1], "ünknown"])
def test_only_the_token_of_the_settings_opens_the_metrics(watched: Served, bearer: str | None) -> None:
    refused = ask(watched, bearer=bearer)
    assert refused.status_code == 401
    assert b"roster_" not in refused.data


@pytest.mark.shows("Logs and transport", "`/metrics` opens with the token of the settings alone.")
def test_without_a_token_in_the_settings_there_are_no_metrics(served: Served) -> None:
    assert ask(served).status_code == 404


def test_requests_are_counted_by_path_status_and_vendor(watched: Served) -> None:
    token = watched.client.token("v1p1")
    before = read_figures(watched)
    for _ in range(3):
        assert ask(watched, f"{USERS}/spr-student-1", token).status_code == 200
    assert ask(watched, f"{USERS}/nobody", token).status_code == 404
    assert ask(watched, f"{USERS}/nobody", "x").status_code == 401
    after = read_figures(watched)

    def count(name: str, **labels: object) -> float:
        return find(after, name, **labels) - find(before, name, **labels)

    of_path = {"method": "GET", "path": f"{USERS}/{{sourcedId}}"}
    assert [count("roster_requests_total", **of_path, status=status) for status in (200, 404, 401)] == [3, 1, 1]
    assert count("roster_request_seconds_count", path=of_path["path"]) == 5
    counted = {
        key: value - before.get(key, 0) for key, value in after.items() if key[0] == "roster_vendor_requests_total"
    }
    assert sorted(value for value in counted.values() if value) == [1, 3]


PAGES: list[Any] = [
    pytest.param("?limit=2&filter=email='nobody'", "no ordering", id="few-records"),
    pytest.param("?limit=2&filter=familyName!='a'", "new ordering", id="first-page"),
    pytest.param("?limit=2&filter=familyName!='a'&offset=2", "ordering", id="second-page"),
    pytest.param("?limit=0", "no ordering", id="a-count"),
    pytest.param("?limit=0", "ordering", id="the-same-count"),
]


def test_pages_are_counted_by_how_they_were_found(watched: Served) -> None:
    token = watched.client.token("v1p1")
    for query, found in (case.values for case in PAGES):
        before = find(read_figures(watched), "roster_pages_total", found=found)
        assert ask(watched, USERS + query, token).status_code == 200
        assert find(read_figures(watched), "roster_pages_total", found=found) == before + 1, query


def test_each_feed_has_its_age_its_rejected_rows_and_whether_it_is_held(watched: Served) -> None:
    with watched.engine.begin() as connection:
        of_feed = "WHERE feed_id = (SELECT id FROM feeds WHERE name = 'shelbyville')"
        connection.execute(
            sa.text(f"UPDATE sync_runs SET finished_at = now() - interval '2 days', rejected = 7 {of_feed}")
        )
    figures = read_figures(watched)
    assert find(figures, "roster_feed_age_seconds", feed="shelbyville") == pytest.approx(2 * 86_400, abs=600)
    assert find(figures, "roster_feed_rejected_rows", feed="shelbyville") == 7
    assert find(figures, "roster_feed_held", feed="shelbyville") == 0
    with watched.engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE sync_runs SET outcome = 'held' {of_feed}"))
    figures = read_figures(watched)
    assert find(figures, "roster_feed_held", feed="shelbyville") == 1
    assert ("roster_feed_age_seconds", frozenset({("feed", "shelbyville")})) not in figures
    assert find(figures, "roster_feed_rejected_rows", feed="springfield") == 0


def test_open_connections_and_stored_bytes_are_shown(watched: Served) -> None:
    assert ask(watched, f"{USERS}?offset=1", watched.client.token("v1p1")).status_code == 200
    figures = read_figures(watched)
    assert find(figures, "roster_database_connections", role="serving") > 0
    assert find(figures, "roster_ordering_bytes") > 0
    assert find(figures, "roster_database_up") == 1


def test_without_its_database_the_service_shows_that(make_served: Callable[..., Served], server_url: str) -> None:
    own = make_served(metrics_token=TOKEN)
    close_database(server_url, str(own.engine.url.database))
    figures = read_figures(own)
    assert figures["roster_database_up", frozenset()] == 0
    assert ("roster_ordering_bytes", frozenset()) not in figures

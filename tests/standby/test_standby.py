"""Rosters are read from a hot standby where it has what the primary has, and from the primary everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
import sqlalchemy as sa
from psycopg2.errors import QueryCanceled, SerializationFailure
from sqlalchemy.exc import DBAPIError

from roster_service.accounts import vendor_rights, vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.limits import RosteringAllowance
from roster_service.db.engine import make_reading_engine
from roster_service.errors import Problem, RefusedRequestError, ThrottledRequestError
from roster_service.serving import standby as module
from roster_service.serving.standby import Standby
from tests.actors import TESTER
from tests.conditions import wait_for
from tests.contract.changed_roster import EVERYONE, change_roster
from tests.contract.client import VERSIONS, Answer
from tests.contract.paths import ENDPOINTS, OF_EACH_KIND
from tests.extent import examples, long, pair

from .conftest import Served, count_reads

STANDBY, PRIMARY = {"standby": 1, "primary": 0}, {"standby": 0, "primary": 1}
STATE = ("X-Roster-Revision", "X-Roster-As-Of", "X-Total-Count", "ETag")
ADDRESS = "/users"


def change_every_user(served: Served) -> None:
    """What a sync does that changes each user of one feed."""
    change_roster(served.engine, EVERYONE.values(phone="555-0199"))


def show(answer: Answer) -> tuple[int, bytes, list[str | None]]:
    """What must not depend on the server that was read."""
    return answer.status, answer.body, [answer.headers.get(name) for name in STATE]


def test_every_path_is_answered_by_the_standby_as_by_the_primary(shared: Served) -> None:
    of_each_kind = [one for one in ENDPOINTS if one.template in OF_EACH_KIND]
    asked = pair(examples(of_each_kind, ENDPOINTS, ENDPOINTS), VERSIONS, of_each_kind)
    queries = [(version, endpoint.address) for version, endpoint in asked]
    assert len(queries) == examples(2 * len(OF_EACH_KIND), 41 + len(OF_EACH_KIND), 82)
    expected = [show(shared.alone.call(version, path)) for version, path in queries]
    shared.pair.wait()
    found: list[Any] = []
    reads = count_reads(lambda: found.extend(show(shared.client.call(version, path)) for version, path in queries))
    assert found == expected
    assert {status for status, _, _ in found} == {200}
    assert reads == {"standby": len(queries), "primary": 0}


@pytest.mark.parametrize(
    ("path", "query"),
    [
        pytest.param("/users/nobody", "", id="no-such-record"),
        pytest.param("/users", "limit=2&offset=2&sort=familyName&orderBy=desc", id="a-later-page"),
        pytest.param("/users", "limit=2&fields=sourcedId", id="some-fields"),
        pytest.param("/users", "filter=username='nobody'", id="nothing-found"),
        pytest.param("/users", "limit=2&offset=99", id="beyond-the-end"),
        pytest.param("/users", "limit=0", id="a-count"),
    ],
)
def test_the_standby_answers_with_what_the_primary_has_stored(shared: Served, path: str, query: str) -> None:
    expected = show(shared.alone.call("v1p2", path, query))
    shared.pair.wait()
    found: list[Any] = []
    assert count_reads(lambda: found.append(show(shared.client.call("v1p2", path, query)))) == STANDBY
    assert found == [expected]


@long
def test_students_are_read_from_the_standby(shared: Served) -> None:
    client = shared.vendor_client
    token = client.token(shared.account)
    body = {"districtlea": "17-0042", "limit": 2, "offset": 2}
    expected = client.students(shared.account, token, body)
    shared.pair.wait()
    found: list[Any] = []
    assert count_reads(lambda: found.append(client.students(shared.account, token, body))) == STANDBY
    assert (found[0].body, found[0].headers["X-Roster-Revision"]) == (
        expected.body,
        expected.headers["X-Roster-Revision"],
    )


@long
def test_an_ordering_that_the_standby_lacks_is_made_on_the_primary(shared: Served) -> None:
    query = "limit=2&sort=phone"
    assert count_reads(lambda: shared.client.call("v1p1", ADDRESS, query)) == PRIMARY
    shared.pair.wait()
    assert count_reads(lambda: shared.client.call("v1p1", ADDRESS, query)) == STANDBY


def test_a_delta_that_one_page_shows_needs_no_ordering(shared: Served) -> None:
    shared.pair.wait()
    query = "limit=1000&filter=dateLastModified%3E%272001-01-01%27"
    expected = shared.alone.call("v1p2", ADDRESS, query)
    found: list[Answer] = []
    assert count_reads(lambda: found.append(shared.client.call("v1p2", ADDRESS, query))) == STANDBY
    assert [show(answer) for answer in found] == [show(expected)]


# --- a standby that lags ----------------------------------------------------------------------------------------------


def test_a_right_ends_at_once_however_far_the_standby_lags(served: Served) -> None:
    client, students = served.client, served.vendor_client
    permission, body = students.token(served.account), {"districtlea": "17-0042", "limit": 2, "offset": 0}
    for _ in range(2):
        assert client.call("v1p2", ADDRESS).status == 200
        assert students.students(served.account, permission, body).status == 200
        served.pair.wait()
    served.pair.pause()
    with served.engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, "both@vendors.example", "shv-district")
        vendor_rights.revoke(connection, TESTER, served.account.email, "spr-district")
    for path, query in (
        (ADDRESS, ""),
        ("/users/shv-student-1", ""),
        (ADDRESS, "limit=2&offset=2"),
        (ADDRESS, "limit=0"),
    ):
        assert client.call("v1p2", path, query).status == 401
    assert students.students(served.account, permission, body).status == 401
    assert students.login(served.account).status == 403
    # A new token has the narrower right, which the standby does not know yet.
    fresh = type(client)(served.app, client._credentials, client.documents)
    found: list[Answer] = []
    assert count_reads(lambda: found.append(fresh.call("v1p2", ADDRESS))) == PRIMARY
    assert {record["sourcedId"][:3] for record in found[0].records} == {"spr"}


@long
def test_a_standby_that_lags_behind_a_sync_is_not_read(served: Served) -> None:
    before = served.client.call("v1p2", ADDRESS)
    served.pair.wait()
    served.pair.pause()
    change_every_user(served)
    expected = served.alone.call("v1p2", ADDRESS)
    assert expected.headers["X-Roster-Revision"] != before.headers["X-Roster-Revision"]
    found: list[Answer] = []

    def ask() -> None:
        found.append(served.client.call("v1p2", ADDRESS))

    assert count_reads(ask) == PRIMARY
    served.pair.resume()
    assert count_reads(ask) == STANDBY
    assert [show(answer) for answer in found] == [show(expected)] * 2


def test_a_pull_that_changes_between_the_servers_stays_whole(served: Served) -> None:
    query = "limit=3&sort=familyName"
    whole = served.alone.call("v1p2", ADDRESS, "limit=100&sort=familyName")
    first = served.client.call("v1p2", ADDRESS, query)
    pages, reads = [first], []

    def ask(offset: int) -> None:
        pages.append(served.client.call("v1p2", ADDRESS, f"{query}&offset={offset}"))

    for offset, prepare in {
        3: served.pair.wait,
        6: served.pair.pause,
        9: lambda: change_every_user(served),
        12: served.pair.resume,
    }.items():
        prepare()
        reads.append(count_reads(lambda: ask(offset)))  # noqa: B023  (run at once)
    assert reads == [STANDBY, STANDBY, PRIMARY, STANDBY]
    assert [id_ for page in pages for id_ in page.ids] == whole.ids[:15]
    for name in STATE[:3]:
        assert {page.headers[name] for page in pages} == {first.headers[name]}
    # Its records are those of now.
    assert {record["phone"] for record in pages[-1].records if record["sourcedId"].startswith("spr")} == {"555-0199"}


# --- a standby that is away -------------------------------------------------------------------------------------------


def test_the_primary_answers_while_the_standby_is_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.1)
    assert served.client.call("v1p2", ADDRESS).status == 200
    served.pair.wait()
    assert read_readiness(served)["answers"]
    served.pair.standby.stop()
    try:
        for path in (ADDRESS, "/users/spr-student-1", "/orgs"):
            assert count_reads(lambda: served.client.call("v1p2", path)) == PRIMARY  # noqa: B023  (run at once)
        assert read_readiness(served) == {"answers": False, "lag_seconds": None}
    finally:
        served.pair.standby.start()
    wait_for(lambda: read_readiness(served)["answers"])
    served.pair.wait()
    assert count_reads(lambda: served.client.call("v1p2", ADDRESS)) == STANDBY


def read_readiness(served: Served) -> Any:
    """What `/readyz` says of the standby; the service is ready all the same."""
    answer = served.client.fetch("/readyz")
    assert answer.status == 200
    return answer.json["standby"]


@long
def test_the_lag_is_shown(resting: Served) -> None:
    resting.pair.wait()
    wait_for(lambda: read_readiness(resting)["lag_seconds"] == 0)
    resting.pair.pause()
    with resting.engine.begin() as connection:
        connection.execute(sa.text("UPDATE roster_state SET revision = revision"))
    wait_for(lambda: read_readiness(resting)["lag_seconds"] > 0)
    resting.pair.resume()
    wait_for(lambda: read_readiness(resting)["lag_seconds"] == 0)


@long
def test_requests_at_the_same_time_are_counted_on_the_standby_too(served: Served) -> None:
    allowance = RosteringAllowance(None, None, at_once=1)
    with served.engine.begin() as connection:
        vendors.change_allowance(connection, TESTER, "both@vendors.example", Allowance(None, None, None), allowance)
        vendor = vendors.find_vendor(connection, "both@vendors.example").id
    assert served.client.call("v1p2", ADDRESS).status == 200
    served.pair.wait()
    with psycopg2.connect(served.standby_url) as session, session.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, 1)", (vendor,))
        assert served.client.call("v1p2", ADDRESS).status == 429
    session.close()
    assert served.client.call("v1p2", ADDRESS).status == 200


def fail_with(error: psycopg2.Error) -> Callable[[], object]:
    """A read that fails as the driver does."""

    def read() -> object:
        raise DBAPIError.instance("", None, error, psycopg2.Error, hide_parameters=True)

    return read


def refuse_with(error: Exception) -> Callable[[], object]:
    """A read that is refused."""

    def read() -> object:
        raise error

    return read


# What happens to a read, and whether the standby counts as away then.
FAILURES = {
    "canceled-by-replay": (fail_with(SerializationFailure()), False),
    "too-slow": (fail_with(QueryCanceled()), False),
    "unknown-token": (refuse_with(RefusedRequestError(Problem.ENDED_TOKEN, "")), False),
    "unknown-pull": (refuse_with(RefusedRequestError(Problem.PULL_ENDED, "")), False),
    "lost-connection": (fail_with(psycopg2.OperationalError()), True),
    "unknown-table": (fail_with(psycopg2.ProgrammingError()), True),
}


@pytest.mark.parametrize(("read", "is_away"), FAILURES.values(), ids=FAILURES)
def test_the_primary_has_to_answer_after_a_failure(
    shared: Served, monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], is_away: bool
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 600)
    standby = open_standby(shared.standby_url)
    assert standby.read(read) is None
    assert standby.is_away is is_away
    assert (standby.read(lambda: "read") is None) is is_away
    standby.close()


def test_a_refusal_for_too_many_requests_is_final(shared: Served) -> None:
    standby = open_standby(shared.standby_url)
    with pytest.raises(ThrottledRequestError):
        standby.read(refuse_with(ThrottledRequestError("", 1)))
    standby.close()


def open_standby(url: str) -> Standby:
    """A standby that answers."""
    engine = make_reading_engine(url, statement_seconds=5, pool_size=1, own_sessions=True)
    standby = Standby(engine, engine)
    standby.start()
    assert not standby.is_away
    return standby

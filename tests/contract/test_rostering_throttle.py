"""The limits of a vendor on the rostering interface: its rate, its requests at the same time, what others notice."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendors
from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS, Rates, RosteringAllowance
from tests.actors import TESTER
from tests.conditions import wait_for

from .client import VERSIONS, Answer
from .conftest import Roster, Served, open_interfaces
from .document import RATE_HEADERS

EMAIL = "{}@vendors.example"
# Its window is a minute: one of a second could end between two requests.
SLOW = RosteringAllowance(requests_per_second=1, burst=60, at_once=None)
VENDOR_DEFAULTS = Allowance(None, None, None)


def limit(served: Served, vendor: str, allowance: RosteringAllowance) -> None:
    with served.engine.begin() as connection:
        vendors.change_allowance(connection, TESTER, EMAIL.format(vendor), VENDOR_DEFAULTS, allowance)


def assert_throttled(answer: Answer) -> None:
    info = answer.json["statusInfoSet"]
    assert (answer.status, info["imsx_codeMinor"], info["imsx_severity"]) == (429, "server_busy", "error")
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_own(server_url: str, roster: Roster, served: Served) -> Iterator[Callable[..., Served]]:
    """Serves copies of the roster until the test ends: a test of many workers holds many connections."""
    with open_interfaces(server_url, roster) as make:
        yield functools.partial(make, documents=served.client.documents)


@pytest.fixture
def own(make_own: Callable[..., Served]) -> Served:
    """An application that no other test has asked."""
    return make_own()


@pytest.mark.shows(
    "Load",
    "The rostering interface counts requests per vendor over all workers, and bounds those at the same time.",
)
def test_a_rate_is_of_the_vendor_and_not_of_the_path(own: Served, version: str) -> None:
    limit(own, "springfield", SLOW)
    token = own.client.token(version, vendor="springfield")
    paths = ("/orgs", "/users", "/classes/none", "/users?limit=-1")
    answers = [own.client.call(version, *paths[number % 4].split("?"), bearer=token) for number in range(60)]
    assert {answer.status for answer in answers} == {200, 400, 404}
    assert [int(answer.headers["RateLimit-Remaining"]) for answer in answers] == list(range(59, -1, -1))
    assert {answer.headers["RateLimit-Limit"] for answer in answers} == {"60"}
    assert {int(answer.headers["RateLimit-Reset"]) <= 61 for answer in answers} == {True}
    for path in paths:
        refused = own.client.call(version, *path.split("?"), bearer=token)
        assert_throttled(refused)
        assert refused.headers["RateLimit-Remaining"] == "0"
    other = own.client.call(version, "/orgs", bearer=own.client.token(version, vendor="north"))
    assert other.status == 200


def test_a_token_that_is_not_valid_is_refused_before_the_rate(own: Served) -> None:
    limit(own, "springfield", SLOW)
    token = own.client.token("v1p1", vendor="springfield")
    used = [own.client.call("v1p1", "/orgs", "limit=-1", bearer=token).status for _ in range(60)]
    assert (used, own.client.call("v1p1", "/orgs", bearer=token).status) == ([400] * 60, 429)
    refused = own.client.call("v1p1", "/orgs", bearer=token[:-4])
    assert refused.status == 401
    assert not any(name in refused.headers for name in RATE_HEADERS)
    # The path is of the other version.
    assert own.client.call("v1p2", "/orgs", bearer=token).status == 429


@contextmanager
def take_slots(served: Served, vendor: str, slots: int) -> Iterator[sa.Connection]:
    """Requests of the vendor that run as long as the block; their connection."""
    with served.engine.connect() as connection:
        vendor_id = vendors.find_vendor(connection, EMAIL.format(vendor)).id
        for slot in range(1, slots + 1):
            taken = sa.text("SELECT pg_advisory_xact_lock(:vendor, :slot)")
            connection.execute(taken, {"vendor": vendor_id, "slot": slot})
        yield connection


@pytest.mark.shows(
    "Load",
    "The rostering interface counts requests per vendor over all workers, and bounds those at the same time.",
)
@pytest.mark.parametrize(
    "path", ["/users", "/users?limit=2&offset=2", "/users?filter=familyName~'a'&limit=1", "/users/none"]
)
def test_requests_beyond_the_slots_of_the_vendor_are_refused(own: Served, version: str, path: str) -> None:
    limit(own, "springfield", RosteringAllowance(None, None, at_once=2))
    token = own.client.token(version, vendor="springfield")
    with take_slots(own, "springfield", 1):
        admitted = own.client.call(version, *path.split("?"), bearer=token)
    with take_slots(own, "springfield", 2):
        refused = own.client.call(version, *path.split("?"), bearer=token)
        other = own.client.call(version, *path.split("?"), bearer=own.client.token(version, vendor="north"))
    assert admitted.status == other.status == own.client.call(version, *path.split("?"), bearer=token).status
    assert_throttled(refused)
    assert int(refused.headers["RateLimit-Remaining"]) > 0
    with own.engine.connect() as connection:
        # Nothing is stored of what a refused request has not seen.
        assert connection.scalar(sa.text("SELECT count(*) FROM orderings WHERE visible_set !~ '^[0-9a-f]{64}'")) == 0


@pytest.mark.shows("Load", "New filters and sorts of a vendor have a bound; pages of earlier ones are answered.")
@pytest.mark.parametrize("page", ["limit=1", "limit=0"])
def test_new_filters_have_a_bound_and_those_of_before_are_answered(
    make_own: Callable[..., Served], version: str, page: str
) -> None:
    """Each counts a fiftieth of a second at least."""
    own = make_own(rates=Rates(ordering_seconds=1))
    token = own.client.token(version, vendor="springfield")

    def ask(number: int, bearer: str) -> Answer:
        return own.client.call(version, "/users", f"{page}&filter=familyName>'a{number}'", bearer=bearer)

    answers = [ask(number, token) for number in range(51)]
    assert [answer.status for answer in answers] == sorted(answer.status for answer in answers)
    assert (answers[0].status, answers[-1].status) == (200, 429)
    assert_throttled(answers[-1])
    assert b"new filters" in answers[-1].body
    assert ask(0, token).status == 200
    assert own.client.call(version, "/users", page, bearer=token).status == 200, "a whole collection"
    assert ask(0, own.client.token(version, vendor="north")).status == 200


@pytest.mark.shows(
    "Load",
    "A vendor with many connections leaves a worker to the others; a killed one gives its slot back.",
)
def test_a_worker_that_is_killed_gives_its_slot_back(own: Served) -> None:
    """The database ends its transaction with its connection."""
    limit(own, "springfield", RosteringAllowance(None, None, at_once=1))
    token = own.client.token("v1p2", vendor="springfield")
    with take_slots(own, "springfield", 1) as worker:
        assert_throttled(own.client.call("v1p2", "/orgs", bearer=token))
        worker.connection.dbapi_connection.close()
        worker.invalidate()
    wait_for(lambda: own.client.call("v1p2", "/orgs", bearer=token).status == 200)


@pytest.mark.shows(
    "Load",
    "A vendor with many connections leaves a worker to the others; a killed one gives its slot back.",
)
def test_a_vendor_has_every_worker_while_it_is_alone(make_own: Callable[..., Served]) -> None:
    """Beside another one, it has all but one of the three."""
    own = make_own(workers=3)
    limit(own, "springfield", ROSTERING_DEFAULTS)
    springfield, north = (own.client.token("v1p2", vendor=vendor) for vendor in ("springfield", "north"))
    with take_slots(own, "springfield", 2):
        assert own.client.call("v1p2", "/orgs", bearer=springfield).status == 200
        assert own.client.call("v1p2", "/orgs", bearer=north).status == 200
        assert_throttled(own.client.call("v1p2", "/orgs", bearer=springfield))
        assert own.client.call("v1p2", "/orgs", bearer=north).status == 200
    assert own.client.call("v1p2", "/orgs", bearer=springfield).status == 200

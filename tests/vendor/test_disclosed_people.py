"""The access log tells whose records each disclosure had, of both interfaces, without an id of a person."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import HASH_BYTES, PersonHasher
from roster_service.access_log.reports import AccessLogFilter, count_unsearchable, read_access_log
from roster_service.accounts import clients
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.tables import audit, users
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.versions import VERSIONS
from tests.actors import TESTER
from tests.contract.conftest import SECRET_KEY
from tests.contract.paths import ENDPOINTS
from tests.extent import examples
from tests.vendor.client import Account
from tests.vendor.conftest import Served

SEEDS = range(examples(1, 2, 20))
REQUESTS = 50
HASHER = PersonHasher(SECRET_KEY)
ROOTS = {version.prefix: version.root for version in VERSIONS}
LEAS = {"spr-district": "17-0042", "shv-district": "17-0077"}
# Ids that nobody has, some of them with signs that mean something to SQL, to a shell, or to the format of a row.
STRANGERS = ("O'Brien", "x'; DROP TABLE audit; --", "\\x00", "%", "spr-student-", "spr-student-11", "é😀")
Record = Mapping[str, Any]


@dataclass
class Reading:
    """A vendor that reads both interfaces, and the plain model of what it was shown."""

    served: Served
    account: Account
    tokens: Mapping[str, str]
    permission_token: str
    shown: dict[str, set[str]] = field(default_factory=dict)

    def get(self, request_id: str, version: str, address: str) -> Any:
        """The body of a request of the rostering interface."""
        headers = {"Authorization": f"Bearer {self.tokens[version]}", "X-Request-Id": request_id}
        answer = self.served.app.test_client().get(ROOTS[version] + address, headers=headers)
        assert answer.status_code in (200, 404), answer.text
        return answer.json if answer.status_code == 200 else None

    def ask_rostering(self, dice: random.Random, numbers: Iterator[int]) -> None:
        """Asks for the same once with some fields and once with all, which tell the model whose records these are."""
        version, endpoint = dice.choice(list(ROOTS)), dice.choice(ENDPOINTS)
        address = dice.choice((endpoint.address, endpoint.address, endpoint.unknown)) + "?"
        if not endpoint.single:
            order = dice.choice(("asc", "desc"))
            address += f"limit={dice.randint(0, 9)}&offset={dice.randint(0, 9)}&sort=status&orderBy={order}&"
        some, whole = f"request-{next(numbers)}", f"request-{next(numbers)}"
        self.get(some, version, f"{address}fields=status")
        body = self.get(whole, version, address)
        if body is not None:
            found = body[endpoint.key]
            self.shown[some] = self.shown[whole] = set(list_owners(endpoint.key, [found] if endpoint.single else found))

    def ask_students(self, dice: random.Random, numbers: Iterator[int]) -> None:
        """Asks for students, with some of what their records can have."""
        include = dice.sample(list(PermissionFlag), dice.randint(0, 3))
        district = dice.choice(list(LEAS.values()))
        body = {"districtlea": district, "limit": dice.randint(1, 9), "offset": dice.randint(0, 9), "include": include}
        request_id = f"request-{next(numbers)}"
        headers = {"X-Request-Id": request_id}
        answer = self.served.client.students(self.account, self.permission_token, body, headers=headers)
        if answer.status == 200:
            self.shown[request_id] = {
                person["sourcedId"] for student in answer.json["students"] for person in list_named(student)
            }


def list_owners(key: str, records: Sequence[Record]) -> Iterator[str]:
    """The ids of the people whose records these are."""
    for record in records:
        if key in ("users", "user", "demographics"):
            yield record["sourcedId"]
        elif key in ("enrollments", "enrollment"):
            yield record["user"]["sourcedId"]


def list_named(student: Record) -> Iterator[Record]:
    """A student of the vendor interface, and whom its record names."""
    yield student
    yield from student.get("contacts", {}).get("guardians", ())
    for enrollment in student.get("enrollments", ()):
        yield from enrollment.get("teachers", ())


@pytest.fixture
def make_reading(served: Served) -> Callable[..., Reading]:
    """Makes vendors with everything of some districts."""

    def make(*districts: str) -> Reading:
        account = served.add(grants=dict.fromkeys(districts, ()), flags=tuple(PermissionFlag))
        scopes = [Scope(version, name) for version in ROOTS for name in ScopeName]
        with served.engine.begin() as connection:
            made = clients.add_client(connection, TESTER, account.email, "tests", scopes)
        tokens = {}
        for version in ROOTS:
            form = {"grant_type": "client_credentials", "scope": " ".join(map(str, scopes_of(scopes, version)))}
            pair = (made.client_id, made.client_secret)
            tokens[version] = served.app.test_client().post("/oauth/token", data=form, auth=pair).json["access_token"]
        return Reading(served, account, tokens, served.client.token(account))

    return make


def scopes_of(scopes: Sequence[Scope], version: str) -> list[Scope]:
    """The scopes of a version: a token has only one."""
    return [scope for scope in scopes if scope.version == version]


def read_requests(served: Served, **wanted: Any) -> set[str]:
    """The ids of the requests that the access log lists."""
    with served.engine.connect() as connection:
        return {row.request_id for row in read_access_log(connection, AccessLogFilter(**wanted))}


@pytest.mark.shows(
    "Access log",
    "`roster audit --person` lists exactly the answers with records of the person, an erased one too.",
)
@pytest.mark.shows(
    "Access log",
    "A row has people as keyed hashes alone; with another key the command says that it finds nobody.",
)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_log_answers_for_each_person_as_a_plain_model_does(
    served: Served,
    make_reading: Callable[..., Reading],
    caplog: pytest.LogCaptureFixture,
    seed: int,
) -> None:
    """Of vendors that see one district or both, over random requests, and for ids that nobody has."""
    caplog.set_level(logging.DEBUG)
    dice, numbers = random.Random(seed), itertools.count(100_000 * (1 + seed))
    readings = [make_reading("spr-district"), make_reading("spr-district", "shv-district")]
    for _ in range(REQUESTS):
        reading = dice.choice(readings)
        dice.choice((reading.ask_rostering, reading.ask_rostering, reading.ask_students))(dice, numbers)
    served.app.extensions["roster_access_log"].flush()
    with served.engine.connect() as connection:
        people = [*connection.scalars(sa.select(users.c.sourced_id)), *STRANGERS]
    own = [row for reading in readings for row in reading.shown]
    for person in people:
        found = {reading.account.id: read_requests(served, person=HASHER.hash_id(person), vendor_id=reading.account.id)
                 for reading in readings}  # fmt: skip
        for reading in readings:
            expected = {request_id for request_id, shown in reading.shown.items() if person in shown}
            assert found[reading.account.id] == expected, person
        every = read_requests(served, person=HASHER.hash_id(person))
        assert every & set(own) == set().union(*found.values())
        assert HASHER.hash_id(person).hex() not in caplog.text
    assert set(own) <= read_requests(served)
    # Some requests had people, some had none, and the districts differ.
    shown = [ids for reading in readings for ids in reading.shown.values()]
    assert all(any(person.startswith(prefix) for ids in shown for person in ids) for prefix in ("spr-", "shv-"))
    assert set() in shown


@pytest.mark.shows(
    "Access log",
    "A row has people as keyed hashes alone; with another key the command says that it finds nobody.",
)
def test_no_row_has_an_id(served: Served, make_reading: Callable[..., Reading]) -> None:
    reading = make_reading("spr-district")
    reading.get("request-with-everyone", "v1p1", "/users")
    served.app.extensions["roster_access_log"].flush()
    with served.engine.connect() as connection:
        [row] = connection.execute(sa.select(audit).where(audit.c.request_id == "request-with-everyone")).all()
        ids = connection.scalars(sa.select(users.c.sourced_id)).all()
        written = connection.scalar(
            sa.text("SELECT encode(people, 'escape') FROM audit WHERE id = :id"), {"id": row.id}
        )
    assert len(row.people) == HASH_BYTES * (1 + row.records)
    assert not [sourced_id for sourced_id in ids if sourced_id in f"{written}{row}"]
    # Another key neither finds a person, nor hides that it cannot.
    other = PersonHasher(SECRET_KEY + "x")
    wanted = AccessLogFilter(vendor_id=reading.account.id, person=other.hash_id("spr-student-1"))
    with served.engine.connect() as connection:
        assert read_access_log(connection, wanted) == []
        assert count_unsearchable(connection, wanted, other.check) == 1
        assert count_unsearchable(connection, wanted, HASHER.check) == 0

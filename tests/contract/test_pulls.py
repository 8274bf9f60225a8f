"""Pulls over HTTP, with a sync between every two pages: every record of the first page's collection comes once."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts import vendor_rights
from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from sync_scripts.staging.retained import ACTIVE, TO_BE_DELETED
from tests.actors import TESTER
from tests.extent import examples, pair
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import both, column, without_rows

from .changed_roster import EVERYONE, change_roster
from .client import VERSIONS, Answer, RosterClient
from .conftest import GRANTS, Roster, Served, add_vendor, open_interfaces

# One of each path, in a run that does not try all.
PULLS = examples(3, 3, 200)
QUERY = {"limit": "5", "filter": "status='active'"}
GONE = "spr-student-4"
# The records that go with the student.
LOST = {tables.users: GONE, tables.demographics: GONE, tables.enrollments: "spr-enr-04"}
TURNS = (TO_BE_DELETED, ACTIVE)
NUMBERS = itertools.count()
Sync = Callable[[], object]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shared(server_url: str, roster: Roster, served: Served) -> Iterator[Served]:
    """An application whose roster changes. All repetitions together take longer than a token of an hour."""
    with open_interfaces(server_url, roster) as make:
        yield make(documents=served.client.documents, token_seconds=86_400)


@dataclass(frozen=True)
class Own(Served):
    """The same for vendors of a test's own, who have no pull yet."""

    email: str


@pytest.fixture
def own(shared: Served) -> Own:
    """The vendor of one district has the e-mail address."""
    names = {name: f"{name}-{next(NUMBERS)}" for name in ("both", "springfield")}
    with shared.engine.begin() as connection:
        credentials = {name: add_vendor(connection, names[name], GRANTS[name]) for name in names}
    client = RosterClient(shared.app, credentials, shared.client.documents)
    return Own(shared.app, client, shared.engine, shared.url, f"{names['springfield']}@vendors.example")


@pytest.fixture
def apart(server_url: str, roster: Roster, served: Served) -> Iterator[Served]:
    """An application whose roster a test may break."""
    with open_interfaces(server_url, roster) as make:
        yield make(documents=served.client.documents)


def change_status(engine: sa.Engine, status: str) -> None:
    """What a load of an export does that lacks a student and all that is theirs, or has them again: everyone else
    changes, too."""
    changes = (sa.update(table).where(table.c.sourced_id == gone).values(status=status) for table, gone in LOST.items())
    change_roster(engine, *changes, EVERYONE.values(phone=status))


@pytest.fixture
def sync(shared: Served) -> Iterator[Sync]:
    """Does so in turn. At the end the student is there."""
    turns = itertools.cycle(TURNS)
    yield lambda: change_status(shared.engine, next(turns))
    change_status(shared.engine, TURNS[-1])


@pytest.fixture
def load_fewer(apart: Served, tmp_path: Path) -> Sync:
    """Loads such an export."""
    folder = Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / "fewer"))
    both(
        without_rows("users", GONE),
        without_rows("demographics", GONE),
        without_rows("enrollments", LOST[tables.enrollments]),
        column("users", "phone", "1"),
    )(folder)
    return lambda: load(apart.engine, "springfield", folder, options=Options(allow_mass_delete=True))


def read_by_offset(client: RosterClient, version: str, path: str, token: str, sync: Sync) -> Iterator[list[str]]:
    """The ids of each page, as the loop of the documentation asks for them."""
    offset, total = 0, 1
    while offset < total:
        answer = client.call(version, path, QUERY | {"offset": str(offset)}, bearer=token)
        total = answer.total
        yield answer.ids
        offset += 5
        sync()


def read_by_link(client: RosterClient, version: str, path: str, token: str, sync: Sync) -> Iterator[list[str]]:
    """The ids of each page, by `next`. Before each page, another consumer of the same client begins a pull."""
    answer = client.call(version, path, QUERY, bearer=token)
    yield answer.ids
    while "next" in answer.links:
        sync()
        client.call(version, path, QUERY, bearer=token)
        answer = client.follow(version, answer.links["next"], bearer=token)
        yield answer.ids


@pytest.mark.parametrize(("version", "read"), [*pair([read_by_offset, read_by_link], VERSIONS)])
def test_a_pull_has_every_record_once(
    own: Own, sync: Sync, version: str, read: Callable[..., Iterator[list[str]]]
) -> None:
    token = own.client.token(version)
    for number in range(PULLS):
        path = ("/users", "/students", "/enrollments")[number % 3]
        expected = own.client.call(version, path, QUERY | {"limit": "1000"}, bearer=token).ids
        found = [identifier for page in read(own.client, version, path, token, sync) for identifier in page]
        assert found == expected


def test_a_pull_keeps_the_state_of_its_first_page(apart: Served, load_fewer: Sync, version: str) -> None:
    """And shows its records as they are now."""
    token = apart.client.token(version)
    state = ("X-Total-Count", "X-Roster-Revision", "X-Roster-As-Of", "X-Roster-Deletions-Since")
    first = apart.client.call(version, "/students", {"limit": "1"}, bearer=token)
    load_fewer()
    pages = ({"limit": "1", "offset": str(offset)} for offset in range(1, first.total))
    later = [apart.client.call(version, "/students", page, bearer=token) for page in pages]
    for page in later:
        assert {name: page.headers[name] for name in state} == {name: first.headers[name] for name in state}
    assert {page.records[0]["status"] for page in later} == {"active", "tobedeleted"}
    begun = apart.client.call(version, "/students", {"limit": "1"}, bearer=token)
    assert begun.headers["X-Roster-Revision"] != first.headers["X-Roster-Revision"]


def test_a_page_of_a_pull_has_another_entity_tag_after_a_sync(own: Own, sync: Sync, version: str) -> None:
    token = own.client.token(version)
    own.client.call(version, "/users", {"limit": "2"}, bearer=token)
    page = {"limit": "2", "offset": "2"}
    tag = own.client.call(version, "/users", page, bearer=token).headers["ETag"]
    same = own.client.call(version, "/users", page, bearer=token, headers={"If-None-Match": tag})
    assert same.status == 304
    sync()
    changed = own.client.call(version, "/users", page, bearer=token, headers={"If-None-Match": tag})
    assert changed.status == 200


def test_a_pull_that_cannot_go_on_is_refused(apart: Served, version: str) -> None:
    """Its time is over, its ordering is lost, or a record of the page is."""
    token = apart.client.token(version)
    turns = itertools.cycle(TURNS)
    causes = {
        "its time": "its time is over",
        "its ordering": "a person of it was erased, the roster was restored",
        "a record": "records of this page were deleted for good",
    }
    for lost, cause in causes.items():
        first = apart.client.call(version, "/users", {"limit": "2", "sort": "sourcedId"}, bearer=token)
        change_status(apart.engine, next(turns))
        with apart.engine.begin() as connection:
            if lost == "its time":
                connection.execute(tables.pulls.delete())
            elif lost == "its ordering":
                connection.execute(tables.orderings.delete())
            else:
                identifier = apart.client.call(version, "/users", {"limit": "1"}, bearer=token).ids[0]
                roles = sa.update(tables.user_roles).where(tables.user_roles.c.user_id > identifier)
                connection.execute(roles.values(org_id="nowhere"))
        answer = apart.client.follow(version, first.links["next"], bearer=token)
        assert (answer.status, answer.minor) == (410, "unknownobject"), lost
        assert cause in answer.description
        assert "begin again with the first page" in answer.description


def grant_the_other_district(own: Own) -> None:
    """A vendor of one district may see the other one, too."""
    with own.engine.begin() as connection:
        vendor_rights.grant(connection, TESTER, own.email, "shv-district", ())


def ask(own: Own, version: str, address: str, query: dict[str, str]) -> Answer:
    """A request with a new token, as after a change of grants."""
    own.client.forget_tokens()
    call = own.client.follow if address.startswith("http") else own.client.call
    return call(version, address, **({} if address.startswith("http") else {"query": query}), vendor="springfield")


@pytest.mark.parametrize(("version", "by_link"), [*pair([True, False], VERSIONS)])
def test_a_pull_of_before_a_grant_ends_and_the_next_one_is_whole(own: Own, version: str, by_link: bool) -> None:
    """No sync comes between, and the former pull is remembered."""
    query = {"limit": "5"}

    def read_next(page: Answer) -> Answer:
        offset = {"offset": "5"}
        return ask(own, version, page.links["next"] if by_link else "/users", query | offset)

    former = ask(own, version, "/users", query)
    assert read_next(former).status == 200
    grant_the_other_district(own)
    for _ in range(2):
        assert read_next(former).status == 410
    everything = ask(own, version, "/users", {"limit": "1000"})
    first = ask(own, version, "/users", query)
    assert first.total == everything.total > former.total
    state = ("X-Total-Count", "X-Roster-Revision", "X-Roster-As-Of", "X-Roster-Deletions-Since")
    second = read_next(first)
    assert {name: second.headers[name] for name in state} == {name: first.headers[name] for name in state}
    assert first.ids + second.ids == everything.ids[:10]
    assert int(first.headers["X-Roster-Revision"]) > int(former.headers["X-Roster-Revision"])
    # The links of the former pull name its revision.
    assert ask(own, version, former.links["next"], {}).status == 410


def test_two_pulls_of_before_and_after_a_grant_do_not_mix(own: Own, version: str) -> None:
    """Their pages take turns, and both follow `Link`."""
    former = ask(own, version, "/users", {"limit": "5"})
    grant_the_other_district(own)
    later = ask(own, version, "/users", {"limit": "5"})
    assert ask(own, version, former.links["next"], {}).status == 410
    found = later.ids
    while "next" in later.links:
        later = ask(own, version, later.links["next"], {})
        found += later.ids
    assert found == ask(own, version, "/users", {"limit": "1000"}).ids


def test_an_entity_tag_of_before_a_grant_is_not_answered_with_304(own: Own, version: str) -> None:
    tags = []
    for page in ({"limit": "5"}, {"limit": "5", "offset": "5"}):
        tags.append(ask(own, version, "/users", page).headers["ETag"])
        same = own.client.call(version, "/users", page, vendor="springfield", headers={"If-None-Match": tags[-1]})
        assert same.status == 304
    grant_the_other_district(own)
    own.client.forget_tokens()
    for page, status in (
        ({"limit": "5", "offset": "5"}, 410),
        ({"limit": "5"}, 200),
        ({"limit": "5", "offset": "5"}, 200),
    ):
        answer = own.client.call(
            version, "/users", page, vendor="springfield", headers={"If-None-Match": ",".join(tags)}
        )
        assert answer.status == status


@pytest.mark.parametrize("path", ["/users", "/schools/spr-elementary/enrollments"])
def test_a_client_may_ask_on_until_a_page_is_empty(own: Own, path: str) -> None:
    """Its first page is whole and begins no pull, and a pull of before the grant is remembered."""
    assert ask(own, "v1p2", path, {"limit": "1"}).total > 1
    grant_the_other_district(own)
    page = {"limit": "1000"}
    first = ask(own, "v1p2", path, page)
    assert len(first.ids) == first.total
    assert ask(own, "v1p2", path, page | {"offset": "1000"}).ids == []

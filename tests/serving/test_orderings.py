"""Pages out of orderings: the same as by plain SQL, made once, shared by who sees the same orgs, bounded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from roster_service.accounts import vendor_rights
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.db import tables
from roster_service.db.tables import ordering_chunks, orderings, pulls
from roster_service.errors import Problem, RefusedRequestError
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.roster_state import advance_state
from roster_service.roster.visible_orgs import refresh_vendors_of, refresh_visible_orgs
from roster_service.serving.orderings import Orderings, evict_orderings
from tests.actors import TESTER
from tests.extent import examples

from .conftest import Questioner, add_vendor, find_orgs, grant, ids_of, make_request, make_token
from .plain_pages import SHAPES, Question, plain_count, plain_page

Orgs = tuple[list[str], list[str]]
Ask = Callable[..., Question]


@pytest.fixture(scope="module")
def orgs(shared_questioner: Questioner) -> Orgs:
    """(the districts, some of the schools)."""
    return find_orgs(shared_questioner.owner)


@pytest.fixture(scope="module")
def finder(copy_districts: Callable[[], str]) -> Iterator[Questioner]:
    """A worker that keeps nothing: it finds each page in one pass."""
    made = Questioner(copy_districts(), keeps_orderings=False)
    yield made
    made.close()


@pytest.fixture(scope="module")
def of_all(orgs: Orgs) -> Ask:
    """Makes questions of a vendor who sees both districts."""
    districts, schools = orgs
    return lambda path, **more: Question(
        path=path, districts=tuple(districts), schools=(), school=more.pop("school", schools[0]), **more
    )


def test_a_refused_caller_is_asked_once_for_a_record(questioner: Questioner, of_all: Ask) -> None:
    """Also where a record that is missing would be looked for among what has left."""
    request = questioner.request(of_all("/users/{sourcedId}", school="nobody"), 1, 0, None)
    reader, sent = questioner.workers[0], questioner.round_trips.sent
    sent.clear()
    assert reader.read_record(request).text is None
    assert len(sent) == 2
    with questioner.owner.begin() as connection:
        vendors_of = sa.delete(tables.vendor_grants).where(tables.vendor_grants.c.vendor_id == request.vendor_id)
        connection.execute(vendors_of)
        refresh_visible_orgs(connection, request.vendor_id)
    sent.clear()
    with pytest.raises(RefusedRequestError):
        reader.read_record(request)
    assert len(sent) == 1


@st.composite
def questions(draw: st.DrawFn, districts: list[str], schools: list[str]) -> Question:
    """Anything that can be asked, by anyone."""
    path = draw(st.sampled_from(sorted(SHAPES)))
    return Question(
        path=path,
        # A vendor without a grant is refused.
        districts=tuple(draw(st.lists(st.sampled_from(districts), unique=True))),
        schools=tuple(draw(st.lists(st.sampled_from(schools), unique=True, min_size=1))),
        school=draw(st.sampled_from(schools)),
        filter=draw(st.none() | st.sampled_from(sorted(SHAPES[path].filters))),
        sort=draw(st.none() | st.sampled_from(sorted(SHAPES[path].sorts))),
        descending=draw(st.booleans()),
    )


def read_plainly(questioner: Questioner, question: Question, limit: int, offset: int) -> tuple[list[str], int]:
    """(ids of the page, count of all pages), by plain SQL."""
    with questioner.owner.connect() as connection:
        return plain_page(connection, question, limit, offset), plain_count(connection, question)


def test_every_page_is_that_of_plain_sql(shared_questioner: Questioner, finder: Questioner, orgs: Orgs) -> None:
    """Whoever answers: the pages of a collection go to the workers in turn. And the same where no ordering is kept."""

    @settings(max_examples=examples(20, 20, 150), suppress_health_check=[HealthCheck.too_slow])
    @given(
        question=questions(*orgs),
        limit=st.sampled_from([0, 1, 7, 100, 999, 1000, 1001, 5000]),
        start=st.sampled_from([0, 0, 1, 500, 1999, 10**6]),
        stride=st.integers(1, 3),
    )
    def check(question: Question, limit: int, start: int, stride: int) -> None:
        with shared_questioner.owner.connect() as connection:
            total = plain_count(connection, question)
            offsets = [start + limit * stride * number for number in range(8)]
            for number, offset in enumerate([*offsets, max(0, total - limit), max(0, total - 1)]):
                expected = (plain_page(connection, question, limit, offset), total)
                assert shared_questioner.ask(question, limit, offset, worker=number % 3) == expected
                if number < 2:
                    assert finder.ask(question, limit, offset) == expected

    check()
    assert finder.count_rows(orderings) == 0
    assert shared_questioner.count_rows(orderings) > examples(5, 5, 50)


# --- what is kept when --------------------------------------------------------------------------------------------


@contextmanager
def statements(engine: sa.Engine) -> Iterator[list[str]]:
    """What an engine is told meanwhile."""
    reported: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        reported.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield reported
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def test_a_page_of_a_kept_ordering_is_one_round_trip(questioner: Questioner, of_all: Ask) -> None:
    question = of_all("/users", filter="familyName~'a'", sort="familyName")
    for offset in (0, 20):
        questioner.ask(question, 20, offset)
    questioner.round_trips.sent.clear()
    with statements(questioner.ordering) as written:
        for offset in (0, 20, 40):
            ids, _ = questioner.ask(question, 20, offset)
            assert len(ids) == 20
        questioner.ask(question, 20, 10**6)
    assert ["ordering_chunks" in statement for statement in questioner.round_trips.sent] == [True] * 4
    assert written == []


def test_a_first_page_makes_the_ordering_that_its_pull_reads(questioner: Questioner, of_all: Ask) -> None:
    """In one pass over the collection."""
    question = of_all("/users", filter="familyName~'a'")
    with statements(questioner.ordering) as written:
        _, total = questioner.ask(question, 20, 0)
    assert sum("contains_folded" in statement for statement in written) == 1
    assert len(questioner.round_trips.sent) == 2
    with questioner.owner.connect() as connection:
        kept = connection.execute(sa.select(orderings.c.total, orderings.c.bytes)).one()
        ids = connection.scalars(sa.select(sa.func.unnest(ordering_chunks.c.ids))).all()
    assert kept.total == total == len(ids) == len(set(ids)) > 20
    assert kept.bytes > 0


@pytest.mark.parametrize(
    "question",
    [
        pytest.param({"path": "/schools/{schoolId}/classes"}, id="path"),
        pytest.param({"path": "/users", "filter": "email='nobody'"}, id="filter"),
    ],
)
def test_what_leaves_few_records_is_found_without_asking_for_an_ordering(
    questioner: Questioner, orgs: Orgs, monkeypatch: pytest.MonkeyPatch, question: dict[str, Any]
) -> None:
    monkeypatch.setitem(SHAPES["/users"].filters, "email='nobody'", "t.email = 'nobody'")  # type: ignore[arg-type]
    asked = Question(**{"districts": tuple(orgs[0]), "schools": (), "school": orgs[1][0], **question})
    assert questioner.ask(asked, 1000, 0) == read_plainly(questioner, asked, 1000, 0)
    assert len(questioner.round_trips.sent) == 1
    assert questioner.count_rows(orderings) == 0


@pytest.mark.parametrize(
    ("wanted", "limit", "kept"),
    [
        pytest.param("dateLastModified>'2000-01-01'", 1000, 0, id="all of a delta"),
        pytest.param("sourcedId!='0' AND dateLastModified>='2000-01-01'", 1000, 0, id="all of a narrower delta"),
        pytest.param("dateLastModified>'2000-01-01'", 20, 1, id="the beginning of a delta"),
        pytest.param("status='active' OR dateLastModified>'2000-01-01'", 1000, 1, id="no delta"),
        pytest.param("dateLastModified<'2100-01-01'", 1000, 1, id="what has not changed"),
    ],
)
def test_a_delta_on_one_page_leaves_no_ordering_behind(
    questioner: Questioner, of_all: Ask, monkeypatch: pytest.MonkeyPatch, wanted: str, limit: int, kept: int
) -> None:
    """It is found in one round trip, and few ask for the same instant again."""
    monkeypatch.setitem(SHAPES["/users"].filters, wanted, "true")  # type: ignore[arg-type]
    question = of_all("/users", filter=wanted)
    assert questioner.ask(question, limit, 0) == read_plainly(questioner, question, limit, 0)
    assert questioner.count_rows(orderings) == kept
    assert (len(questioner.round_trips.sent) == 1) is (kept == 0)


@pytest.mark.parametrize("path", ["/users", "/schools/{schoolId}/classes"])
def test_the_largest_offset_is_answered_where_no_ordering_is_stored(
    questioner: Questioner, of_all: Ask, path: str
) -> None:
    question = of_all(path)
    assert questioner.ask(question, 1000, 2**63 - 1) == ([], read_plainly(questioner, question, 1, 0)[1])


def test_descending_is_the_same_ordering_backwards(questioner: Questioner, of_all: Ask) -> None:
    """With its ties and its absent values."""
    for way in (False, True):
        question = of_all("/users", sort="middleName", descending=way)
        for offset in (0, 100, 0):
            assert questioner.ask(question, 100, offset) == read_plainly(questioner, question, 100, offset)
    assert questioner.count_rows(orderings) == 1


def test_another_worker_reads_what_one_has_kept(questioner: Questioner, of_all: Ask) -> None:
    question = of_all("/enrollments", sort="role")
    first = questioner.ask(question, 10, 1500, worker=0)
    with statements(questioner.ordering) as written:
        assert questioner.ask(question, 10, 1500, worker=1) == first
    assert written == []


def test_a_count_is_shared(questioner: Questioner, of_all: Ask) -> None:
    """Whatever it was sorted by: who asks for no records asks for no order."""
    _, total = questioner.ask(of_all("/enrollments", sort="role"), 0, 0, worker=0)
    assert total == read_plainly(questioner, of_all("/enrollments"), 0, 0)[1]
    questioner.round_trips.sent.clear()
    assert questioner.ask(of_all("/enrollments", sort="primary"), 0, 0, worker=1) == ([], total)
    assert len(questioner.round_trips.sent) == 1
    assert questioner.count_rows(orderings) == 1


def test_who_only_counts_leaves_no_other_order_behind(questioner: Questioner, of_all: Ask) -> None:
    """The ordering without a sort is the one by sourcedId, whoever was the first to need it."""
    questioner.ask(of_all("/users", sort="familyName"), 0, 5)
    plain = of_all("/users")
    for offset in (0, 30):
        assert questioner.ask(plain, 30, offset) == read_plainly(questioner, plain, 30, offset)


@pytest.mark.parametrize("key", ["metadata.city", "metadata.none"])
def test_a_sort_by_a_key_of_metadata_is_answered(
    questioner: Questioner, of_all: Ask, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Out of an ordering, which both ways share: the log says where none could be made."""
    for way in (False, True):
        question = of_all("/orgs", sort=key, descending=way)
        for offset in (0, 2, 0, 2):
            assert questioner.ask(question, 2, offset) == read_plainly(questioner, question, 2, offset)
    with questioner.owner.connect() as connection:
        stored = connection.scalar(sa.select(sa.func.count()).where(orderings.c.bytes.is_not(None)))
    assert (stored, [record.getMessage() for record in caplog.records]) == (1, [])


def test_workers_who_ask_at_once_make_one_ordering(questioner: Questioner, of_all: Ask) -> None:
    question = of_all("/enrollments", sort="role")
    own = [Questioner(questioner.url) for _ in range(4)]
    requests = [questioner.request(question, 50, 1100) for _ in own]
    gate = threading.Barrier(4)
    found: list[tuple[list[str], int]] = []

    def ask(worker: Questioner, number: int) -> None:
        gate.wait()
        page = worker.workers[0].read_page(requests[number]).page
        found.append((ids_of(page), page.total))
        worker.round_trips.close()

    threads = [threading.Thread(target=ask, args=(worker, number)) for number, worker in enumerate(own)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in own:
        worker.close()
    page, total = read_plainly(questioner, question, 50, 1100)
    assert found == [(page, total)] * 4
    assert (questioner.count_rows(orderings), questioner.count_rows(ordering_chunks)) == (1, -(-total // 1000))


# --- whose it is --------------------------------------------------------------------------------------------------


def read_as(
    questioner: Questioner, token: AccessToken, question: Question, limit: int, offset: int
) -> tuple[list[str], int]:
    """(ids of the page, count of all pages), for the holder of a token."""
    page = questioner.workers[0].read_page(make_request(token, question, limit, offset)).page
    return ids_of(page), page.total


def list_schools(connection: sa.Connection, district: str) -> list[str]:
    """The schools of a district."""
    known = tables.orgs.c
    found = sa.select(known.sourced_id).where(known.district_id == district, known.type == "school")
    return list(connection.scalars(found))


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        pytest.param("both districts", "both districts", 2, id="the-same-grants"),
        pytest.param("a school of a whole district", "a whole district", 1, id="other-grants-of-the-same-orgs"),
        pytest.param("a whole district", "both districts", 2, id="one-feed-of-two"),
        pytest.param("a school", "another school", 2, id="others"),
        pytest.param("a school", "a whole district", 2, id="a-part"),
        pytest.param("every school", "a whole district", 2, id="all-schools-but-not-the-district"),
    ],
)
def test_vendors_who_see_the_same_orgs_and_no_others_share_an_ordering(
    questioner: Questioner, orgs: Orgs, one: str, other: str, rows: int
) -> None:
    """`rows`: of both vendors together; each feed that one of them sees has an ordering of its own."""
    with questioner.owner.begin() as connection:
        schools = list_schools(connection, orgs[0][0])
        grants = {
            "both districts": orgs[0],
            "a whole district": orgs[0][:1],
            "a school of a whole district": [orgs[0][0], schools[0]],
            "every school": schools,
            "a school": schools[:1],
            "another school": schools[1:2],
        }
        tokens = [add_vendor(connection, f"v{number}", grants[name]) for number, name in enumerate((one, other))]
    for token, name in zip(tokens, (one, other), strict=True):
        whole = tuple(org for org in grants[name] if org in orgs[0])
        question = Question(path="/users", districts=whole, schools=tuple(grants[name]), school="")
        for offset in (0, 30, 0):
            assert read_as(questioner, token, question, 30, offset) == read_plainly(questioner, question, 30, offset)
    assert questioner.count_rows(orderings) == rows


@pytest.mark.shows(
    "Visibility",
    "An ordering is open to callers with the same visible orgs alone, and each of its records passes both "
    "layers again.",
)
def test_an_ordering_is_open_to_nobody_who_sees_other_orgs(questioner: Questioner, orgs: Orgs, of_all: Ask) -> None:
    """Row-level security by itself, for the role that serves: neither to read, nor to add to, nor to remove."""
    question = of_all("/users", sort="phone")
    for offset in (0, 30):
        questioner.ask(question, 30, offset)
    with questioner.owner.begin() as connection:
        other = add_vendor(connection, "other", orgs[0][:1])
    own = questioner.find_token(question)

    def count_open(connection: sa.Connection) -> list[int]:
        found = [sa.select(sa.func.count()).select_from(table) for table in (orderings, ordering_chunks)]
        return [connection.execute(statement).scalar_one() for statement in found]

    with questioner.ordering.connect() as connection:
        assert count_open(connection) == [0, 0]
        connection.execute(other.admission.statement, other.admission.values)
        assert count_open(connection) == [0, 0]
        for table in (orderings, ordering_chunks):
            assert connection.execute(sa.delete(table)).rowcount == 0
        number = connection.execute(own.admission.statement, own.admission.values).scalar_one()
        assert number is True
        assert count_open(connection) == [1, 1]
        ordering_id = connection.execute(sa.select(orderings.c.id)).scalar_one()
        connection.execute(other.admission.statement, other.admission.values)
        planted = sa.insert(ordering_chunks).values(ordering_id=ordering_id, number=7, ids=["planted"])
        with pytest.raises(DBAPIError, match="row-level security"):
            connection.execute(planted)


@pytest.mark.shows(
    "Visibility",
    "A vendor's key changes with its grants, flags and state, and its tokens of before read nothing.",
)
def test_a_token_of_before_a_change_of_grants_reads_nothing(questioner: Questioner, orgs: Orgs) -> None:
    """Nor is what it could see open to the next one."""
    (first, second), _ = orgs
    with questioner.owner.begin() as connection:
        token = add_vendor(connection, "moves", [first])
    question = Question(path="/users", districts=(first,), schools=(), school="")
    for offset in (0, 30):
        assert read_as(questioner, token, question, 30, offset) == read_plainly(questioner, question, 30, offset)
    with questioner.owner.begin() as connection:
        vendor_rights.revoke(connection, TESTER, "moves@vendors.example", first)
        grant(connection, "moves", [second])
        renewed = make_token(connection, token.client_id)
    for offset in (0, 30):
        with pytest.raises(RefusedRequestError) as refused:
            read_as(questioner, token, question, 30, offset)
        assert refused.value.problem is Problem.ENDED_TOKEN
    now = Question(path="/users", districts=(second,), schools=(), school="")
    for offset in (0, 30):
        assert read_as(questioner, renewed, now, 30, offset) == read_plainly(questioner, now, 30, offset)


# --- what was lost, older revisions, bounds -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost", [pytest.param(orderings, id="all-of-it"), pytest.param(ordering_chunks, id="its-ids-alone")]
)
def test_what_was_lost_is_read_all_the_same(questioner: Questioner, of_all: Ask, lost: Any) -> None:
    question = of_all("/users")
    for offset in (0, 30):
        questioner.ask(question, 30, offset)
    with questioner.owner.begin() as connection:
        connection.execute(sa.delete(ordering_chunks))
        connection.execute(sa.delete(lost))
    for _ in range(2):
        assert questioner.ask(question, 30, 60) == read_plainly(questioner, question, 30, 60)


def change_roster(connection: sa.Connection) -> None:
    """As a sync of the first feed does: a user goes, and the revision of the feed advances."""
    users = tables.users.c
    feed_id = list_feed_ids(connection)[0]
    first = sa.select(sa.func.min(users.sourced_id)).where(users.feed_id == feed_id).scalar_subquery()
    connection.execute(sa.delete(tables.users).where(users.sourced_id == first))
    advance_state(connection, [feed_id])
    refresh_vendors_of(connection, [feed_id])


def end_pulls(connection: sa.Connection) -> None:
    """As time does."""
    connection.execute(sa.update(pulls).values(ends_at=sa.func.now()))


def test_an_ordering_is_of_one_roster(questioner: Questioner, of_all: Ask) -> None:
    """A sync commits while the ordering is made: it is not kept, and the page is one of the new roster."""
    question = of_all("/users")
    total = read_plainly(questioner, question, 30, 0)[1]
    commits = 0

    def commit(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        nonlocal commits
        if "INSERT INTO ordering_chunks" in statement and not commits:
            commits += 1
            with questioner.owner.begin() as other:
                change_roster(other)

    sa.event.listen(questioner.ordering, "before_cursor_execute", commit)
    found = questioner.workers[0].read_page(questioner.request(question, 30, 30))
    sa.event.remove(questioner.ordering, "before_cursor_execute", commit)
    assert commits == 1
    assert (ids_of(found.page), found.page.total) == read_plainly(questioner, question, 30, 30)
    assert found.page.total == total - 1
    with questioner.owner.connect() as connection:
        assert connection.scalar(sa.select(sa.func.max(orderings.c.revision))) == found.state.revision


def test_orderings_of_older_rosters_are_neither_read_nor_kept(
    questioner: Questioner, writing: sa.Engine, of_all: Ask
) -> None:
    question = of_all("/users")
    for _ in range(2):
        for offset in (0, 30):
            assert questioner.ask(question, 30, offset) == read_plainly(questioner, question, 30, offset)
        with writing.begin() as other:
            change_roster(other)
    with writing.begin() as connection:
        evict_orderings(connection, 10**9)
        assert connection.scalar(sa.select(sa.func.count()).select_from(orderings)) == 3, "a pull reads each of them"
        end_pulls(connection)
        evict_orderings(connection, 10**9)
    counts = [questioner.count_rows(table) for table in (orderings, ordering_chunks, pulls)]
    # Ended pulls are known for a day, so that their pages are refused.
    assert counts == [1, 1, 2], "that of the other feed is still of the present revision"


def test_a_worker_has_older_rosters_removed_by_itself(questioner: Questioner, writing: sa.Engine, of_all: Ask) -> None:
    """The first ordering that it notes does that."""
    for offset in (0, 30):
        questioner.ask(of_all("/users"), 30, offset, worker=0)
    with writing.begin() as other:
        change_roster(other)
        end_pulls(other)
    questioner.ask(of_all("/classes"), 0, 0, worker=1)
    assert questioner.count_rows(ordering_chunks) == 1, "that of the other feed"
    assert questioner.count_rows(orderings) == 2


def test_a_sync_of_one_feed_leaves_the_ordering_of_another(questioner: Questioner, orgs: Orgs, of_all: Ask) -> None:
    """Of a caller who sees both, only the one of the changed feed is made again; a caller who sees the other one alone
    notices nothing."""
    both = of_all("/users")
    second = Question(path="/users", districts=tuple(orgs[0][1:]), schools=(), school="")
    before = [questioner.workers[0].read_page(questioner.request(question, 30, 0)) for question in (both, second)]
    with questioner.owner.begin() as connection:
        feed_of_second = connection.scalar(
            sa.select(tables.orgs.c.feed_id).where(tables.orgs.c.sourced_id == orgs[0][1])
        )
        known = connection.execute(sa.select(orderings.c.id, orderings.c.feed_id)).all()
        others = [feed_id for feed_id in list_feed_ids(connection) if feed_id != feed_of_second]
        advance_state(connection, others)
        refresh_vendors_of(connection, others)
    with statements(questioner.ordering) as written:
        after = [questioner.workers[0].read_page(questioner.request(question, 30, 0)) for question in (both, second)]
    assert sum("INSERT INTO ordering_chunks" in statement for statement in written) == 1
    assert after[0].state.revision > before[0].state.revision
    assert after[1].state == before[1].state
    with questioner.owner.connect() as connection:
        kept = connection.execute(sa.select(orderings.c.id, orderings.c.feed_id)).all()
    assert {row for row in known if row.feed_id == feed_of_second} <= set(kept)
    assert len(kept) == len(known) + 1
    assert [ids_of(page.page) for page in after] == [ids_of(page.page) for page in before]


def keep(connection: sa.Connection, names: dict[str, tuple[int, int]]) -> None:
    """Orderings by name: (the vendor whose request made it, its bytes), the newest last."""
    seen = tables.visible_feeds
    if connection.execute(sa.select(seen)).first() is None:
        add_vendor(connection, "keeps", [])
    present = connection.execute(sa.select(seen.c.feed_id, seen.c.visible_set, seen.c.revision).limit(1)).one()
    connection.execute(sa.delete(orderings))
    connection.execute(sa.delete(ordering_chunks))
    for number, (name, (vendor_id, size)) in enumerate(names.items()):
        made_at = sa.func.to_timestamp(number)
        row = {"query": name.encode(), **present._mapping, "total": 1, "bytes": size}
        added = sa.insert(orderings).values(**row, vendor_id=vendor_id, made_at=made_at).returning(orderings.c.id)
        ordering_id = connection.execute(added).scalar_one()
        connection.execute(sa.insert(ordering_chunks).values(ordering_id=ordering_id, number=0, ids=[name]))


MADE = {"a1": (1, 10), "b1": (2, 30), "a2": (1, 10), "a3": (1, 10), "a4": (1, 10), "a5": (1, 10)}


@pytest.mark.parametrize(
    ("most_bytes", "most_orderings", "left"),
    [
        pytest.param(10_000, 100, set(MADE), id="all-within-the-bounds"),
        pytest.param(60, 100, {"b1", "a3", "a4", "a5"}, id="a-vendor-has-half-of-the-bytes"),
        pytest.param(10_000, 4, {"b1", "a4", "a5"}, id="a-vendor-has-half-of-the-number"),
        pytest.param(0, 100, {"b1", "a5"}, id="the-newest-of-each-vendor-stays"),
        pytest.param(10_000, 0, {"b1", "a5"}, id="however-few-are-kept"),
    ],
)
def test_what_was_made_first_goes_first_and_no_vendor_pushes_out_the_newest_of_another(
    questioner: Questioner, most_bytes: int, most_orderings: int, left: set[str]
) -> None:
    with questioner.owner.begin() as connection:
        keep(connection, MADE)
        connection.execute(sa.select(sa.func.evict_orderings(most_bytes, most_orderings)))
        kept = connection.scalars(sa.select(orderings.c.query)).all()
        chunks = connection.scalars(sa.select(sa.func.unnest(ordering_chunks.c.ids))).all()
    assert {bytes(name).decode() for name in kept} == left == set(chunks)


def test_all_vendors_together_are_bounded_too(questioner: Questioner) -> None:
    """Three, each within its half."""
    made = {f"{vendor}-{number}": (vendor, 10) for number in range(4) for vendor in (1, 2, 3)}
    with questioner.owner.begin() as connection:
        keep(connection, made)
        connection.execute(sa.select(sa.func.evict_orderings(80, 100)))
        kept = {bytes(name).decode() for name in connection.scalars(sa.select(orderings.c.query))}
    assert kept == set(list(made)[-8:])


@pytest.mark.shows("Load", "Orderings of invented filters evict none of a vendor within its share.")
def test_300_orderings_of_a_vendor_evict_none_of_the_vendors_within_their_share(questioner: Questioner) -> None:
    """The three others have made theirs before; with the half of the fourth, the bounds are exceeded."""
    others = {f"{vendor}-{number}": (vendor, 10) for number in range(2) for vendor in (2, 3, 4)}
    invented = {f"1-{number}": (1, 10) for number in range(300)}
    with questioner.owner.begin() as connection:
        keep(connection, others | invented)
        connection.execute(sa.select(sa.func.evict_orderings(100, 1000)))
        by_bytes = {bytes(name).decode() for name in connection.scalars(sa.select(orderings.c.query))}
        keep(connection, others | invented)
        connection.execute(sa.select(sa.func.evict_orderings(10_000, 10)))
        by_number = {bytes(name).decode() for name in connection.scalars(sa.select(orderings.c.query))}
    assert by_bytes == by_number == set(others) | set(list(invented)[-4:])


def test_a_worker_holds_to_its_bounds(questioner: Questioner, of_all: Ask) -> None:
    """The newest of the vendor stays, so it can go on."""
    questioner.workers[0]._orderings = Orderings(questioner.ordering, 0)
    for sort in ("familyName", "middleName", "phone"):
        questioner.workers[0]._orderings._unchecked_orderings = 10**6
        assert questioner.ask(of_all("/users", sort=sort), 30, 30) == read_plainly(
            questioner, of_all("/users", sort=sort), 30, 30
        )
    assert questioner.count_rows(orderings) == 1
    hashes = questioner.request(of_all("/users", sort="phone"), 30, 30).query_hash
    assert questioner.count_rows(orderings, orderings.c.query == hashes) == 1


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_database_that_takes_nothing_still_gives_pages(
    copy_districts: Callable[[], str], of_all: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """And it is said aloud."""
    questioner = Questioner(copy_districts(), keeps_orderings=False)
    question = of_all("/users", filter="familyName~'a'", sort="phone")
    for offset in (0, 30, 60):
        assert questioner.ask(question, 30, offset) == read_plainly(questioner, question, 30, offset)
    questioner.close()
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warned
    assert all(record.getMessage().startswith("orderings cannot be stored") for record in warned)


@pytest.mark.shows(
    "Visibility",
    "An ordering is open to callers with the same visible orgs alone, and each of its records passes both "
    "layers again.",
)
def test_a_row_that_was_changed_by_hand_is_not_shown(questioner: Questioner, writing: sa.Engine, of_all: Ask) -> None:
    """No sync did it, so the ordering still has the record; what the caller may not see is not shown all the same."""
    question = of_all("/enrollments")
    for offset in (0, 30):
        questioner.ask(question, 30, offset)
    with writing.begin() as other:
        other.execute(sa.text("UPDATE enrollments SET school_id = 'nowhere' WHERE sourced_id < '2'"))
    assert questioner.ask(question, 30, 30) == read_plainly(questioner, question, 30, 30)

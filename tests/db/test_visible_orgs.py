"""The rows that say which orgs a vendor sees follow its grants, whatever changes: grants, orgs, or both at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roster_service.accounts import vendor_rights, vendors
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.db.tables import visible_orgs
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.roster_state import publish
from tests.actors import TESTER
from tests.conditions import is_blocked, wait_for
from tests.extent import examples

# An org: (its type, the district that it lies in). Schools of a school are schools of its district.
Org = tuple[str, str | None]
BASE: Mapping[str, Org] = {
    "d1": ("district", "d1"),
    "d1-a": ("school", "d1"),
    "d1-b": ("school", "d1"),
    "d1-b-dept": ("department", "d1"),
    "d2": ("district", "d2"),
    "d2-a": ("school", "d2"),
    "alone": ("school", None),
}
VENDORS = ("one", "two")
# The orgs of each district come in a feed of their own, so an org that moves changes its feed.
FEEDS = ("d1", "d2", "other")
# (org, granted, whole_district).
Row = tuple[str, bool, bool]


@dataclass
class Model:
    """What there is, in plain sets."""

    orgs: dict[str, Org] = field(default_factory=lambda: dict(BASE))
    # By vendor: (district, school or None).
    grants: dict[str, set[tuple[str, str | None]]] = field(default_factory=lambda: {name: set() for name in VENDORS})

    def list_rows(self, vendor: str) -> set[Row]:
        """The rows of a vendor."""
        whole = {district for district, school in self.grants[vendor] if school is None}
        schools = {school for _, school in self.grants[vendor] if school is not None}
        granted = {name for name, (_, district) in self.orgs.items() if name in schools or district in whole}
        above = {self.orgs[school][1] for school in schools if school in self.orgs}
        shown = granted | {name for name in self.orgs if name in above}
        return {(name, name in granted, name in whole) for name in shown}


def write_orgs(connection: sa.Connection, orgs: Mapping[str, Org]) -> None:
    """The orgs of the roster, and no others."""
    connection.execute(sa.delete(tables.orgs))
    for name, (kind, district) in orgs.items():
        feed_name = district if district in FEEDS else "other"
        feed = sa.select(tables.feeds.c.id).where(tables.feeds.c.name == feed_name).scalar_subquery()
        row = {"sourced_id": name, "name": name, "type": kind, "district_id": district, "status": "active"}
        connection.execute(sa.insert(tables.orgs).values(**row, feed_id=feed, date_last_modified=sa.func.now()))


def email_of(vendor: str) -> str:
    return f"{vendor}@vendors.example"


def read_rows(connection: sa.Connection, vendor: str) -> set[Row]:
    """The rows of a vendor, each with its key and its feed of now."""
    found = visible_orgs.join(tables.vendors, tables.vendors.c.id == visible_orgs.c.vendor_id).join(
        tables.orgs, tables.orgs.c.sourced_id == visible_orgs.c.org_id, isouter=True
    )
    columns = (visible_orgs.c.org_id, visible_orgs.c.granted, visible_orgs.c.whole_district)
    of_now = (visible_orgs.c.key == tables.vendors.c.visibility_key) & (visible_orgs.c.feed_id == tables.orgs.c.feed_id)
    own = sa.select(*columns, of_now).select_from(found)
    rows = connection.execute(own.where(tables.vendors.c.email == email_of(vendor))).all()
    assert all(row[3] for row in rows)
    return {(row[0], row[1], row[2]) for row in rows}


def read_hash(connection: sa.Connection, vendor: str) -> str:
    seen = tables.visible_feeds.join(tables.vendors)
    found = sa.select(tables.visible_feeds.c.visible_set).select_from(seen)
    found = found.where(tables.vendors.c.email == email_of(vendor), tables.visible_feeds.c.feed_id == tables.WHOLE)
    return str(connection.execute(found).scalar_one())


def prepare(engine: sa.Engine) -> None:
    """The base orgs, and vendors without grants."""
    with engine.begin() as connection:
        connection.execute(sa.text("TRUNCATE orgs, feeds, vendors, visible_orgs RESTART IDENTITY CASCADE"))
        connection.execute(sa.insert(tables.feeds), [{"name": name, "format": "oneroster"} for name in FEEDS])
        write_orgs(connection, BASE)
        for vendor in VENDORS:
            vendors.add_vendor(connection, TESTER, email_of(vendor), vendor)


@pytest.fixture(scope="module")
def shared(make_database: Callable[[], str]) -> Iterator[sa.Engine]:
    """A writing engine on a database that each example empties."""
    engine = make_engine(make_database())
    yield engine
    engine.dispose()


SCHOOLS = [name for name, (kind, district) in BASE.items() if kind == "school" and district]


def grant_if_there(connection: sa.Connection, model: Model, vendor: str, org: str) -> None:
    """Grants a district or a school; of what is not there, nothing."""
    kind, district = model.orgs.get(org, ("", None))
    if (kind, org) == ("district", district):
        vendor_rights.grant(connection, TESTER, email_of(vendor), org, ())
        model.grants[vendor].add((org, None))
    elif kind == "school" and district in model.orgs:
        vendor_rights.grant(connection, TESTER, email_of(vendor), district, [org])
        model.grants[vendor].add((district, org))


def revoke_if_granted(connection: sa.Connection, model: Model, vendor: str, district: str) -> None:
    """Takes back what was granted of a district, if anything was."""
    if any(granted == district for granted, _ in model.grants[vendor]):
        vendor_rights.revoke(connection, TESTER, email_of(vendor), district)
        model.grants[vendor] = {it for it in model.grants[vendor] if it[0] != district}


def sync(connection: sa.Connection, model: Model, org: str, new: Org | None) -> None:
    """As a sync does: an org comes, moves or vanishes."""
    if new is None:
        model.orgs.pop(org, None)
    else:
        model.orgs[org] = new
    write_orgs(connection, model.orgs)
    publish(connection, list_feed_ids(connection))


STEPS = st.one_of(
    st.tuples(st.just(grant_if_there), st.sampled_from(VENDORS), st.sampled_from(["d1", "d2", *SCHOOLS])),
    st.tuples(st.just(revoke_if_granted), st.sampled_from(VENDORS), st.sampled_from(["d1", "d2"])),
    st.sampled_from([*SCHOOLS, "d1-b-dept", "alone"]).flatmap(
        lambda org: st.tuples(
            st.just(sync), st.just(org), st.sampled_from([(BASE[org][0], place) for place in ("d1", "d2", None)])
        )
    ),
    st.sampled_from(list(BASE)).flatmap(
        lambda org: st.tuples(st.just(sync), st.just(org), st.sampled_from([None, BASE[org]]))
    ),
)


@pytest.mark.shows(
    "Visibility",
    "A change of grants or orgs writes `visible_orgs`, which both layers read, in its transaction.",
)
@settings(max_examples=examples(25, 25, 60), suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=1, max_size=10))
def test_the_rows_are_those_of_the_grants_after_every_change(shared: sa.Engine, steps: list[tuple[Any, ...]]) -> None:
    """And two vendors have one hash exactly where they see the same."""
    prepare(shared)
    model = Model()
    for step, *given_to in steps:
        with shared.begin() as connection:
            step(connection, model, *given_to)
        with shared.connect() as connection:
            rows = {vendor: read_rows(connection, vendor) for vendor in VENDORS}
            assert rows == {vendor: model.list_rows(vendor) for vendor in VENDORS}
            hashes = {read_hash(connection, vendor) for vendor in VENDORS}
        seen = {frozenset((org, granted) for org, granted, _ in rows[vendor]) for vendor in VENDORS}
        assert len(hashes) == len(seen)


@pytest.fixture
def orgs(engine: sa.Engine) -> sa.Engine:
    """A writing engine on the base orgs, with the vendors."""
    prepare(engine)
    return engine


@pytest.mark.parametrize(
    ("grants", "rows"),
    [
        pytest.param([], set(), id="nothing"),
        pytest.param(
            [("d1", ())],
            {("d1", True, True), ("d1-a", True, False), ("d1-b", True, False), ("d1-b-dept", True, False)},
            id="whole-district",
        ),
        pytest.param([("d1", ("d1-a",))], {("d1", False, False), ("d1-a", True, False)}, id="single-school"),
        pytest.param(
            [("d1", ("d1-b",))],
            {("d1", False, False), ("d1-b", True, False)},
            id="no-department-of-a-granted-school",
        ),
        pytest.param(
            [("d1", ()), ("d1", ("d1-a",))],
            {("d1", True, True), ("d1-a", True, False), ("d1-b", True, False), ("d1-b-dept", True, False)},
            id="a-school-of-a-district-that-is-granted-too",
        ),
        pytest.param(
            [("d1", ("d1-a",)), ("d2", ())],
            {("d1", False, False), ("d1-a", True, False), ("d2", True, True), ("d2-a", True, False)},
            id="of-two-districts",
        ),
    ],
)
def test_what_a_grant_opens(orgs: sa.Engine, grants: list[tuple[str, tuple[str, ...]]], rows: set[Row]) -> None:
    with orgs.begin() as connection:
        for district, schools in grants:
            vendor_rights.grant(connection, TESTER, email_of("one"), district, schools)
    with orgs.connect() as connection:
        assert read_rows(connection, "one") == rows
        assert read_rows(connection, "two") == set()
    with orgs.begin() as connection:
        for district in dict(grants):
            vendor_rights.revoke(connection, TESTER, email_of("one"), district)
    with orgs.connect() as connection:
        assert read_rows(connection, "one") == set()


@pytest.mark.shows(
    "Visibility",
    "A vendor's key changes with its grants, flags and state, and its tokens of before read nothing.",
)
def test_every_change_of_a_vendor_gives_its_rows_another_key(orgs: sa.Engine) -> None:
    """What a token of before carries opens nothing."""
    keys = []
    changes: list[Callable[[sa.Connection], object]] = [
        lambda connection: vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ()),
        lambda connection: vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ()),
        lambda connection: vendors.set_vendor_enabled(connection, TESTER, email_of("one"), enabled=False),
        lambda connection: vendor_rights.revoke(connection, TESTER, email_of("one"), None),
    ]
    for change in changes:
        with orgs.begin() as connection:
            change(connection)
            assert len(read_rows(connection, "one")) == 4
            keys.append(connection.execute(sa.select(visible_orgs.c.key).distinct()).scalar_one())
    assert len(set(keys)) == len(changes)


@pytest.mark.shows(
    "Visibility",
    "An ordering is open to callers with the same visible orgs alone, and each of its records passes both "
    "layers again.",
)
def test_the_hash_of_visible_orgs_is_salted(orgs: sa.Engine) -> None:
    """The same rows have another hash under another salt: ids of orgs alone do not tell it."""
    found = []
    for _ in range(2):
        with orgs.begin() as connection:
            vendor_rights.grant(connection, TESTER, email_of("one"), "d1", ())
            found.append((read_rows(connection, "one"), read_hash(connection, "one")))
            connection.execute(sa.update(tables.roster_state).values(salt=sa.func.gen_random_uuid()))
    (rows, one), (same_rows, other) = found
    assert rows == same_rows
    assert one != other


# --- a sync and a change of grants at once ---------------------------------------------------------------------------


class Beside:
    """A transaction in a thread of its own."""

    def __init__(self, engine: sa.Engine, change: Callable[[sa.Connection], object]) -> None:
        self._engine, self._change = engine, change
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._engine.begin() as connection:
                self._change(connection)
        except BaseException as error:  # noqa: BLE001  (raised again where the test stands)
            self._failures.append(error)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Waits for its end; raises what it has raised."""
        self._thread.join()
        for failure in self._failures:
            raise failure


def add_school(connection: sa.Connection) -> None:
    """As a sync does: a school comes to each district, so the vendors see other orgs."""
    write_orgs(connection, {**BASE, "d1-new": ("school", "d1"), "d2-new": ("school", "d2")})
    publish(connection, list_feed_ids(connection))


WITH_NEW = Model(orgs={**BASE, "d1-new": ("school", "d1"), "d2-new": ("school", "d2")})


@pytest.fixture
def others(engine: sa.Engine) -> Iterator[sa.Engine]:
    """Another engine on the same database."""
    made = make_engine(engine.url.render_as_string(hide_password=False))
    yield made
    made.dispose()


CHANGES: list[Any] = [
    pytest.param(lambda c: vendor_rights.revoke(c, TESTER, email_of("two"), "d1"), set(), id="revoke"),
    pytest.param(
        lambda c: vendor_rights.grant(c, TESTER, email_of("two"), "d2", ()), {("d1", None), ("d2", None)}, id="grant"
    ),
    pytest.param(
        lambda c: vendors.set_vendor_enabled(c, TESTER, email_of("two"), enabled=False), {("d1", None)}, id="disable"
    ),
]


@pytest.fixture
def granted(orgs: sa.Engine) -> sa.Engine:
    """Each vendor was granted a district."""
    with orgs.begin() as connection:
        for vendor in VENDORS:
            vendor_rights.grant(connection, TESTER, email_of(vendor), "d1", ())
    return orgs


def assert_rows(engine: sa.Engine, grants: set[tuple[str, str | None]]) -> None:
    WITH_NEW.grants = {"one": {("d1", None)}, "two": grants}
    with engine.connect() as connection:
        for vendor in VENDORS:
            assert read_rows(connection, vendor) == WITH_NEW.list_rows(vendor)


@pytest.mark.parametrize(("change", "grants"), CHANGES)
def test_a_change_of_grants_waits_for_the_end_of_a_sync(
    granted: sa.Engine,
    others: sa.Engine,
    change: Callable[[sa.Connection], object],
    grants: set[tuple[str, str | None]],
) -> None:
    """Between its last step and its commit: no row of the sync outlives the grant that it came from."""
    with granted.connect() as connection, connection.begin():
        add_school(connection)
        beside = Beside(others, change)
        wait_for(lambda: is_blocked(granted))
    beside.join()
    assert_rows(granted, grants)


@pytest.mark.parametrize(("change", "grants"), CHANGES)
def test_a_sync_reads_the_grants_that_were_changed_before_it(
    granted: sa.Engine,
    others: sa.Engine,
    change: Callable[[sa.Connection], object],
    grants: set[tuple[str, str | None]],
) -> None:
    with granted.connect() as connection, connection.begin():
        change(connection)
        beside = Beside(others, add_school)
        wait_for(lambda: is_blocked(granted))
    beside.join()
    assert_rows(granted, grants)


@pytest.mark.parametrize(("change", "grants"), CHANGES)
def test_a_sync_in_the_middle_of_a_change_of_grants_stops_neither(
    granted: sa.Engine,
    others: sa.Engine,
    change: Callable[[sa.Connection], object],
    grants: set[tuple[str, str | None]],
) -> None:
    """Each waits for the other at one place alone."""
    begun: list[Beside] = []

    def begin_sync(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "refresh_visible_orgs" in statement and not begun:
            begun.append(Beside(others, add_school))
            wait_for(lambda: is_blocked(others))

    sa.event.listen(granted, "before_cursor_execute", begin_sync)
    with granted.begin() as connection:
        change(connection)
    begun[0].join()
    assert_rows(granted, grants)


@pytest.mark.shows(
    "Visibility",
    "A change of grants or orgs writes `visible_orgs`, which both layers read, in its transaction.",
)
def test_what_is_rolled_back_leaves_the_rows_as_they_were(granted: sa.Engine) -> None:
    with granted.connect() as connection:
        before = {vendor: read_rows(connection, vendor) for vendor in VENDORS}
    with granted.connect() as connection:
        add_school(connection)
        connection.execute(sa.update(tables.vendors).values(enabled=False))
        assert {vendor: read_rows(connection, vendor) for vendor in VENDORS} != before
        connection.rollback()
    with granted.connect() as connection:
        assert {vendor: read_rows(connection, vendor) for vendor in VENDORS} == before

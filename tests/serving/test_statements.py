"""The SQL of a plan: visibility around every filter, every value bound, every nested query tied to its own record."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pytest
from oneroster_filter import Kind
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql import ClauseElement

from roster_service.db.prepared_statements import PreparedStatement
from roster_service.roster.references import PERSONS
from roster_service.roster.visibility import SEEN_ROLES, ContentRights, MetadataOf, Viewer
from roster_service.rostering.endpoints import ENDPOINTS, Endpoint
from roster_service.schemas import v1p1, v1p2
from roster_service.schemas.records import Record
from roster_service.schemas.versions import VERSIONS, Version
from roster_service.serving.departures import compile_departure_filter
from roster_service.serving.filter_shapes import bind_filter, make_filter_conditions
from roster_service.serving.first_page import SharedSearch, make_first_page_query
from roster_service.serving.ordering_statements import make_ordering_query, select_positions
from roster_service.serving.params import Params
from roster_service.serving.path_filters import everything
from roster_service.serving.plan import Plan, QueryShape, make_plan
from roster_service.serving.read_statements import (
    list_forms,
    list_page_forms,
    make_found_page_statement,
    make_ordered_page_statement,
    make_record_statement,
    prepare_found_page,
    prepare_ordered_page,
    prepare_record,
)
from roster_service.serving.request import make_ordering_shape
from roster_service.serving.statements import (
    Driver,
    choose_driver,
    make_collection_condition,
    make_filter_condition,
    make_record_json,
    select_ids,
)
from tests.extent import EXTENT, Extent
from tests.offenders import in_one_test

NOTHING = ContentRights(
    Viewer.ONE_VENDOR, guardians=False, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
)
ALL = ContentRights(
    Viewer.ONE_VENDOR, guardians=True, metadata=frozenset(MetadataOf), metadata_keys=None, withheld=frozenset()
)
RECORDS = pytest.mark.parametrize(
    "record",
    [
        pytest.param(record, id=f"{version.prefix}-{record.__name__}")
        for version in VERSIONS
        for record in version.records.values()
    ],
)
NASTY = "'; DROP TABLE users; -- %(x)s :y \\"


def params(**changed: object) -> Params:
    """Params with these parts."""
    plain = {"limit": 10, "offset": 0, "filter": None, "sort": None, "descending": False, "fields": None}
    return Params(**(plain | changed))  # type: ignore[arg-type]


def plan(record: type[Record], rights: ContentRights = NOTHING, **changed: object) -> Plan:
    """A plan for all records that are seen."""
    return make_plan(params(**changed), record, rights, everything, {})


def compile_sql(statement: ClauseElement | PreparedStatement) -> tuple[str, dict[str, object]]:
    """The text of a statement, on one line and without casts of parameters, and what is bound in it: of a prepared one,
    the names."""
    if isinstance(statement, PreparedStatement):
        text, bound = statement.plain, dict[str, object].fromkeys(statement.values)
    else:
        compiled = statement.compile(dialect=postgresql.dialect())
        text, bound = str(compiled), dict(compiled.params)
    return re.sub(r"\s+", " ", re.sub(r"\)s::[A-Z]+(\[\])?", ")s", text)), bound


def condition(sql: str) -> str:
    """The WHERE of a statement that has one."""
    return sql.partition(" WHERE ")[2]


def matching_of(made: Plan) -> ClauseElement:
    """The ids of the records of a plan's collection."""
    return select_ids(made.shape, make_collection_condition(made.shape, Driver.VISIBILITY), make_filter_condition(made))


def page_of(made: Plan, *, sees_districts: bool = True) -> ClauseElement:
    """A page that is found in one pass."""
    unsorted = dataclasses.replace(made.shape, sort=None)
    return make_found_page_statement(
        unsorted, make_first_page_query(made, by_feed=False, sees_districts=sees_districts).find()
    )


def records_of(shape: QueryShape) -> Iterator[ClauseElement]:
    """The statements of a record."""
    return (make_record_statement(shape, departed) for departed in list_forms(shape))


def positions_of(made: Plan, *, sees_districts: bool = True) -> ClauseElement:
    """The numbered ids of an ordering of all records."""
    driver = choose_driver(made, sees_districts=sees_districts)
    return select_positions(make_ordering_shape(made), driver, make_filter_conditions(made), by_feed=False)


def _bare_ors(sql: str) -> int:
    """How many ORs stand outside all parentheses."""
    depth = ors = 0
    for token in re.findall(r"[()]| OR ", sql):
        depth += {"(": 1, ")": -1}.get(token, 0)
        ors += token == " OR " and depth == 0
    return ors


@pytest.mark.shows("Visibility", "A caller's `OR` stands in parentheses beside the condition of visibility.")
@in_one_test
@pytest.mark.parametrize(
    "record",
    [record for version in VERSIONS for record in version.records.values()],
    ids=lambda r: r.__module__[-4:] + r.__name__,
)
@pytest.mark.parametrize("rights", [NOTHING, ALL], ids=["nothing", "all"])
def test_no_or_ever_stands_outside_parentheses(record: type[Record], rights: ContentRights) -> None:
    """An OR of the caller's could otherwise reach past what the caller may see."""
    sql, _ = compile_sql(matching_of(plan(record, rights, filter="sourcedId='a' OR status='b'")))
    assert " OR " in condition(sql)
    assert _bare_ors(condition(sql)) == 0


EACH_PATH = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.prefix)


@in_one_test
@EACH_PATH
@EACH_VERSION
def test_every_path_is_limited_to_the_vendor(endpoint: Endpoint, version: Version) -> None:
    """When its records are found, when they are ordered, and again whenever a text is read."""
    record, ids = version.records[endpoint.resource], dict.fromkeys(endpoint.ids, "id")
    place = ENDPOINTS.index(endpoint) + VERSIONS.index(version)
    # Each path with both rights, each of them in one version; in a run of all, in both.
    for rights in (NOTHING, ALL) if EXTENT is Extent.ALL else ((NOTHING, ALL)[place % 2],):
        made = make_plan(params(filter="sourcedId!='x'"), record, rights, endpoint.path_filter, ids)
        shape = made.shape
        finding = [make_first_page_query(made, by_feed=False, sees_districts=sees).find() for sees in (False, True)]
        ordering = [positions_of(made, sees_districts=sees) for sees in (False, True)]
        for statement in (matching_of(made), *ordering):
            assert_limited(statement, record, 1)
        for found in finding:
            assert_limited(make_found_page_statement(shape, found), record, 2)
        for departed in list_page_forms(shape):
            assert_limited(make_ordered_page_statement(shape, departed), record, 1)
        for departed in list_forms(shape):
            assert_limited(make_record_statement(shape, departed), record, 1)


@in_one_test
@EACH_PATH
def test_a_vendor_without_rules_pays_for_none(endpoint: Endpoint) -> None:
    """No statement asks for the groups, or the kept people, of a vendor that has neither."""
    # The versions have the same conditions.
    version = VERSIONS[ENDPOINTS.index(endpoint) % 2]
    record, ids = version.records[endpoint.resource], dict.fromkeys(endpoint.ids, "id")

    def find_tables(rights: ContentRights) -> set[str]:
        made = make_plan(params(filter="sourcedId!='x'"), record, rights, endpoint.path_filter, ids)
        statements = (matching_of(made), page_of(made), positions_of(made), *records_of(made.shape))
        texts = " ".join(compile_sql(statement)[0] for statement in statements)
        return {table for table in ("group_members", "kept_people") if table in texts}

    assert find_tables(ALL) == set()
    if record.table in PERSONS:
        ruled = dataclasses.replace(ALL, viewer=Viewer.RULED_VENDOR)
        assert find_tables(ruled) == {"group_members", "kept_people"}


@RECORDS
def test_every_filter_and_sort_is_tied_to_its_own_record(record: type[Record]) -> None:
    values = {"text": "x", "flag": "true", "instant": "2026-01-01", "day": "2026-01-01", "texts": "x"}
    for name, kind in plan(record, ALL).shape.view.filter_types.items():
        path = name.replace("*", "key")
        made = plan(record, ALL, filter=f"{path}!='{values[kind.kind.value]}'", sort=path)
        assert_limited(page_of(made), record, 2)
        assert_limited(make_ordering_query(made, by_feed=False, sees_districts=False).statement, record, 1)


@RECORDS
def test_plans_that_differ_in_values_share_the_statement_of_their_first_page(record: type[Record]) -> None:
    """Where the filter says which records are few; its values are bound by name, and stand nowhere in the text."""
    one, other = (
        plan(record, filter=f"sourcedId='{value}' AND status!='{value}'")
        for value in ("planted", "x'y".replace("'", "''"))
    )
    first = make_first_page_query(one, by_feed=False, sees_districts=True)
    assert make_first_page_query(other, by_feed=False, sees_districts=False).search == first.search
    assert isinstance(first.search, SharedSearch)
    assert dict(first.values) == {"filter_0": "planted", "filter_1": "planted"}
    assert prepare_found_page(other.shape, first.search) is prepare_found_page(one.shape, first.search)
    statement = make_found_page_statement(one.shape, first.find())
    sql, bound = compile_sql(statement)
    assert "planted" not in f"{sql}{bound}"
    assert {"filter_0", "filter_1"} <= set(bound)
    assert_limited(statement, record, 2)


@RECORDS
def test_plans_that_differ_in_values_share_the_statement_of_their_ordering(record: type[Record]) -> None:
    """For each of both ways to look for the records."""
    one, other = (
        make_ordering_query(plan(record, filter=f"status!='{value}'"), by_feed=False, sees_districts=True)
        for value in ("planted", "x")
    )
    assert isinstance(one.statement, PreparedStatement)
    assert other.statement is one.statement
    assert (dict(one.values), dict(other.values)) == ({"filter_0": "planted"}, {"filter_0": "x"})
    assert "planted" not in str(compile_sql(one.statement))
    joined = make_ordering_query(plan(record, filter="status!='x'"), by_feed=False, sees_districts=False)
    assert joined.statement is not one.statement
    assert "filter_0" in compile_sql(joined.statement)[1]


@pytest.mark.parametrize("asked", [{"filter": "metadata.invented='x'"}, {"sort": "metadata.invented"}])
def test_names_that_callers_invent_fill_no_cache(asked: dict[str, str]) -> None:
    made = plan(v1p1.Org, ALL, **asked)
    one, other = (make_ordering_query(made, by_feed=False, sees_districts=True) for _ in range(2))
    assert not isinstance(one.statement, PreparedStatement)
    assert other.statement is not one.statement
    assert "invented" in compile_sql(one.statement)[1].values()


@pytest.mark.parametrize(
    ("text", "path_ids"),
    [
        pytest.param("status='active'", {}, id="column-without-an-index"),
        pytest.param("familyName>'a'", {}, id="no-equality"),
        pytest.param("sourcedId='a' OR status='active'", {}, id="or-with-a-broad-clause"),
        pytest.param("roles.role='student'", {}, id="list"),
    ],
)
def test_a_broad_filter_is_planned_with_its_values(text: str, path_ids: dict[str, str]) -> None:
    broad = make_plan(params(filter=text), v1p2.User, NOTHING, everything, path_ids)
    search = make_first_page_query(broad, by_feed=False, sees_districts=True).search
    assert not isinstance(search, SharedSearch)


@RECORDS
def test_every_value_of_a_filter_is_bound_as_the_driver_takes_it(record: type[Record]) -> None:
    """A list becomes an array; every kind and operator gives the values in the order of the names in the SQL."""
    values = {"text": "x", "flag": "true", "instant": "2026-01-01", "day": "2026-01-01", "texts": "x,y"}
    for name, kind in plan(record, ALL).shape.view.filter_types.items():
        made = plan(record, ALL, filter=f"{name.replace('*', 'key')}!='{values[kind.kind.value]}'")
        shape, bound = bind_filter(made)
        names = set(re.findall(r"%\((filter_\d+)\)s", str(shape.conditions[0].compile(dialect=postgresql.dialect()))))
        assert names == set(bound)
        assert not any(isinstance(value, tuple) for value in bound.values())
        if kind.kind is Kind.TEXT:
            # Of a word that 1.1 narrows, the other constants of the SQL stay where they are.
            assert set(bound.values()) == {"x"}


def assert_limited(statement: ClauseElement, record: type[Record], bare: int) -> None:
    """The vendor is bound, and no nested query brings in the record's own table, or a second one, with the rows of
    strangers. `bare`: how many times the table stands under its own name.

    Written too deep, a name of an outer table becomes a table of the nested query's own, joined without a condition:
    the statement still runs, and answers with what belongs to others.
    """
    sql, bound = compile_sql(statement)
    assert "vendor_id" in bound
    # The feeds of the visible orgs open sessions alone.
    tables = ["visible_feeds"] if record.table.name == "academic_sessions" else ["visible_orgs", "visible_labels"]
    assert any(f"FROM {table}" in sql for table in tables)
    assert not re.findall(r"FROM ((?:\w+(?: AS \w+)?, )+\w+)", sql)
    assert len(re.findall(rf"(?:FROM|JOIN) {record.table.name}(?! AS)\b", sql)) == bare


@pytest.mark.shows("Visibility", "The values of filters, paths and bodies are bound parameters of SQL.")
@pytest.mark.parametrize(
    ("record", "text"),
    [
        (v1p1.Org, "name='{}'"),
        (v1p1.Org, "name~'{}'"),
        (v1p1.Org, "name>'{}' OR identifier!='{}'"),
        (v1p1.Org, "metadata.city='{}'"),
        (v1p1.User, "grades~'{}'"),
        (v1p2.User, "roles.org.sourcedId='{}'"),
        (v1p2.User, "userProfiles.credentials.username~'{}'"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_values_are_bound_and_never_part_of_the_text(record: type[Record], text: str) -> None:
    quoted = NASTY.replace("'", "''")
    for statement in (
        page_of,
        matching_of,
        positions_of,
    ):
        sql, bound = compile_sql(statement(plan(record, ALL, filter=text.replace("{}", quoted))))
        assert "DROP" not in sql
        assert any("DROP TABLE users" in str(value) for value in bound.values())


def test_a_key_of_metadata_is_bound_too() -> None:
    """The one name in a filter that is not ours."""
    sql, bound = compile_sql(matching_of(plan(v1p1.Org, ALL, filter="metadata.shoe-size='x'")))
    assert "shoe-size" not in sql
    assert "shoe-size" in bound.values()


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        pytest.param(None, ["orgs.sourced_id"], id="default"),
        pytest.param("sourcedId", ["orgs.sourced_id"], id="sourcedId-once"),
        pytest.param("name", ["orgs.name", "orgs.sourced_id"], id="field-then-sourcedId"),
        pytest.param("nothing", ["orgs.sourced_id"], id="unknown"),
    ],
)
@pytest.mark.parametrize("descending", [False, True])
def test_a_page_is_in_the_order_that_is_asked_for(sort: str | None, order: list[str], descending: bool) -> None:
    """All keys go one way. An ordering is kept in ascending order, whichever way is asked for first."""
    made = plan(v1p1.Org, sort=sort, descending=descending)
    sql, _ = compile_sql(make_first_page_query(made, by_feed=False, sees_districts=True).find().select())
    way = "DESC" if descending else "ASC"
    keys = [f"matching.key_{number} {way}" for number in range(len(order))]
    assert f"ORDER BY {', '.join(keys)} LIMIT" in sql
    named = ", ".join(f"{key} AS key_{number}" for number, key in enumerate(order))
    assert f"SELECT {named}, orgs.feed_id AS feed_id FROM orgs" in sql
    kept, _ = compile_sql(positions_of(made))
    numbered = ", ".join(f"members.key_{number}" for number in range(len(order)))
    assert f"row_number() OVER (ORDER BY {numbered})" in kept
    assert f"SELECT {named}, orgs.feed_id AS feed_id FROM orgs" in kept.replace(
        "orgs.feed_id FROM", "orgs.feed_id AS feed_id FROM"
    )


def test_who_only_counts_has_no_order_made() -> None:
    """In one pass nothing is sorted; an ordering that is made all the same is the one that others share."""
    made = plan(v1p1.Org, sort="name", limit=0)
    found, _ = compile_sql(make_first_page_query(made, by_feed=False, sees_districts=True).find().select())
    assert "ORDER BY" not in found
    kept, _ = compile_sql(positions_of(made))
    assert kept == compile_sql(positions_of(plan(v1p1.Org)))[0]


def test_only_the_chosen_fields_are_made() -> None:
    sql, _ = compile_sql(page_of(plan(v1p1.User, ALL, fields=("givenName",))))
    assert '"givenName":' in sql
    assert "familyName" not in sql
    assert "user_agents" not in sql
    assert SEEN_ROLES not in sql
    for record, field in ((v1p1.User, "orgs"), (v1p1.User, "role"), (v1p2.User, "roles"), (v1p1.User, "metadata")):
        sql, _ = compile_sql(page_of(plan(record, ALL, fields=("givenName", field))))
        assert sql.count(f"AS {SEEN_ROLES} ") == 1, field


def test_a_statement_without_a_filter_is_made_once() -> None:
    made = plan(v1p1.User).shape
    for statement in (prepare_ordered_page, prepare_record):
        assert statement(made, False) is statement(plan(v1p1.User, limit=3, offset=7).shape, False)
        assert statement(made, False) is not statement(plan(v1p1.User, ALL).shape, False)
    backwards = plan(v1p1.User, descending=True).shape
    assert prepare_ordered_page(made, False) is not prepare_ordered_page(backwards, False)


@RECORDS
def test_the_text_of_a_record_is_made_once(record: type[Record]) -> None:
    assert make_record_json(plan(record).shape) is make_record_json(plan(record, limit=3).shape)
    assert make_record_json(plan(record).shape) is not make_record_json(plan(record, fields=("sourcedId",)).shape)


@pytest.mark.parametrize(
    ("text", "is_monotone"),
    [
        (None, True),
        ("dateLastModified>'2026-11-21'", True),
        ("dateLastModified>='2026-11-21' AND status='tobedeleted'", True),
        ("dateLastModified>='2026-11-21' OR sourcedId='a'", True),
        ("dateLastModified<'2026-11-21'", False),
        ("dateLastModified='2026-11-21'", False),
        ("dateLastModified!='2026-11-21'", False),
        ("dateLastModified>'2026-11-21' AND dateLastModified<='2026-11-22'", False),
    ],
)
def test_a_filter_asks_each_departure_only_if_the_latest_one_decides_alike(text: str | None, is_monotone: bool) -> None:
    found = compile_departure_filter(make_plan(params(filter=text), v1p2.User, ALL, everything, {}))
    assert found is not None
    assert found.is_monotone is is_monotone

"""The SQL of a plan: visibility around every filter, every value bound, every nested query tied to its own record."""

from __future__ import annotations

import re

import pytest
from oneroster_filter import Kind
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql import ClauseElement

from roster_service.db.visibility import MetadataOf, Sight
from roster_service.query.documents import recalled_single_statement, single_statement
from roster_service.query.first_page import bind_filter, find_first_page
from roster_service.query.params import Wish
from roster_service.query.plan import Plan, make_plan
from roster_service.query.selections import everything
from roster_service.query.statements import Reach, count_statement, page_statement
from roster_service.query.walk_statements import kept_page_statement, listed_page_statement, places
from roster_service.rostering.endpoints import ENDPOINTS, Endpoint
from roster_service.schemas import v1p1, v1p2
from roster_service.schemas.records import Record
from roster_service.schemas.versions import VERSIONS, Version

NOTHING = Sight(guardians=False, metadata=frozenset())
ALL = Sight(guardians=True, metadata=frozenset(MetadataOf))
RECORDS = pytest.mark.parametrize(
    "record",
    [
        pytest.param(record, id=f"{version.prefix}-{record.__name__}")
        for version in VERSIONS
        for record in version.records.values()
    ],
)
NASTY = "'; DROP TABLE users; -- %(x)s :y \\"


def wish(**changed: object) -> Wish:
    """A wish with these parts."""
    plain = {"limit": 10, "offset": 0, "filter": None, "sort": None, "descending": False, "fields": None}
    return Wish(**(plain | changed))  # type: ignore[arg-type]


def plan(record: type[Record], sight: Sight = NOTHING, **changed: object) -> Plan:
    """A plan for all records that are seen."""
    return make_plan(wish(**changed), record, sight, everything, {})


def compile_sql(statement: ClauseElement) -> tuple[str, dict[str, object]]:
    """The text of a statement, on one line and without casts of parameters, and what is bound in it."""
    compiled = statement.compile(dialect=postgresql.dialect())
    text = re.sub(r"\)s::[A-Z]+(\[\])?", ")s", str(compiled))
    return re.sub(r"\s+", " ", text), dict(compiled.params)


def condition(sql: str) -> str:
    """The WHERE of a count."""
    return sql.partition(" WHERE ")[2]


def test_the_count_of_all_orgs_is_the_count_of_those_that_are_seen() -> None:
    sql, bound = compile_sql(count_statement(plan(v1p1.Org)))
    assert sql.startswith("SELECT count(*) AS count_1 FROM orgs WHERE ")
    assert "orgs.district_id = ANY (%(caller_districts)s" in sql
    assert "orgs.sourced_id = ANY (%(caller_schools)s" in sql
    assert set(bound) == {"caller_districts", "caller_schools"}


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        pytest.param(
            "name='a' OR identifier='b'",
            "(orgs.name) = %(param_1)s OR (orgs.identifier) = %(param_2)s",
            id="or",
        ),
        pytest.param(
            "name='a' AND identifier='b'",
            "(orgs.name) = %(param_1)s AND (orgs.identifier) = %(param_2)s",
            id="and",
        ),
        pytest.param("name>'a'", '(orgs.name) COLLATE "C" > %(param_1)s', id="order-by-code-point"),
        pytest.param("name!='a'", "(orgs.name) IS DISTINCT FROM %(param_1)s", id="not-equal-takes-absent-ones"),
    ],
)
def test_a_filter_stands_beside_the_visibility_by_and(text: str, sql: str) -> None:
    """Each in parentheses of its own, so that the filter can only narrow."""
    visible = condition(compile_sql(count_statement(plan(v1p1.Org)))[0])
    filtered, bound = compile_sql(count_statement(plan(v1p1.Org, filter=text)))
    assert condition(filtered) == f"({visible}) AND ({sql})"
    assert bound["param_1"] == "a"


def _bare_ors(sql: str) -> int:
    """How many ORs stand outside all parentheses."""
    depth = ors = 0
    for token in re.findall(r"[()]| OR ", sql):
        depth += {"(": 1, ")": -1}.get(token, 0)
        ors += token == " OR " and depth == 0
    return ors


@pytest.mark.parametrize(
    "record",
    [record for version in VERSIONS for record in version.records.values()],
    ids=lambda r: r.__module__[-4:] + r.__name__,
)
@pytest.mark.parametrize("sight", [NOTHING, ALL], ids=["nothing", "all"])
def test_no_or_ever_stands_outside_parentheses(record: type[Record], sight: Sight) -> None:
    """An OR of the caller's could otherwise reach past what the caller may see."""
    sql, _ = compile_sql(count_statement(plan(record, sight, filter="sourcedId='a' OR status='b'")))
    assert " OR " in condition(sql)
    assert _bare_ors(condition(sql)) == 0


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.prefix)
def test_every_path_is_limited_to_the_caller(endpoint: Endpoint, version: Version) -> None:
    record, ids = version.records[endpoint.resource], dict.fromkeys(endpoint.ids, "id")
    for sight in (NOTHING, ALL):
        made = make_plan(wish(filter="sourcedId!='x'"), record, sight, endpoint.selection, ids)
        for statement in (page_statement(made), count_statement(made), single_statement(made.outline)):
            sql, bound = compile_sql(statement)
            assert {"caller_districts", "caller_schools"} <= set(bound)
            assert_tied(sql, record)
        recalled = recalled_single_statement(made.outline)
        if recalled is not None:
            sql, bound = compile_sql(recalled)
            assert "WHERE recalled.district_id = ANY (%(caller_districts)s" in sql
            assert ("AND NOT recalled.needs_guardians" in sql) is (sight is NOTHING)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.prefix)
def test_every_walk_is_limited_to_the_caller(endpoint: Endpoint, version: Version) -> None:
    """When it is made, and again whenever a page is read from it."""
    record, ids = version.records[endpoint.resource], dict.fromkeys(endpoint.ids, "id")
    for sight in (NOTHING, ALL):
        made = make_plan(wish(filter="sourcedId!='x'"), record, sight, endpoint.selection, ids)
        reading = (kept_page_statement(made.outline), listed_page_statement(made.outline))
        making = [places(made, reach) for reach in Reach]
        first = [find_first_page(made, reach).statement for reach in Reach]
        for statement in (*making, *first, *reading):
            sql, bound = compile_sql(statement)
            assert {"caller_districts", "caller_schools"} <= set(bound)
            assert_tied(sql, record)


@RECORDS
def test_every_filter_and_sort_is_tied_to_its_own_record(record: type[Record]) -> None:
    values = {"text": "x", "flag": "true", "instant": "2026-01-01", "day": "2026-01-01", "texts": "x"}
    for name, kind in plan(record, ALL).outline.view.filter_types.items():
        path = name.replace("*", "key")
        made = plan(record, ALL, filter=f"{path}!='{values[kind.kind.value]}'", sort=path)
        for statement in (page_statement(made), count_statement(made)):
            assert_tied(compile_sql(statement)[0], record)


@RECORDS
def test_plans_that_differ_in_values_share_the_statement_of_their_first_page(record: type[Record]) -> None:
    """Where the filter says which records are few; its values are bound by name, and stand nowhere in the text."""
    one, other = (
        plan(record, filter=f"sourcedId='{value}' AND status!='{value}'")
        for value in ("planted", "x'y".replace("'", "''"))
    )
    first = find_first_page(one, Reach.DISTRICTS)
    assert find_first_page(other, Reach.DISTRICTS).statement is first.statement
    assert first.is_kept
    assert dict(first.values) == {"filter_0": "planted", "filter_1": "planted"}
    sql, bound = compile_sql(first.statement)
    assert "planted" not in f"{sql}{bound}"
    assert {"filter_0", "filter_1"} <= set(bound)
    assert_tied(sql, record)


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
    broad = make_plan(wish(filter=text), v1p2.User, NOTHING, everything, path_ids)
    assert not find_first_page(broad, Reach.DISTRICTS).is_kept


@RECORDS
def test_every_value_of_a_filter_is_bound_as_the_driver_takes_it(record: type[Record]) -> None:
    """A list becomes an array; every kind and operator gives the values in the order of the names in the SQL."""
    values = {"text": "x", "flag": "true", "instant": "2026-01-01", "day": "2026-01-01", "texts": "x,y"}
    for name, kind in plan(record, ALL).outline.view.filter_types.items():
        made = plan(record, ALL, filter=f"{name.replace('*', 'key')}!='{values[kind.kind.value]}'")
        shape, bound = bind_filter(made)
        names = set(re.findall(r"%\((filter_\d+)\)s", str(shape.condition.compile(dialect=postgresql.dialect()))))
        assert names == set(bound)
        assert not any(isinstance(value, tuple) for value in bound.values())
        if kind.kind is Kind.TEXT:
            # Of a word that 1.1 narrows, the other constants of the SQL stay where they are.
            assert set(bound.values()) == {"x"}


def assert_tied(sql: str, record: type[Record]) -> None:
    """No nested query brings in the record's own table, or a second one, with the rows of strangers.

    Written too deep, a name of an outer table becomes a table of the nested query's own, joined without a condition:
    the statement still runs, and answers with what belongs to others.
    """
    assert not re.findall(r"FROM ((?:\w+(?: AS \w+)?, )+\w+)", sql)
    # The outer query and, where both are in one statement, the one that finds the page's ids, each once.
    bare = re.findall(rf"FROM {record.table.name}(?! AS)\b", sql)
    assert len(bare) == (2 if "page_offset" in sql else 1)


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
    for statement in (page_statement, count_statement):
        sql, bound = compile_sql(statement(plan(record, ALL, filter=text.replace("{}", quoted))))
        assert "DROP" not in sql
        assert any("DROP TABLE users" in str(value) for value in bound.values())


def test_a_key_of_metadata_is_bound_too() -> None:
    """The one name in a filter that is not ours."""
    sql, bound = compile_sql(count_statement(plan(v1p1.Org, ALL, filter="metadata.shoe-size='x'")))
    assert "shoe-size" not in sql
    assert "shoe-size" in bound.values()


def test_a_text_that_is_looked_for_is_no_pattern() -> None:
    sql, bound = compile_sql(count_statement(plan(v1p1.Org, filter="name~'100%_/'")))
    assert "contains_folded(orgs.name, " in sql
    assert "LIKE" not in sql
    assert "100%_/" in bound.values()


def test_a_page_binds_its_window_and_its_addresses() -> None:
    sql, bound = compile_sql(page_statement(plan(v1p1.Org)))
    assert "LIMIT %(page_limit)s" in sql
    assert "OFFSET %(page_offset)s" in sql
    assert "base_url" in bound


@pytest.mark.parametrize(
    ("sort", "descending", "order"),
    [
        pytest.param(None, False, "ORDER BY orgs.sourced_id ASC", id="default"),
        pytest.param(None, True, "ORDER BY orgs.sourced_id DESC", id="default-descending"),
        pytest.param("sourcedId", False, "ORDER BY orgs.sourced_id ASC", id="sourcedId-once"),
        pytest.param("name", False, "ORDER BY orgs.name ASC, orgs.sourced_id ASC", id="field-then-sourcedId"),
        pytest.param("name", True, "ORDER BY orgs.name DESC, orgs.sourced_id DESC", id="both-descending"),
        pytest.param("nothing", False, "ORDER BY orgs.sourced_id ASC", id="unknown"),
    ],
)
def test_a_page_is_ordered_inside_and_out(sort: str | None, descending: bool, order: str) -> None:
    """The ids of the page are chosen in the order in which its records are then shown."""
    sql, _ = compile_sql(page_statement(plan(v1p1.Org, sort=sort, descending=descending)))
    inner, outer = re.findall(r"ORDER BY orgs\.[^()]*", sql)
    assert inner.startswith(f"{order} LIMIT")
    assert outer.strip() == order


def test_a_single_record_is_looked_for_by_its_id() -> None:
    sql, bound = compile_sql(single_statement(plan(v1p1.Org).outline))
    assert "orgs.sourced_id = %(path_sourcedId)s" in sql
    assert "path_sourcedId" in bound


def test_only_the_chosen_fields_are_made() -> None:
    sql, _ = compile_sql(page_statement(plan(v1p1.User, ALL, fields=("givenName",))))
    assert '"givenName":' in sql
    assert "familyName" not in sql
    assert "user_agents" not in sql


@pytest.mark.parametrize("record", [v1p1.User, v1p2.User], ids=["v1p1", "v1p2"])
@pytest.mark.parametrize("sight", [NOTHING, ALL], ids=["nothing", "all"])
def test_guardians_and_metadata_are_in_the_statement_where_they_are_in_sight(
    record: type[Record], sight: Sight
) -> None:
    sql, _ = compile_sql(page_statement(plan(record, sight)))
    assert ("NOT IN" in sql) is not sight.guardians
    assert ('"metadata":' in sql) is (MetadataOf.STUDENTS in sight.metadata)


def test_a_statement_without_a_filter_is_made_once() -> None:
    made = plan(v1p1.Org, sort="name")
    assert page_statement(made) is page_statement(plan(v1p1.Org, sort="name", limit=3, offset=7))
    assert page_statement(made) is not page_statement(plan(v1p1.Org, sort="name", descending=True))
    assert page_statement(made) is not page_statement(plan(v1p1.Org, ALL, sort="name"))

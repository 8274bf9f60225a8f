"""How many rows PostgreSQL reads for a request: the path and the filter decide it, not the size of the district.

A time would depend on the machine; the rows that the plans of a request read do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from flask import Flask

from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import KeyRing, ensure_signing_key
from roster_service.auth.credentials.tokens import TokenReader
from roster_service.db.engine import make_engine
from roster_service.db.round_trip import Call, RoundTrips
from roster_service.rostering.endpoints import list_listings
from roster_service.serving.filter_shapes import make_filter_conditions
from roster_service.serving.ordering_statements import CHUNK_SIZE, select_positions
from roster_service.serving.params import Params
from roster_service.serving.plan import make_plan
from roster_service.serving.request import AuthorizedRequest, make_ordering_shape
from roster_service.serving.statements import choose_driver
from roster_service.serving.warm_up import Listing
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.conftest import close_app
from tests.extent import examples, pair
from tests.offenders import in_one_test
from tools.generate_district import generate

from .client import VERSIONS, RosterClient
from .conftest import SECRET_KEY, SETTINGS, add_vendor
from .paths import NESTED_KEYS
from .test_bearer import ISSUER

# Of 3,000, there are 6,000 users, 22,000 enrollments, 950 classes. The plans of a large district may be others.
STUDENTS = examples(3000, 3000, 40_000)
# What a record may cost, over all statements of a request and both layers of visibility; and what a request may read
# that finds nothing. Orgs, academic sessions and labels are few in every district.
ROWS_A_RECORD = 40
ROWS_A_REQUEST = 100
SMALL_TABLES = {"orgs", "visible_orgs", "visible_labels", "visible_feeds", "academic_sessions"}

# A class with students, its school, and people of it: what both vendors may see.
SAMPLE = sa.text("""
    SELECT taught.sourced_id AS "classId", taught.school_id AS "schoolId", taught.course_id AS "courseId",
        student.user_id AS "studentId", student.user_id AS "userId", teacher.user_id AS "teacherId",
        (SELECT min(parent_id) FROM academic_sessions WHERE type = 'gradingPeriod' AND feed_id = taught.feed_id)
            AS "termId",
        person.identifier, person.username, person.email
    FROM orgs district
    JOIN orgs school ON school.district_id = district.sourced_id AND school.type = 'school'
    JOIN classes taught ON taught.school_id = school.sourced_id
    JOIN enrollments student ON student.class_id = taught.sourced_id AND student.role = 'student'
    JOIN enrollments teacher ON teacher.class_id = taught.sourced_id AND teacher.role = 'teacher'
    JOIN users person ON person.sourced_id = student.user_id
    WHERE district.name = 'wide' AND person.email IS NOT NULL AND person.identifier IS NOT NULL
    ORDER BY taught.sourced_id, student.user_id LIMIT 1
""")
LOOK_UPS = {
    "/users": ("sourcedId={userId}", "identifier={identifier}", "username={username}", "email={email}"),
    "/students": ("email={email}",),
    "/orgs": ("sourcedId={schoolId}",),
    "/classes": ("course.sourcedId={courseId}", "school.sourcedId={schoolId}"),
    "/enrollments": ("class.sourcedId={classId}", "user.sourcedId={studentId}"),
    "/demographics": ("sourcedId={studentId}",),
}
# The terms of a school are those of its classes.
FOUND_THROUGH = {"/schools/{schoolId}/terms": "/schools/{schoolId}/classes"}
LISTINGS = [listing for listing in list_listings() if listing.version == "v1p2"]
EXPLAIN = "EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF)"
# Of a whole collection the first page and the count are found in one pass.
COLLECTIONS = ("/users", "/classes", "/enrollments", "/demographics")
REQUESTS = [(path, None) for path in (*NESTED_KEYS, *COLLECTIONS)] + [
    (path, name) for path, names in LOOK_UPS.items() for name in names
]


@dataclass
class Observed:
    """A served district, ids and values of it, and what requests have read since `rows` and `plans` were set to 0."""

    app: Flask
    client: RosterClient
    sample: Mapping[str, str]
    rows: float = 0
    chunks: float = 0
    plans: int = 0


@pytest.fixture(scope="module")
def observed(make_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """One vendor may see a district, another one a single school of it; there is a second district beside it."""
    url = make_database()
    engine = make_engine(url)
    for name, students in (("wide", STUDENTS), ("beside", 200)):
        folder = tmp_path_factory.mktemp("rows") / name
        generate(folder, students=students, seed=students, version="1.2", school_year=2027, name=name)
        load(engine, name, folder)
    with engine.begin() as connection:
        sample = {name: str(value) for name, value in connection.execute(SAMPLE).mappings().one().items()}
        district = _find_district(connection, sample["schoolId"])
        credentials = {
            "district": add_vendor(connection, "district", [(district, ())]),
            "school": add_vendor(connection, "school", [(district, (sample["schoolId"],))]),
        }
        ensure_signing_key(connection, SETTINGS["secret_key"])
    engine.dispose()
    app = create_app(Settings(**SETTINGS), url)
    made = Observed(app, RosterClient(app, credentials), sample)

    def note(explained: Any) -> None:
        (plan,) = explained
        made.rows += count_rows(plan["Plan"])
        made.chunks += count_rows(plan["Plan"], "ordering_chunks")
        made.plans += 1

    @sa.event.listens_for(app.extensions["roster_engine"], "before_cursor_execute")
    def explain(
        _connection: sa.Connection, cursor: Any, statement: str, values: Any, _context: Any, _many: bool
    ) -> None:
        # The first statement of a transaction admits the caller, in functions that show no plan.
        if re.match(r"\s*(EXECUTE|WITH|SELECT)\b", statement):
            cursor.execute(f"{EXPLAIN} {statement}", values)
            note(cursor.fetchone()[0])

    fetch_last = RoundTrips.fetch_last

    def fetch_and_explain(round_trips: RoundTrips, *calls: Call) -> Any:
        note(fetch_last(round_trips, *calls[:-1], Explained(calls[-1].statement, calls[-1].values))[0][0])
        return fetch_last(round_trips, *calls)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RoundTrips, "fetch_last", fetch_and_explain)
        yield made
    close_app(app)


class Explained(Call):
    """A call that gives the plan that it ran by."""

    def make_text(self, cursor: Any, prepared: bool) -> str:
        """The call with its values in it."""
        return f"{EXPLAIN} {super().make_text(cursor, prepared)}"


def _find_district(connection: sa.Connection, school: str) -> str:
    found = connection.scalar(sa.text("SELECT district_id FROM orgs WHERE sourced_id = :school"), {"school": school})
    return str(found)


def count_rows(node: Mapping[str, Any], table: str | None = None) -> float:
    """The rows which a plan has read, those that it left aside included: of one table, or of all that are not small."""
    read, name = 0.0, node.get("Relation Name")
    if name == table if table else name not in {None, *SMALL_TABLES}:
        dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        read = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return read + sum(count_rows(below, table) for below in node.get("Plans", ()))


@in_one_test
@pytest.mark.parametrize("vendor", ["district", "school"])
@pytest.mark.parametrize(
    ("version", "path", "look_up"),
    # The versions write the same rows as other JSON.
    [
        pytest.param(version, *request, id=f"{version}-{request[0]}-{request[1]}")
        for version, request in pair(REQUESTS, VERSIONS)
    ],
)
def test_a_request_reads_the_rows_of_its_answer(
    observed: Observed, version: str, vendor: str, path: str, look_up: str | None
) -> None:
    sample = observed.sample
    ids = {name: quote(value, safe="") for name, value in sample.items()}
    query = {"limit": "3"}
    if look_up is not None:
        name, _, value = look_up.format(**sample).partition("=")
        query["filter"] = f"{name}='{value}'"
    observed.client.token(version, vendor=vendor)
    observed.rows = observed.plans = 0
    answer = observed.client.call(version, path.format(**ids), query, vendor=vendor)
    assert answer.status == 200, json.dumps(answer.json)
    assert answer.total > 0
    assert observed.plans > 0
    read, records = observed.rows, answer.total
    if path in FOUND_THROUGH:
        parents = observed.client.call(version, FOUND_THROUGH[path].format(**ids), {"limit": "0"}, vendor=vendor)
        records = parents.total
    assert read <= ROWS_A_REQUEST + ROWS_A_RECORD * records


@in_one_test
@pytest.mark.parametrize("vendor", ["district", "school"])
@pytest.mark.parametrize("wanted", [None, "status='active'"], ids=["all", "filtered"])
@pytest.mark.parametrize(
    "listing",
    [it for it in list_listings() if it.version == "v1p2"],
    ids=lambda it: it.record.__name__,
)
def test_an_ordering_reads_the_rows_of_its_table(
    observed: Observed, listing: Listing, wanted: str | None, vendor: str
) -> None:
    """A few times each: of several conditions PostgreSQL could also make products of tables."""
    signed = observed.client.token("v1p2", vendor=vendor)
    token = TokenReader(KeyRing(observed.app.extensions["roster_accounts_engine"], SECRET_KEY), ISSUER).read(signed)
    params = Params(limit=1, offset=1, filter=wanted, sort=None, descending=False, fields=None)
    plan = make_plan(params, listing.record, token.rights, listing.path_filter, {})
    request = AuthorizedRequest(plan, token.vendor_id, token.client_id, token.admission, {})
    driver = choose_driver(plan, sees_districts=vendor == "district")
    statement = select_positions(make_ordering_shape(plan), driver, make_filter_conditions(plan), by_feed=False)
    with observed.app.extensions["roster_engine"].connect() as connection:
        connection.execute(token.admission.statement, token.admission.values)
        every = connection.scalar(sa.select(sa.func.count()).select_from(listing.record.table))
        observed.rows = 0
        found = len(connection.execute(statement, request.values).all())
    assert found > 0
    assert observed.rows <= ROWS_A_REQUEST + ROWS_A_RECORD * every


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_page_reads_the_chunks_that_its_ids_are_in(observed: Observed, order: str) -> None:
    query = {"filter": "role='student'", "sort": "sourcedId", "orderBy": order, "limit": "4"}
    total = observed.client.call("v1p2", "/enrollments", query, vendor="district").total
    assert total > 10 * CHUNK_SIZE
    observed.chunks = 0
    # Descending pages count from the end.
    before = 3 * CHUNK_SIZE - 2 if order == "asc" else total - 3 * CHUNK_SIZE - 2
    answer = observed.client.call("v1p2", "/enrollments", {**query, "offset": str(before)}, vendor="district")
    assert len(answer.json["enrollments"]) == 4
    assert observed.chunks == 2

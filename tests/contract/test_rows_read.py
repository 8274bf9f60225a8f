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
from sqlalchemy import Connection, event, text

from roster_service.access.signing_keys import ensure_signing_key
from roster_service.app import create_app
from roster_service.db.engine import make_engine
from roster_service.settings import Settings
from sync_scripts.generate_district import generate
from sync_scripts.loading import load
from tests.conftest import close_app

from .client import RosterClient
from .conftest import SETTINGS, add_vendor
from .paths import NESTED_KEYS

# 6,000 users, 22,000 enrollments, 950 classes.
STUDENTS = 3000
# What a record may cost, over all statements of a request and both layers of visibility; and what a request may read
# that finds nothing. Orgs and academic sessions are few in every district.
ROWS_A_RECORD = 40
ROWS_A_REQUEST = 100
SMALL_TABLES = {"orgs", "academic_sessions", "roster_state", "shelves"}

# A class with students, its school, and people of it: what both vendors may see.
SAMPLE = text("""
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
REQUESTS = [(path, None) for path in NESTED_KEYS] + [(path, name) for path, names in LOOK_UPS.items() for name in names]


@dataclass
class Observed:
    """A served district, ids and values of it, and what requests have read since `rows` and `plans` were set to 0."""

    client: RosterClient
    sample: Mapping[str, str]
    rows: float = 0
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
    made = Observed(RosterClient(app, credentials), sample)

    @event.listens_for(app.extensions["roster_engine"], "before_cursor_execute")
    def explain(_connection: Connection, cursor: Any, statement: str, values: Any, _context: Any, _many: bool) -> None:
        # The first statement of a transaction admits the caller, in functions that show no plan.
        if re.match(r"\s*(EXECUTE|WITH|SELECT)\b", statement):
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {statement}", values)
            (plan,) = cursor.fetchone()[0]
            made.rows += count_rows(plan["Plan"])
            made.plans += 1

    yield made
    close_app(app)


def _find_district(connection: Connection, school: str) -> str:
    found = connection.scalar(text("SELECT district_id FROM orgs WHERE sourced_id = :school"), {"school": school})
    return str(found)


def count_rows(node: Mapping[str, Any]) -> float:
    """The rows of tables that are not small which a plan has read, those that it left aside included."""
    read = 0.0
    if node.get("Relation Name") not in {None, *SMALL_TABLES}:
        dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        read = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return read + sum(count_rows(below) for below in node.get("Plans", ()))


@pytest.mark.parametrize("vendor", ["district", "school"])
@pytest.mark.parametrize("version", ["v1p1", "v1p2"])
@pytest.mark.parametrize(("path", "look_up"), REQUESTS, ids=lambda part: part or "")
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

"""What most consumers ask: for every class its students, for one user by e-mail. Each id is asked once.

Each request is held against a single record and against the same request in a smaller district, all asked in turns.
Requests for other ids have had the statements planned; nothing else of an answer is kept anywhere.
"""

from __future__ import annotations

import itertools
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import sqlalchemy as sa

from roster_service.rostering.endpoints import ENDPOINTS, Cardinality
from roster_service.schemas.versions import V1P1
from tests.bench.place import Place
from tests.bench.report import Result

# How many ids are asked of each kind, after those that have the statements planned on every worker's connections.
TIMES, BEFORE = 40, 20
# So many times a single record, for each hundred records that the answer counts.
TIMES_A_SINGLE = 4
GROWTH = 1.5

# The ids that stand in paths and filters, as many as are asked.
SAMPLES = {
    "schoolId": "SELECT sourced_id FROM orgs WHERE type = 'school'",
    "termId": "SELECT parent_id FROM academic_sessions WHERE type = 'gradingPeriod'",
    "courseId": "SELECT sourced_id FROM courses",
    "classId": "SELECT sourced_id FROM classes",
    "studentId": "SELECT user_id FROM user_roles WHERE role = 'student'",
    "teacherId": "SELECT user_id FROM user_roles WHERE role = 'teacher'",
    "userId": "SELECT sourced_id FROM users",
    "identifier": "SELECT identifier FROM users WHERE identifier IS NOT NULL",
    "username": "SELECT username FROM users WHERE username IS NOT NULL",
    "email": "SELECT email FROM users WHERE email IS NOT NULL",
}
CLASS_OF_SCHOOL = "SELECT school_id, sourced_id FROM classes ORDER BY random() LIMIT :number"
LOOK_UPS = {
    "/users": ("sourcedId={userId}", "identifier={identifier}", "username={username}", "email={email}"),
    "/classes": ("course.sourcedId={courseId}",),
    "/enrollments": ("class.sourcedId={classId}", "user.sourcedId={studentId}"),
    "/demographics": ("sourcedId={studentId}",),
}
SINGLE = "/users/{userId}"


def list_kinds() -> Iterator[str]:
    """The 17 nested paths and the look-ups, as addresses with names in braces."""
    for endpoint in ENDPOINTS:
        if endpoint.cardinality is Cardinality.COLLECTION and endpoint.ids:
            yield f"{endpoint.path}?limit=100"
    for path, comparisons in LOOK_UPS.items():
        for comparison in comparisons:
            name, _, value = comparison.partition("=")
            yield f"{path}?limit=100&filter={name}%3D%27{value}%27"


def measure_look_ups(large: Place, small: Place) -> Iterator[Result]:
    """Each kind beside a single record, then beside itself in the smaller district."""
    tokens = {place.url: place.authorize() for place in (large, small)}
    for kind in list_kinds():
        turns = ((large, kind), (large, SINGLE), (small, kind))
        rounds = [
            [ask(place, address, tokens[place.url]) for (place, _), address in zip(turns, addresses, strict=True)]
            for addresses in zip(*(make_addresses(place, what) for place, what in turns), strict=True)
        ]
        own, single, other = (statistics.median(turn[number][0] for turn in rounds[BEFORE:]) for number in range(3))
        records, fewer = (statistics.median(turn[number][1] for turn in rounds) for number in (0, 2))
        what = re.sub(r"[?&]limit=100&?(filter)?", r"?\1", kind).rstrip("?").replace("%3D%27", "=").replace("%27", "'")
        target = TIMES_A_SINGLE * max(1, records / 100)
        yield Result(f"{what}, single record", own, single, "ms", own / single, target, at_least=False)
        grown = GROWTH * max(1, records / max(100, fewer))
        yield Result(f"{what}, small district", own, other, "ms", own / other, grown, at_least=False)


def make_addresses(place: Place, kind: str) -> Sequence[str]:
    """Addresses of a kind with ids that were drawn at random; again and again the same where there are few: terms."""
    number = BEFORE + TIMES
    with place.engine.connect() as connection:
        if "{schoolId}" in kind and "{classId}" in kind:
            pairs = connection.execute(sa.text(CLASS_OF_SCHOOL), {"number": number}).all()
            names = [{"schoolId": pair[0], "classId": pair[1]} for pair in pairs]
        else:
            (name,) = (name for name in SAMPLES if f"{{{name}}}" in kind)
            drawn = sa.text(
                f"SELECT * FROM (SELECT DISTINCT * FROM ({SAMPLES[name]}) a) b ORDER BY random() LIMIT :number"
            )
            names = [{name: found} for found in connection.scalars(drawn, {"number": number})]
    quoted = ({name: quote(value, safe="") for name, value in named.items()} for named in names)
    return list(itertools.islice(itertools.cycle([kind.format(**named) for named in quoted]), number))


def ask(place: Place, address: str, token: dict[str, str]) -> tuple[float, int]:
    """(milliseconds, the records that the answer counts) of one request."""
    began = time.perf_counter()
    answer = place.servers["ours"].fetch(f"{V1P1.root}{address}", token)
    return (time.perf_counter() - began) * 1000, int(answer.headers.get("X-Total-Count", 1))

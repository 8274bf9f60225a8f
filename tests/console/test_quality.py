"""Data quality: the findings against a model in plain Python, their counts, and the pages."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from oneroster_filter.folding import fold

from roster_service.change_log.actors import OperatorRole
from roster_service.db import tables
from roster_service.db.tables import ROSTER_TABLES, feeds, quality_counts, sync_rejections
from roster_service.feeds.data_quality import KEPT, NO_SCHOOL, read_findings, read_quality, store_counts
from roster_service.feeds.quality_checks import CHECKS
from roster_service.feeds.run_history import TYPES
from tests.console.conftest import Browser, Console
from tests.console.hostile import SCRIPT, TEXTS, add_people
from tests.console.test_statements import read
from tests.postgres.labels import label_unlabelled

EVERYTHING = (0, 10**6)
# What a sync would not leave behind, and what an export may have.
BREAKAGES = (
    "UPDATE enrollments SET status = 'tobedeleted' WHERE class_id = 'spr-class-math3-a' AND role = 'teacher'",
    "UPDATE enrollments SET status = 'tobedeleted' WHERE class_id = 'shv-class-bio-n' AND role = 'student'",
    "UPDATE enrollments SET status = 'tobedeleted' WHERE user_id = 'spr-student-3'",
    "UPDATE users SET email = 'Same@example.org' WHERE sourced_id IN ('spr-student-1', 'shv-student-1')",
    "UPDATE users SET email = 'sAME@example.org' WHERE sourced_id = 'spr-student-4'",
    "UPDATE users SET identifier = 'S-1' WHERE sourced_id IN ('shv-student-1', 'spr-student-1', 'spr-student-2')",
    "UPDATE enrollments SET begin_date = '2098-01-01' WHERE sourced_id = 'spr-enr-01'",
    "UPDATE enrollments SET begin_date = NULL, end_date = '1999-01-01' WHERE sourced_id = 'spr-enr-02'",
    "UPDATE enrollments SET begin_date = '2026-10-01', end_date = '2026-09-01' WHERE sourced_id = 'spr-enr-04'",
    "UPDATE enrollments SET begin_date = '2026-10-01', end_date = '2026-10-01' WHERE sourced_id = 'spr-enr-05'",
    "UPDATE enrollments SET school_id = 'spr-elementary' WHERE sourced_id = 'spr-enr-10'",
    # A term that begins before its year, and one that ends before it begins.
    "UPDATE academic_sessions SET start_date = '1999-01-01' WHERE sourced_id = (SELECT min(sourced_id) "
    "FROM academic_sessions WHERE parent_id IS NOT NULL AND sourced_id LIKE 'spr-%')",
    "UPDATE academic_sessions SET start_date = '1999-01-01' WHERE sourced_id = (SELECT max(sourced_id) "
    "FROM academic_sessions WHERE type = 'gradingPeriod' AND sourced_id LIKE 'spr-%')",
    "UPDATE academic_sessions SET end_date = start_date - 1 WHERE sourced_id = (SELECT max(sourced_id) "
    "FROM academic_sessions WHERE parent_id IS NOT NULL AND sourced_id LIKE 'shv-%')",
    # The dates of a whole year are no finding.
    "UPDATE enrollments SET begin_date = '1999-01-01', end_date = '2099-01-01' WHERE sourced_id = 'spr-enr-03'",
    "UPDATE orgs SET status = 'tobedeleted' WHERE sourced_id = 'shv-south'",
    "UPDATE users SET primary_org_id = 'gone' WHERE sourced_id = 'shv-student-2'",
    "UPDATE courses SET school_year_id = 'gone' WHERE sourced_id = 'spr-course-math3'",
    "INSERT INTO user_agents (user_id, ordinal, agent_id) VALUES ('spr-student-4', 9, 'gone')",
    "UPDATE classes SET term_ids = '{gone}' WHERE sourced_id = 'shv-class-art-n'",
    "UPDATE users SET email = 'Bart' WHERE sourced_id = 'spr-student-5'",
    "UPDATE users SET email = '' WHERE sourced_id = 'shv-student-1'",
    "UPDATE users SET middle_name = 'bart@school.example' WHERE sourced_id = 'spr-student-5'",
    # As many as two people of one number, of whom one learns and one teaches; and a relative of that number.
    "UPDATE users SET identifier = 'S-7' WHERE sourced_id IN ('spr-student-5', 'spr-teacher-2', 'spr-guardian-1')",
    # A dozen people of one day, and a dozen of a day each.
    "INSERT INTO users (sourced_id, feed_id, status, date_last_modified, enabled_user, given_name, family_name) "
    "SELECT 'born-' || day, id, 'active', now(), true, 'A', 'B' FROM feeds, generate_series(1, 24) AS day "
    "WHERE name = 'springfield'",
    "INSERT INTO demographics (sourced_id, feed_id, status, date_last_modified, birth_date) "
    "SELECT sourced_id, feed_id, 'active', now(), DATE '2015-01-01' + greatest(12, substr(sourced_id, 6)::int) "
    "FROM users WHERE sourced_id LIKE 'born-%'",
    "INSERT INTO user_roles (user_id, ordinal, org_id, role, role_type, origin) SELECT sourced_id, 1, 'spr-high', "
    "CASE sourced_id WHEN 'born-24' THEN 'teacher' ELSE 'student' END, 'primary', 'export' FROM users "
    "WHERE sourced_id LIKE 'born-%'",
    # Ages, of the last of which a teacher is.
    "UPDATE demographics SET birth_date = current_date - 700 WHERE sourced_id = 'born-21'",
    "UPDATE demographics SET birth_date = current_date + 1 WHERE sourced_id = 'born-22'",
    "UPDATE demographics SET birth_date = current_date - 30 * 366 WHERE sourced_id = 'born-23'",
    "UPDATE demographics SET birth_date = current_date - 30 * 366 WHERE sourced_id = 'born-24'",
    # A dozen of records of one title.
    "INSERT INTO courses (sourced_id, feed_id, status, date_last_modified, title, org_id) SELECT 'c-' || number, id, "
    "'active', now(), 'One', 'shv-north' FROM feeds, generate_series(1, 12) AS number WHERE name = 'shelbyville'",
    "UPDATE courses SET title = 'One' WHERE feed_id = (SELECT id FROM feeds WHERE name = 'shelbyville')",
    # A school below nothing, a class of it, and a person who has no other school.
    "INSERT INTO orgs (sourced_id, feed_id, status, date_last_modified, name, type) "
    "SELECT 'spr-alone', id, 'active', now(), 'Alone', 'school' FROM feeds WHERE name = 'springfield'",
    "UPDATE classes SET school_id = 'spr-alone' WHERE sourced_id = 'spr-class-math3-b'",
    "UPDATE user_roles SET org_id = 'spr-alone' WHERE user_id = 'born-20'",
    # A person of the state, which is above the districts.
    "INSERT INTO orgs (sourced_id, feed_id, status, date_last_modified, name, type) "
    "SELECT 'spr-state', id, 'active', now(), 'State', 'state' FROM feeds WHERE name = 'springfield'",
    "UPDATE user_roles SET org_id = 'spr-state' WHERE user_id = 'born-19'",
    # Rows of the last load: of the class without a teacher, of one with a teacher, and of another class itself.
    """INSERT INTO sync_rejections (run_id, number, file, reason, records)
    SELECT max(r.id), 1, 'enrollments.csv', 'bad', '[{"type": "enrollments", "sourcedId": "e", "own": true},
    {"type": "classes", "sourcedId": "spr-class-math3-a", "own": false},
    {"type": "classes", "sourcedId": "spr-class-math3-b", "own": false}]'
    FROM sync_runs r JOIN feeds f ON f.id = r.feed_id WHERE f.name = 'springfield'""",
)
Key = tuple[str, str]


def take_roles(connection: sa.Connection, *people: str) -> None:
    """Takes the roles of people away, as a sync does: their labels follow."""
    roles, users = tables.user_roles, tables.users
    connection.execute(sa.delete(roles).where(roles.c.user_id.in_(people)))
    connection.execute(sa.update(users).where(users.c.sourced_id.in_(people)).values(label_id=None))
    label_unlabelled(connection)


def break_roster(console: Console) -> Browser:
    """Gives the roster of a console something for each check; returns the browser of a viewer."""
    with console.engine.begin() as connection:
        for change in BREAKAGES:
            connection.execute(sa.text(change))
        take_roles(connection, "spr-student-2", "shv-student-4")
    return console.log_in(OperatorRole.VIEWER)


@pytest.fixture(scope="module")
def browser(console: Console) -> Browser:
    """A viewer, for a broken roster that stays as it is."""
    return break_roster(console)


def count_years(born: date) -> int:
    """The age of today."""
    today = datetime.now(UTC).date()
    return today.year - born.year - ((today.month, today.day) < (born.month, born.day))


def has_name_with_at(row: Any) -> bool:
    """Whether a name of a person has the sign."""
    names = ("given_name", "middle_name", "family_name", "preferred_first_name", "preferred_last_name")
    return any("@" in (getattr(row, name) or "") for name in names)


class Model:
    """The checks in plain Python, over all live rows."""

    def __init__(self, connection: sa.Connection) -> None:
        self.rows = {
            table.name: {row.sourced_id: row for row in connection.execute(sa.select(table)) if row.status == "active"}
            for table in ROSTER_TABLES
        }
        self.parts = {table.name: connection.execute(sa.select(table)).all() for table in tables.PART_TABLES}
        enrolled = self.rows["enrollments"].values()
        self.members = {(row.class_id, row.role) for row in enrolled}
        self.enrolled = {row.user_id for row in enrolled}
        self.roles = defaultdict(set)
        for row in self.parts["user_roles"]:
            self.roles[row.user_id].add(row.role)
        self.rejected = connection.execute(sa.select(sync_rejections)).all()

    def find(self, check: str) -> Iterator[Key]:
        """Yields (kind, id) of each finding."""
        users, classes = self.rows["users"], self.rows["classes"]
        match check:
            case "below-no-district":
                yield from self.find_ungrantable()
            case "people-without-role":
                yield from (("users", key) for key in users if not self.roles[key])
            case "students-without-class":
                yield from (("users", it) for it in users if "student" in self.roles[it] and it not in self.enrolled)
            case "classes-without-teacher" | "classes-without-students":
                role = check.removeprefix("classes-without-").removesuffix("s")
                yield from (("classes", key) for key in classes if (key, role) not in self.members)
            case "same-email":
                yield from self.find_same(lambda row: row.email and (row.feed_id, fold(row.email)))
            case "same-identifier":
                yield from self.find_same_number()
            case "orphans":
                yield from self.find_orphans()
            case _:
                yield from self.find_enrolled(check)

    def find_enrolled(self, check: str) -> Iterator[Key]:
        """As `find`, of the checks of days and enrollments."""
        match check:
            case "enrollments-outside-session":
                yield from self.find_outside()
            case "sessions-outside-year":
                yield from (("academicSessions", key) for key in self.find_outside_above(of_year=True))
            case _:
                yield from self.find_doubtful(check)

    def find_doubtful(self, check: str) -> Iterator[Key]:
        """As `find`, of the checks that say what can hardly be right."""
        users, classes = self.rows["users"], self.rows["classes"]
        match check:
            case "email-without-at":
                yield from (("users", key) for key, row in users.items() if row.email and "@" not in row.email)
            case "name-with-at":
                yield from (("users", key) for key, row in users.items() if has_name_with_at(row))
            case "shared-birth-date":
                yield from self.find_shared_birth_date()
            case "impossible-age":
                for key, row in self.rows["demographics"].items():
                    if "student" in self.roles[key] and row.birth_date and not 2 <= count_years(row.birth_date) < 30:
                        yield "demographics", key
            case "one-value":
                yield from self.find_one_value()
            case "contradicting-days":
                yield from self.find_contradicting()
            case "teacher-rejected":
                named = {
                    it["sourcedId"]
                    for row in self.rejected
                    for it in row.records
                    if it["type"] == "classes" and not it["own"]
                }
                yield from (("classes", key) for key in named & classes.keys() if (key, "teacher") not in self.members)

    def find_same(self, read: Any) -> Iterator[Key]:
        """People whose value another one of the feed has."""
        counts = Counter(read(row) for row in self.rows["users"].values() if read(row))
        yield from (("users", key) for key, row in self.rows["users"].items() if counts[read(row)] > 1)

    def find_same_number(self) -> Iterator[Key]:
        """People whose number another one of the feed has who is perhaps numbered with them."""
        numbered = defaultdict(list)
        for key, row in self.rows["users"].items():
            roles = self.roles[key]
            kind = (
                "student"
                if "student" in roles
                else "guardian"
                if roles and roles <= {"guardian", "parent", "relative"}
                else "staff"
                if roles
                else None
            )
            if row.identifier:
                numbered[row.feed_id, row.identifier].append((key, kind))
        for people in numbered.values():
            for key, kind in people:
                if any(other != key and (kind == its or None in (kind, its)) for other, its in people):
                    yield "users", key

    def find_shared_birth_date(self) -> Iterator[Key]:
        """People of a day that more have than ten, and five times as many as of the other days."""
        for feed in {row.feed_id for row in self.rows["users"].values()}:
            rows = [row for row in self.rows["demographics"].values() if row.feed_id == feed and row.birth_date]
            days = Counter(row.birth_date for row in rows)
            most = 10 + 5 * len(rows) / max(365, len(days))
            yield from (("demographics", row.sourced_id) for row in rows if days[row.birth_date] > most)

    def find_one_value(self) -> Iterator[Key]:
        """The records of a type of which ten or more have a value, and all the same."""
        columns = {
            "users": ("given_name", "family_name", "username", "identifier", "email"),
            "classes": ("title",),
            "courses": ("title",),
        }
        for table, names in columns.items():
            for feed in {row.feed_id for row in self.rows[table].values()}:
                rows = [row for row in self.rows[table].values() if row.feed_id == feed]
                for name in names:
                    own = [row for row in rows if getattr(row, name) is not None]
                    if len(own) >= 10 and len({getattr(row, name) for row in own}) == 1:
                        yield from ((table, row.sourced_id) for row in own)

    def find_outside(self) -> Iterator[Key]:
        """Enrollments without a day in the terms of their class."""
        sessions = self.rows["academic_sessions"]
        for key, row in self.rows["enrollments"].items():
            taught = self.rows["classes"].get(row.class_id)
            ids = (taught.term_ids if taught else None) or ()
            terms = [sessions[it] for it in ids if it in sessions]
            if not terms:
                continue
            first, last = min(it.start_date for it in terms), max(it.end_date for it in terms)
            if (row.begin_date and row.begin_date >= last) or (row.end_date and row.end_date <= first):
                yield "enrollments", key

    def find_ungrantable(self) -> Iterator[Key]:
        """What lies below no district: by the chain of parents, and not by what is stored of it."""
        orgs = self.rows["orgs"]

        def is_below(key: str | None) -> bool:
            org = orgs.get(key)
            return org is not None and (org.type == "district" or is_below(org.parent_id))

        def is_lost(key: str) -> bool:
            return key in orgs and orgs[key].type not in ("state", "national") and not is_below(key)

        yield from (("orgs", key) for key, org in orgs.items() if org.type == "school" and is_lost(key))
        yield from (("classes", key) for key, row in self.rows["classes"].items() if is_lost(row.school_id))
        held = defaultdict(set)
        for row in self.parts["user_roles"]:
            held[row.user_id].add(row.org_id)
        yield from (
            ("users", it)
            for it in self.rows["users"]
            if any(map(is_lost, held[it])) and not any(map(is_below, held[it]))
        )

    def find_outside_above(self, *, of_year: bool) -> Iterator[str]:
        """Sessions with a day that is not of the session above, which is a school year or none."""
        sessions = self.rows["academic_sessions"]
        for key, row in sessions.items():
            above = sessions.get(row.parent_id)
            if above is None or (above.type == "schoolYear") != of_year:
                continue
            if row.start_date < above.start_date or row.end_date > above.end_date:
                yield key

    def find_contradicting(self) -> Iterator[Key]:
        """What ends before it begins, and sessions with a day that is not of the term above."""
        backwards = {key for key, row in self.rows["academic_sessions"].items() if row.end_date < row.start_date}
        for key in backwards | set(self.find_outside_above(of_year=False)):
            yield "academicSessions", key
        for key, row in self.rows["enrollments"].items():
            if row.begin_date and row.end_date and row.end_date < row.begin_date:
                yield "enrollments", key

    def find_orphans(self) -> Iterator[Key]:
        """A finding for each reference that leads to no live record."""
        references = {
            "orgs": {"parent_id": "orgs"},
            "academic_sessions": {"parent_id": "academic_sessions"},
            "courses": {"org_id": "orgs", "school_year_id": "academic_sessions"},
            "classes": {"course_id": "courses", "school_id": "orgs"},
            "users": {"primary_org_id": "orgs"},
            "enrollments": {"user_id": "users", "class_id": "classes", "school_id": "orgs"},
            "demographics": {"sourced_id": "users"},
        }
        for table, columns in references.items():
            for key, row in self.rows[table].items():
                for column, target in columns.items():
                    value = getattr(row, column)
                    if value is not None and value not in self.rows[target]:
                        yield TYPES[table], key
        terms = [(key, it) for key, row in self.rows["classes"].items() for it in row.term_ids or ()]
        yield from (("classes", key) for key, it in terms if it not in self.rows["academic_sessions"])
        for part, own, table, column, target in (
            ("user_roles", "user_id", "users", "org_id", "orgs"),
            ("user_agents", "user_id", "users", "agent_id", "users"),
        ):
            for row in self.parts[part]:
                if getattr(row, own) in self.rows[table] and getattr(row, column) not in self.rows[target]:
                    yield table, getattr(row, own)


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_finds_what_its_model_finds(console: Console, check: Any) -> None:
    with console.engine.connect() as connection:
        model = Counter(Model(connection).find(check.name))
        assert model, "the test has nothing for this check"
        found = read_findings(connection, check, None, None, EVERYTHING)
        assert Counter((it.kind, it.sourcedId) for it in found) == model
        of_feeds = [read_findings(connection, check, feed, None, EVERYTHING) for feed in ("shelbyville", "springfield")]
        assert [it for of_feed in of_feeds for it in of_feed] == found
        for quality in read_quality(connection):
            own = [it for it in found if it.feed == quality.feed]
            assert quality.totals[check.name] == len(own)
            assert quality.schools[check.name] == Counter(it.school or NO_SCHOOL for it in own)
            for school, number in quality.schools[check.name].items():
                assert len(read_findings(connection, check, quality.feed, school, EVERYTHING)) == number


def test_counts_are_stored_once_for_each_revision_and_make_a_trend(own_console: Console) -> None:
    console, browser = own_console, break_roster(own_console)
    assert store_counts(console.engine) == 2
    assert store_counts(console.engine) == 0
    first = count_roles(console.engine)
    # A later run takes the last role of a person away.
    with console.engine.begin() as connection:
        take_roles(connection, "spr-teacher-1")
    assert count_roles(console.engine) == first, "the stored counts are of the revision"
    for _ in range(KEPT + 1):
        move_on(console.engine)
        assert store_counts(console.engine) == 1
    with console.engine.connect() as connection:
        (quality,) = (it for it in read_quality(connection) if it.feed == "springfield")
        rows = connection.execute(sa.select(quality_counts.c.schools, feeds.c.name).join(feeds)).all()
    assert len(quality.trend["people-without-role"]) == KEPT
    assert quality.trend["people-without-role"][-1] == quality.totals["people-without-role"] == first + 1
    assert [row.name for row in rows if row.schools is not None] == ["shelbyville", "springfield"]
    # Each feed is counted after its own load.
    with console.engine.begin() as connection:
        for name, at in (("shelbyville", "18:45"), ("springfield", "18:50")):
            own = sa.select(feeds.c.id).where(feeds.c.name == name).scalar_subquery()
            moved = sa.update(quality_counts).where(quality_counts.c.feed_id == own)
            connection.execute(moved.values(counted_at=f"2026-11-30T{at}Z"))
    for path, said in (
        ("/quality", "counted after the last sync of each feed, from 30 Nov 2026, 18:45 to 30 Nov 2026, 18:50."),
        ("/quality?feed=springfield", "counted after the last sync, 30 Nov 2026, 18:50."),
    ):
        assert said in re.sub(r"<[^>]+>", "", browser.get(path).text)
    with console.engine.begin() as connection:
        connection.execute(sa.delete(quality_counts).where(quality_counts.c.feed_id != own))
    assert "from 30 Nov 2026, 18:50 to now." in re.sub(r"<[^>]+>", "", browser.get("/quality").text)


def count_roles(engine: sa.Engine) -> int | None:
    """The people of a feed without a role, as counted."""
    with engine.connect() as connection:
        return next(it.totals["people-without-role"] for it in read_quality(connection) if it.feed == "springfield")


def move_on(engine: sa.Engine) -> None:
    """Another revision of a feed."""
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE feeds SET revision = revision + 1 WHERE name = 'springfield'"))


def test_each_number_leads_to_its_records(console: Console, browser: Browser) -> None:
    content = browser.get("/quality.json?feed=springfield").get_json()
    for check in content["checks"]:
        lines = browser.get(f"/quality/{check['check']}.csv?feed=springfield").text.splitlines()
        assert max(0, len(lines) - 1) == check["count"], check["check"]
    for place in content["places"]["rows"]:
        for check, number in place["counts"].items():
            query = {"feed": place["feed"], "school": place["school"]}
            rows = browser.get(f"/quality/{check}.csv", query_string=query).text.splitlines()
            assert len(rows) - 1 == number


def test_shares_are_of_the_loaded_records_and_the_worst_is_first(console: Console, browser: Browser) -> None:
    checks = browser.get("/quality.json?feed=shelbyville").get_json()["checks"]
    counts = (
        "SELECT counts FROM sync_runs r JOIN feeds f ON f.id = r.feed_id WHERE f.name = 'shelbyville' ORDER BY r.id"
    )
    with console.engine.connect() as connection:
        loaded = connection.scalars(sa.text(counts)).all()[-1]
    live = {kind: of["added"] + of["changed"] + of["revived"] + of["unchanged"] for kind, of in loaded.items()}
    kinds = {check.name: check.kinds for check in CHECKS}
    assert all(it["records"] == sum(live.get(kind, 0) for kind in kinds[it["check"]]) for it in checks)
    shares = [it["count"] / it["records"] for it in checks]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0 == shares[-1]
    page = read(browser.get("/quality?feed=shelbyville").text)
    first = checks[0]
    assert f"{first['title']}: {first['count']} of {first['records']}" in page
    none = sum(it["count"] == 0 for it in checks)
    assert f"{none} check{'s find' if none > 1 else ' finds'} nothing" in page


def test_duplicates_stand_together_and_the_office_gets_a_file(console: Console, browser: Browser) -> None:
    page = browser.get("/quality/same-identifier?feed=springfield").text
    [group] = re.findall(r'scope="rowgroup"><bdi>([^<]+)', page)
    assert (group, page.count("/records/spr-student-")) == ("S-1", 2)
    rows = list(csv.DictReader(io.StringIO(browser.get("/quality/same-identifier.csv?feed=springfield").text)))
    assert [(row["file"], row["sourcedId"], row["value"]) for row in rows] == [
        ("users.csv", "spr-student-1", "S-1"),
        ("users.csv", "spr-student-2", "S-1"),
    ]
    assert all(row["name"] and row["do"].startswith("People with the same identifier: ") for row in rows)


def test_hostile_texts_are_texts_and_long_lists_have_pages(own_console: Console) -> None:
    browser = own_console.log_in(OperatorRole.VIEWER)
    ids = add_people(own_console.engine, [(each, each) for each in TEXTS for _ in range(10)])
    pages = [browser.get(f"/quality/students-without-class?page={number}") for number in (1, 2)]
    assert all(page.status_code == 200 and len(page.data) < 100_000 for page in pages)
    assert SCRIPT not in pages[0].text + pages[1].text
    listed = browser.get("/quality/students-without-class.csv").text
    assert all(sourced_id in listed.replace('""', '"') for sourced_id in ids)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/quality/no-check", 404, "no check"),
        ("/quality/orphans?feed=none", 200, "There is no feed none"),
        ("/quality/orphans?school=none", 200, "finds nothing here"),
        ("/quality?feed=none&page=x", 200, "By feed"),
    ],
)
def test_a_wrong_value_is_answered_with_its_reason(browser: Browser, path: str, status: int, words: str) -> None:
    answer = browser.get(path)
    assert (answer.status_code, words in answer.text) == (status, True)

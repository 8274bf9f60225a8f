"""What the forms of grants count: the students of a district and of its schools, and their grades."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts.districts import list_all_grades, list_school_names, read_students
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.postgres.loaded import EXPORTS, load_districts
from tests.sync.export_changes import both, cell_of, without_rows

AT_BOTH = "spr-elementary,spr-high"
# A student at both schools, one of the district alone, and one who has left.
CHANGE = both(
    cell_of("users", "spr-student-1", "orgSourcedIds", AT_BOTH),
    cell_of("users", "spr-student-2", "orgSourcedIds", "spr-district"),
    cell_of("users", "spr-student-3", "grades", "07,enriched"),
    without_rows("users", "spr-student-5"),
    without_rows("demographics", "spr-student-5"),
    without_rows("enrollments", "spr-enr-13"),
)
STUDENTS = """
    SELECT {what} FROM users u JOIN user_roles r ON r.user_id = u.sourced_id JOIN orgs o ON o.sourced_id = r.org_id
    WHERE u.status = 'active' AND r.role = 'student' AND o.district_id = :district
        AND (:whole OR o.sourced_id = ANY(:at))
"""


@pytest.fixture
def changed(engine: sa.Engine, tmp_path: Path) -> sa.Engine:
    """Both districts, one of them after a second export."""
    load_districts(engine)
    folder = Path(shutil.copytree(EXPORTS / "springfield-1.1", tmp_path / "export"))
    CHANGE(folder)
    load(engine, "springfield", folder, options=Options(Settings(home=tmp_path / "home", hold_least_records=10**6)))
    return engine


def test_students_and_grades_are_what_plain_sql_counts(changed: sa.Engine) -> None:
    with changed.connect() as connection:

        def ask(what: str, at: tuple[str, ...] | None) -> list[str | int]:
            values = {"district": district, "whole": at is None, "at": list(at or ())}
            return list(connection.scalars(sa.text(STUDENTS.format(what=what)), values))

        for district in ("spr-district", "shv-district"):
            students = read_students(connection, district)
            schools = [school for school, _ in list_school_names(connection, district)]
            assert schools
            assert [[students.count_by_org()[school]] for school in schools] == [
                ask("count(DISTINCT u.sourced_id)", (school,)) for school in schools
            ]
            for size in range(len(schools) + 1):
                for at in combinations(schools, size):
                    assert [students.count_at(at)] == ask("count(DISTINCT u.sourced_id)", at), at
                    assert sorted(students.list_grades(at)) == sorted(map(str, ask("DISTINCT unnest(u.grades)", at))), (
                        at
                    )
            assert [students.count_at(None)] == ask("count(DISTINCT u.sourced_id)", None)
            assert sorted(students.list_grades(None)) == sorted(map(str, ask("DISTINCT unnest(u.grades)", None)))
        assert read_students(connection, "spr-district").list_grades(None)[-1] == "enriched"
        every = sa.text("SELECT DISTINCT unnest(grades) FROM users WHERE status = 'active'")
        assert sorted(list_all_grades(connection)) == sorted(connection.scalars(every))
        left = sa.text("SELECT status FROM users WHERE sourced_id = 'spr-student-5'")
        assert connection.scalar(left) == "tobedeleted"

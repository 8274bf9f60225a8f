"""What the forms of grants count: the students of a district and of its schools, and their grades."""

from __future__ import annotations

import shutil
from itertools import chain, combinations
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts.districts import count_students, list_grades, list_school_names
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
            schools = list_school_names(connection, district)
            names = [school for school, _, _ in schools]
            assert names
            assert [number for _, _, number in schools] == [
                *chain.from_iterable(ask("count(DISTINCT u.sourced_id)", (name,)) for name in names)
            ]
            for size in range(len(names) + 1):
                for at in combinations(names, size):
                    assert [count_students(connection, district, at)] == ask("count(DISTINCT u.sourced_id)", at), at
                    grades = ask("DISTINCT unnest(u.grades)", at or None)
                    assert sorted(list_grades(connection, district, at)) == sorted(map(str, grades)), at
            assert [count_students(connection, district, None)] == ask("count(DISTINCT u.sourced_id)", None)
        assert list_grades(connection, "spr-district", ())[-1] == "enriched"
        left = sa.text("SELECT status FROM users WHERE sourced_id = 'spr-student-5'")
        assert connection.scalar(left) == "tobedeleted"

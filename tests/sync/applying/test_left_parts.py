"""A student whose enrollment ends or goes elsewhere has another record on the vendor interface, though no cell of the
student changed: the run stamps the student."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db.tables import users
from sync_scripts.engine.load import load
from tests.postgres.loaded import load_first
from tests.sync.export_changes import Bend, cell_of, without_rows

# Each is the only change of its export.
LEAVING: dict[str, Bend] = {
    "the enrollment ends": without_rows("enrollments", "spr-enr-10"),
    "the enrollment is of another role": cell_of("enrollments", "spr-enr-10", "role", "aide"),
}


@pytest.mark.parametrize("bend", LEAVING.values(), ids=LEAVING)
def test_a_student_who_loses_a_part_is_stamped(engine: sa.Engine, springfield: Path, bend: Bend) -> None:
    load_first(engine, "springfield", springfield)
    bend(springfield)
    report = load(engine, "springfield", springfield)
    with engine.connect() as connection:
        stamped = connection.scalars(sa.select(users.c.sourced_id).where(users.c.parts_changed == report.stamp)).all()
    assert (report.outcome, stamped) == ("done", ["spr-student-5"])

"""Several rows of one person: which of them counts, whatever their order, and what is said of those that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from roster_service.db.engine import make_engine
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.report import Report
from sync_scripts.formats.tolerated import DIFFERENT_ROWS
from sync_scripts.reading.registry import CLEVER, SDS, Family
from tests.sync.conftest import snapshot
from tests.sync.export_changes import read_csv, shuffled, write_csv

FEED = "feed"
ANYTHING = Options(allow_mass_delete=True)
Cells = Mapping[str, str]


@dataclass(frozen=True)
class Form:
    """A format with several rows of a person: its export, the file of students, its words for their cells, the ids of
    two schools, and whether it names one as the primary school."""

    export: str
    family: Family
    students: str
    words: Mapping[str, str]
    schools: tuple[str, str]
    has_primary: bool

    def write(self, folder: Path, *rows: Cells) -> None:
        """Adds rows of the student 77."""
        path = folder / f"{self.students}.csv"
        header, *others = read_csv(path)
        own = [{self.words[name]: cell for name, cell in {"key": "77", **row}.items()} for row in rows]
        others = [row for row in others if row[header.index(self.words["key"])] != "77"]
        write_csv(path, [header, *others, *([row.get(name, "") for name in header] for row in own)])


FORMS = {
    "clever": Form(
        "shelbyville-clever",
        CLEVER,
        "students",
        {"key": "Student_id", "school": "School_id", "given": "First_name", "family": "Last_name", "born": "DOB"}
        | {"mail": "Student_email", "sex": "Gender", "grade": "Grade"},
        ("10", "20"),
        has_primary=True,
    ),
    "sds v1": Form(
        "northhaven-sds-v1",
        SDS,
        "Student",
        {"key": "SIS ID", "school": "School SIS ID", "given": "First Name", "family": "Last Name", "born": "Birthdate"}
        | {"mail": "Secondary Email", "sex": "Gender", "grade": "Grade"},
        ("1", "2"),
        has_primary=False,
    ),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


@pytest.fixture
def bring(engine: sa.Engine, form: Form, copy_export: Callable[[str], Path]) -> Callable[..., Report]:
    """Loads the export with these rows of a student."""
    folder = copy_export(form.export)

    def bring(*rows: Cells) -> Report:
        form.write(folder, *rows)
        return load(engine, FEED, folder, family=form.family, options=ANYTHING)

    return bring


def row(school: int, given: str, born: str = "2012-05-01", mail: str = "", *, form: Form) -> Cells:
    """A row of the student. `school`: the first or second of the form."""
    return {"school": form.schools[school], "given": given, "family": "Diallo", "born": born, "mail": mail}


def read_person(engine: sa.Engine) -> tuple[Any, ...]:
    """The given name and the birth date of the student, and the primary school, where there is one."""
    key = f"{FEED}:student:77"
    user, born = snapshot(engine, tables.users)[key], snapshot(engine, tables.demographics)[key]
    return user["given_name"], str(born["birth_date"]), (user["primary_org_id"] or "").rpartition(":")[2]


def test_one_row_counts_whole_and_stays_while_it_says_what_is_stored(
    engine: sa.Engine, form: Form, bring: Callable[..., Report]
) -> None:
    first, second = form.schools if form.has_primary else ("", "")
    zed, amy = row(1, "Zed", "2012-05-01", form=form), row(0, "Amy", "2012-06-01", form=form)
    bring(zed)
    stored = ("Zed", "2012-05-01", second)
    assert read_person(engine) == stored
    # Another school does not take over, nor does a lesser row at the same school.
    bring(amy, zed)
    assert read_person(engine) == stored
    bring(row(1, "Abe", "2012-07-01", form=form), zed)
    assert read_person(engine) == stored
    bring(amy)
    assert read_person(engine) == ("Amy", "2012-06-01", first)


# What a lesser row of a student says otherwise, in one cell.
OTHERWISE = {"born": "2011-01-01", "mail": "a@example.org", "sex": "F", "grade": "01"}


@pytest.mark.parametrize("word", OTHERWISE)
def test_a_row_with_one_other_cell_changes_nothing(
    engine: sa.Engine, form: Form, bring: Callable[..., Report], word: str
) -> None:
    """At the same school, or, where none is the primary one, at a lesser one."""
    own = {**row(1, "Zed", form=form), "sex": "M", "grade": "09"}
    bring(own)
    key = f"{FEED}:student:77"
    stored = [snapshot(engine, table)[key] for table in (tables.users, tables.demographics)]
    bring({**own, "school": form.schools[form.has_primary], word: OTHERWISE[word]}, own)
    found = [snapshot(engine, table)[key] for table in (tables.users, tables.demographics)]
    # Another school is another role, which has a grade in School Data Sync, and stamps the user.
    apart = {"date_last_modified": None, **({} if form.has_primary else {"grades": None})}
    assert [{**it, **apart} for it in found] == [{**it, **apart} for it in stored]


def test_what_the_primary_school_says_anew_counts(engine: sa.Engine, form: Form, bring: Callable[..., Report]) -> None:
    """Where none is named, the least row does."""
    bring(row(1, "Zed", form=form))
    bring(row(0, "Amy", form=form), row(1, "Zoe", form=form))
    assert read_person(engine)[0] == ("Zoe" if form.has_primary else "Amy")


def test_what_contradicts_is_counted_by_column(form: Form, bring: Callable[..., Report]) -> None:
    rows = row(0, "Amy", form=form), row(1, "Ann", mail="ann@example.org", form=form)
    said = [notice for notice in bring(*rows).notices if DIFFERENT_ROWS.taken in notice]
    assert [notice.partition(":")[0] for notice in said] == [
        f"{form.students}.csv, column {form.words[word]}" for word in ("given", "mail")
    ]
    assert all(": in 2 rows (first: line " in notice for notice in said)
    assert not [notice for notice in bring(*rows[:1]).notices if DIFFERENT_ROWS.taken in notice]


def test_two_people_with_one_id_are_rejected_and_the_stored_one_stays(
    engine: sa.Engine, form: Form, bring: Callable[..., Report]
) -> None:
    amy = row(0, "Amy", form=form)
    other = {**row(1, "Ben", "2011-01-01", form=form), "family": "Okafor"}
    assert (bring(amy, other).rejected, f"{FEED}:student:77" in snapshot(engine, tables.users)) == (2, False)
    bring(amy)
    before = read_person(engine)
    for rows in ((amy, other), (other, amy, row(1, "Amy", form=form))):
        report = bring(*rows)
        assert (report.rejected, read_person(engine)) == (len(rows), before)
    assert "is another person than in another row of this id" in str(report.findings)
    # A name and a day that are the same are of one person whom the rows name differently.
    assert bring(amy, {**other, "born": amy["born"]}).rejected == 0


def test_the_order_of_the_rows_says_nothing(
    make_database: Callable[[], str], form: Form, copy_export: Callable[[str], Path]
) -> None:
    """Where all rows of people have another beside them that says something else, and those of sections, too."""
    folder = copy_export(form.export)
    files = [path.stem for path in folder.glob("*.csv")]
    form.write(folder, row(1, "Zed", "2012-05-01", form=form), row(0, "Amy", "2012-06-01", form=form))
    for name in files:
        header, *rows = read_csv(folder / f"{name}.csv")
        for column, word in (("First_name", "Another"), ("First Name", "Another"), ("Course Name", "Algebra II")):
            if column in header and name != "User":
                again = [
                    [word if head == column else cell for head, cell in zip(header, it, strict=True)] for it in rows
                ]
                if "Course" in column:
                    again = [[f"{cell}x" if head == "SIS ID" else cell for head, cell in zip(header, it, strict=True)]
                             for it in again]  # fmt: skip
                write_csv(folder / f"{name}.csv", [header, *rows, *again])
    found = []
    for turned in (False, True):
        for name in files if turned else ():
            shuffled(name)(folder)
        engine = make_engine(make_database())
        load(engine, FEED, folder, family=form.family, options=ANYTHING)
        apart = ("date_last_modified", "fingerprint")
        found.append(
            {
                table.name: {
                    key: {name: cell for name, cell in record.items() if name not in apart}
                    for key, record in snapshot(engine, table).items()
                }
                for table in (*tables.ROSTER_TABLES, tables.user_roles, tables.user_agents)
            }
        )
    assert found[0] == found[1]

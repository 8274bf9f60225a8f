"""The mapping of the words of a feed: what it changes, and rows of it that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.db import tables
from sync_scripts.engine.load import Options, load
from sync_scripts.formats.tolerated import MAPPED_WORD
from sync_scripts.reading.registry import CLEVER
from sync_scripts.reading.rejections import RefusedExportError
from tests.sync.conftest import describe, snapshot, state
from tests.sync.export_changes import both, cell, cell_of, column

FEED = "springfield"
WORDS = """file,column,word,means
users,role,Pupil,student
users,role,Élève,student
users,grades,reception,KG
users,grades,Year 3,03
users,grades,Été,12
orgs,type,Secondary School,school
"""


def set_words(engine: sa.Engine, text: str | None) -> None:
    """Gives the feed a mapping, as `roster feed set` does."""
    with engine.begin() as connection:
        values = {"words": text, "last_digest": None, "fingerprinted": False}
        connection.execute(sa.update(tables.feeds).values(values))


@pytest.fixture
def feed(engine: sa.Engine) -> sa.Engine:
    """The engine of a service that has the feed with the mapping."""
    with engine.begin() as connection:
        connection.execute(sa.insert(tables.feeds).values(name=FEED, format="oneroster", words=WORDS))
    return engine


def test_mapped_words_are_read_as_their_meanings_and_reported(feed: sa.Engine, springfield: Path) -> None:
    load(feed, FEED, springfield)
    before = state(feed)
    both(
        cell_of("users", "spr-student-1", "role", " pupil "),
        cell_of("users", "spr-student-1", "grades", "YEAR 3"),
        cell_of("orgs", "spr-high", "type", "secondary school"),
    )(springfield)
    report = load(feed, FEED, springfield)
    assert (report.outcome, report.rejected, state(feed)) == ("unchanged", 0, before)
    reported = [it for it in report.notices if MAPPED_WORD.taken in it]
    places = ["orgs.csv, column type", "users.csv, column role", "users.csv, column grades"]
    assert [it.partition(":")[0] for it in reported] == places


def test_each_item_of_a_list_is_mapped(feed: sa.Engine, springfield: Path) -> None:
    cell_of("users", "spr-student-1", "grades", "Reception, 2,Year 3,12")(springfield)
    load(feed, FEED, springfield)
    assert snapshot(feed, tables.users)["spr-student-1"]["grades"] == ["KG", "02", "03", "12"]


@pytest.mark.parametrize(("role", "grade"), [("Élève", "Été"), ("ÉLÈVE", "ÉTÉ"), ("élève", "été")])
def test_the_case_of_a_letter_with_an_accent_makes_no_difference(
    feed: sa.Engine, springfield: Path, role: str, grade: str
) -> None:
    both(
        cell_of("users", "spr-student-1", "role", role),
        cell_of("users", "spr-student-1", "grades", grade),
        cell_of("users", "spr-student-2", "grades", f"02, {grade}"),
    )(springfield)
    report = load(feed, FEED, springfield)
    stored = snapshot(feed, tables.users)
    grades = [stored[f"spr-student-{number}"]["grades"] for number in (1, 2)]
    assert (report.rejected, grades) == (0, [["12"], ["02", "12"]])


def test_other_columns_and_feeds_keep_their_words(feed: sa.Engine, springfield: Path) -> None:
    column("enrollments", "role", "pupil")(springfield)
    report = load(feed, FEED, springfield, options=Options(allow_mass_delete=True))
    assert {(it.file, it.column) for it in report.findings.causes} == {("enrollments.csv", "role")}


def test_a_changed_mapping_is_applied_to_the_same_export(feed: sa.Engine, springfield: Path) -> None:
    cell_of("users", "spr-student-1", "grades", "Year 3")(springfield)
    set_words(feed, None)
    load(feed, FEED, springfield)
    assert snapshot(feed, tables.users)["spr-student-1"]["grades"] == ["Year 3"]
    set_words(feed, WORDS)
    load(feed, FEED, springfield)
    assert snapshot(feed, tables.users)["spr-student-1"]["grades"] == ["03"]


def test_a_strict_run_refuses_mapped_words(feed: sa.Engine, springfield: Path) -> None:
    cell("users", 2, "role", "pupil")(springfield)
    with pytest.raises(RefusedExportError):
        load(feed, FEED, springfield, options=Options(strict=True))


def test_words_of_other_formats_are_mapped_too(engine: sa.Engine, copy_clever: Path) -> None:
    with engine.begin() as connection:
        words = "file,column,word,means\nstudents,Gender,girl,F\n"
        connection.execute(sa.insert(tables.feeds).values(name=FEED, format="clever", words=words))
    cell("students", 2, "Gender", "Girl")(copy_clever)
    report = load(engine, FEED, copy_clever, family=CLEVER)
    assert (report.outcome, report.rejected) == ("done", 0)


@pytest.fixture
def copy_clever(copy_export: object) -> Path:
    """A copy of the small Clever export."""
    return copy_export("shelbyville-clever")  # type: ignore[operator,no-any-return]


TOP = "file,column,word,means\n"
BAD = {
    "no header": ("users,role,pupil,student\n", "the mapping of words, line 1: the header must be file,column,word"),
    "no CSV": (TOP + 'users,role,"pupil\n', "the mapping of words is no CSV"),
    "an empty cell": (TOP + "users,role,pupil,\n", "line 2: must have 4 filled cells"),
    "no file": (TOP + "pupils,role,a,student\n", "line 2, column file: is no file of oneroster 1.1"),
    "no column": (TOP + "users,rolle,a,student\n", "line 2, column column: is no column of users.csv"),
    "a column of names": (TOP + "users,givenName,a,b\n", "line 2, column column: is no column of words"),
    "a column of ids": (TOP + "users,orgSourcedIds,a,b\n", "column column: is no column of words"),
    "no word": (TOP + "users,role,pupil,pupil\n", "line 2, column means: must be one of"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "reason"), BAD.values(), ids=BAD)
def test_a_mapping_that_cannot_be_used_is_refused(feed: sa.Engine, springfield: Path, words: str, reason: str) -> None:
    set_words(feed, words)
    with pytest.raises(RefusedExportError) as caught:
        load(feed, FEED, springfield)
    assert reason in describe(caught.value.findings)

"""Each tolerated deviation is reported of each format whose exports can have it, as its declaration says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from sync_scripts.engine.load import Options, load
from sync_scripts.formats import tolerated
from sync_scripts.formats.clever import CLEVER as CLEVER_CSV
from sync_scripts.formats.model import CsvFile, Format
from sync_scripts.formats.oneroster import ONEROSTER_1_1
from sync_scripts.formats.sds import SDS as SDS_CSV
from sync_scripts.formats.sds import SDS_V2
from sync_scripts.formats.sds_v1 import SDS_V1
from sync_scripts.formats.tolerated import DEVIATIONS, Deviation
from sync_scripts.reading.registry import CLEVER, FAMILIES, ONEROSTER, SDS, Family
from tests.sync.conftest import EXPORTS, SPRINGFIELD
from tests.sync.export_changes import (
    Bend,
    both,
    cell,
    column,
    header,
    quoted,
    raw,
    read_csv,
    renamed,
    rows_of,
    with_file,
    without_file,
)

from .shown_deviations import OF_ONEROSTER, Place, list_places


@dataclass(frozen=True)
class Source:
    """A format with its family and its small export."""

    family: Family
    form: Format
    export: str


SOURCES = {
    "oneroster": Source(ONEROSTER, ONEROSTER_1_1, SPRINGFIELD),
    "clever": Source(CLEVER, CLEVER_CSV, "shelbyville-clever"),
    "sds v1": Source(SDS, SDS_V1, "northhaven-sds-v1"),
    "sds v2": Source(SDS, SDS_V2, "northhaven-sds-v2"),
    "sds v2.1": Source(SDS, SDS_CSV, "northhaven-sds"),
}
# Of one format alone, of a stored roster, of a zip, of a feed with words, and of ids in two files: others ask these.
ASKED_ELSEWHERE = {
    *OF_ONEROSTER,
    *(tolerated.BACKSLASHES, tolerated.KEPT_COURSE, tolerated.MAPPED_WORD, tolerated.COMMA_ID),
}
# In a place of an export, how it gets the deviation; None where it cannot there.
MakeBend = Callable[[Path, CsvFile, str], Bend | None]


def change_value(change: Callable[[str], str]) -> MakeBend:
    """Changes the first filled cell of a column, if that makes a difference."""

    def make(folder: Path, file: CsvFile, name: str) -> Bend | None:
        first, *rows = read_csv(folder / file.file_name)
        place = first.index(name) if name in first else None
        filled = (line for line, row in enumerate(rows, 2) if place is not None and row[place])
        for line in filled:
            value = rows[line - 2][first.index(name)]
            return None if change(value) == value else cell(file.name, line, name, change(value))
        return None

    return make


def write_value(value: str) -> MakeBend:
    """Writes a cell, or all cells of a column."""
    return lambda _folder, file, name: column(file.name, name, value)


def write_another_value(folder: Path, file: CsvFile, name: str) -> Bend | None:
    """Writes the value of another row into the first row of a column."""
    first, *rows = read_csv(folder / file.file_name)
    values = [row[first.index(name)] for row in rows]
    return next((cell(file.name, 2, name, value) for value in values if value != values[0]), None)


def contradict(folder: Path, file: CsvFile, name: str) -> Bend | None:
    """Changes a cell of the first of several rows of a person."""
    first, *rows = read_csv(folder / file.file_name)
    keys = [row[first.index(file.key)] for row in rows]
    several = [line for line, key in enumerate(keys, 2) if keys.count(key) > 1]
    return cell(file.name, several[0], name, "Other") if several and name in first else None


def without_teachers(folder: Path, file: CsvFile, _name: str) -> Bend | None:
    headers = read_csv(folder / file.file_name)[0]
    return both(*(column(file.name, it, "") for it in headers if it.startswith("Teacher_")))


def name_course(folder: Path, file: CsvFile, number: str) -> Bend | None:
    """Gives all courses one number, and one of them another name."""
    name = next(it for it in read_csv(folder / file.file_name)[0] if it.lower() in ("course name", "course_name"))
    return both(column(file.name, number, "1"), cell(file.name, 2, name, "Other"))


def encode(folder: Path, file: CsvFile, _name: str) -> Bend | None:
    """Writes a file, if it can be, and a letter that is none of ASCII, in Windows-1252."""
    text = (folder / file.file_name).read_text()
    if text.encode("cp1252", "replace").decode("cp1252") != text:
        return None
    write = raw(file.file_name, lambda data: data.decode().encode("cp1252"))
    return both(column(file.name, "colour", "grün"), write)


def change_header(change: Callable[[str], str]) -> MakeBend:
    def make(folder: Path, file: CsvFile, name: str) -> Bend | None:
        headers = read_csv(folder / file.file_name)[0]
        found = [it for it in headers if it in (name or headers) and change(it) not in headers]
        return header(file.name, found[0], change(found[0])) if found else None

    return make


def change_bytes(change: Callable[[bytes], bytes]) -> MakeBend:
    return lambda _folder, file, _name: raw(file.file_name, change)


def in_file(make: Callable[[str], Bend]) -> MakeBend:
    return lambda _folder, file, _name: make(file.name)


def put_text(text: str) -> MakeBend:
    """Writes a text of several kinds of characters behind the last cell of a row, in a column of its own."""
    return in_file(lambda name: column(name, "colour", text))


def move_into_folder(folder: Path) -> None:
    files = list(folder.iterdir())
    (folder / "export").mkdir()
    for file in files:
        file.rename(folder / "export" / file.name)


def without_districts(folder: Path) -> None:
    """Makes a district a school, where orgs have types."""
    rows_of("orgs", lambda rows: [row.__setitem__(slice(None), ["local" if it == "district" else it for it in row])
                                  for row in rows])(folder)  # fmt: skip


def add_empty_cells(folder: Path, file: CsvFile, _name: str) -> Bend | None:
    """One beyond the last cell of each row, of rows enough to speak for each other."""
    if len(read_csv(folder / file.file_name)) <= 3:
        return None
    return rows_of(file.name, lambda rows: [row.append("") for row in rows[1:]])


SPELLINGS = {meant: spelt for spelt, meant in tolerated.HEADER_SPELLINGS.items()}
BENDS: Mapping[Deviation, MakeBend] = {
    tolerated.FLAG_SPELLING: change_value({"true": "Y", "false": "N"}.get),  # type: ignore[arg-type]
    tolerated.WORD_CASE: change_value(str.swapcase),
    tolerated.WORD_SPELLING: change_value(lambda it: it[0].upper()),
    tolerated.GRADE_SPELLING: write_value("9"),
    tolerated.UNKNOWN_GRADE: write_value("9th"),
    tolerated.US_DAY: write_value("1/15/2027"),
    tolerated.DAY_FIRST: write_value("15/1/2027"),
    tolerated.PLAIN_DAY: write_value("20270115"),
    tolerated.MIDNIGHT: write_value("2027-01-15T00:00:00"),
    tolerated.SCHOOL_YEAR: write_value("2026-2027"),
    tolerated.LIST_SPACES: change_value(lambda it: f"{it} , {it}"),
    tolerated.EMPTY_ITEM: change_value(lambda it: f"{it},"),
    tolerated.CELL_SPACES: change_value(lambda it: f" {it}"),
    tolerated.STATUS_IN_BULK: write_value("active"),
    tolerated.GONE_STATUS: write_value("inactive"),
    tolerated.NO_TARGET: write_value("nobody"),
    tolerated.HEADER_CASE: change_header(str.swapcase),
    tolerated.HEADER_SPACES: change_header(lambda it: f" {it}"),
    tolerated.HEADER_SPELLING: change_header(lambda it: SPELLINGS.get(it, it)),
    tolerated.EXTRA_COLUMN: in_file(lambda name: column(name, "colour", "red")),
    tolerated.BYTE_ORDER_MARK: change_bytes(lambda data: b"\xef\xbb\xbf" + data),
    tolerated.UTF_16: change_bytes(lambda data: data.decode().encode("utf-16")),
    tolerated.WINDOWS_1252: encode,
    tolerated.MAC_LINES: lambda _folder, file, _name: both(
        quoted(file.name), raw(file.file_name, lambda data: data.replace(b"\n", b"\r"))
    ),
    tolerated.BLANK_LINE: change_bytes(lambda data: data.replace(b"\n", b"\n\n", 1)),
    tolerated.QUOTED_NEWLINE: put_text("red\nand blue"),
    tolerated.EXTRA_CELLS: add_empty_cells,
    tolerated.DUPLICATE_ROW: in_file(lambda name: rows_of(name, lambda rows: rows.append(rows[1]))),
    tolerated.FILE_NAME_CASE: in_file(lambda name: renamed(f"{name}.csv", f"{name}.CSV")),
    tolerated.LIKE_FILE: in_file(lambda name: with_file(f"{name} (1).csv", b"x")),
    tolerated.OTHER_FILE: in_file(lambda _: with_file("README.txt", b"x")),
    tolerated.FOLDER: in_file(lambda _: move_into_folder),
    tolerated.NO_COURSES: in_file(lambda name: without_file(f"{name}.csv")),
    tolerated.NO_DISTRICT: in_file(lambda _: without_districts),
    tolerated.UNREAD_FILE: in_file(lambda _: without_file("classes.csv")),
    tolerated.COURSE_NAMES: name_course,
    tolerated.DIFFERENT_ROWS: contradict,
    tolerated.NO_TEACHER: without_teachers,
    tolerated.NO_TERM: write_value(""),
    tolerated.NO_PARENT: write_value(""),
    tolerated.OTHER_SCHOOL: write_another_value,
    tolerated.UNKNOWN_RACE: write_value("Martian"),
    tolerated.NO_PLACE: write_value("x"),
}
# Each of these leaves no other file, or no other record, as it was.
ALONE = {tolerated.FOLDER, tolerated.NO_COURSES, tolerated.NO_DISTRICT, tolerated.UNREAD_FILE}


def copy_source(source: Source, folder: Path) -> Path:
    """The small export of a format; that of SDS v2 with the optional files of v2.1."""
    shutil.copytree(EXPORTS / source.export, folder)
    if source.form is SDS_V2:
        for file in SDS_V2.files:
            if not (folder / file.file_name).exists():
                shutil.copy(EXPORTS / SOURCES["sds v2.1"].export / file.file_name, folder)
    return folder


def list_bends(deviation: Deviation, places: list[Place], folder: Path) -> Iterator[tuple[CsvFile, Bend]]:
    """How the files of an export get a deviation."""
    for file, cell_ in places:
        if (folder / file.file_name).exists():
            bend = BENDS[deviation](folder, file, "" if cell_ is None else cell_.header)
            if bend is not None:
                yield file, bend


def list_exports(
    places: Mapping[Deviation, list[Place]], waiting: list[Deviation], plain: Path
) -> Iterator[dict[Deviation, Bend]]:
    """The bends of one export after another, each of a file of its own. Takes their deviations from `waiting`."""
    while waiting:
        bends, bent = dict[Deviation, Bend](), set[str]()
        for deviation in tuple(waiting):
            free = (
                (file, bend) for file, bend in list_bends(deviation, places[deviation], plain) if file.name not in bent
            )
            if (deviation in ALONE and bends) or (found := next(free, None)) is None:
                continue
            bends[deviation] = found[1]
            bent.add(found[0].name)
            waiting.remove(deviation)
            if deviation in ALONE:
                break
        if not bends:
            return
        yield bends


def test_each_deviation_is_one_of_a_format() -> None:
    forms = [form for family in FAMILIES.values() for form in family.forms]
    assert {it for form in forms for it in list_places(form)} == set(DEVIATIONS)


@pytest.mark.parametrize("name", SOURCES)
def test_each_deviation_that_exports_of_a_format_can_have_is_reported(
    engine: sa.Engine, tmp_path: Path, name: str
) -> None:
    """And none that they cannot have: `docs/reference.md` says which those are."""
    source = SOURCES[name]
    shown = list_places(source.form)
    places = {it: found for it, found in shown.items() if it not in ASKED_ELSEWHERE}

    def find_reported(folder: Path) -> set[Deviation]:
        options = Options(dry_run=True, allow_mass_delete=True)
        notices = load(engine, "feed", folder, family=source.family, options=options).notices
        return {deviation for deviation in DEVIATIONS if any(deviation.taken in it for it in notices)}

    plain = copy_source(source, tmp_path / "plain")
    reported = find_reported(plain)
    waiting = [it for it in DEVIATIONS if it in places and it in BENDS and it not in reported]
    for number, bends in enumerate(list_exports(places, waiting, plain)):
        folder = copy_source(source, tmp_path / f"bent {number}")
        both(*bends.values())(folder)
        found = find_reported(folder)
        assert not bends.keys() - found, (number, [it.taken for it in bends if it not in found])
        reported |= found
    assert {it.taken for it in waiting} == set()
    assert places.keys() <= reported <= shown.keys()

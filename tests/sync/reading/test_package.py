"""Folders and zips: what is no export at all."""

from __future__ import annotations

import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from sync_scripts.engine.load import Options, load
from sync_scripts.reading.completeness import MissingExportError
from sync_scripts.reading.lookalikes import find_lookalike
from sync_scripts.reading.package import open_package
from sync_scripts.reading.registry import CLEVER, ONEROSTER, SDS, Family, OtherFormatError
from sync_scripts.reading.rejections import RefusedExportError
from tests.postgres.loaded import load_first
from tests.sync.conftest import read_refusal
from tests.sync.export_changes import zipped


def test_a_zip_is_as_good_as_a_folder(engine: sa.Engine, each_export: Path, tmp_path: Path) -> None:
    load_first(engine, "feed", each_export)
    path = zipped(each_export, tmp_path / "export.zip")
    assert load(engine, "feed", path).outcome == "unchanged"


def test_a_zip_of_a_folder(engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    load_first(engine, "feed", springfield)
    path = zipped(springfield, tmp_path / "export.zip", prefix="export/")
    report = load(engine, "feed", path)
    assert report.outcome == "unchanged"
    assert any(it.startswith("export/: the files in a folder") for it in report.notices)


@pytest.mark.parametrize("name", ["__MACOSX/export/._users.csv", "export/._users.csv", "export/.DS_Store"])
def test_litter_is_not_reported_wherever_it_lies(
    shared_engine: sa.Engine, springfield: Path, tmp_path: Path, name: str
) -> None:
    path = zipped(springfield, tmp_path / "export.zip", prefix="export/")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "x")
    report = load(shared_engine, "feed", path, options=Options(dry_run=True))
    assert [it.partition(":")[0] for it in report.notices] == ["the feed feed is new", "export/"]


def test_a_zip_with_backslashes(engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    """As Compress-Archive of Windows PowerShell 5.1 writes them."""
    load_first(engine, "feed", springfield)
    path = zipped(springfield, tmp_path / "export.zip", prefix="export\\")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("export\\", "")
    report = load(engine, "feed", path)
    assert report.outcome == "unchanged"
    assert any(it.startswith("export.zip: paths with backslashes") for it in report.notices)
    with pytest.raises(RefusedExportError, match="paths with backslashes"):
        load(engine, "feed", path, options=Options(strict=True))


LEADS_OUT = "has a path that leads out of the zip"
DEVICE = "has the name of a device"
COLON = "has a path with a colon, which names a drive or a stream"
# What stands in front of the name of each file -> the words.
HARMFUL = {
    "above": ("../", LEADS_OUT),
    "above, with backslashes": ("export\\..\\..\\", LEADS_OUT),
    "root": ("/etc/", LEADS_OUT),
    "share": ("\\\\server\\share\\", LEADS_OUT),
    "drive": ("C:\\export\\", COLON),
    "stream": ("export/other.csv:", COLON),
    "device": ("nul.x/", DEVICE),
    "console": ("CONIN$/", DEVICE),
    "device with a raised digit": ("COM¹.txt/", DEVICE),
}


@pytest.mark.parametrize(("prefix", "words"), HARMFUL.values(), ids=HARMFUL)
def test_a_zip_with_a_harmful_path(
    shared_engine: sa.Engine, springfield: Path, tmp_path: Path, prefix: str, words: str
) -> None:
    path = zipped(springfield, tmp_path / "export.zip", prefix=prefix)
    assert f"{prefix}users.csv: {words}" in read_refusal(shared_engine, path)


@pytest.mark.parametrize("litter", ["__MACOSX/../../x", "..\\._users.csv", "../"])
def test_a_harmful_path_of_what_is_left_out(
    shared_engine: sa.Engine, springfield: Path, tmp_path: Path, litter: str
) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(litter, "")
    assert f"{litter}: {LEADS_OUT}" in read_refusal(shared_engine, path)


@pytest.mark.parametrize("other", ["./users.csv", ".\\users.csv", "Users.csv"])
def test_two_paths_of_one_file(shared_engine: sa.Engine, springfield: Path, tmp_path: Path, other: str) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(other, "x")
    assert "sers.csv is in the zip twice" in read_refusal(shared_engine, path)


def test_no_zip(shared_engine: sa.Engine, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with pytest.raises(MissingExportError, match=f"there is no export at {path}"):
        load(shared_engine, "missing", path)
    path.write_bytes(b"PK\x03\x04 and then nothing")
    assert "export.zip: neither a folder nor a zip, or a damaged one" in read_refusal(shared_engine, path)


# The folder of an export below the one that is given, and as what it is packed -> the words.
MISPLACED = {
    "a zip in a folder": ("", True, "given: has no CSV file, but the zip export.zip; give that zip itself"),
    "deep folders": ("a/b/c", False, "given: has its CSV files in a/b/c/; put them at the root, or give that folder"),
}


@pytest.mark.parametrize(("below", "is_packed", "words"), MISPLACED.values(), ids=MISPLACED)
@pytest.mark.parametrize("in_zip", [False, True], ids=["folder", "zip"])
def test_what_is_there_in_place_of_the_files_is_named(
    shared_engine: sa.Engine, springfield: Path, tmp_path: Path, below: str, is_packed: bool, words: str, in_zip: bool
) -> None:
    given = tmp_path / "given"
    if is_packed:
        given.mkdir()
        zipped(springfield, given / "export.zip")
    else:
        shutil.copytree(springfield, given / below)
    if in_zip:
        with zipfile.ZipFile(tmp_path / "given.zip", "w") as archive:
            for path in given.rglob("*.*"):
                archive.write(path, path.relative_to(given))
        given, words = tmp_path / "given.zip", words.replace("given:", "given.zip:")
    assert words in read_refusal(shared_engine, given)


# The files of an export without any CSV file, or that is none -> the words.
NO_CSV = {
    "nothing": ((), "given: has no file; give the folder or zip with the CSV files"),
    "workbooks": (
        ("orgs.xlsx", "users.XLSX"),
        "given: has no CSV file, but the Excel workbook orgs.xlsx and 1 more; save each of its sheets as a CSV file",
    ),
    "packed files": (
        ("orgs.csv.zip", "users.csv.gz"),
        "given: has no CSV file, but the packed file orgs.csv.zip and 1 more; unpack it",
    ),
    "a text": (("README.txt",), "given: has no CSV file, but README.txt; give the folder or zip with the CSV files"),
    "the parts of a workbook": (("xl/workbook.xml",), "given: is an Excel workbook; save each of its sheets as a CSV"),
}
NO_ZIP = {
    "users.csv": "users.csv is a single CSV file; give the folder or zip with all of them",
    "roster.xls": "roster.xls is an Excel workbook; save each of its sheets as a CSV file",
    "export.csv.gz": "export.csv.gz is packed in another way than as a zip; give a zip, or the folder",
}


@pytest.mark.parametrize(("names", "words"), NO_CSV.values(), ids=NO_CSV)
def test_an_export_without_a_csv_file_names_what_it_has(
    shared_engine: sa.Engine, tmp_path: Path, names: tuple[str, ...], words: str
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for name in names:
        (given / name).parent.mkdir(exist_ok=True)
        (given / name).write_text("x")
    assert words in read_refusal(shared_engine, given).replace("given is", "given: is")


@pytest.mark.parametrize("name", NO_ZIP)
def test_a_file_that_is_no_zip_is_named(shared_engine: sa.Engine, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    assert NO_ZIP[name] in read_refusal(shared_engine, tmp_path / name)


# In the directory of a zip, behind its signature: where a field begins, and what it says.
OTHER_ZIPS = {"of a later version": (6, b"\xff\x00"), "a name in another encoding": (46, b"\xe9")}


@pytest.mark.parametrize(("place", "value"), OTHER_ZIPS.values(), ids=OTHER_ZIPS)
def test_a_zip_of_another_kind_is_refused(shared_engine: sa.Engine, tmp_path: Path, place: int, value: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "night.zip", "w") as packed:
        packed.writestr("\xe9.csv", "x")
    content = bytearray((tmp_path / "night.zip").read_bytes())
    start = content.index(b"PK\x01\x02") + place
    content[start : start + len(value)] = value
    (tmp_path / "night.zip").write_bytes(content)
    assert "night.zip is a zip of another kind" in read_refusal(shared_engine, tmp_path / "night.zip")


# A name beside the files `users.csv`, `Teacher.csv` and `TeacherRoster.csv` -> what it is like.
LIKE = {
    "users 2026-11-28.csv": "users.csv with a date in its name",
    "28.11.2026_users.csv": "users.csv with a date in its name",
    "users20261128_0200.csv": "users.csv with a date in its name",
    "users (1).csv": "users.csv with the mark of a copy",
    "Copy of users.csv": "users.csv with the mark of a copy",
    "users - Copy (2).csv": "users.csv with the mark of a copy",
    "users.csv (1)": "users.csv with the mark of a copy",
    "USERS.csv": "users.csv in another letter case",
    "user.csv": "users.csv in another spelling",
    "teacher_rosters.csv": "TeacherRoster.csv in another spelling",
    "Springfield-teacherroster.csv": "TeacherRoster.csv with more in its name",
    "users": "users.csv with another ending",
    "users.csv.txt": "users.csv with another ending",
    "users.xls": "users.csv as an Excel workbook",
    "users.csv.gz": "users.csv in a packed file",
    "users.csv.filepart": "users.csv not copied to its end",
    "Springfield users.csv": "users.csv with more in its name",
    f"{'users-' * 41}.csv": "users.csv with more in its name",
    f"{'users-' * 42}.csv": None,
    "superusers.csv": None,
    "orgs.csv": None,
    "user.pdf": None,
    "README.txt": None,
}


def test_a_name_is_like_that_of_a_file() -> None:
    found = {name: find_lookalike(name, ("users.csv", "Teacher.csv", "TeacherRoster.csv")) for name in LIKE}
    assert {name: None if it is None else str(it) for name, it in found.items()} == LIKE


FAMILY_EXPORTS = {
    "clever": ("shelbyville-clever", "has the files of a Clever CSV export", "sync_scripts.load_clever`"),
    "sds v1": (
        "northhaven-sds-v1",
        "has the files of a Microsoft School Data Sync CSV export, v1, v2 or v2.1",
        "--format sds`",
    ),
    "sds v2.1": (
        "northhaven-sds",
        "has the files of a Microsoft School Data Sync CSV export, v1, v2 or v2.1",
        "--format sds`",
    ),
}


@pytest.mark.parametrize(("name", "words", "remedy"), FAMILY_EXPORTS.values(), ids=FAMILY_EXPORTS)
def test_an_export_of_another_format_names_its_loader(
    shared_engine: sa.Engine, copy_export: Callable[[str], Path], name: str, words: str, remedy: str
) -> None:
    """The reason names no command, because a page shows it, too."""
    path = copy_export(name)
    first = read_refusal(shared_engine, path).splitlines()[0]
    assert first.endswith(words)
    with pytest.raises(OtherFormatError) as caught:
        load(shared_engine, "springfield", path)
    assert remedy in caught.value.hint


# The family that an export is tried as, and the word of the one that it is named as.
RECOGNIZED = {
    **{f"{name} as Clever": (name, CLEVER, "oneroster") for name in ("springfield-1.1", "shelbyville-1.2")},
    **{f"{name} as SDS": (name, SDS, "oneroster") for name in ("springfield-1.1", "shelbyville-1.2")},
    "shelbyville-clever as SDS": ("shelbyville-clever", SDS, "clever"),
    **{
        f"{name} as Clever": (name, CLEVER, "sds")
        for name in ("northhaven-sds", "northhaven-sds-v1", "northhaven-sds-v2")
    },
}


@pytest.mark.parametrize(("name", "family", "word"), RECOGNIZED.values(), ids=RECOGNIZED)
def test_an_export_is_named_as_what_its_files_are(
    copy_export: Callable[[str], Path], name: str, family: Family, word: str
) -> None:
    with open_package(copy_export(name)) as package, pytest.raises(OtherFormatError) as caught:
        family.read(package)
    assert caught.value.format == word


# The family that an incomplete export is tried as, and a file that it lacks -> the first reason.
INCOMPLETE = {
    "Clever as OneRoster": (
        *("shelbyville-clever", ONEROSTER, "teachers.csv"),
        "shelbyville-clever: has files of a Clever CSV export (schools.csv, sections.csv, students.csv), but lacks "
        "others (teachers.csv)",
    ),
    "SDS v1 as Clever": (
        *("northhaven-sds-v1", CLEVER, "Teacher.csv"),
        "northhaven-sds-v1: has files of a Microsoft School Data Sync CSV export, v1, v2 or v2.1 (School.csv, "
        "Section.csv, Student.csv, StudentEnrollment.csv, TeacherRoster.csv), but lacks others (Teacher.csv)",
    ),
    "SDS v1 as itself": (
        *("northhaven-sds-v1", SDS, "School.csv"),
        "School.csv is missing; every export of sds v1 has it",
    ),
    "OneRoster as itself": (
        *("springfield-1.1", ONEROSTER, "users.csv"),
        "users.csv is missing; the manifest declares it bulk",
    ),
}


@pytest.mark.parametrize(("name", "family", "missing", "words"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_an_incomplete_export_says_whose_files_it_has(
    copy_export: Callable[[str], Path], name: str, family: Family, missing: str, words: str
) -> None:
    folder = copy_export(name)
    (folder / missing).unlink()
    with open_package(folder) as package, pytest.raises(RefusedExportError) as caught:
        family.read(package)
    assert str(caught.value.findings.first[0]) == words


@pytest.mark.shows(
    "Console",
    "A dry run reads only files and folders, and has a bound of time, memory, number and kept previews.",
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_has_no_end_is_not_read(shared_engine: sa.Engine, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pipe" if kind == "pipe" else Path("/dev/null")
    if kind == "pipe":
        os.mkfifo(path)
    assert f"{path.name}: neither a folder nor a file" in read_refusal(shared_engine, path)


def test_a_truncated_zip(shared_engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    path.write_bytes(path.read_bytes()[:-200])
    assert "neither a folder nor a zip, or a damaged one" in read_refusal(shared_engine, path)


# A day, and a time, of an entry that are none: the zip has each as 16 bits.
TIMES = {
    "60 seconds": (2026 - 1980 << 9 | 11 << 5 | 28, 30),
    "the month 0": (2026 - 1980 << 9 | 28, 0),
    "the day 0": (2026 - 1980 << 9 | 11 << 5, 0),
}


@pytest.mark.parametrize(("day", "time"), TIMES.values(), ids=TIMES)
def test_an_entry_of_a_zip_may_have_a_time_that_is_none(
    shared_engine: sa.Engine, springfield: Path, tmp_path: Path, day: int, time: int
) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    data = bytearray(path.read_bytes())
    # Of the first entry, in the directory.
    struct.pack_into("<HH", data, data.index(b"PK\x01\x02") + 12, time, day)
    path.write_bytes(bytes(data))
    with zipfile.ZipFile(path) as archive:
        others = [datetime(*entry.date_time).astimezone() for entry in archive.infolist()[1:]]
    report = load(shared_engine, "feed", path, options=Options(dry_run=True))
    assert report.written_at == max(others)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip(shared_engine: sa.Engine, springfield: Path, tmp_path: Path, method: int) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in springfield.iterdir():
            archive.write(file, file.name)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("users.csv")
    middle = entry.header_offset + 30 + len("users.csv") + entry.compress_size // 2
    data[middle] ^= 0xFF
    path.write_bytes(bytes(data))
    assert "users.csv is truncated or damaged" in read_refusal(shared_engine, path)


def test_the_reason_of_a_damaged_zip_quotes_no_byte_of_it(
    shared_engine: sa.Engine, springfield: Path, tmp_path: Path
) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    data = path.read_bytes()
    # In front of the file itself, not in the directory.
    path.write_bytes(data.replace(b"users.csv", b"Ms Krabap", 1))
    refusal = read_refusal(shared_engine, path)
    assert ("users.csv is truncated or damaged" in refusal, "Krabap" in refusal) == (True, False)


def test_a_file_that_the_machine_does_not_give(shared_engine: sa.Engine, springfield: Path) -> None:
    (springfield / "users.csv").unlink()
    # It is there, and nobody can read its first byte.
    (springfield / "users.csv").symlink_to("/proc/self/mem")
    assert "users.csv: cannot be read: Input/output error" in read_refusal(shared_engine, springfield)


def test_a_path_that_the_machine_does_not_give(shared_engine: sa.Engine, tmp_path: Path) -> None:
    name = "x" * 300
    assert f"{name}: cannot be read: File name too long" in read_refusal(shared_engine, tmp_path / name)


def test_a_file_twice_in_a_zip(shared_engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("users.csv", "x")
    assert "users.csv is in the zip twice" in read_refusal(shared_engine, path)


def test_a_zip_bomb(shared_engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    (springfield / "users.csv").write_bytes(b"0" * 50_000_000)
    path = zipped(springfield, tmp_path / "export.zip")
    assert "users.csv: would unpack to more than 200 times its size" in read_refusal(shared_engine, path)


def test_two_folders_with_exports(shared_engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    """Nothing tells which of them counts."""
    springfield.rename(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert "is missing" in read_refusal(shared_engine, tmp_path)


def test_an_encrypted_zip(shared_engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    data = bytearray(path.read_bytes())
    # The flag of the first entry in the directory.
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    assert "academicSessions.csv is encrypted" in read_refusal(shared_engine, path)


def test_a_damaged_manifest(shared_engine: sa.Engine, springfield: Path, tmp_path: Path) -> None:
    path = zipped(springfield, tmp_path / "export.zip")
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("manifest.csv")
    data[entry.header_offset + 30 + len("manifest.csv") + entry.compress_size // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    assert "manifest.csv is truncated or damaged" in read_refusal(shared_engine, path)

"""Tiny exports for sequences of syncs: a district of two feeds, what may happen to it over night, and a writer.

Keys are local to a feed: `st1` of the feed `a` has the id `a-st1`. A key that begins with `x` is the same id in both
feeds; one that begins with `!` is a record of the other feed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

from .roster_model import ABSENT, BULK, DELTA, FILES, MADE, OPTIONAL, PARTS, REFERENCES, TYPES, Export, Row

FEEDS = ("a", "b")
MODES = (BULK, DELTA, ABSENT)
OTHER = {"a": "b", "b": "a"}
# A good district: file -> key -> the cells that say something.
BASE: dict[str, dict[str, dict[str, str]]] = {
    "orgs": {
        "d": {"name": "District", "type": "district"},
        "s1": {"name": "One", "type": "school", "parentSourcedId": "d"},
        "s2": {"name": "Two", "type": "school", "parentSourcedId": "s1"},
    },
    "academicSessions": {
        "y": {"title": "Year", "type": "schoolYear"},
        "t1": {"title": "Fall", "type": "semester", "parentSourcedId": "y"},
        "t2": {"title": "Spring", "type": "semester", "parentSourcedId": "y"},
    },
    "courses": {
        "c1": {"title": "Algebra", "orgSourcedId": "d", "schoolYearSourcedId": "y"},
        "c2": {"title": "Art", "orgSourcedId": "s1"},
    },
    "classes": {
        "k1": {
            "title": "A1",
            "courseSourcedId": "c1",
            "schoolSourcedId": "s1",
            "termSourcedIds": "t1,t2",
            "classType": "scheduled",
        },
        "k2": {
            "title": "A2",
            "courseSourcedId": "c2",
            "schoolSourcedId": "s2",
            "termSourcedIds": "t1",
            "classType": "scheduled",
        },
    },
    "users": {
        "st1": {"givenName": "Zoe", "role": "student", "orgSourcedIds": "s1", "agentSourcedIds": "g1"},
        "st2": {"givenName": "Li", "role": "student", "orgSourcedIds": "s1,s2"},
        "te": {"givenName": "Ada", "role": "teacher", "orgSourcedIds": "s1"},
        "ad": {"givenName": "Dee", "role": "administrator", "orgSourcedIds": "d,s1"},
        "g1": {"givenName": "Nora", "role": "guardian", "orgSourcedIds": "s1", "agentSourcedIds": "st1"},
    },
    "roles": {
        "r1": {
            "userSourcedId": "st1",
            "roleType": "primary",
            "role": "student",
            "orgSourcedId": "s1",
            "userProfileSourcedId": "p1",
        },
        "r2": {"userSourcedId": "st2", "roleType": "primary", "role": "student", "orgSourcedId": "s2"},
        "r3": {"userSourcedId": "st2", "roleType": "secondary", "role": "student", "orgSourcedId": "s1"},
        "r4": {"userSourcedId": "te", "roleType": "primary", "role": "teacher", "orgSourcedId": "s1"},
        "r5": {"userSourcedId": "g1", "roleType": "primary", "role": "guardian", "orgSourcedId": "s1"},
    },
    "userProfiles": {
        "p1": {"userSourcedId": "st1", "vendorId": "lms", "username": "zoe"},
        "p2": {"userSourcedId": "st1", "vendorId": "library", "username": "z"},
        "p3": {"userSourcedId": "te", "vendorId": "lms", "username": "ada"},
    },
    "enrollments": {
        "e1": {"classSourcedId": "k1", "schoolSourcedId": "s1", "userSourcedId": "st1", "role": "student"},
        "e2": {"classSourcedId": "k2", "schoolSourcedId": "s2", "userSourcedId": "st2", "role": "student"},
        "e3": {"classSourcedId": "k2", "schoolSourcedId": "s2", "userSourcedId": "te", "role": "teacher"},
        "e4": {"classSourcedId": "k1", "schoolSourcedId": "s1", "userSourcedId": "te", "role": "teacher"},
    },
    "demographics": {"st1": {"sex": "female"}, "st2": {"sex": "male"}, "te": {}},
}
# What a cell may say instead: good words, words that are none, rows that are not there.
CHANGES: dict[str, dict[str, tuple[str, ...]]] = {
    "orgs": {
        "name": ("Uno",), "type": ("district", "school", "x"), "parentSourcedId": ("", "d", "s1", "s2", "none", "!d"),
    },
    "academicSessions": {
        "title": ("Autumn",), "type": ("semester", "x"), "parentSourcedId": ("", "y", "t1", "t2", "none"),
    },
    "courses": {"title": ("Geometry", ""), "orgSourcedId": ("s2", "none"), "schoolYearSourcedId": ("", "t1", "!y")},
    "classes": {
        "title": ("B",), "courseSourcedId": ("c2", "none"), "schoolSourcedId": ("s1", "s2", "d"),
        "termSourcedIds": ("t2", "t2,t1", "t1,none", "t1,t1"), "classType": ("x",),
    },
    "users": {
        "givenName": ("Zoey", ""), "role": ("student", "administrator", "guardian", "pupil"),
        "orgSourcedIds": ("s2", "s2,s1", "d", "s1,none"), "agentSourcedIds": ("", "g1", "te,st2", "none", "x"),
        "primaryOrgSourcedId": ("", "s1", "s2", "none"),
    },
    "roles": {
        "userSourcedId": ("st1", "te", "none"), "roleType": ("primary", "secondary"), "role": ("teacher", "pupil"),
        "orgSourcedId": ("s1", "s2", "d", "none"), "userProfileSourcedId": ("", "p2", "p3", "none"),
    },
    "userProfiles": {"userSourcedId": ("st1", "te", "none"), "vendorId": ("shop", ""), "username": ("y",)},
    "enrollments": {
        "classSourcedId": ("k1", "k2", "none"), "schoolSourcedId": ("s1", "s2", "d"),
        "userSourcedId": ("st1", "ad", "g1", "none", "x"), "role": ("student", "administrator", "pupil"),
    },
    "demographics": {"sex": ("male", "x", "")},
}  # fmt: skip
# Cells that no test looks at, and that must be filled.
FILLING: dict[str, dict[str, str]] = {
    "academicSessions": {"startDate": "2026-08-17", "endDate": "2027-06-12", "schoolYear": "2027"},
    "users": {"enabledUser": "true", "username": "somebody", "familyName": "Somebody"},
    "userProfiles": {"profileType": "learner", "credentialType": "username"},
}
COLUMNS: dict[str, str] = {
    "orgs": "name,type,identifier,parentSourcedId",
    "academicSessions": "title,type,startDate,endDate,parentSourcedId,schoolYear",
    "courses": "schoolYearSourcedId,title,courseCode,grades,orgSourcedId,subjects,subjectCodes",
    "classes": "title,grades,courseSourcedId,classCode,classType,location,schoolSourcedId,termSourcedIds,subjects,"
    "subjectCodes,periods",
    "enrollments": "classSourcedId,schoolSourcedId,userSourcedId,role,primary,beginDate,endDate",
    "demographics": "birthDate,sex,americanIndianOrAlaskaNative,asian,blackOrAfricanAmerican,"
    "nativeHawaiianOrOtherPacificIslander,white,demographicRaceTwoOrMoreRaces,hispanicOrLatinoEthnicity,"
    "countryOfBirthCode,stateOfBirthAbbreviation,cityOfBirth,publicSchoolResidenceStatus",
    "roles": "userSourcedId,roleType,role,beginDate,endDate,orgSourcedId,userProfileSourcedId",
    "userProfiles": "userSourcedId,profileType,vendorId,applicationId,description,credentialType,username,password",
}
NAMES = "username,userIds,givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,password"
USER_COLUMNS = {
    "1.1": f"enabledUser,orgSourcedIds,role,{NAMES}",
    "1.2": f"enabledUser,{NAMES},userMasterIdentifier,preferredGivenName,preferredMiddleName,preferredFamilyName,"
    "primaryOrgSourcedId,pronouns",
}

# What happens to one file over night: (what, key, column, value).
Edit = tuple[str, str, str, str, str]


def _list_edits() -> Iterator[Edit]:
    for name, rows in BASE.items():
        for key in rows:
            yield "drop", name, key, "", ""
            yield "status", name, key, "", "tobedeleted"
            yield "status", name, key, "", "active"
            for column, values in CHANGES[name].items():
                yield from (("cell", name, key, column, value) for value in values)
        yield "copy", name, next(iter(rows)), "", "new"
        yield "twice", name, next(iter(rows)), "", ""
    for name in ("orgs", "users", "classes", "enrollments"):
        yield from (("copy", name, key, "", "x") for key in list(BASE[name])[:2])
    yield "copy", "demographics", "st1", "", "g1"


def _list_ruins() -> Iterator[Edit]:
    """What makes a whole export worthless."""
    for name in BASE:
        yield "empty", name, "", "", ""
        yield "damage", name, "", "", ""


RUINS = list(_list_ruins())
# Each kind of them as likely as the others; a row that goes and comes, and a cell that is good, more likely still.
_BAD = ("none", "x", "pupil", "!d", "!y", "t1,none", "s1,none")
_KINDS = {
    kind: st.sampled_from([edit for edit in _list_edits() if edit[0] == what and (edit[4] in _BAD) == bad])
    for kind, what, bad in (
        ("gone", "drop", False),
        ("status", "status", False),
        ("good", "cell", False),
        ("bad", "cell", True),
        ("new", "copy", False),
        ("contested", "copy", True),
        ("doubled", "twice", False),
    )
}
# A user whose enrollments and parts stay in the export.
_LEAVERS = st.sampled_from([("drop", "users", key, "", "") for key in BASE["users"]])
EDITS = st.one_of(
    *(
        _KINDS[kind]
        for kind in ("gone", "gone", "status", "good", "good", "good", "bad", "new", "contested", "doubled")
    ),
    _LEAVERS,
)


@dataclass
class _Unfinished:
    """An export under way: its rows by key, and what is wrong with it."""

    modes: dict[str, str]
    rows: dict[str, dict[str, dict[str, str]]]
    twice: dict[str, str] = field(default_factory=dict)
    damaged: str | None = None

    def edit(self, edit: Edit) -> None:
        """Does an edit; one of a file that is not there does nothing."""
        what, name, key, column, value = edit
        if self.modes.get(name, ABSENT) == ABSENT:
            return
        rows = self.rows[name]
        if what == "drop":
            rows.pop(key, None)
        elif what == "empty":
            rows.clear()
        elif what == "damage":
            self.damaged = name
        else:
            row = rows.setdefault(key, dict(BASE[name][key]))
            if what == "copy":
                rows[value] = dict(row)
            elif what == "twice":
                self.twice[name] = key
            else:
                row[column or "status"] = value

    def list_rows(self, name: str) -> list[tuple[str, dict[str, str]]]:
        """(key, cells) of the rows of a file, in order; the second row of a key says something else."""
        rows = self.rows[name]
        return [
            *rows.items(),
            *((key, it | {"status": "active"}) for key, it in rows.items() if key == self.twice.get(name)),
        ]


@st.composite
def exports(draw: st.DrawFn, feed: str) -> Export:
    """What a feed brings on some night: its district, with a few things changed."""
    version = draw(st.sampled_from(list(FILES)))
    edits = draw(st.lists(EDITS, max_size=6))
    if draw(st.integers(0, 14)) == 14:
        edits.append(draw(st.sampled_from(RUINS)))
    modes = draw(_modes(FILES[version], {edit[1] for edit in edits}))
    return _make_export(feed, version, modes, edits)


# What is near to roles and profiles, and what may happen there; good more often than not.
NEAR_PARTS = ("users", *PARTS, "enrollments")
_NEAR = [edit for edit in _list_edits() if edit[1] in NEAR_PARTS]
_NEAR_EDITS = st.one_of(
    *(st.sampled_from([it for it in _NEAR if it[1] == name and it[4] not in _BAD]) for name in (*NEAR_PARTS, *PARTS)),
    st.sampled_from(_NEAR),
)


@st.composite
def exports_of_parts(draw: st.DrawFn, feed: str) -> Export:
    """What a feed that speaks 1.2, mostly in deltas, says of its users."""
    edits = draw(st.lists(_NEAR_EDITS, min_size=1, max_size=4))
    touched = {edit[1] for edit in edits}
    modes = dict.fromkeys(FILES["1.2"], ABSENT)
    for name in NEAR_PARTS:
        modes[name] = draw(st.sampled_from((DELTA, DELTA, BULK))) if name in touched else draw(st.sampled_from(MODES))
    return _make_export(feed, "1.2", modes, edits)


def whole_export(feed: str, *edits: Edit) -> Export:
    """The district as it is at first, in 1.2, but for the edits."""
    return _make_export(feed, "1.2", dict.fromkeys(FILES["1.2"], BULK), list(edits))


def empty_delta(feed: str, version: str, name: str) -> Export:
    """A delta of one file without a row."""
    return _make_export(feed, version, {**dict.fromkeys(FILES[version], ABSENT), name: DELTA}, [])


def _make_export(feed: str, version: str, modes: dict[str, str], edits: list[Edit]) -> Export:
    # A delta names what has changed, and nothing else.
    rows = {
        name: {} if mode == DELTA else {key: dict(row) for key, row in BASE[name].items()}
        for name, mode in modes.items()
        if mode != ABSENT
    }
    unfinished = _Unfinished(modes, rows)
    for edit in edits:
        unfinished.edit(edit)
    made = {
        name: tuple(_make_row(feed, name, key, said, version) for key, said in unfinished.list_rows(name))
        for name in rows
    }
    return Export(version, modes, made, unfinished.damaged)


@st.composite
def _modes(draw: st.DrawFn, names: tuple[str, ...], touched: set[str]) -> dict[str, str]:
    """How each file is declared."""
    kind = draw(st.sampled_from((BULK, BULK, DELTA, "mixed")))
    if kind == DELTA:
        return {name: DELTA if name in touched else ABSENT for name in names}
    modes = dict.fromkeys(names, BULK)
    if kind == BULK:
        for name in (*OPTIONAL, MADE):
            if name in modes:
                modes[name] = draw(st.sampled_from((BULK, BULK, BULK, ABSENT)))
        return modes
    return {name: draw(st.sampled_from(MODES)) for name in names}


def list_columns(name: str, version: str) -> list[str]:
    """The header of a file."""
    own = USER_COLUMNS[version] if name == "users" else COLUMNS[name]
    return ["sourcedId", "status", "dateLastModified", *own.split(",")]


def _make_row(feed: str, name: str, key: str, said: Mapping[str, str], version: str) -> Row:
    def name_id(key: str) -> str:
        if key.startswith("x") or not key:
            return key
        return f"{OTHER[feed]}-{key[1:]}" if key.startswith("!") else f"{feed}-{key}"

    cells = dict(said)
    for column in REFERENCES[name]:
        if column in cells:
            cells[column] = ",".join(map(name_id, cells[column].split(",")))
    known = list_columns(name, version)
    return Row(
        {"sourcedId": name_id(key)} | {column: cell for column, cell in cells.items() if cell and column in known}
    )


def write_export(export: Export, folder: Path) -> Path:
    """Writes the files of an export into a new folder."""
    folder.mkdir(parents=True)
    with (folder / "manifest.csv").open("w", newline="") as file:
        said = {"manifest.version": "1.0", "oneroster.version": export.version}
        modes = {f"file.{name}": mode for name, mode in export.modes.items()}
        # OneRoster 1.2 has more files; a 1.1 manifest knows none of them.
        csv.writer(file).writerows([("propertyName", "value"), *said.items(), *modes.items()])
    for name, mode in export.modes.items():
        if mode != ABSENT:
            columns = list_columns(name, export.version)
            with (folder / f"{name}.csv").open("w", newline="") as file:
                header = ["", *columns[1:]] if export.damaged == name else columns
                csv.writer(file).writerow(header)
                filling = FILLING.get(name, {})
                csv.DictWriter(file, columns).writerows({**filling, **row} for row in export.rows[name])
    return folder


# --- files that are written otherwise, and say the same ---


def _recode(change: Callable[[bytes], bytes], *names: str) -> Callable[[Path], None]:
    """Changes the bytes of files that are there; without names, of all files."""

    def bend(folder: Path) -> None:
        for path in [folder / f"{name}.csv" for name in names] or sorted(folder.iterdir()):
            if path.exists():
                path.write_bytes(change(path.read_bytes()))

    return bend


def _repeat_last_row(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return data + (lines[-1] if len(lines) > 1 else b"")


def _add_column(data: bytes) -> bytes:
    return b"".join(line.removesuffix(b"\r\n") + b",extra\r\n" for line in data.splitlines(keepends=True))


def _move_into_folder(folder: Path) -> None:
    files = list(folder.iterdir())
    (folder / "export").mkdir()
    for path in files:
        path.rename(folder / "export" / path.name)


def _leave_out_manifest(folder: Path) -> None:
    """Where the files alone say the same."""
    text = (folder / "manifest.csv").read_text()
    if DELTA not in text and ("1.2" in text) == (folder / "roles.csv").exists():
        (folder / "manifest.csv").unlink()


# Lenient reading makes the same of each of them as of the files as they were.
DEVIATIONS: dict[str, Callable[[Path], None]] = {
    "UTF-16": _recode(lambda data: data.decode().encode("utf-16")),
    "old Macs": _recode(lambda data: data.replace(b"\r\n", b"\r")),
    "empty lines": _recode(lambda data: data.replace(b"\r\n", b"\r\n\r\n")),
    "repeated rows": _recode(_repeat_last_row, *BASE),
    "an extra column": _recode(_add_column, *BASE),
    "spelt flags": _recode(lambda data: data.replace(b",true,", b",Y,"), "users"),
    "spaces": _recode(lambda data: data.replace(b"student", b" student "), "enrollments", "roles"),
    "a folder": _move_into_folder,
    "another file": lambda folder: (folder / "README.txt").touch(),
    "no manifest": _leave_out_manifest,
}

assert set(BASE) == {*TYPES, *PARTS}

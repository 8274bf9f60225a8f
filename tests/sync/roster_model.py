"""What a sequence of syncs must come to, in plain dictionaries: written from the rules, not from the engine.

A roster is `{type: {id: Record}}`. An export is a table of rows per file, as in the CSV files; `Roster.load` says what
becomes of it. Types are named as their files.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class Row(dict[str, str]):
    """A row of a file: the cells that are filled."""

    def __missing__(self, _column: str) -> str:
        return ""


BULK, DELTA, ABSENT = "bulk", "delta", "absent"
TYPES = ("orgs", "academicSessions", "courses", "classes", "users", "enrollments", "demographics")
OPTIONAL = ("demographics",)
FILES = {"1.1": TYPES, "1.2": (*TYPES, "roles")}
GONE = ("tobedeleted", "inactive")

# file -> column -> (file that it names rows of, the types that these may have)
REFERENCES: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "orgs": {"parentSourcedId": ("orgs", ())},
    "academicSessions": {"parentSourcedId": ("academicSessions", ())},
    "courses": {"orgSourcedId": ("orgs", ()), "schoolYearSourcedId": ("academicSessions", ("schoolYear",))},
    "classes": {
        "courseSourcedId": ("courses", ()),
        "schoolSourcedId": ("orgs", ("school",)),
        "termSourcedIds": ("academicSessions", ()),
    },
    "users": {"orgSourcedIds": ("orgs", ()), "agentSourcedIds": ("users", ()), "primaryOrgSourcedId": ("orgs", ())},
    "enrollments": {
        "classSourcedId": ("classes", ()),
        "schoolSourcedId": ("orgs", ("school",)),
        "userSourcedId": ("users", ()),
    },
    "demographics": {"sourcedId": ("users", ())},
    "roles": {"userSourcedId": ("users", ()), "orgSourcedId": ("orgs", ())},
}
# Files whose rows stand below others of the same file.
TREES = ("orgs", "academicSessions")
# The columns that stay as they are; `type` and `status` among them decide what may be referred to.
PLAIN = {
    "orgs": ("name", "type", "parentSourcedId"),
    "academicSessions": ("title", "type", "parentSourcedId"),
    "courses": ("title", "orgSourcedId", "schoolYearSourcedId"),
    "classes": ("title", "courseSourcedId", "schoolSourcedId"),
    "users": ("givenName",),
    "enrollments": ("classSourcedId", "schoolSourcedId", "userSourcedId", "role"),
    "demographics": ("sex",),
}
WORDS = {
    ("orgs", "type"): ("district", "school"),
    ("academicSessions", "type"): ("schoolYear", "semester"),
    ("classes", "classType"): ("scheduled",),
    ("users", "role"): ("student", "teacher", "guardian", "administrator"),
    ("roles", "role"): ("student", "teacher", "guardian"),
    ("enrollments", "role"): ("student", "teacher", "administrator"),
    ("demographics", "sex"): ("female", "male", ""),
}
FILLED = {"courses": "title", "users": "givenName"}


@dataclass(frozen=True)
class Export:
    """An export: how it declares each file, and the rows of those that it has; the one that is `damaged` has a wrong
    header."""

    version: str
    modes: Mapping[str, str]
    rows: Mapping[str, tuple[Row, ...]]
    damaged: str | None = None


@dataclass
class Record:
    """A stored record: whose it is, when it last moved (the number of the run), and what it says."""

    feed: str
    moved: int
    content: dict[str, Any]
    active: bool = True


@dataclass
class Limits:
    """When a run is held, in percent."""

    tombstones: int
    changes: int
    least: int


@dataclass
class Result:
    """What a load did: its outcome, the counts per type, and how many rows were refused."""

    outcome: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: int = 0


class Roster:
    """The whole roster of all feeds."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Record]] = {name: {} for name in TYPES}
        # What is said of the time of runs up to this one: it was long ago.
        self.long_ago = 0

    def load(self, feed: str, export: Export, limits: Limits | None, run: int, *, dry: bool = False) -> Result:
        """Applies an export; `limits`: None where it may do anything; `run`: its number."""
        if _is_worthless(export):
            return Result("refused")
        work = _Load(self.records, feed, export)
        result = work.compare()
        if limits is not None and any(_is_too_much(count, limits) for count in result.counts.values()):
            return Result("held", result.counts, result.refused)
        if not dry:
            work.apply(run)
        return result

    def purge(self) -> dict[str, int]:
        """Removes the old tombstones that nothing names which stays."""
        doomed = {
            (name, key)
            for name, records in self.records.items()
            for key, record in records.items()
            if not record.active and record.moved <= self.long_ago
        }
        while spared := doomed & {
            named
            for name, records in self.records.items()
            for key, record in records.items()
            if (name, key) not in doomed
            for named in _names_of(name, key, record)
        }:
            doomed -= spared
        for name, key in doomed:
            del self.records[name][key]
        return dict(Counter(name for name, _ in doomed))


def _names_of(name: str, key: str, record: Record) -> Iterator[tuple[str, str]]:
    """What a record refers to, by what is kept of it."""
    said = record.content
    for column, (target, _) in REFERENCES[name].items():
        if column in PLAIN[name] and said[column]:
            yield target, said[column]
    if name == "demographics":
        yield "users", key
    if name == "classes":
        yield from (("academicSessions", term) for term in said["terms"])
    if name == "users":
        yield from (("users", agent) for agent in said["agents"])
        yield from (("orgs", role[0]) for role in said["roles"])
        if said["primaryOrg"]:
            yield "orgs", said["primaryOrg"]


def _is_too_much(count: Mapping[str, int], limits: Limits) -> bool:
    stored = count["unchanged"] + count["changed"] + count["tombstoned"]
    return stored >= limits.least and (
        count["tombstoned"] * 100 > limits.tombstones * stored or count["changed"] * 100 > limits.changes * stored
    )


def _is_worthless(export: Export) -> bool:
    """Whether nothing of an export can be trusted."""
    any_delta = DELTA in export.modes.values()
    for name in FILES[export.version]:
        mode, rows = export.modes[name], export.rows.get(name, ())
        if mode == ABSENT:
            if not any_delta and name not in OPTIONAL:
                return True
            continue
        identifiers = [row["sourcedId"] for row in rows]
        if len(set(identifiers)) < len(identifiers):
            return True
        if mode == BULK and not rows and name not in OPTIONAL:
            return True
        if name == "roles" and (mode, export.modes["users"]) != (BULK, BULK):
            return True
    return export.damaged is not None and export.modes[export.damaged] != ABSENT


def _is_live(row: Row) -> bool:
    return row["status"] not in GONE


class _Load:
    """One export on its way into the roster."""

    def __init__(self, records: dict[str, dict[str, Record]], feed: str, export: Export) -> None:
        self.records = records
        self.feed = feed
        self.version = export.version
        any_delta = DELTA in export.modes.values()
        # Of a file that a delta leaves out, nothing has changed.
        self.modes = {
            name: DELTA if mode == ABSENT and any_delta else mode
            for name, mode in export.modes.items()
            if mode != ABSENT or any_delta
        }
        self.rows = {name: list(export.rows.get(name, ())) for name in self.modes}
        self.fallen: dict[str, list[Row]] = {name: [] for name in self.modes}
        self._refuse_rows()
        self.new = self._describe()

    # --- which rows are refused ---

    def _refuse_rows(self) -> None:
        bad = {name: [row for row in rows if self._is_bad(name, row)] for name, rows in self.rows.items()}
        while any(bad.values()):
            for name, rows in bad.items():
                self.fallen[name] += rows
                self.rows[name] = [row for row in self.rows[name] if not any(row is it for it in rows)]
            bad = {
                name: [row for row in rows if _is_live(row) and (self._dangles(name, row) or self._circles(name, row))]
                for name, rows in self.rows.items()
            }

    def _is_bad(self, name: str, row: Row) -> bool:
        owner = self.records[name].get(row["sourcedId"]) if name in self.records else None
        if owner is not None and owner.feed != self.feed:
            return True
        if not _is_live(row):
            return False
        return (
            any(row[column] not in words for (file, column), words in WORDS.items() if self._has(file, name, column))
            or (name in FILLED and not row[FILLED[name]])
            or self._dangles(name, row)
            or self._circles(name, row)
            or (name == "roles" and self._is_second_primary(row))
        )

    def _has(self, file: str, name: str, column: str) -> bool:
        return file == name and not (self.version == "1.2" and (file, column) == ("users", "role"))

    def _dangles(self, name: str, row: Row) -> bool:
        for column, (target, types) in REFERENCES[name].items():
            for item in filter(None, row[column].split(",")):
                found = self._look_up(target, item)
                if found is None or (types and found["type"] not in types):
                    return True
        return False

    def _circles(self, name: str, row: Row) -> bool:
        if name not in TREES:
            return False
        above, seen = row["parentSourcedId"], set()
        while above and above not in seen:
            if above == row["sourcedId"]:
                return True
            seen.add(above)
            found = self._look_up(name, above)
            above = "" if found is None else found["parentSourcedId"]
        return False

    def _is_second_primary(self, row: Row) -> bool:
        for other in self.rows["roles"]:
            if other is row:
                return False
            same = all(other[column] == row[column] for column in ("userSourcedId", "orgSourcedId", "roleType"))
            if same and row["roleType"] == "primary" and _is_live(other):
                return True
        raise AssertionError(row)

    def _look_up(self, name: str, identifier: str) -> Mapping[str, str] | None:
        """What is known of a record that may be referred to."""
        if name in self.rows:
            for row in self.rows[name]:
                if row["sourcedId"] == identifier:
                    return row if _is_live(row) else None
        record = self._standing(name).get(identifier)
        return None if record is None else record.content

    def _standing(self, name: str) -> dict[str, Record]:
        """The stored records of a type that stay as they are."""
        own = {key: it for key, it in self.records[name].items() if it.feed == self.feed and it.active}
        if name not in self.rows:
            return own
        if self.modes[name] == DELTA:
            named = {row["sourcedId"] for row in self.rows[name]}
            return {key: it for key, it in own.items() if key not in named}
        refused = {row["sourcedId"] for row in self.fallen[name]}
        return {key: it for key, it in own.items() if key in refused}

    # --- what the roster shall be ---

    def _describe(self) -> dict[str, dict[str, dict[str, Any]]]:
        new: dict[str, dict[str, dict[str, Any]]] = {}
        for name in TYPES:
            if name not in self.rows:
                continue
            new[name] = {key: copy.deepcopy(record.content) for key, record in self._standing(name).items()}
            for row in self.rows[name]:
                if _is_live(row):
                    new[name][row["sourcedId"]] = self._read(name, row)
        for key, said in new["orgs"].items():
            said["district"] = _find_district(new["orgs"], key)
        for key, said in new["users"].items():
            # A role that followed from an enrollment follows anew, or no more.
            said["roles"] = tuple(role for role in said["roles"] if role[3] == "export")
            said["roles"] = (*said["roles"], *_find_missing_roles(key, said["roles"], new))
        return new

    def _read(self, name: str, row: Row) -> dict[str, Any]:
        said: dict[str, Any] = {column: row[column] for column in PLAIN[name]}
        if name == "classes":
            said["terms"] = tuple(dict.fromkeys(row["termSourcedIds"].split(",")))
        if name == "users":
            said["agents"] = tuple(dict.fromkeys(filter(None, row["agentSourcedIds"].split(","))))
            said["primaryOrg"] = (
                row["orgSourcedIds"].split(",")[0] if self.version == "1.1" else row["primaryOrgSourcedId"]
            )
            said["roles"] = self._list_roles_1_1(row) if self.version == "1.1" else self._list_roles_1_2(row)
        return said

    def _list_roles_1_1(self, row: Row) -> tuple[tuple[str, str, str, str], ...]:
        found = []
        for org in dict.fromkeys(row["orgSourcedIds"].split(",")):
            known = self._look_up("orgs", org)
            assert known is not None
            at_school = known["type"] == "school"
            administrator = "siteAdministrator" if at_school else "districtAdministrator"
            role = administrator if row["role"] == "administrator" else row["role"]
            found.append((org, role, "primary", "export"))
        return tuple(found)

    def _list_roles_1_2(self, user: Row) -> tuple[tuple[str, str, str, str], ...]:
        key = user["sourcedId"]
        stored = self.records["users"].get(key)
        if self.modes["roles"] == DELTA:
            return () if stored is None else _keep_exported(stored)
        if stored is not None and stored.active and any(row["userSourcedId"] == key for row in self.fallen["roles"]):
            return _keep_exported(stored)
        mine = [row for row in self.rows["roles"] if _is_live(row) and row["userSourcedId"] == key]
        home = user["primaryOrgSourcedId"]
        mine.sort(
            key=lambda row: (
                row["roleType"],
                row["orgSourcedId"] != home,
                row["orgSourcedId"],
                row["role"],
                row["sourcedId"],
            )
        )
        return tuple((row["orgSourcedId"], row["role"], row["roleType"], "export") for row in mine)

    # --- what is to be done ---

    def compare(self) -> Result:
        """How what the roster shall be differs from what it is."""
        counts = {
            name: dict.fromkeys(("added", "changed", "revived", "tombstoned", "unchanged"), 0) for name in self.new
        }
        for name, new in self.new.items():
            for key, said in new.items():
                counts[name][self._find_change(name, key, said)] += 1
            counts[name]["tombstoned"] = len(self._list_gone(name))
        written = sum(sum(count.values()) - count["unchanged"] for count in counts.values())
        return Result("done" if written else "unchanged", counts, sum(map(len, self.fallen.values())))

    def _find_change(self, name: str, key: str, said: dict[str, Any]) -> str:
        stored = self.records[name].get(key)
        if stored is None:
            return "added"
        if not stored.active:
            return "revived"
        return "unchanged" if stored.content == said else "changed"

    def _list_gone(self, name: str) -> list[Record]:
        return [
            record
            for key, record in self.records[name].items()
            if record.feed == self.feed and record.active and key not in self.new[name]
        ]

    def apply(self, run: int) -> None:
        """Does it."""
        for name, new in self.new.items():
            for record in self._list_gone(name):
                record.active, record.moved = False, run
            for key, said in new.items():
                if self._find_change(name, key, said) != "unchanged":
                    self.records[name][key] = Record(self.feed, run, said)


def _keep_exported(record: Record) -> tuple[tuple[str, str, str, str], ...]:
    return tuple(role for role in record.content["roles"] if role[3] == "export")


def _find_district(orgs: Mapping[str, Mapping[str, Any]], key: str) -> str | None:
    while key in orgs:
        if orgs[key]["type"] == "district":
            return key
        key = orgs[key]["parentSourcedId"]
    return None


def _find_missing_roles(
    user: str, roles: tuple[tuple[str, str, str, str], ...], new: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Iterator[tuple[str, str, str, str]]:
    """Whoever takes part in a class belongs to its school."""
    wanted = set()
    for said in new["enrollments"].values():
        if said["userSourcedId"] == user:
            role = "siteAdministrator" if said["role"] == "administrator" else said["role"]
            wanted.add((said["schoolSourcedId"], role))
            if said["classSourcedId"] in new["classes"]:
                wanted.add((new["classes"][said["classSourcedId"]]["schoolSourcedId"], role))
    belongs = {role[0] for role in roles if role[1] != "guardian"}
    there = {role[0] for role in roles}
    for org, role in sorted(wanted):
        if org not in belongs:
            yield org, role, "secondary" if org in there else "primary", "enrollment"
            there.add(org)

"""What a sequence of syncs must come to, in plain dictionaries: written from the rules, not from the engine.

A roster is `{type: {id: Record}}`. An export is a table of rows per file, as in the CSV files; `Roster.load` says what
becomes of it. Types are named as their files.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


class Row(dict[str, str]):
    """A row of a file: the cells that are filled."""

    def __missing__(self, _column: str) -> str:
        return ""


BULK, DELTA, ABSENT = "bulk", "delta", "absent"
TYPES = ("orgs", "academicSessions", "courses", "classes", "users", "enrollments", "demographics")
OPTIONAL = ("demographics", "userProfiles")
# A required file that is made of the others where it is absent.
MADE = "courses"
# The files whose rows are parts of users; roles name profiles, which are therefore settled first.
PARTS = ("userProfiles", "roles")
FILES = {"1.1": TYPES, "1.2": (*TYPES, "userProfiles", "roles")}
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
    "roles": {
        "userSourcedId": ("users", ()),
        "orgSourcedId": ("orgs", ()),
        "userProfileSourcedId": ("userProfiles", ()),
    },
    "userProfiles": {"userSourcedId": ("users", ())},
}
# The references that may be empty: one that leads nowhere is dropped, and its row stays.
OPTIONAL_REFERENCES = {
    "orgs": ("parentSourcedId",),
    "academicSessions": ("parentSourcedId",),
    "courses": ("schoolYearSourcedId",),
    "users": ("agentSourcedIds", "primaryOrgSourcedId"),
    "roles": ("userProfileSourcedId",),
    "classes": (),
}
# What may lead nowhere: the school of an enrollment is that of its class.
UNCHECKED = (("orgs", "parentSourcedId"), ("enrollments", "schoolSourcedId"))
# The lists that may not be empty: an item that leads nowhere is dropped while another one does not.
LISTS = {"classes": ("termSourcedIds",), "users": ("orgSourcedIds",)}
# type -> the columns that name records without which a record does not stay; `sourcedId` is its own id.
NEEDS = {
    "courses": ("orgSourcedId",),
    "classes": ("courseSourcedId", "schoolSourcedId"),
    # The school is that of the class.
    "enrollments": ("classSourcedId", "userSourcedId"),
    "demographics": ("sourcedId",),
}
# Files whose rows stand below others of the same file.
TREES = ("orgs", "academicSessions")
# (type, (what its records may lose, the type that it names)).
LOSABLE = (
    ("academicSessions", ("parentSourcedId", "academicSessions")),
    ("courses", ("schoolYearSourcedId", "academicSessions")),
    ("classes", ("terms", "academicSessions")),
    ("users", ("agents", "users")),
    ("users", ("primaryOrg", "orgs")),
)
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
FILLED = {"courses": "title", "users": "givenName", "userProfiles": "vendorId"}


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
    """A stored record: whose it is, when it last moved (the number of the run), what it says, whether it ended only
    because a record that it needs did, and whether it is as a row of an export says (kept of courses alone)."""

    feed: str
    moved: int
    content: dict[str, Any]
    active: bool = True
    by_need: bool = False
    is_exported: bool = False


@dataclass(frozen=True)
class Part:
    """A row of roles.csv or userProfiles.csv as it was last taken: its id (None: a role that users.csv of 1.1 has
    brought), its user, and what it says."""

    key: str | None
    user: str
    said: tuple[str, ...]


@dataclass
class Limits:
    """When a run is held, in percent."""

    tombstones: int
    changes: int
    least: int


@dataclass
class Result:
    """What a load did: its outcome, the counts per type, and how many rows were rejected."""

    outcome: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    rejected: int = 0


class Roster:
    """The whole roster of all feeds."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Record]] = {name: {} for name in TYPES}
        # By feed: roles.csv and userProfiles.csv as they stand, whether their users do or not.
        self.parts: dict[str, dict[str, list[Part]]] = {}
        # What is said of the time of runs up to this one: it was long ago.
        self.long_ago = 0

    def load(self, feed: str, export: Export, limits: Limits | None, run: int, *, dry: bool = False) -> Result:
        """Applies an export; `limits`: None where it may do anything; `run`: its number."""
        export = _without_copies(export)
        parts = self.parts.get(feed, {name: [] for name in PARTS})
        if not dry:
            # A run makes its feed known, whatever becomes of it.
            self.parts[feed] = parts
        if _is_worthless(export) or _is_unknown(export, parts["roles"]) or self._is_of_another(feed, export):
            return Result("refused")
        work = _Load(self.records, parts, feed, export)
        result = work.compare()
        if limits is not None and any(_is_too_much(count, limits) for count in result.counts.values()):
            return Result("held", result.counts, result.rejected)
        if not dry:
            work.apply(run)
            self.parts[feed] = work.parts
        return result

    def _is_of_another(self, feed: str, export: Export) -> bool:
        """Whether every org of an export in bulk belongs to another feed."""
        owners = [self.records["orgs"].get(row["sourcedId"]) for row in export.rows.get("orgs", ())]
        is_foreign = [owner is not None and owner.feed != feed for owner in owners]
        return export.modes["orgs"] == BULK and bool(is_foreign) and all(is_foreign)

    def remove(self, feed: str, run: int, *, at_once: bool) -> dict[str, int] | None:
        """Ends a feed: counts its records that are deleted, or that become tombstones; None: there is no such feed."""
        if feed not in self.parts:
            return None
        mine = {
            (name, key): record
            for name, records in self.records.items()
            for key, record in records.items()
            if record.feed == feed and (record.active or at_once)
        }
        for (name, key), record in mine.items():
            if at_once:
                del self.records[name][key]
            else:
                record.active, record.moved = False, run
        for records in self.records.values():
            for record in records.values():
                record.by_need = record.by_need and record.feed != feed
        if at_once:
            self.parts[feed] = {name: [] for name in PARTS}
        return dict(Counter(name for name, _ in mine))

    def purge(self, run: int) -> dict[str, int]:
        """Removes the old tombstones that nothing names which stays. Who names one as an agent has changed, in the run
        of this number, and names it no more."""
        people = self.records["users"]
        expired = {key for key, it in people.items() if not it.active and it.moved <= self.long_ago}
        for record in people.values():
            agents = record.content["agents"]
            if record.active and expired.intersection(agents):
                record.content["agents"] = tuple(agent for agent in agents if agent not in expired)
                record.moved = run
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
        for parts in self.parts.values():
            for name, rows in parts.items():
                parts[name] = [part for part in rows if ("users", part.user) not in doomed]
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
            if not any_delta and name not in (*OPTIONAL, MADE):
                return True
            continue
        if (mode == DELTA or name in TREES) and _list_doubled(rows):
            return True
        if mode == BULK and not rows and name not in OPTIONAL:
            return True
    return export.damaged is not None and export.modes[export.damaged] != ABSENT


def _list_doubled(rows: Sequence[Row]) -> list[Row]:
    """The rows whose id another one has, too."""
    counts = Counter(row["sourcedId"] for row in rows)
    return [row for row in rows if counts[row["sourcedId"]] > 1]


def _without_copies(export: Export) -> Export:
    """The export without rows that repeat another one."""
    rows = {
        name: tuple(row for place, row in enumerate(said) if row not in said[:place])
        for name, said in export.rows.items()
    }
    return replace(export, rows=rows)


def _is_unknown(export: Export, roles: list[Part]) -> bool:
    """Whether a delta may name roles that have no ids."""
    is_delta = export.modes.get("roles") == DELTA and bool(export.rows["roles"])
    return is_delta and any(part.key is None for part in roles)


def _is_live(row: Row) -> bool:
    return row["status"] not in GONE


class _Load:
    """One export on its way into the roster."""

    def __init__(
        self, records: dict[str, dict[str, Record]], parts: dict[str, list[Part]], feed: str, export: Export
    ) -> None:
        self.records = records
        self.old_parts = parts
        self.feed = feed
        self.version = export.version
        any_delta = DELTA in export.modes.values()
        # Of a file that a delta leaves out, nothing has changed.
        self.modes = {
            name: DELTA if mode == ABSENT and any_delta else mode
            for name, mode in export.modes.items()
            if mode != ABSENT or any_delta
        }
        self.rows = {name: [Row(row) for row in export.rows.get(name, ())] for name in self.modes}
        if MADE not in self.modes:
            self.modes[MADE] = MADE
            self._keep_courses()
            self.rows[MADE] = self._make_courses()
        self.fallen: dict[str, list[Row]] = {name: [] for name in self.modes}
        self.dropped: list[Row] = []
        self._refuse_rows()
        self.parts = copy.deepcopy(parts)
        self.new = self._describe()

    def _keep_courses(self) -> None:
        """A class that names no course of an export keeps its own one, if that is one."""
        classes, courses = self.records["classes"], self.records[MADE]
        exported = {
            key
            for key, record in courses.items()
            if self._is_own(record) and (record.is_exported or record.content["schoolYearSourcedId"])
        }
        stored = {key: record.content["courseSourcedId"] for key, record in classes.items() if self._is_own(record)}
        for row in filter(_is_live, self.rows["classes"]):
            course = stored.get(row["sourcedId"])
            if row["courseSourcedId"] not in exported and course in exported:
                row["courseSourcedId"] = course

    def _is_own(self, record: Record) -> bool:
        return record.active and record.feed == self.feed

    def _make_courses(self) -> list[Row]:
        """A course for each one that a class names and the feed does not have."""
        made: dict[str, Row] = {}
        schools = {row["sourcedId"] for row in self.rows["orgs"] if _is_live(row)}
        for row in filter(_is_live, self.rows["classes"]):
            key, school = row["courseSourcedId"], row["schoolSourcedId"]
            known = self.records[MADE].get(key)
            if school in schools and not (known and known.active and known.feed == self.feed):
                said = made.setdefault(key, Row(sourcedId=key, title=row["title"], orgSourcedId=school))
                said["title"] = min(said["title"], row["title"])
                said["orgSourcedId"] = min(said["orgSourcedId"], school)
        return list(made.values())

    # --- which rows are rejected ---

    def _refuse_rows(self) -> None:
        self._let_fall({name: _list_doubled(rows) for name, rows in self.rows.items()})
        self._drop_references()
        bad = {name: [row for row in rows if self._is_bad(name, row)] for name, rows in self.rows.items()}
        while any(bad.values()):
            self._let_fall(bad)
            self._drop_references()
            bad = {
                name: [
                    row
                    for row in rows
                    if _is_live(row)
                    and (self._dangles(name, row) or self._circles(name, row) or self._breaks_rules(name, row))
                ]
                for name, rows in self.rows.items()
            }

    def _let_fall(self, bad: Mapping[str, list[Row]]) -> None:
        for name, rows in bad.items():
            self.fallen[name] += rows
            self.rows[name] = [row for row in self.rows[name] if not any(row is it for it in rows)]

    def _drop_references(self) -> None:
        """Empties what may be empty and leads nowhere; of a list, the items that do. All rows are looked at as they are
        before any is changed: no reference depends on another."""
        for name, columns in OPTIONAL_REFERENCES.items():
            lists = LISTS.get(name, ())
            for row in filter(_is_live, self.rows.get(name, ())):
                for column in filter(row.get, (*columns, *lists)):
                    items = [item for item in row[column].split(",") if self._may_name(name, row, column, item)]
                    if row[column] != ",".join(items) and (items or column not in lists):
                        # A school whose parent is nowhere is not one without a parent.
                        is_kept = (name, column) in UNCHECKED and row[column] != row["sourcedId"]
                        row[column] = row[column] if is_kept else ",".join(items)
                        self.dropped.append(row)

    def _may_name(self, name: str, row: Row, column: str, item: str) -> bool:
        is_own = REFERENCES[name][column][0] == name and item == row["sourcedId"]
        of_another = column == "userProfileSourcedId" and self._is_profile_of_another(row)
        return not (is_own or of_another) and self._has_target(name, column, item)

    def _has_target(self, name: str, column: str, item: str) -> bool:
        target, types = REFERENCES[name][column]
        found = self._look_up(target, item)
        return found is not None and (not types or found["type"] in types)

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
            or self._breaks_rules(name, row)
        )

    def _breaks_rules(self, name: str, row: Row) -> bool:
        return name == "roles" and self._is_second_primary(row)

    def _has(self, file: str, name: str, column: str) -> bool:
        return file == name and not (self.version == "1.2" and (file, column) == ("users", "role"))

    def _dangles(self, name: str, row: Row) -> bool:
        for column, (target, types) in REFERENCES[name].items():
            if (name, column) in UNCHECKED:
                continue
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
        if row["roleType"] != "primary":
            return False
        mine = (row["userSourcedId"], row["orgSourcedId"])
        for number, other in enumerate(self.rows["roles"]):
            same = (other["userSourcedId"], other["orgSourcedId"], other["roleType"]) == (*mine, "primary")
            own = next(number for number, it in enumerate(self.rows["roles"]) if it is row)
            if same and _is_live(other) and self._rank_role(other, number) < self._rank_role(row, own):
                return True
        retained = (part for part in self._retained_parts("roles") if part.key not in (None, row["sourcedId"]))
        return any((part.user, part.said[0], part.said[2]) == (*mine, "primary") for part in retained)

    def _rank_role(self, row: Row, number: int) -> tuple[bool, bool, str, str, int]:
        """The stored one is the first, else the least."""
        said = (row["userSourcedId"], row["orgSourcedId"], row["role"], "primary")
        stored = [part.key for part in self.old_parts["roles"] if (part.user, *part.said[:3]) == said]
        return (not stored, row["sourcedId"] not in stored, row["role"], row["sourcedId"], number)

    def _is_profile_of_another(self, row: Row) -> bool:
        profile = row["userProfileSourcedId"]
        if not profile:
            return False
        rows = self.rows.get("userProfiles", ())
        owners = {it["userSourcedId"] for it in rows if it["sourcedId"] == profile and _is_live(it)}
        owners |= {part.user for part in self._retained_parts("userProfiles") if part.key == profile}
        return bool(owners - {row["userSourcedId"]})

    def _retained_parts(self, name: str) -> list[Part]:
        """The rows of a file of parts that stay as they were."""
        if name not in self.rows:
            return self.old_parts[name]
        if self.modes[name] == DELTA:
            named = {row["sourcedId"] for row in self.rows[name]}
            return [part for part in self.old_parts[name] if part.key not in named]
        keys = {row["sourcedId"] for row in self.fallen[name]}
        # Any of the roles of a user may be the rejected one, if some have no ids.
        users = {row["userSourcedId"] for row in self.fallen[name]} & self._list_nameless(name)
        return [part for part in self.old_parts[name] if part.key in keys or part.user in users]

    def _list_nameless(self, name: str) -> set[str]:
        return {part.user for part in self.old_parts[name] if part.key is None}

    def _look_up(self, name: str, identifier: str) -> Mapping[str, str] | None:
        """What is known of a record that may be referred to."""
        if name in self.rows:
            for row in self.rows[name]:
                if row["sourcedId"] == identifier:
                    return row if _is_live(row) else None
        if name in PARTS:
            return next((Row() for part in self._retained_parts(name) if part.key == identifier), None)
        record = self._retained(name).get(identifier)
        return None if record is None else record.content

    def _retained(self, name: str) -> dict[str, Record]:
        """The stored records of a type that stay as they are, or return so."""
        kept = {key: it for key, it in self._kept(name).items() if not self._is_orphan(name, key, it)}
        return {**kept, **self._returning(name)}

    def _returning(self, name: str) -> dict[str, Record]:
        """The records that ended by a need, of which the export says nothing, and whose needs are all there."""
        left = {key: it for key, it in self._left(name).items() if it.by_need}
        return {key: it for key, it in left.items() if not self._is_orphan(name, key, it) and self._suits(name, it)}

    def _kept(self, name: str) -> dict[str, Record]:
        return {key: it for key, it in self._left(name).items() if it.active}

    def _left(self, name: str) -> dict[str, Record]:
        """The stored records of a type that no row of the export speaks of, or only a rejected one."""
        own = {key: it for key, it in self.records[name].items() if it.feed == self.feed}
        if name not in self.rows:
            return own
        if self.modes[name] in (DELTA, MADE):
            named = {row["sourcedId"] for row in self.rows[name]}
            return {key: it for key, it in own.items() if key not in named}
        rejected = {row["sourcedId"].strip() for row in self.fallen[name]}
        return {key: it for key, it in own.items() if key in rejected}

    def _is_orphan(self, name: str, key: str, record: Record) -> bool:
        """Whether a record needs one that is not there after the run."""
        for column in NEEDS.get(name, ()):
            target, needed = REFERENCES[name][column][0], key if column == "sourcedId" else record.content[column]
            stays = target in self.rows and any(
                row["sourcedId"] == needed and _is_live(row) for row in self.rows[target]
            )
            if not stays and needed not in self._retained(target):
                return True
        return False

    def _suits(self, name: str, record: Record) -> bool:
        """Whether what a record needs may still be named by it."""
        for column in NEEDS.get(name, ()):
            target, types = REFERENCES[name][column]
            there = self._look_up(target, record.content[column]) if types else None
            if there is not None and there["type"] not in types:
                return False
        return True

    # --- what the roster shall be ---

    def _describe(self) -> dict[str, dict[str, dict[str, Any]]]:
        new: dict[str, dict[str, dict[str, Any]]] = {}
        for name in TYPES:
            if name not in self.rows and self._retained(name) == self._kept(name):
                continue
            new[name] = {key: copy.deepcopy(record.content) for key, record in self._retained(name).items()}
            for row in self.rows.get(name, ()):
                if _is_live(row):
                    new[name][row["sourcedId"]] = self._read(name, row)
        self._place_enrollments(new)
        self._place_district(new["orgs"])
        for key, said in new["orgs"].items():
            said["district"] = _find_district(new["orgs"], key)
        self._describe_parts(new["users"], new["orgs"])
        self._lose_references(new)
        for key, said in new["users"].items():
            said["roles"] = (*said["roles"], *_find_missing_roles(key, said["roles"], new))
        return new

    def _lose_references(self, new: dict[str, dict[str, dict[str, Any]]]) -> None:
        """What no row speaks of no longer names what is gone."""
        gone = {name: self._list_own(name).keys() - said.keys() for name, said in new.items()}
        for name, (column, target) in LOSABLE:
            rows = self.rows.get(name, ())
            live = {row["sourcedId"] for row in rows if _is_live(row)}
            kept = {key: it.content for key, it in self._retained(name).items()}
            records = new[name] if name in new else copy.deepcopy(kept)
            for key in records.keys() & kept.keys() - live:
                records[key][column] = self._lose(records[key], column, gone.get(target, set()))
            if records != kept:
                new[name] = records

    def _lose(self, said: Mapping[str, Any], column: str, gone: Collection[str]) -> Any:
        if isinstance(said[column], tuple):
            left = tuple(item for item in said[column] if item not in gone)
            return left or (said[column] if column == "terms" else ())
        if said[column] not in gone:
            return said[column]
        exported = [org for org, *_, origin in said.get("roles", ()) if origin == "export"]
        return exported[0] if column == "primaryOrg" and self.version == "1.1" and exported else ""

    def _place_enrollments(self, new: dict[str, dict[str, dict[str, Any]]]) -> None:
        """Each is at the school of its class."""
        kept = {name: {key: it.content for key, it in self._retained(name).items()} for name in TYPES}
        classes = new.get("classes", kept["classes"])
        moved = {
            key: {**said, "schoolSourcedId": classes[said["classSourcedId"]]["schoolSourcedId"]}
            for key, said in new.get("enrollments", kept["enrollments"]).items()
        }
        if "enrollments" in new or moved != kept["enrollments"]:
            new["enrollments"] = moved

    def _place_district(self, orgs: dict[str, dict[str, Any]]) -> None:
        """A feed whose orgs have no district is one itself, above those without a parent. Below the only other one lie
        schools whose rows name none; of several, below the one that a school had. A stored org keeps the name of a
        parent that is gone."""
        own, stored = f"{self.feed}:district", self._list_own("orgs")
        known = orgs.pop(own, None)
        roots = {key: said for key, said in orgs.items() if said["parentSourcedId"] not in orgs}
        districts = [key for key, said in orgs.items() if said["type"] == "district"]
        live = {row["sourcedId"] for row in self.rows.get("orgs", ()) if _is_live(row)}
        for key, said in roots.items():
            named, is_school = said["parentSourcedId"], said["type"] == "school"
            former = stored[key].content["parentSourcedId"] if key in stored else ""
            above = districts[0] if len(districts) == 1 else former if former in districts else ""
            is_free = is_school and not named and key in live
            kept = named if key not in live and named != own else ""
            said["parentSourcedId"] = own if not districts else above if is_free else kept
        if roots and not districts:
            orgs[own] = known or {"name": self.feed, "type": "district", "parentSourcedId": ""}

    def _list_own(self, name: str) -> dict[str, Record]:
        """The active records of the feed before the run."""
        return {key: it for key, it in self.records[name].items() if it.feed == self.feed and it.active}

    def _read(self, name: str, row: Row) -> dict[str, Any]:
        said: dict[str, Any] = {column: row[column] for column in PLAIN[name]}
        if name == "classes":
            said["terms"] = tuple(dict.fromkeys(row["termSourcedIds"].split(",")))
        if name == "users":
            said["agents"] = tuple(dict.fromkeys(filter(None, row["agentSourcedIds"].split(","))))
            said["primaryOrg"] = (
                row["orgSourcedIds"].split(",")[0] if self.version == "1.1" else row["primaryOrgSourcedId"]
            )
        return said

    def _describe_parts(self, users: dict[str, dict[str, Any]], orgs: Collection[str]) -> None:
        """What roles.csv and userProfiles.csv are after the run, and what the users have of them. `orgs`: those after
        it; the roles of active users elsewhere end."""
        if self.version == "1.1":
            said = [row for row in self.rows["users"] if _is_live(row)] if "users" in self.rows else []
            named = {row["sourcedId"] for row in said}
            for name in PARTS:
                self.parts[name] = [part for part in self.parts[name] if part.user not in named]
            self.parts["roles"] += [
                Part(None, row["sourcedId"], role) for row in said for role in self._list_roles_1_1(row)
            ]
        else:
            for name in PARTS:
                if name in self.rows:
                    self._apply_parts(name, users)
        self.parts["roles"] = [part for part in self.parts["roles"] if part.said[0] in orgs or part.user not in users]
        for key, user in users.items():
            profiles = {part.key: part.said for part in self.parts["userProfiles"] if part.user == key}
            user["profiles"] = tuple((key, *said) for key, said in sorted(profiles.items(), key=str))
            mine = [part for part in self.parts["roles"] if part.user == key]
            # Those that 1.2 brought keep their order, whatever comes after it.
            if all(part.key is not None for part in mine):
                home = user["primaryOrg"]
                mine.sort(key=lambda part: _order_of_role(part, home))
            user["roles"] = tuple((*part.said, "export") for part in mine)

    def _apply_parts(self, name: str, users: Mapping[str, Any]) -> None:
        rows = [self._to_part(name, row) for row in self.rows[name] if _is_live(row)]
        retained = self._retained_parts(name)
        if self.modes[name] == BULK:
            together = {part.user for part in retained if part.key is None}
            # What is kept as it is, is known by the row that says the same.
            retained = [part if part.key is not None else replace(part, key=_find_key(part, rows)) for part in retained]
            rows = [row for row in rows if row.user not in together]
        if name == "roles" and "userProfiles" in self.rows:
            there = {(part.user, part.key) for part in self.parts["userProfiles"]}
            retained = [
                part if part.user not in users or (part.user, part.said[3]) in there
                else replace(part, said=(*part.said[:3], ""))
                for part in retained
            ]  # fmt: skip
        self.parts[name] = retained + rows

    def _to_part(self, name: str, row: Row) -> Part:
        columns = {
            "roles": ("orgSourcedId", "role", "roleType", "userProfileSourcedId"),
            "userProfiles": ("vendorId", "username"),
        }
        return Part(row["sourcedId"], row["userSourcedId"], tuple(row[column] for column in columns[name]))

    def _list_roles_1_1(self, row: Row) -> tuple[tuple[str, ...], ...]:
        found = []
        for org in dict.fromkeys(row["orgSourcedIds"].split(",")):
            known = self._look_up("orgs", org)
            assert known is not None
            at_school = known["type"] == "school"
            administrator = "siteAdministrator" if at_school else "districtAdministrator"
            role = administrator if row["role"] == "administrator" else row["role"]
            found.append((org, role, "primary", ""))
        return tuple(found)

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
        same = stored.content == said and self._find_children(name, key) == self._find_stored_children(name, key)
        return "unchanged" if same else "changed"

    def _find_children(self, name: str, key: str) -> set[str]:
        """The records below an org or a session after the run."""
        return {it for it, said in self.new[name].items() if said.get("parentSourcedId") == key}

    def _find_stored_children(self, name: str, key: str) -> set[str]:
        own = {it: record for it, record in self.records[name].items() if record.feed == self.feed and record.active}
        return {it for it, record in own.items() if record.content.get("parentSourcedId") == key}

    def _list_gone(self, name: str) -> list[Record]:
        return [
            record
            for key, record in self.records[name].items()
            if record.feed == self.feed and record.active and key not in self.new[name]
        ]

    def apply(self, run: int) -> None:
        """Does it. A record that others open to other vendors than before has changed, and so has whoever names such a
        user as an agent."""
        before = _find_openers(self.records)
        self._write(run)
        after = _find_openers(self.records)
        turned = {it for it in before.keys() & after.keys() if before[it] != after[it]}
        naming = {
            ("users", key)
            for key, record in self.records["users"].items()
            if any(("users", agent) in turned for agent in record.content["agents"])
        }
        for name, key in turned | naming:
            if self.records[name][key].active:
                self.records[name][key].moved = run

    def _write(self, run: int) -> None:
        for name in NEEDS:
            self._forget_needs(name)
        for name, new in self.new.items():
            # A record whose child is gone has changed, so the changes are found before any record is marked.
            moved = {key: said for key, said in new.items() if self._find_change(name, key, said) != "unchanged"}
            kept = self._kept(name)
            orphans = [it for key, it in kept.items() if self._is_orphan(name, key, it)]
            for record in self._list_gone(name):
                record.active, record.moved = False, run
                record.by_need = any(record is it for it in orphans)
            for key, said in moved.items():
                former = self.records[name].get(key)
                self.records[name][key] = Record(self.feed, run, said, is_exported=bool(former and former.is_exported))
        self._note_exported()

    def _note_exported(self) -> None:
        for row in filter(_is_live, self.rows.get(MADE, ())):
            whole = self.modes[MADE] != MADE and not any(row is it for it in self.dropped)
            self.records[MADE][row["sourcedId"]].is_exported = whole
        for row in self.fallen.get(MADE, ()):
            record = self.records[MADE].get(row["sourcedId"])
            if record is not None and record.feed == self.feed:
                record.is_exported = False

    def _forget_needs(self, name: str) -> None:
        """What the export ends itself does not return with what it needs."""
        live = {row["sourcedId"] for row in self.rows.get(name, ()) if _is_live(row)}
        left = self._left(name)
        for key, record in self.records[name].items():
            if record.feed == self.feed:
                record.by_need = record.by_need and (key in left or key in live)


def _find_openers(records: Mapping[str, Mapping[str, Record]]) -> dict[tuple[str, str], Any]:
    """What decides which vendors see a record, of the types where other records decide it."""
    found: dict[tuple[str, str], Any] = {}
    said = {name: {key: record.content for key, record in of_type.items()} for name, of_type in records.items()}
    for key, user in said["users"].items():
        # Where the user is somebody, by role: a guardian is not seen as others are, and vendors ask for students.
        kinds = ("guardian", "student", "teacher")
        apart = {kind: frozenset(org for org, role, *_ in user["roles"] if role == kind) for kind in kinds}
        others = frozenset(org for org, role, *_ in user["roles"] if role != "guardian")
        found["users", key] = (others, *apart.values())
    for key in said["demographics"]:
        found["demographics", key] = found["users", key]
    for key, taught in said["classes"].items():
        found["classes", key] = taught["schoolSourcedId"]
    for key, course in said["courses"].items():
        org = course["orgSourcedId"]
        schools = {
            it.content["schoolSourcedId"]
            for it in records["classes"].values()
            if it.active and it.content["courseSourcedId"] == key
        }
        found["courses", key] = org, {it for it in schools - {org} if said["orgs"][it]["district"] != org}
    for key, enrollment in said["enrollments"].items():
        schools = {enrollment["schoolSourcedId"], said["classes"][enrollment["classSourcedId"]]["schoolSourcedId"]}
        belongs, guards, *_ = found["users", enrollment["userSourcedId"]]
        found["enrollments", key] = schools, (schools, ()) if belongs & schools else (belongs, guards)
    return found


def _find_key(part: Part, rows: list[Part]) -> str | None:
    return min((row.key for row in rows if (row.user, row.said) == (part.user, part.said) and row.key), default=None)


def _order_of_role(part: Part, home: str) -> tuple[Any, ...]:
    org, role, role_type, profile = part.said
    # A role without a profile comes after those with one.
    return (role_type, org != home, org, role, profile == "", profile, part.key)


def _find_district(orgs: Mapping[str, Mapping[str, Any]], key: str) -> str | None:
    while key in orgs:
        if orgs[key]["type"] == "district":
            return key
        key = orgs[key]["parentSourcedId"]
    return None


def _find_missing_roles(
    user: str, roles: tuple[tuple[str, ...], ...], new: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Iterator[tuple[str, ...]]:
    """Whoever takes part in a class belongs to its school, as what it takes part."""
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
            yield org, role, "secondary" if org in there else "primary", "", "enrollment"
            there.add(org)

"""What records say, as (id, field, value): of a page of the interface, and of the rows of a zip. The two agree but for
the losses that `docs/operators.md` lists."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from .checker import COLUMNS
from .conftest import Rows

Triples = dict[str, set[tuple[str, Any]]]
# Fields of records that no file of bulk has, and metadata, whose keys are columns.
LOSSES = {"status", "dateLastModified", "children", "resources", "metadata"}
# The field of the interface for the header of a column.
FIELDS = {
    "preferredGivenName": "preferredFirstName",
    "preferredFamilyName": "preferredLastName",
    "orgSourcedIds": "orgs",
    "termSourcedIds": "terms",
    "agentSourcedIds": "agents",
}
LISTS = {"grades", "subjects", "subjectCodes", "periods"}
ROLE = ("roleType", "role", "beginDate", "endDate")
PROFILE = ("profileType", "vendorId", "applicationId", "description")


def flatten(value: str) -> str:
    """A line break is a space in a cell."""
    return value.replace("\r", " ").replace("\n", " ")


def read_page(records: list[dict[str, Any]]) -> Triples:
    """What each record of a page says."""
    return {record["sourcedId"]: set(_list_fields(record)) for record in records}


def _list_fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if name not in LOSSES and name != "sourcedId" and value != "":
            yield from ((name, it) for it in _list_values(name, value))
    yield from ((f"metadata.{key}", flatten(text)) for key, text in record.get("metadata", {}).items() if text)


def _list_values(name: str, value: Any) -> Iterator[Any]:
    if name == "roles":
        yield from ((*(it.get(part) for part in ROLE), it["org"]["sourcedId"]) for it in value)
    elif name == "userProfiles":
        for it in value:
            said = tuple(it.get(part) for part in PROFILE)
            yield from ((*said, entry["type"], entry["username"]) for entry in it.get("credentials", ()))
    elif name == "userIds":
        yield from (f"{{{it['type']}:{it['identifier']}}}" for it in value)
    elif isinstance(value, dict):
        yield value["sourcedId"]
    elif isinstance(value, list):
        yield from (it["sourcedId"] if isinstance(it, dict) else flatten(it) for it in value)
    else:
        yield flatten(value)


def read_files(files: Mapping[str, Rows], version: str) -> dict[str, Triples]:
    """What the rows of each file say, those of parts under their user."""
    found: dict[str, Triples] = defaultdict(dict)
    for name in COLUMNS[version]:
        if name in ("roles", "userProfiles") or name not in files:
            continue
        found[name] = {row["sourcedId"]: set(_list_cells(row)) for row in files[name]}
    users = found["users"]
    for row in files.get("roles", ()):
        users[row["userSourcedId"]].add(("roles", (*(row[part] or None for part in ROLE), row["orgSourcedId"])))
    for row in files.get("userProfiles", ()):
        said = (*(row[part] or None for part in PROFILE), row["credentialType"], row["username"])
        users[row["userSourcedId"]].add(("userProfiles", said))
    return found


def _list_cells(row: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for header, cell in row.items():
        if not cell or header == "sourcedId":
            continue
        field = FIELDS.get(header) or header.removesuffix("SourcedId")
        if header == "userIds":
            yield from ((field, pair) for pair in re.findall(r"{[^}]*}", cell))
        elif header.endswith("SourcedIds") or header in LISTS:
            yield from ((field, item) for item in cell.split(","))
        else:
            yield field, cell


# The collection of the interface for each file.
COLLECTIONS = list(COLUMNS["1.1"])
# Of each file, the columns that name others, as (field, file).
REFERENCES = {
    version: {
        name: [
            (FIELDS.get(header) or header.removesuffix("SourcedId"), refers.lstrip(">"), "*" in header + marks)
            for header, marks, refers in re.findall(r"(\w+)(\*?)>(>?\w+)", columns)
        ]
        for name, columns in COLUMNS[version].items()
    }
    for version in COLUMNS
}
REQUIRED = {
    version: {name: re.findall(r"(\w+)\*(?!>)", columns) for name, columns in COLUMNS[version].items()}
    for version in COLUMNS
}


def compare(pages: Mapping[str, list[dict[str, Any]]], files: Mapping[str, Rows], version: str) -> int:
    """Holds the files against the active records of the collections that a caller may read, and returns how many
    values are the same. A file says nothing that no page says, and leaves nothing out that has no reason."""
    found, same = read_files(files, version), 0
    present = {name: set(found.get(name, ())) for name in COLLECTIONS}
    for name, records in pages.items():
        shown = read_page([it for it in records if it["status"] == "active"])
        written = found[name]
        assert written.keys() <= shown.keys(), name
        for sourced_id, said in shown.items():
            if sourced_id in written:
                assert written[sourced_id] <= said, (name, written[sourced_id] - said)
                assert all(_is_lost(it, said, name, version, present) for it in said - written[sourced_id]), name
                same += len(written[sourced_id])
            else:
                assert _must_be_left_out(sourced_id, said, name, version, present), (name, said)
    return same


def _is_lost(
    said: tuple[str, Any], record: set[tuple[str, Any]], name: str, version: str, present: Mapping[str, set[str]]
) -> bool:
    """Whether a value of a record whose row is there does not travel: it names a record that has no row, or an org at
    which the user shows no role."""
    field, value = said
    if field == "roles":
        return value[-1] not in present["orgs"]
    if field == "primaryOrg":
        return not any(name == "roles" and role[-1] == value for name, role in record)
    return any(field == own and value not in present[file] for own, file, _ in REFERENCES[version][name])


def _must_be_left_out(
    sourced_id: str, said: set[tuple[str, Any]], name: str, version: str, present: Mapping[str, set[str]]
) -> bool:
    """Whether a record lacks something that its row needs."""
    if name == "demographics":
        return sourced_id not in present["users"]
    lacks = [field for field in REQUIRED[version][name] if field not in dict(said)]
    named = [
        [value for field, value in said if field == own and value in present[file]]
        for own, file, required in REFERENCES[version][name]
        if required
    ]
    return bool(lacks) or not all(named)

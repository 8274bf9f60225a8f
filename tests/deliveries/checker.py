"""A checker of OneRoster CSV packages, from the tables of the standard alone. It imports nothing of the service."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import date

# After sourcedId, status, dateLastModified: the columns in their order; * required, > a reference, >> a list of them.
SHARED = {
    "academicSessions": "title* type* startDate* endDate* parentSourcedId>academicSessions schoolYear*",
    "orgs": "name* type* identifier parentSourcedId>orgs",
    "courses": "schoolYearSourcedId>academicSessions title* courseCode grades orgSourcedId*>orgs subjects subjectCodes",
    "classes": "title* grades courseSourcedId*>courses classCode classType* location schoolSourcedId*>orgs"
    " termSourcedIds*>>academicSessions subjects subjectCodes periods",
    "enrollments": "classSourcedId*>classes schoolSourcedId*>orgs userSourcedId*>users role* primary beginDate endDate",
    "demographics": "birthDate sex americanIndianOrAlaskaNative asian blackOrAfricanAmerican"
    " nativeHawaiianOrOtherPacificIslander white demographicRaceTwoOrMoreRaces hispanicOrLatinoEthnicity"
    " countryOfBirthCode stateOfBirthAbbreviation cityOfBirth publicSchoolResidenceStatus",
}
COLUMNS = {
    "1.1": SHARED
    | {
        "users": "enabledUser* orgSourcedIds*>>orgs role* username* userIds givenName* familyName* middleName"
        " identifier email sms phone agentSourcedIds>>users grades password",
    },
    "1.2": SHARED
    | {
        "users": "enabledUser* username* userIds givenName* familyName* middleName identifier email sms phone"
        " agentSourcedIds>>users grades password userMasterIdentifier preferredGivenName preferredMiddleName"
        " preferredFamilyName primaryOrgSourcedId>orgs pronouns",
        "roles": "userSourcedId*>users roleType* role* beginDate endDate orgSourcedId*>orgs"
        " userProfileSourcedId>userProfiles",
        "userProfiles": "userSourcedId*>users profileType* vendorId* applicationId description credentialType*"
        " username* password",
    },
}
_ABSENT_1_1 = {"categories", "classResources", "courseResources", "lineItems", "resources", "results"}
ABSENT = {
    "1.1": _ABSENT_1_1,
    "1.2": _ABSENT_1_1
    | {
        *("scoreScales", "lineItemLearningObjectiveIds", "lineItemScoreScales", "resultLearningObjectiveIds"),
        *("resultScoreScales", "userResources"),
    },
}
FIRST = ["sourcedId", "status", "dateLastModified"]
ID = re.compile(r"[0-9A-Za-z.\-_/@]{1,255}")
EXTENSION = "|ext:[a-zA-Z0-9.\\-_]+"
ROLES_1_1 = "administrator|aide|guardian|parent|proctor|relative|student|teacher"
ROLES_1_2 = (
    "aide|counselor|districtAdministrator|guardian|parent|principal|proctor|relative|siteAdministrator|student"
    "|systemAdministrator|teacher"
)
WORDS = {
    ("orgs", "type"): ("department|district|local|national|school|state", True),
    ("academicSessions", "type"): ("gradingPeriod|semester|schoolYear|term", True),
    ("classes", "classType"): ("homeroom|scheduled", True),
    ("enrollments", "role"): ("administrator|proctor|student|teacher", True),
    ("roles", "roleType"): ("primary|secondary", False),
    ("roles", "role"): (ROLES_1_2, True),
}
DAYS = {"startDate", "endDate", "beginDate", "birthDate"}
FLAGS = {
    *("enabledUser", "primary", "americanIndianOrAlaskaNative", "asian", "blackOrAfricanAmerican", "white"),
    *("nativeHawaiianOrOtherPacificIslander", "demographicRaceTwoOrMoreRaces", "hispanicOrLatinoEthnicity"),
}
LISTS = {"grades", "subjects", "subjectCodes", "periods"}
PAIRS = r"(\{[^{}:]+:[^{}]+\})(,\{[^{}:]+:[^{}]+\})*"


def check(content: bytes) -> list[str]:
    """The errors of a package, as sentences without values of rows."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        return list(_check(packed))


def _check(packed: zipfile.ZipFile) -> Iterator[str]:
    names = packed.namelist()
    if any("/" in name for name in names) or len(names) != len(set(names)):
        yield "a folder, or a name twice"
    texts = {name: packed.read(name) for name in names}
    for name, text in texts.items():
        yield from _check_text(name, text)
    tables = {
        name: list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True)) for name, text in texts.items()
    }
    manifest = tables.pop("manifest.csv", [[]])
    properties = dict(it for it in manifest[1:] if len(it) == 2)
    version = properties.pop("oneroster.version", "")
    if manifest[0] != ["propertyName", "value"] or version not in COLUMNS or len(properties) != len(manifest) - 2:
        yield "no manifest, or one with a property twice, or of another version"
        return
    yield from _check_manifest(properties, version, set(tables))
    rows: dict[str, list[dict[str, str]]] = {}
    for name in set(COLUMNS[version]) & {it.removesuffix(".csv") for it in tables}:
        header, *lines = tables[f"{name}.csv"]
        own = [*FIRST, *(re.split("[*>]", it)[0] for it in COLUMNS[version][name].split())]
        if header[: len(own)] != own or any(not it.startswith("metadata.") for it in header[len(own) :]):
            yield f"{name} has other columns"
            return
        if any(len(line) != len(header) for line in lines):
            yield f"{name} has a short or a long row"
            return
        rows[name] = [dict(zip(header, line, strict=True)) for line in lines]
    yield from _check_rows(version, {name: rows[name] for name in COLUMNS[version] if name in rows})


def _check_text(name: str, text: bytes) -> Iterator[str]:
    if text.startswith(b"\xef\xbb\xbf"):
        yield f"{name} has a byte order mark"
    rest = text.replace(b"\r\n", b"")
    if b"\n" in rest or b"\r" in rest:
        yield f"{name} has a line break that is no end of a line, or lines without CR"


def _check_manifest(properties: dict[str, str], version: str, files: set[str]) -> Iterator[str]:
    if properties.pop("manifest.version", "") != "1.0":
        yield "another version of the manifest"
    known = {f"file.{name}" for name in (*COLUMNS[version], *ABSENT[version])}
    if set(properties) != known:
        yield f"properties {sorted(set(properties) ^ known)}"
    for name in COLUMNS[version]:
        mode, is_there = properties.get(f"file.{name}"), f"{name}.csv" in files
        if mode != ("bulk" if is_there else "absent"):
            yield f"{name} is {mode}, and the package has {'it' if is_there else 'no such file'}"
    if files - {f"{name}.csv" for name in COLUMNS[version]}:
        yield "a file too many"


def _check_rows(version: str, rows: dict[str, list[dict[str, str]]]) -> Iterator[str]:
    ids = {name: {row["sourcedId"] for row in own} for name, own in rows.items()}
    for name, own in rows.items():
        if len(ids[name]) != len(own):
            yield f"{name} has an id twice"
        if not all(ID.fullmatch(it) for it in ids[name]):
            yield f"{name} has an id with other signs"
        if any(row["status"] or row["dateLastModified"] for row in own):
            yield f"{name} has a status or a date, which bulk leaves blank"
        for text in COLUMNS[version][name].split():
            header = re.split("[*>]", text)[0]
            fits = _make_test(version, name, header, text.partition(">")[2], ids)
            for row in own:
                if "*" in text and not row[header]:
                    yield f"{name} lacks {header}"
                elif row[header] and not fits(row[header]):
                    yield f"{name} has a bad {header}"
    yield from _check_rules(version, rows, ids)


def _make_test(version: str, name: str, header: str, refers: str, ids: dict[str, set[str]]) -> Callable[[str], bool]:
    """What a filled cell must be."""
    if refers:
        named = ids.get(refers.lstrip(">"), set())
        return lambda cell: all(it in named for it in (cell.split(",") if refers[0] == ">" else [cell]))
    words = _find_words(version, name, header)
    if words is not None:
        return lambda cell: bool(re.fullmatch(words, cell))
    if header in DAYS:
        return _is_day
    if header in LISTS:
        return lambda cell: all(cell.split(","))
    return lambda cell: cell == cell.strip()


def _find_words(version: str, name: str, header: str) -> str | None:
    """The pattern of the words of a column."""
    plain = {"schoolYear": "[0-9]{4}", "userIds": PAIRS, "password": "", **dict.fromkeys(FLAGS, "true|false")}
    if header in plain:
        return plain[header]
    if header == "sex":
        return "male|female" if version == "1.1" else "male|female|other|unspecified" + EXTENSION
    if (name, header) == ("users", "role"):
        return ROLES_1_1
    words, is_open = WORDS.get((name, header), (None, False))
    return words if words is None or version == "1.1" or not is_open else words + EXTENSION


def _is_day(cell: str) -> bool:
    try:
        return date.fromisoformat(cell).isoformat() == cell
    except ValueError:
        return False


def _check_rules(version: str, rows: dict[str, list[dict[str, str]]], ids: dict[str, set[str]]) -> Iterator[str]:
    types = {row["sourcedId"]: row["type"] for name in ("orgs", "academicSessions") for row in rows.get(name, ())}
    for name in ("classes", "enrollments"):
        if any(types.get(row["schoolSourcedId"]) != "school" for row in rows.get(name, ())):
            yield f"{name} names a school that is none"
    years = {row["schoolYearSourcedId"] for row in rows.get("courses", ())} - {""}
    if any(types[it] != "schoolYear" for it in years):
        yield "a course names a school year that is none"
    if not ids.get("demographics", set()) <= ids.get("users", set()):
        yield "demographics of nobody"
    for name in ("courses", "classes"):
        codes = [row for row in rows.get(name, ()) if row["subjectCodes"]]
        if any(row["subjects"].count(",") != row["subjectCodes"].count(",") for row in codes):
            yield f"{name} has other subjects than codes"
    if version == "1.2":
        yield from _check_roles(rows)


def _check_roles(rows: dict[str, list[dict[str, str]]]) -> Iterator[str]:
    roles = rows.get("roles", ())
    primary = [(it["userSourcedId"], it["orgSourcedId"]) for it in roles if it["roleType"] == "primary"]
    if len(primary) != len(set(primary)):
        yield "two primary roles at an org"
    owners = {row["sourcedId"]: row["userSourcedId"] for row in rows.get("userProfiles", ())}
    named = [row for row in roles if row["userProfileSourcedId"]]
    if any(owners.get(row["userProfileSourcedId"]) != row["userSourcedId"] for row in named):
        yield "a role with the profile of another user"
    at = {(row["userSourcedId"], row["orgSourcedId"]) for row in roles}
    main = {(row["sourcedId"], row["primaryOrgSourcedId"]) for row in rows.get("users", ())}
    if any(org and (user, org) not in at for user, org in main):
        yield "a primary org at which the user has no role"

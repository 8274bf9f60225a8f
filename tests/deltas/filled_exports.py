"""Random districts whose records say something in every column: what small districts leave empty, filled at random."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from tests.sync.small_exports import list_columns

from .districts import District

Cells = dict[str, str]

# Texts that JSON, HTML and SQL each write otherwise.
TEXTS = ("Zoë", 'the "old" \\ one', "</script>", "O'Brien -- %s", "𝒳 🎒", "a\u2028b", "{}", "null", "0042")
LISTS = ("Art", "Art,Zoë", 'Math,"2",\\,null')
GRADES = ("05", "KG,01", "12")
DAYS = ("2024-02-29", "1999-12-31", "2027-06-12")
FLAGS = ("true", "false")
WORDS = "counselor principal siteAdministrator districtAdministrator systemAdministrator proctor parent relative aide"
# file -> column -> what its cells say; a cell that no one fills is as the district has it.
CELLS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "orgs": {"identifier": TEXTS, "name": TEXTS},
    "academicSessions": {"title": TEXTS, "startDate": DAYS, "endDate": DAYS, "schoolYear": ("2026", "2028")},
    "courses": {
        **dict.fromkeys(("title", "courseCode"), TEXTS),
        "grades": GRADES,
        **dict.fromkeys(("subjects", "subjectCodes"), LISTS),
    },
    "classes": {
        **dict.fromkeys(("title", "classCode", "location"), TEXTS),
        "classType": ("homeroom", "scheduled", "ext:lab"),
        "grades": GRADES,
        **dict.fromkeys(("subjects", "subjectCodes", "periods"), LISTS),
    },
    "users": {
        **dict.fromkeys(("username", "familyName", "middleName", "identifier", "email", "sms", "phone"), TEXTS),
        **dict.fromkeys(("userMasterIdentifier", "preferredGivenName", "preferredMiddleName"), TEXTS),
        **dict.fromkeys(("preferredFamilyName", "pronouns"), TEXTS),
        "enabledUser": FLAGS,
        "userIds": ("{LDAP:zoë}", '{SIS:7},{a"b:c\\d}'),
        "grades": GRADES,
    },
    "enrollments": {
        "role": ("student", "teacher", "administrator", "proctor", "ext:aide"),
        "primary": FLAGS,
        **dict.fromkeys(("beginDate", "endDate"), DAYS),
    },
    "demographics": {
        "birthDate": DAYS,
        "sex": ("male", "female", "other", "unspecified", "ext:x"),
        **dict.fromkeys(("americanIndianOrAlaskaNative", "asian", "blackOrAfricanAmerican", "white"), FLAGS),
        **dict.fromkeys(("nativeHawaiianOrOtherPacificIslander", "demographicRaceTwoOrMoreRaces"), FLAGS),
        "hispanicOrLatinoEthnicity": FLAGS,
        **dict.fromkeys(("countryOfBirthCode", "stateOfBirthAbbreviation", "cityOfBirth"), TEXTS),
        "publicSchoolResidenceStatus": TEXTS,
    },
    "roles": dict.fromkeys(("beginDate", "endDate"), DAYS),
}
METADATA = dict.fromkeys(("orgs", "users", "demographics"), ("metadata.note", "metadata.busRoute"))
# An id that an address has to encode; ids of the service may hold anything.
STRANGE = "u/7 ö%#?"


def add_strange_records(district: District) -> None:
    """Orgs of other types above, between and below the others, with courses and people, and sessions of all types."""
    feed, dice = district.feed, district.dice
    state = district.add("orgs", f"{feed}-state", name="State", type="state")
    district.rows["orgs"][f"{feed}-d"]["parentSourcedId"] = state
    district.add("orgs", f"{feed}-campus", name="Campus", type="local", parentSourcedId=f"{feed}-d")
    district.rows["orgs"][f"{feed}-s2"]["parentSourcedId"] = f"{feed}-campus"
    district.add("orgs", f"{feed}-faculty", name="Faculty", type="ext:faculty", parentSourcedId=f"{feed}-s1")
    for kind in ("ext:camp", "term", "gradingPeriod"):
        above = district.dice.choice([f"{feed}-t1", f"{feed}-y"])
        district.add("academicSessions", district.name("t"), title=kind, type=kind, parentSourcedId=above)
    for org in ("state", "faculty"):
        district.add("courses", district.name("c"), title=org, orgSourcedId=f"{feed}-{org}")
    for place in range(8):
        user = district.add("users", f"{feed}-{STRANGE}{place}", givenName="Strange")
        for org in dice.sample(sorted(district.rows["orgs"]), dice.randint(0, 4)):
            word, kind = dice.choice(["student", "teacher", "guardian"]), dice.choice(["primary", "secondary"])
            role = district.name("r")
            district.add("roles", role, userSourcedId=user, roleType=kind, role=word, orgSourcedId=org)


def fill(dice: Random) -> Callable[[Path], None]:
    """Fills the files of an export, so that each column of it is empty in some rows, and says something in others."""

    def bend(folder: Path) -> None:
        files = {name: _read(folder, name) for name in CELLS if (folder / f"{name}.csv").exists()}
        orgs = [row["sourcedId"] for row in files["orgs"]]
        years = [row["sourcedId"] for row in files["academicSessions"] if row["type"] == "schoolYear"]
        users = [row["sourcedId"] for row in files["users"]]
        agents = [",".join(dice.sample(users, 3)) for _ in users]
        references = {
            "courses": {"schoolYearSourcedId": years},
            "users": {"primaryOrgSourcedId": orgs, "agentSourcedIds": agents},
        }
        for name, rows in files.items():
            columns = {**CELLS[name], **dict.fromkeys(METADATA.get(name, ()), TEXTS), **references.get(name, {})}
            for row in rows:
                said = {column: dice.choice(cells) for column, cells in columns.items() if dice.random() < 0.6}
                row |= dict.fromkeys(METADATA.get(name, ()), "") | said
        profiles = [_make_profile(user, place, dice) for user in users for place in range(2)]
        profiles = [profile for profile in profiles if dice.random() < 0.5]
        for row in files["roles"]:
            own = [it["sourcedId"] for it in profiles if it["userSourcedId"] == row["userSourcedId"]]
            row["userProfileSourcedId"] = dice.choice(["", *own])
            if dice.random() < 0.3:
                row["role"] = dice.choice([*WORDS.split(), "ext:coach"])
        for name, rows in (files | {"userProfiles": profiles}).items():
            _write(folder, name, rows)
        manifest = folder / "manifest.csv"
        manifest.write_text(manifest.read_text().replace("userProfiles,absent", "userProfiles,bulk"))

    return bend


def _make_profile(user: str, place: int, dice: Random) -> Cells:
    says = {"vendorId": TEXTS, "applicationId": ("", *TEXTS), "description": ("", *TEXTS), "username": TEXTS}
    key = {"sourcedId": f"{user}-{9 - place}/p", "userSourcedId": user}
    return key | {"profileType": "learner", "credentialType": "name"} | {it: dice.choice(says[it]) for it in says}


def _read(folder: Path, name: str) -> list[Cells]:
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _write(folder: Path, name: str, rows: list[Cells]) -> None:
    columns = [*list_columns(name, "1.2"), *METADATA.get(name, ())]
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)

"""The fields of every resource in both versions, as the standard has them, and which kind of value each one is.

Written down from the standard's tables and not from the service's schemas: what is served, documented, filtered and
sorted is held against this.
"""

from __future__ import annotations

# Kinds of value: text, token (a word of a list), flag, instant, day, texts (a list of texts), ref, refs.
BASE = {"sourcedId": "text!", "status": "token!", "dateLastModified": "instant!"}

ORG = {**BASE, "metadata": "metadata", "name": "text!", "type": "token!", "parent": "ref", "children": "refs"}
SESSION = {
    **BASE,
    "title": "text!",
    "type": "token!",
    "startDate": "day!",
    "endDate": "day!",
    "parent": "ref",
    "children": "refs",
    "schoolYear": "text!",
}
COURSE = {
    **BASE,
    "title": "text!",
    "schoolYear": "ref",
    "grades": "texts",
    "subjects": "texts",
    "org": "ref",
    "subjectCodes": "texts",
    "resources": "unserved",
}
CLASS = {
    **BASE,
    "title": "text!",
    "classCode": "text",
    "classType": "token",
    "location": "text",
    "grades": "texts",
    "subjects": "texts",
    "course": "ref!",
    "school": "ref!",
    "terms": "refs!",
    "subjectCodes": "texts",
    "periods": "texts",
    "resources": "unserved",
}
USER = {
    **BASE,
    "metadata": "metadata",
    "userIds": {"type": "text!", "identifier": "text!"},
    "enabledUser": "flag!",
    "givenName": "text!",
    "familyName": "text!",
    "middleName": "text",
    "identifier": "text",
    "email": "text",
    "sms": "text",
    "phone": "text",
    "agents": "refs",
    "grades": "texts",
}
ENROLLMENT = {
    **BASE,
    "user": "ref!",
    "class": "ref!",
    "school": "ref!",
    "role": "token!",
    "primary": "flag",
    "beginDate": "day",
    "endDate": "day",
}
DEMOGRAPHICS = {
    **BASE,
    "metadata": "metadata",
    "birthDate": "day",
    "sex": "token",
    "americanIndianOrAlaskaNative": "flag",
    "asian": "flag",
    "blackOrAfricanAmerican": "flag",
    "nativeHawaiianOrOtherPacificIslander": "flag",
    "white": "flag",
    "demographicRaceTwoOrMoreRaces": "flag",
    "hispanicOrLatinoEthnicity": "flag",
    "countryOfBirthCode": "text",
    "stateOfBirthAbbreviation": "text",
    "cityOfBirth": "text",
    "publicSchoolResidenceStatus": "text",
}

# version -> collection path -> field -> kind; a `!`, at the kind or at the name of a list, marks what all records have.
FIELDS: dict[str, dict[str, dict[str, str | dict[str, str]]]] = {
    "v1p1": {
        "/orgs": {**ORG, "identifier": "text"},
        "/academicSessions": {**SESSION},
        "/courses": {**COURSE, "courseCode": "text"},
        "/classes": {**CLASS},
        "/users": {**USER, "username": "text!", "role": "token!", "orgs": "refs!"},
        "/enrollments": {**ENROLLMENT},
        "/demographics": {**DEMOGRAPHICS},
    },
    "v1p2": {
        "/orgs": {**ORG, "identifier": "text!"},
        "/academicSessions": {**SESSION},
        "/courses": {**COURSE, "courseCode": "text!"},
        "/classes": {**CLASS},
        "/users": {
            **USER,
            "username": "text",
            "userMasterIdentifier": "text",
            "preferredFirstName": "text",
            "preferredMiddleName": "text",
            "preferredLastName": "text",
            "pronouns": "text",
            "roles!": {
                "roleType": "token!",
                "role": "token!",
                "org": "ref!",
                "userProfile": "address",
                "beginDate": "day",
                "endDate": "day",
            },
            "userProfiles": {
                "profileId": "address!",
                "profileType": "text!",
                "vendorId": "text!",
                "applicationId": "text",
                "description": "text",
                "credentials": "credentials",
            },
            "primaryOrg": "ref",
            "resources": "unserved",
        },
        "/enrollments": {**ENROLLMENT},
        "/demographics": {**DEMOGRAPHICS},
    },
}
RESOURCES = tuple(FIELDS["v1p1"])
MODELS = {
    "/orgs": "Org",
    "/academicSessions": "AcademicSession",
    "/courses": "Course",
    "/classes": "Class",
    "/users": "User",
    "/enrollments": "Enrollment",
    "/demographics": "Demographics",
}
# Keys of metadata in the exports, and the texts behind them.
METADATA_KEYS = {"/orgs": ("address1", "city"), "/users": ("busRoute", "locker"), "/demographics": ("notes",)}


def filterable(version: str, path: str) -> dict[str, str]:
    """The names that `filter` takes, and the kind of each: text, flag, instant, day, texts; `many ` before those that
    are reached through a list."""
    names = {}
    for field, kind in FIELDS[version][path].items():
        name = field.rstrip("!")
        if isinstance(kind, dict):
            names |= _below(name, kind)
        elif kind == "metadata":
            names |= {f"metadata.{key}": "text" for key in METADATA_KEYS[path]}
        else:
            names |= _name(name, kind.rstrip("!"))
    return names


def is_shared(path: str, name: str) -> bool:
    """Whether a name in a filter means the same in both versions: no word of a list, which 1.1 may say otherwise."""
    field = name.partition(".")[0]
    kinds = [FIELDS[version][path].get(field) for version in FIELDS]
    return kinds[0] == kinds[1] and kinds[0] not in ("token", "token!")


def _below(name: str, members: dict[str, str]) -> dict[str, str]:
    found = {}
    for member, kind in members.items():
        if kind == "credentials":
            found |= {f"{name}.credentials.type": "many text", f"{name}.credentials.username": "many text"}
        else:
            inner = _name(f"{name}.{member}", kind.rstrip("!"))
            found |= {path: f"many {inner_kind}" for path, inner_kind in inner.items()}
    return found


def _name(name: str, kind: str) -> dict[str, str]:
    if kind == "ref":
        return {f"{name}.sourcedId": "text"}
    if kind == "refs":
        return {f"{name}.sourcedId": "many text"}
    if kind in ("unserved", "address"):
        return {}
    return {name: "text" if kind == "token" else kind}


def sortable(version: str, path: str) -> list[str]:
    """The names that `sort` takes: those with one value a record."""
    return [name for name, kind in filterable(version, path).items() if kind != "texts" and not kind.startswith("many")]


def top_level(version: str, path: str) -> list[str]:
    """The names that `fields` takes."""
    return [name.rstrip("!") for name in FIELDS[version][path]]


def required(version: str, path: str) -> set[str]:
    """The fields that every whole record has."""
    return {
        name.rstrip("!")
        for name, kind in FIELDS[version][path].items()
        if name.endswith("!") or (isinstance(kind, str) and kind.endswith("!"))
    }

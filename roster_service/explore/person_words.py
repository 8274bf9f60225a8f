"""The words of an answer to a parent: parts, fields, ways and reasons as somebody reads them who knows nothing of
rosters."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from roster_service.accounts.ways import WayKind
from roster_service.explore.who_sees import Obstacle
from roster_service.roster.person_parts import PART_OF, PersonPart
from roster_service.roster.withheld import WithheldField

_P, _F = PersonPart, WithheldField
PART_WORDS: Mapping[PersonPart, str] = {
    _P.NAMES: "name, user name or grade",
    _P.EMAIL: "e-mail address",
    _P.PHONE: "phone number",
    _P.IDENTIFIER: "number at the school or district",
    _P.USER_IDS: "account names or numbers in other computer systems",
    _P.MIDDLE_NAME: "middle name",
    _P.PREFERRED_NAMES: "preferred name",
    _P.PRONOUNS: "pronouns",
    _P.CLASSES: "classes, and who teaches or attends them",
    _P.GUARDIANS: "who is whose parent or guardian",
    _P.BIRTH_DATE: "birth date",
    _P.SEX: "sex",
    _P.RACE: "race or ethnicity",
    _P.BIRTH_PLACE: "place of birth",
    _P.RESIDENCE: "place of residence, as far as it decides on the school",
    _P.STUDENT_METADATA: "other entries that the school’s records have of pupils",
    _P.GUARDIAN_METADATA: "other entries that the school’s records have of parents or guardians",
    _P.DEMOGRAPHIC_METADATA: "other entries beside birth date, sex and ethnicity",
}
# Without any part.
NO_PART_WORDS = "nothing but that the person is at the school: an id, the role, the school"
# Of the fields that are one of several of their part.
_FIELD_WORDS: Mapping[WithheldField, str] = {
    _F.PHONE: "the phone number for calls",
    _F.SMS: "the phone number for text messages",
    _F.AMERICAN_INDIAN_OR_ALASKA_NATIVE: "whether American Indian or Alaska Native",
    _F.ASIAN: "whether Asian",
    _F.BLACK_OR_AFRICAN_AMERICAN: "whether Black or African American",
    _F.NATIVE_HAWAIIAN_OR_OTHER_PACIFIC_ISLANDER: "whether Native Hawaiian or other Pacific Islander",
    _F.WHITE: "whether White",
    _F.DEMOGRAPHIC_RACE_TWO_OR_MORE_RACES: "whether of two or more races",
    _F.HISPANIC_OR_LATINO_ETHNICITY: "whether Hispanic or Latino",
    _F.COUNTRY_OF_BIRTH_CODE: "the country of birth",
    _F.STATE_OF_BIRTH_ABBREVIATION: "the state of birth",
    _F.CITY_OF_BIRTH: "the city of birth",
}
WAY_WORDS: Mapping[WayKind, str] = {
    WayKind.SECRET: "when its product asks for it",
    WayKind.API_KEY: "when its product asks for it",
    WayKind.LINK: "when its product asks for it, once the company has used an invitation that waits for it",
    WayKind.DELIVERY: "in files that are sent to it",
    WayKind.FIRST_FILE: "in files that are sent to it, once the district has looked at the first one and let it go",
}
REMOVED = "it is no longer one of the companies that use this service"
UNKNOWN = "the school’s records here do not have this person"
OBSTACLE_WORDS: Mapping[Obstacle, str] = {
    Obstacle.KEPT: "everything about this person is kept from it",
    Obstacle.DISABLED: "its access is switched off",
    Obstacle.NOT_AGREED: "no agreement with it holds now",
    Obstacle.NOT_GRANTED: "it has no permission for any school",
    Obstacle.NO_WAY: "it holds no valid password or key, and no files are sent to it",
    Obstacle.LEFT_OUT: "it may get some people only, and this person is not one of them",
    Obstacle.NOT_COVERED: "its permission does not cover this person",
}


def list_held_back(withheld: Collection[str], known: Collection[str], seen: Collection[str]) -> list[str]:
    """Returns the words for what a vendor does not get of the parts that the roster has of a person: of a part as a
    whole, or of its fields. `withheld`: words of fields; `seen`: the parts that it gets."""
    fields = list(map(WithheldField, withheld))
    found = dict[str, None]()
    for part in (part for part in PART_WORDS if part in known):
        own = [field for field, shown in PART_OF.items() if shown is part]
        kept = [field for field in own if field in fields]
        is_whole = part not in seen or (bool(own) and kept == own)
        found.update(dict.fromkeys([PART_WORDS[part]] if is_whole else [_FIELD_WORDS[field] for field in kept]))
    return list(found)

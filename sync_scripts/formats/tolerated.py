"""What exports get wrong so often that it is put up with: one table, each row told in the report whenever it applies.

The table says what is taken and how it is read; the rows that concern cells are bound to kinds of cells in `cells`,
the others to the header, the bytes, the file names and the manifest, by the modules of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import ColumnElement

SQLText = ColumnElement[str]


@dataclass(frozen=True)
class Deviation:
    """One thing that is put up with: `taken` continues "in N cells, ..."; `example` is what stands in the export,
    and what it is read as."""

    taken: str
    example: tuple[str, str]


FLAG_SPELLING = Deviation("a flag that is spelt otherwise than true or false (TRUE, False, 1, 0)", ("TRUE", "true"))
WORD_CASE = Deviation("a word in another letter case", ("Scheduled", "scheduled"))
US_DAY = Deviation("a day written M/D/YYYY, the month first", ("1/05/2023", "2023-01-05"))
MIDNIGHT = Deviation("a day written as its midnight", ("2023-01-05T00:00:00.000Z", "2023-01-05"))
LIST_SPACES = Deviation("spaces around the commas of a list", ("09, 10", "09,10"))
STATUS_IN_BULK = Deviation("a status in a bulk file, which needs none", ("active", "active"))
HEADER_CASE = Deviation("a header in another letter case", ("GivenName", "givenName"))
HEADER_SPELLING = Deviation("a header with a known misspelling", ("dataLastModified", "dateLastModified"))
BYTE_ORDER_MARK = Deviation("a byte order mark before the header", ("\ufeffsourcedId", "sourcedId"))
FILE_NAME_CASE = Deviation("a file name in another letter case", ("userprofiles.csv", "userProfiles.csv"))
MANIFEST_VERSION = Deviation("the manifest version 1 for 1.0", ("1", "1.0"))
PROPERTY_CASE = Deviation("a manifest property in another letter case", ("OneRoster.Version", "oneroster.version"))
BLANK_MODE = Deviation("a blank mode in the manifest", ("", "absent"))
NO_DISTRICT = Deviation("no org of the type district", ("", "the feed as a district, above the orgs without a parent"))

DEVIATIONS: tuple[Deviation, ...] = (
    FLAG_SPELLING,
    WORD_CASE,
    US_DAY,
    MIDNIGHT,
    LIST_SPACES,
    STATUS_IN_BULK,
    HEADER_CASE,
    HEADER_SPELLING,
    BYTE_ORDER_MARK,
    FILE_NAME_CASE,
    MANIFEST_VERSION,
    PROPERTY_CASE,
    BLANK_MODE,
    NO_DISTRICT,
)

# The flags of FLAG_SPELLING, and what they say.
FLAG_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {"TRUE": "true", "True": "true", "1": "true", "FALSE": "false", "False": "false", "0": "false"}
)
# The misspellings of HEADER_SPELLING in lower case, and the header that is meant; each counts in the files that have
# such a header.
HEADER_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        "datalastmodified": "dateLastModified",
        "datelastmodifed": "dateLastModified",
        "sourceid": "sourcedId",
        "prefferedgivenname": "preferredGivenName",
        "preferedgivenname": "preferredGivenName",
        "prefferedmiddlename": "preferredMiddleName",
        "preferedmiddlename": "preferredMiddleName",
        "prefferedfamilyname": "preferredFamilyName",
        "preferedfamilyname": "preferredFamilyName",
        "orgsourcedid": "orgSourcedIds",
        "agentsourcedid": "agentSourcedIds",
        "termsourcedid": "termSourcedIds",
        # Demographics of 1.0 named their user so; the files with a column of this name never come to look it up.
        "usersourcedid": "sourcedId",
    }
)


@dataclass(frozen=True)
class Tolerance:
    """A quirk of the cells of one kind: `holds` where a cell has it, `read` is the cell as it should be; None: the
    conversion of the kind reads it as it is."""

    deviation: Deviation
    holds: Callable[[SQLText], ColumnElement[bool]]
    read: Callable[[SQLText], SQLText] | None = None


def describe_cells(file_name: str, header: str, count: int, deviation: Deviation) -> str:
    """The sentence of the report about a quirk in the cells of a column."""
    return f"{file_name}, column {header}: in {count} {'row' if count == 1 else 'rows'}, {deviation.taken}"


def describe_deviation(place: str, deviation: Deviation, found: str = "") -> str:
    """The sentence of the report about a quirk of a file; `found`: what stands there, where that may be said."""
    return f"{place}: {deviation.taken}" + (f" ({found})" if found else "")

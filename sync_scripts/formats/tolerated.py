"""The tolerated deviations: mistakes that exports make so often that the sync accepts, counts and reports them.

Each entry of the table names what the sync accepts and how it reads it. `formats/cells.py` binds the deviations of
cells to kinds of cells. The modules that read headers, bytes, file names and the manifest bind the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import ColumnElement

SQLText = ColumnElement[str]


@dataclass(frozen=True)
class Deviation:
    """A tolerated deviation. `taken` names it in a report, after "in N rows, "; `example`: a text of an export, and
    the text that the sync reads instead."""

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

# The spellings of FLAG_SPELLING, and the flag that each means.
FLAG_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {"TRUE": "true", "True": "true", "1": "true", "FALSE": "false", "False": "false", "0": "false"}
)
# The misspellings of HEADER_SPELLING in lower case, and the header that each means. A misspelling counts only in files
# that declare the header it means.
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
        # OneRoster 1.0 named the user of demographics so. A file that declares this header is never looked up here.
        "usersourcedid": "sourcedId",
    }
)


@dataclass(frozen=True)
class Tolerance:
    """A tolerated deviation of the cells of one kind. `holds`: the condition that a cell has it; `read`: the corrected
    text (None: the conversion of the kind reads the text as it is)."""

    deviation: Deviation
    holds: Callable[[SQLText], ColumnElement[bool]]
    read: Callable[[SQLText], SQLText] | None = None


def describe_cells(file_name: str, header: str, count: int, deviation: Deviation) -> str:
    """The sentence of the report about a deviation in `count` cells of a column."""
    return f"{file_name}, column {header}: in {count} {'row' if count == 1 else 'rows'}, {deviation.taken}"


def describe_deviation(place: str, deviation: Deviation, found: str = "") -> str:
    """The sentence of the report about a deviation of a file. `found`: the text of the export, where the report may
    quote it."""
    return f"{place}: {deviation.taken}" + (f" ({found})" if found else "")

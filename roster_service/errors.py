"""What the service may refuse, as facts; no HTTP here.

`Problem` is the closed list of reasons. Each door (rostering, token endpoint, command line) has its own table from
these reasons to its own words and codes, so a reason is named once and shaped where it leaves the house.
"""

from __future__ import annotations

import enum
import traceback

FAULT_DESCRIPTION = "the service failed; the failure is in its log"

# Seconds after which somebody may try again who was refused because the service is BUSY.
BUSY_RETRY_SECONDS = 5


class Problem(enum.Enum):
    """Why a request is refused, or answered with a warning."""

    METHOD = "method"
    NO_TOKEN = "token missing"  # noqa: S105  (a reason, not a secret)
    BAD_TOKEN = "token refused"  # noqa: S105
    VERSION = "version"
    SCOPE = "scope"
    PARAMETER = "parameter"
    FILTER = "filter"
    SORT_FIELD = "sort field"
    SELECTION_FIELD = "selection field"
    BLANK_SELECTION = "blank selection"
    UNKNOWN_RECORD = "unknown record"
    UNKNOWN_PATH = "unknown path"
    TOO_LARGE = "too large"
    API_KEY = "api key"
    CREDENTIALS = "credentials"
    PRIVILEGE = "privilege"
    RATE = "rate"
    BUSY = "busy"
    INTERNAL = "internal"


class RosterServiceError(Exception):
    """The root of the service's own errors; `str()` is one sentence for the person who can mend it."""


class SettingError(RosterServiceError):
    """A setting has an unknown name or a value that cannot be used."""


class DatabaseUnavailableError(RosterServiceError):
    """The database cannot be reached, or its tables are not the ones that this version needs."""


class StorageError(RosterServiceError):
    """A file that the service itself has to write cannot be written: the disk is full, or a right is missing."""


class CommandError(RosterServiceError):
    """An operator asked for something that cannot be done: an unknown vendor, a name already taken."""


class RefusedRequestError(RosterServiceError):
    """A request is refused: `problem` says why, `description` names the offending part and its place."""

    def __init__(self, problem: Problem, description: str) -> None:
        super().__init__(description)
        self.problem = problem
        self.description = description


class ThrottledRequestError(RefusedRequestError):
    """A request that comes too soon: `seconds` says when to try again."""

    def __init__(self, description: str, seconds: int) -> None:
        super().__init__(Problem.RATE, description)
        self.seconds = seconds


def describe_fault(error: BaseException) -> str:
    """The kind of a fault, the place, and those of the faults behind it. Not their words, which can quote values."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    behind = error.__cause__ or error.__context__
    return f"{type(error).__name__}\n{frames}" + (f"after {describe_fault(behind)}" if behind is not None else "")


def name_fault(error: BaseException) -> str:
    """The kind of a fault in a line, with the words of the operating system where it has some: these quote no value."""
    words = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    return type(error).__name__ + words

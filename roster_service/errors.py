"""The service's own errors, independent of HTTP.

`Problem` is the closed list of reasons for which a request is refused. The rostering interface and the vendor interface
each have a table from these reasons to their status and error code.
"""

from __future__ import annotations

import enum
import sys
import traceback

# Clients get this text for a fault of the service; the log has the details.
FAULT_DESCRIPTION = "the service failed; the failure is in its log"

# The `Retry-After` of a refusal for BUSY.
BUSY_RETRY_SECONDS = 5
# The same for a vendor with too many requests at the same time.
SLOT_RETRY_SECONDS = 1


class Problem(enum.Enum):
    """The reason for which a request is refused, or answered with a warning. Its text is the cause in the counters of
    refused requests, so another text begins another row there."""

    METHOD = "method not allowed"
    NO_TOKEN = "token missing"  # noqa: S105  (a reason, not a secret)
    BAD_TOKEN = "token not valid"  # noqa: S105
    # Of this service, but its time is over, or a right of its client has changed since.
    ENDED_TOKEN = "token ended"  # noqa: S105
    BAD_SIGNATURE = "signature not valid"
    VERSION = "wrong version"
    SCOPE = "scope missing"
    PARAMETER = "parameter or body not valid"
    FILTER = "filter not valid"
    FILTER_WORD = "filter word"
    SORT_FIELD = "sort field"
    SELECTION_FIELD = "selection field"
    BLANK_SELECTION = "no field selected"
    UNKNOWN_RECORD = "no such record"
    PULL_ENDED = "pull ended"
    UNKNOWN_PATH = "no such path"
    TOO_LARGE = "too large"
    API_KEY = "API key missing or not valid"
    CREDENTIALS = "id, secret or password missing or wrong"
    DISABLED = "client disabled, or its secret has ended"
    PRIVILEGE = "permission missing"
    NO_GRANT = "no grant"
    # It has ended, or not begun, or there is none and one is required.
    AGREEMENT = "no agreement"
    RATE = "too many requests"
    BUSY = "busy"
    INTERNAL = "internal"


class ErrorProfile(enum.StrEnum):
    """The form of errors and warnings in OneRoster 1.2. SPECIFICATION: the object `statusInfoSet`, as the specification
    of this service demands. OFFICIAL: the members of the standard's own schema. BOTH: these beside `statusInfoSet`."""

    SPECIFICATION = "specification"
    BOTH = "both"
    OFFICIAL = "official"


class RosterServiceError(Exception):
    """The base class of the service's own errors; `str()` is one sentence for the person who can correct the cause.
    `exit_code`: of a command that it ends."""

    exit_code = 1


class SettingError(RosterServiceError):
    """A setting has an unknown name or a value that cannot be used."""


class DatabaseUnavailableError(RosterServiceError):
    """The service cannot reach the database, or cannot use its tables."""


class SchemaError(DatabaseUnavailableError):
    """The tables or the roles of the database are not those that this version needs."""


class StorageError(RosterServiceError):
    """The service cannot write one of its own files: the disk is full, or a permission is missing."""


class CommandError(RosterServiceError):
    """A command cannot do what the operator asked: an unknown vendor, a name that is already taken."""


class TooManyTriesError(CommandError):
    """There were too many wrong tries. `seconds`: until the next one."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"there were too many wrong tries; try again in {seconds} seconds")
        self.seconds = seconds


class SentBeforeError(CommandError):
    """A form that counts once was sent again. `at`: when it made its change, ISO 8601."""

    def __init__(self, at: str) -> None:
        super().__init__("this form was sent before")
        self.at = at


class WrongCodeError(CommandError):
    """A one-time code is wrong, or was used."""


class UnknownPersonError(CommandError):
    """Nobody who is known has an id or a name."""

    exit_code = 2


class RefusedRequestError(RosterServiceError):
    """A request is refused. `problem`: the reason; `description`: the offending part of the request and its place."""

    def __init__(self, problem: Problem, description: str) -> None:
        super().__init__(description)
        self.problem = problem
        self.description = description


class ThrottledRequestError(RefusedRequestError):
    """A request is refused because it exceeds a rate limit. `seconds`: how long the caller has to wait."""

    def __init__(self, description: str, seconds: int) -> None:
        super().__init__(Problem.RATE, description)
        self.seconds = seconds


class NotAgreedError(RefusedRequestError):
    """A request is refused because the agreement of its vendor does not hold now. `words`: why, with the day."""

    def __init__(self, words: str) -> None:
        super().__init__(
            Problem.AGREEMENT,
            f"the agreement of your account {words}. Another token or another try changes nothing: ask the district. "
            "This is not an empty roster, and says nothing of the records that you have",
        )
        self.words = words


# The header of such a refusal, with the words.
AGREEMENT_HEADER = "X-Roster-Agreement"


def make_slot_refusal() -> ThrottledRequestError:
    """Returns the refusal of a request whose vendor has too many requests that run at the same time."""
    return ThrottledRequestError("too many of your requests run at the same time", SLOT_RETRY_SECONDS)


def describe_fault(error: BaseException) -> str:
    """Returns the type and the traceback of an error, and of the errors that caused it, without their messages."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    behind = error.__cause__ or error.__context__
    shown = f"{type(error).__name__}{show_message(error)}\n{frames}"
    return shown + (f"after {describe_fault(behind)}" if behind is not None else "")


def show_message(error: BaseException) -> str:
    """Returns the message of an error behind a colon in Python's development mode (`PYTHONDEVMODE=1`), and nothing
    anywhere else: a message can quote personal data."""
    return f": {error}" if sys.flags.dev_mode else ""


def name_fault(error: BaseException) -> str:
    """Returns the type of an error, and for an OSError the operating system's message, which quotes no value."""
    words = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    return type(error).__name__ + words

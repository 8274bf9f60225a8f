"""The envelope of errors and warnings, `statusInfoSet`, the table of its codes, and the form of OneRoster 1.2."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from marshmallow import fields, validate

from roster_service.errors import ErrorProfile, Problem
from roster_service.schemas.kinds import StrictSchema, describe
from roster_service.serving.plan import Notice

# Problem -> (HTTP status, imsx_codeMinor): from the specification of the service, and otherwise the standard's codes.
STATUS_INFO: dict[Problem, tuple[int, str]] = {
    Problem.METHOD: (400, "invaliddata"),
    Problem.NO_TOKEN: (401, "unauthorisedrequest"),
    Problem.BAD_TOKEN: (401, "unauthorisedrequest"),
    Problem.ENDED_TOKEN: (401, "unauthorisedrequest"),
    Problem.BAD_SIGNATURE: (401, "unauthorisedrequest"),
    Problem.VERSION: (400, "invaliddata"),
    Problem.SCOPE: (403, "forbidden"),
    Problem.NO_GRANT: (403, "forbidden"),
    Problem.AGREEMENT: (403, "forbidden"),
    Problem.PARAMETER: (400, "invaliddata"),
    Problem.FILTER: (400, "invalid_filter_field"),
    Problem.FILTER_WORD: (200, "invalid_filter_field"),
    Problem.SORT_FIELD: (200, "invalid_sort_field"),
    Problem.SELECTION_FIELD: (200, "invalid_selection_field"),
    Problem.BLANK_SELECTION: (400, "invalid_blank_selection_field"),
    Problem.UNKNOWN_RECORD: (404, "unknownobject"),
    Problem.PULL_ENDED: (410, "unknownobject"),
    Problem.UNKNOWN_PATH: (404, "unknownobject"),
    Problem.TOO_LARGE: (400, "invaliddata"),
    Problem.RATE: (429, "server_busy"),
    Problem.BUSY: (503, "server_busy"),
    Problem.INTERNAL: (500, "internal_server_error"),
}

# The vocabulary of 1.2 lacks this code of 1.1.
OFFICIAL_CODES = {"invalid_blank_selection_field": "invalid_selection_field"}
# The name that the standard gives to the system which answers.
ANSWERING_SYSTEM = "TargetEndSystem"
WARNING_HEADER = "X-Roster-Warning"
# In characters: of the text in the header. Proxies bound the size of all headers together.
LONGEST_WARNING = 300

DESCRIPTION = "The reason for people: the offending part of the request, and the request"
CODES_MINOR = tuple(dict.fromkeys(minor for _, minor in STATUS_INFO.values()))


class StatusInfoSet(StrictSchema):
    """The error of a request, or the parts of it that the service ignored."""

    imsx_codeMajor = fields.String(
        required=True,
        validate=validate.OneOf(("success", "failure")),
        metadata=describe("`failure` of an error, `success` of a warning"),
    )
    imsx_severity = fields.String(
        required=True, validate=validate.OneOf(("warning", "error")), metadata=describe("Whether there are records")
    )
    imsx_codeMinor = fields.String(
        required=True, validate=validate.OneOf(CODES_MINOR), metadata=describe("The code for programs")
    )
    imsx_description = fields.String(required=True, metadata=describe(DESCRIPTION))


class StatusInfo(StrictSchema):
    """The body of an error response."""

    statusInfoSet = fields.Nested(StatusInfoSet, required=True, metadata=describe("The error"))


class CodeMinorField(StrictSchema):
    """A code, and the system that gives it."""

    imsx_codeMinorFieldName = fields.String(required=True, metadata=describe("The system that gives the code"))
    imsx_codeMinorFieldValue = fields.String(
        required=True, validate=validate.OneOf(CODES_MINOR), metadata=describe("The code for programs")
    )


class CodeMinor(StrictSchema):
    """The codes of a response."""

    imsx_codeMinorField = fields.List(
        fields.Nested(CodeMinorField),
        required=True,
        validate=validate.Length(min=1),
        metadata=describe("The codes, one of each system"),
    )


class OfficialStatusInfo(StrictSchema):
    """The body of an error response in the form of the standard's schema of 1.2."""

    imsx_codeMajor = fields.String(
        required=True, validate=validate.OneOf(("failure",)), metadata=describe("`failure` of an error")
    )
    imsx_severity = fields.String(
        required=True, validate=validate.OneOf(("error",)), metadata=describe("There are no records")
    )
    imsx_description = fields.String(required=True, metadata=describe(DESCRIPTION))
    imsx_CodeMinor = fields.Nested(CodeMinor, required=True, metadata=describe("The codes for programs"))


class BothStatusInfo(OfficialStatusInfo):
    """The body of an error response in both forms."""

    statusInfoSet = fields.Nested(StatusInfoSet, required=True, metadata=describe("The error"))


ERROR_SCHEMAS: Mapping[ErrorProfile, type[StrictSchema]] = {
    ErrorProfile.SPECIFICATION: StatusInfo,
    ErrorProfile.BOTH: BothStatusInfo,
    ErrorProfile.OFFICIAL: OfficialStatusInfo,
}


def _make(major: str, severity: str, minor: str, description: str) -> dict[str, str]:
    return {
        "imsx_codeMajor": major,
        "imsx_severity": severity,
        "imsx_codeMinor": minor,
        "imsx_description": description,
    }


def _make_official(info: Mapping[str, str]) -> dict[str, Any]:
    minor = OFFICIAL_CODES.get(info["imsx_codeMinor"], info["imsx_codeMinor"])
    code = {"imsx_codeMinorFieldName": ANSWERING_SYSTEM, "imsx_codeMinorFieldValue": minor}
    others = {name: text for name, text in info.items() if name != "imsx_codeMinor"}
    return {**others, "imsx_CodeMinor": {"imsx_codeMinorField": [code]}}


def make_failure(problem: Problem, description: str, request: str, profile: ErrorProfile) -> str:
    """Returns the JSON body of a refusal. `request`: method and address of the refused request."""
    info = _make("failure", "error", STATUS_INFO[problem][1], f"{description} (in {request})")
    return json.dumps(shape_failure(info, profile), ensure_ascii=False)


def shape_failure(info: Mapping[str, str], profile: ErrorProfile) -> dict[str, Any]:
    """Returns the body of a refusal in the form of a profile. `info`: the members of its `statusInfoSet`."""
    body: dict[str, Any] = {} if profile is ErrorProfile.SPECIFICATION else _make_official(info)
    if profile is not ErrorProfile.OFFICIAL:
        body["statusInfoSet"] = dict(info)
    return body


def make_warning(notices: Sequence[Notice], request: str) -> str:
    """Returns the JSON envelope of a warning. The first notice gives the code."""
    description = "; ".join(notice.description for notice in notices)
    info = _make("success", "warning", STATUS_INFO[notices[0].problem][1], f"{description} (in {request})")
    return json.dumps({"statusInfoSet": info}, ensure_ascii=False)


def make_warning_header(notices: Sequence[Notice]) -> str:
    """Returns the warning as a header: a JSON object in ASCII with the code and the text, cut to `LONGEST_WARNING`."""
    description = "; ".join(notice.description for notice in notices)[:LONGEST_WARNING]
    return json.dumps({"imsx_codeMinor": STATUS_INFO[notices[0].problem][1], "imsx_description": description})

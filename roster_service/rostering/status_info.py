"""The envelope of errors and warnings, `statusInfoSet`, and the table of its codes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from marshmallow import fields, validate

from roster_service.errors import Problem
from roster_service.query.plan import Notice
from roster_service.schemas.kinds import StrictSchema

# Problem -> (HTTP status, imsx_codeMinor): from the specification of the service, and otherwise the standard's codes.
STATUS_INFO: dict[Problem, tuple[int, str]] = {
    Problem.METHOD: (400, "invaliddata"),
    Problem.NO_TOKEN: (401, "unauthorisedrequest"),
    Problem.BAD_TOKEN: (401, "unauthorisedrequest"),
    Problem.VERSION: (400, "invaliddata"),
    Problem.SCOPE: (403, "forbidden"),
    Problem.PARAMETER: (400, "invaliddata"),
    Problem.FILTER: (400, "invalid_filter_field"),
    Problem.SORT_FIELD: (200, "invalid_sort_field"),
    Problem.SELECTION_FIELD: (200, "invalid_selection_field"),
    Problem.BLANK_SELECTION: (400, "invalid_blank_selection_field"),
    Problem.UNKNOWN_RECORD: (404, "unknownobject"),
    Problem.UNKNOWN_PATH: (404, "unknownobject"),
    Problem.TOO_LARGE: (400, "invaliddata"),
    Problem.RATE: (429, "server_busy"),
    Problem.BUSY: (503, "server_busy"),
    Problem.INTERNAL: (500, "internal_server_error"),
}

CODES_MINOR = tuple(dict.fromkeys(minor for _, minor in STATUS_INFO.values()))


class StatusInfoSet(StrictSchema):
    """The error of a request, or the parts of it that the service ignored."""

    imsx_codeMajor = fields.String(required=True, validate=validate.OneOf(("success", "failure")))
    imsx_severity = fields.String(required=True, validate=validate.OneOf(("warning", "error")))
    imsx_codeMinor = fields.String(required=True, validate=validate.OneOf(CODES_MINOR))
    imsx_description = fields.String(required=True)


class StatusInfo(StrictSchema):
    """The body of an error response."""

    statusInfoSet = fields.Nested(StatusInfoSet, required=True)


def _make(major: str, severity: str, minor: str, description: str) -> str:
    info = {
        "imsx_codeMajor": major,
        "imsx_severity": severity,
        "imsx_codeMinor": minor,
        "imsx_description": description,
    }
    return json.dumps({"statusInfoSet": info}, ensure_ascii=False)


def make_failure(problem: Problem, description: str, request: str) -> str:
    """Returns the JSON body of a refusal. `request`: method and address of the refused request."""
    return _make("failure", "error", STATUS_INFO[problem][1], f"{description} (in {request})")


def make_warning(notices: Sequence[Notice], request: str) -> str:
    """Returns the JSON envelope of a warning. The first notice gives the code."""
    description = "; ".join(notice.description for notice in notices)
    return _make("success", "warning", STATUS_INFO[notices[0].problem][1], f"{description} (in {request})")

"""What the vendor interface takes and gives, beside the students themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, validate

from roster_service.schemas.kinds import StrictSchema
from roster_service.schemas.students import INCLUDES, Student

MAX_STUDENTS = 5000
DEFAULT_STUDENTS = 100
MAX_SCHOOLS = 1000
MAX_TEXT_LENGTH = 256
# The largest that PostgreSQL takes.
MAX_STUDENTS_OFFSET = 2**63 - 1
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def require_storable(text: str) -> None:
    """ValidationError for a text that no database can hold: a NUL, half of a surrogate pair."""
    if "\x00" in text:
        raise ValidationError("Has a NUL in it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationError("Is not Unicode text.") from None


def make_text(**options: Any) -> fields.String:
    """A text of a request."""
    return fields.String(validate=[validate.Length(1, MAX_TEXT_LENGTH), require_storable], **options)


class RequestInstant(fields.AwareDateTime):
    """An instant with a time zone, read into UTC: PostgreSQL does not take every zone that can be written."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **options)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            # Before the first instant there is, or after the last one.
            return EARLIEST if moment.year == 1 else LATEST


class LoginRequest(StrictSchema):
    """The vendor's e-mail and password."""

    email = make_text(required=True)
    password = make_text(required=True)


class LoginAnswer(StrictSchema):
    """A permission token (PJWT) and how long it lasts."""

    token = fields.String(required=True)
    tokenType = fields.String(required=True, validate=validate.OneOf(("Bearer",)))
    expiresIn = fields.Integer(required=True)
    expiresAt = fields.DateTime(required=True)


class StudentsRequest(StrictSchema):
    """Which students, and what of them."""

    districtlea = make_text(required=True, metadata={"description": "The district's identifier"})
    schools = fields.List(
        make_text(),
        validate=validate.Length(1, MAX_SCHOOLS),
        metadata={"description": "Only students of these schools of the district, by sourcedId"},
    )
    modifiedSince = RequestInstant(
        format="iso",
        attribute="modified_since",
        metadata={"description": "Only records changed at or after this instant, which has a time zone"},
    )
    include = fields.List(
        fields.String(validate=validate.OneOf(INCLUDES)),
        metadata={"description": "What to add to each student; each word needs the permission flag of its name"},
    )
    limit = fields.Integer(strict=True, load_default=DEFAULT_STUDENTS, validate=validate.Range(1, MAX_STUDENTS))
    offset = fields.Integer(strict=True, load_default=0, validate=validate.Range(0, MAX_STUDENTS_OFFSET))


class StudentsAnswer(StrictSchema):
    """A page of students, by sourcedId. `nextOffset` is there while there are more."""

    students = fields.List(fields.Nested(Student), required=True)
    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)
    nextOffset = fields.Integer()


class Failure(StrictSchema):
    """Why a request is refused."""

    code = fields.String(required=True)
    message = fields.String(required=True)
    requestId = fields.String(required=True)

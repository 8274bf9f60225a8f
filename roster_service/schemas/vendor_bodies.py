"""The request and response bodies of the vendor interface, except the student record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, validate

from roster_service.roster.vocabulary import STATUS
from roster_service.schemas.kinds import NO_NUL, StrictSchema, describe
from roster_service.schemas.students import INCLUDES, Student

MAX_STUDENTS = 5000
DEFAULT_STUDENTS = 100
# Only the token endpoint and the vendor interface take a body, and both bodies are small.
MAX_BODY_BYTES = 64 * 1024
MAX_SCHOOLS = 1000
MAX_TEXT_LENGTH = 256
# The largest offset and the largest revision that PostgreSQL accepts.
MAX_NUMBER = 2**63 - 1
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def require_text(text: str) -> None:
    """Raises ValidationError for half a surrogate pair, which PostgreSQL cannot store and no schema can exclude."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationError("Is not Unicode text.") from None


def make_text(**options: Any) -> fields.String:
    """Returns the field of a text in a request body: 1 to `MAX_TEXT_LENGTH` characters."""
    return fields.String(
        validate=[validate.Length(1, MAX_TEXT_LENGTH), validate.Regexp(NO_NUL, error="Contains a NUL."), require_text],
        **options,
    )


class RequestInstant(fields.AwareDateTime):
    """An instant with a time zone, converted to UTC, because PostgreSQL does not accept every valid offset."""

    default_error_messages = dict.fromkeys(
        ("invalid", "invalid_awareness"),
        "Must be an instant with its time zone, for instance 2026-11-20T02:00:00.000Z.",
    )

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **options)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            # The instant is before the first or after the last that Python can represent.
            return EARLIEST if moment.year == 1 else LATEST


class LoginRequest(StrictSchema):
    """The vendor's e-mail and password."""

    email = make_text(
        required=True, metadata=describe("The e-mail address of the vendor's account", example="writing@example.com")
    )
    password = make_text(
        required=True, metadata=describe("The password of the account", example="the password of the account")
    )


def make_status() -> fields.String:
    """Returns the field that says whether an org is going."""
    words = "`tobedeleted`: it left the SIS, and its students are tombstones; it is listed until the purge deletes it"
    return fields.String(
        required=True, validate=validate.OneOf(STATUS.words), metadata=describe(words, example="active")
    )


class GrantedSchool(StrictSchema):
    """A school that is granted to the vendor."""

    sourcedId = fields.String(required=True, metadata=describe("The id, for `schools`", example="5a1f0c9e"))
    name = fields.String(required=True, metadata=describe("The name", example="Lincoln Elementary"))
    status = make_status()


class GrantedDistrict(StrictSchema):
    """A district that is granted to the vendor, whole or with single schools."""

    districtlea = fields.String(
        required=True,
        metadata=describe("The identifier, or the sourcedId of a district without one", example="01-0001"),
    )
    sourcedId = fields.String(required=True, metadata=describe("The id", example="0d9e21b4"))
    name = fields.String(required=True, metadata=describe("The name", example="Lincoln District"))
    status = make_status()
    schools = fields.List(
        fields.Nested(GrantedSchool), required=True, metadata=describe("Its schools that are granted")
    )


class LoginAnswer(StrictSchema):
    """A permission token (PJWT), its lifetime, and the flags and districts that it opens; `expiresIn` is in seconds."""

    token = fields.String(
        required=True,
        metadata=describe("The permission token, for `Authorization: Bearer`", example="eyJhbGciOiJFUzI1NiJ9.e30.sig"),
    )
    tokenType = fields.String(
        required=True, validate=validate.OneOf(("Bearer",)), metadata=describe("The kind of token", example="Bearer")
    )
    expiresIn = fields.Integer(required=True, metadata=describe("Its validity in seconds", example=86_400))
    expiresAt = fields.DateTime(
        required=True, metadata=describe("The instant at which it ends", example="2026-11-22T02:00:00.000Z")
    )
    flags = fields.List(
        fields.String(validate=validate.OneOf(INCLUDES)),
        required=True,
        metadata=describe("The permission flags, which are the words that `include` can have", example=["contacts"]),
    )
    districts = fields.List(
        fields.Nested(GrantedDistrict),
        required=True,
        metadata=describe("The districts that a request can name. Two of them may have the same `districtlea`"),
    )


class StudentsRequest(StrictSchema):
    """A students query: which students, which parts of them, and which page."""

    districtlea = make_text(
        required=True,
        metadata=describe(
            "The district's identifier, or the sourcedId of a district without one, as the login lists them",
            example="01-0001",
        ),
    )
    schools = fields.List(
        make_text(),
        validate=validate.Length(1, MAX_SCHOOLS),
        metadata=describe(
            f"Only students of these schools of the district, by sourcedId; a body has at most {MAX_BODY_BYTES:,} bytes"
        ),
    )
    modifiedSince = RequestInstant(
        format="iso",
        attribute="modified_since",
        metadata=describe(
            "Only records changed later than this instant, which must have a time zone: the `X-Roster-As-Of` of your "
            "copy",
            example="2026-11-20T02:00:00.000Z",
        ),
    )
    include = fields.List(
        fields.String(validate=validate.OneOf(INCLUDES)),
        metadata=describe(
            "Parts to add to each student; each needs the permission flag of the same name", example=["contacts"]
        ),
    )
    limit = fields.Integer(
        strict=True,
        load_default=DEFAULT_STUDENTS,
        validate=validate.Range(1, MAX_STUDENTS),
        metadata=describe("The size of a page", example=1000),
    )
    offset = fields.Integer(
        strict=True,
        load_default=0,
        validate=validate.Range(0, MAX_NUMBER),
        metadata=describe("How many students to skip", example=0),
    )
    revision = fields.Integer(
        strict=True,
        validate=validate.Range(0, MAX_NUMBER),
        metadata=describe(
            "The revision of the pull that a later page belongs to, from the header `X-Roster-Revision` of its first "
            "page. Only pulls of the same students at the same time need it. A first page begins a pull, whatever it "
            "says",
            example=1,
        ),
    )


class StudentsAnswer(StrictSchema):
    """A page of students in the order of sourcedId. `nextOffset` is present while more students follow."""

    students = fields.List(fields.Nested(Student), required=True, metadata=describe("The students of the page"))
    total = fields.Integer(required=True, metadata=describe("The number of students on all pages", example=1000))
    limit = fields.Integer(required=True, metadata=describe("The size of the page, as asked for", example=100))
    offset = fields.Integer(required=True, metadata=describe("The number of skipped students", example=0))
    nextOffset = fields.Integer(metadata=describe("The `offset` of the next page, if there is one", example=100))


class Failure(StrictSchema):
    """The reason why the service refused a request."""

    code = fields.String(required=True, metadata=describe("The code for programs", example="bad-request"))
    message = fields.String(
        required=True, metadata=describe("The reason for people", example="the `Content-Type` must be application/json")
    )
    requestId = fields.String(
        required=True,
        metadata=describe("The id of the request in the log of the service", example="0123456789abcdef"),
    )

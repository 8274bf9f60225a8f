"""The views of the vendor interface.

They check, in this order: the API key (403), the throttle (429), the permission token (401), the body (400), the
privilege (403). The login needs no permission token; it checks the e-mail and the password last (401).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from flask import Response, request

from roster_service.auth.credentials.api_keys import KeyHolder, find_key_holder
from roster_service.auth.credentials.passwords import verify_password
from roster_service.auth.credentials.permission_token import (
    PERMISSION_TOKEN_SECONDS,
    make_permission_token,
    require_permission_token,
)
from roster_service.auth.credentials.signing_keys import KeyRing
from roster_service.auth.throttling.login_throttle import LoginAttempt, LoginThrottle
from roster_service.auth.throttling.vendor_throttle import VendorThrottle
from roster_service.db.instants import format_instant
from roster_service.errors import Problem, RefusedRequestError, ThrottledRequestError
from roster_service.feeds.roster_state import make_state_headers
from roster_service.http.disclosures import Disclosures
from roster_service.http.request_facts import RequestingVendor, get_request_facts, require_rate
from roster_service.schemas.students import NAMING_FLAGS, list_named_people
from roster_service.schemas.vendor_bodies import LoginRequest, StudentsRequest
from roster_service.serving.page import Page
from roster_service.serving.reader import Reader
from roster_service.serving.roster_status import RosterStatusReader
from roster_service.serving.students import StudentsParams, find_students, list_districts
from roster_service.vendor.bodies import read_body, require_no_parameter
from roster_service.vendor.responses import make_response

LOGIN_BODY = LoginRequest()
STUDENTS_BODY = StudentsRequest()


@dataclass(frozen=True)
class VendorServices:
    """The services that the views need."""

    # Of the serving role.
    engine: sa.Engine
    reader: Reader
    # Of the role that may read accounts, which the serving role may not.
    accounts: sa.Engine
    keys: KeyRing
    issuer: str
    throttle: VendorThrottle
    login_throttle: LoginThrottle
    disclosures: Disclosures
    status: RosterStatusReader


# Answers a request whose API key is valid.
RequestHandler = Callable[[VendorServices, KeyHolder], Response]


def make_vendor_view(services: VendorServices, handler: RequestHandler) -> Callable[[], Response]:
    """Returns the view function that checks the API key and the throttle, and then calls `handler`."""

    def view() -> Response:
        # The connection goes back to the pool before the throttle, which may wait for a counter.
        with services.engine.connect() as connection:
            holder = find_key_holder(connection, request.headers.get("x-api-key", ""))
        if holder is None:
            raise RefusedRequestError(Problem.API_KEY, "the `x-api-key` header is missing, or its key is not valid")
        get_request_facts().vendor = _name_vendor(holder)
        require_rate(services.throttle.count(holder.vendor_id, holder.allowance))
        return handler(services, holder)

    return view


def answer_students(services: VendorServices, holder: KeyHolder) -> Response:
    """Answers a request for students. Raises RefusedRequestError for the permission token, the body and the
    privilege."""
    require_permission_token(_read_bearer(), holder, services.keys, issuer=services.issuer)
    body = read_body(STUDENTS_BODY)
    params = StudentsParams(**body)
    get_request_facts().describe_shape = partial(_mask_body, body)
    read = find_students(services.reader, services.engine, holder, params)
    page = read.page
    members = {"total": page.total, "limit": params.limit, "offset": params.offset}
    end = params.offset + page.records
    if page.records and end < page.total:
        members["nextOffset"] = end
    response = make_response(f'{{"students":[{",".join(page.pieces)}],{json.dumps(members)[1:]}')
    response.headers.update(make_state_headers(read.state))
    services.disclosures.record(
        _name_vendor(holder),
        records=page.records,
        people=_list_people(page, params.include),
        scope=" ".join(sorted(holder.flags)),
        grant_version=holder.grant_version,
        masked_filter=_mask_body(body),
    )
    return response


def answer_status(services: VendorServices, holder: KeyHolder) -> Response:
    """Answers a request for the states of the feeds. Raises RefusedRequestError for the permission token, and for a
    query parameter."""
    require_permission_token(_read_bearer(), holder, services.keys, issuer=services.issuer)
    require_no_parameter()
    body = services.status.read(holder.admit(guardians=False), holder.vendor_id, holder.state)
    response = make_response(json.dumps(body, ensure_ascii=False))
    response.headers.update(make_state_headers(holder.state))
    return response


def _name_vendor(holder: KeyHolder) -> RequestingVendor:
    return RequestingVendor(holder.vendor_id, holder.key_prefix)


def _list_people(page: Page, include: Sequence[str]) -> Iterator[str]:
    """Yields the ids of the people whom a page of students names: the students, their guardians and teachers."""
    yield from page.people
    if NAMING_FLAGS.intersection(include):
        for piece in page.pieces:
            for student in json.loads(f"[{piece}]"):
                yield from list_named_people(student)


def _mask_body(body: dict[str, Any]) -> str:
    """Returns the body for the access log: its keys, and of their values only the words of `include`."""
    return " ".join(f"{key}='{','.join(body[key]) if key == 'include' else '*'}'" for key in sorted(body))


def _read_bearer() -> str:
    header = request.headers.get("Authorization", "").strip()
    if not header:
        raise RefusedRequestError(
            Problem.NO_TOKEN, "the `Authorization: Bearer` header is missing; /v1/login gives its `token`"
        )
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise RefusedRequestError(
            Problem.BAD_TOKEN,
            "the `Authorization` header does not begin with `Bearer `; it must be `Bearer TOKEN`, with the `token` "
            "that /v1/login gives",
        )
    return token.strip()


def answer_login(services: VendorServices, holder: KeyHolder) -> Response:
    """Answers a login: with a permission token for the right e-mail and password of the key's vendor. Raises
    RefusedRequestError for the body and the credentials, and ThrottledRequestError after too many failures."""
    body = read_body(LOGIN_BODY)
    attempt = LoginAttempt.of_vendor(holder.vendor_id, body["email"])
    wait = services.login_throttle.find_wait(attempt)
    if wait:
        raise ThrottledRequestError("too many failed logins; `Retry-After` says when to try again", wait)
    with services.accounts.connect() as connection:
        matches = verify_password(connection, holder.vendor_id, body["email"], body["password"])
    if not matches:
        services.login_throttle.count_failure(attempt)
        raise RefusedRequestError(Problem.CREDENTIALS, "the e-mail or the password is wrong")
    token, ends = make_permission_token(holder, services.keys, issuer=services.issuer)
    members = {
        "token": token,
        "tokenType": "Bearer",
        "expiresIn": PERMISSION_TOKEN_SECONDS,
        "expiresAt": format_instant(ends),
        "districts": list_districts(services.engine, holder),
    }
    return make_response(json.dumps(members, ensure_ascii=False))

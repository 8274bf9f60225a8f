"""The paths of the vendor interface, each a function from the API key to the response, and the blueprint.

The stages check, in this order: the API key (403), the throttle (429), the permission token (401), the body (400), the
privilege (403). The login needs no permission token; it checks the e-mail and the password last (401).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from flask import Flask, Response, request
from flask_smorest import Blueprint
from marshmallow import Schema

from roster_service.auth.credentials.api_keys import KeyHolder, find_key_holder
from roster_service.auth.credentials.secrets import verify_password
from roster_service.auth.credentials.signing_keys import KeyRing
from roster_service.auth.credentials.tokens import (
    PERMISSION_TOKEN_SECONDS,
    make_permission_token,
    require_permission_token,
)
from roster_service.auth.throttling.counters import Counters
from roster_service.auth.throttling.throttles import LoginAttempt, count_vendor_request
from roster_service.db.instants import format_instant
from roster_service.errors import NotAgreedError, Problem, RefusedRequestError, ThrottledRequestError
from roster_service.feeds.roster_state import make_state_headers
from roster_service.http.request_facts import add_rate_headers, get_request_facts
from roster_service.http.stages import Disclosed, DisclosureRecorder, count_request
from roster_service.schemas.roster_status import RosterStatus
from roster_service.schemas.vendor_bodies import LoginAnswer, LoginRequest, StudentsAnswer, StudentsRequest
from roster_service.serving.page import Page
from roster_service.serving.reader import Reader
from roster_service.serving.roster_status import RosterStatusReader
from roster_service.serving.students import StudentsParams, authorize_students, list_districts
from roster_service.vendor.bodies import ROOT, make_response, read_body, require_no_parameter
from roster_service.vendor.openapi import document, make_api

LOGIN_BODY = LoginRequest()
STUDENTS_BODY = StudentsRequest()


@dataclass(frozen=True)
class VendorServices:
    """The services that the views need. `engine`: of the serving role; `accounts`: of the role that may read accounts,
    which the serving role may not."""

    engine: sa.Engine
    reader: Reader
    accounts: sa.Engine
    keys: KeyRing
    issuer: str
    counters: Counters
    disclosures: DisclosureRecorder
    status: RosterStatusReader


def _admit(services: VendorServices) -> KeyHolder:
    """The holder of the request's API key, whose request is counted."""
    # The connection goes back to the pool before the throttle, which may wait for a counter.
    with services.engine.connect() as connection:
        holder = find_key_holder(connection, request.headers.get("x-api-key", ""))
    if holder is None:
        raise RefusedRequestError(Problem.API_KEY, "the `x-api-key` header is missing, or its key is not valid")
    count_request(holder, count_vendor_request(services.counters, holder.vendor_id, holder.allowance))
    if holder.not_agreed is not None and holder.enabled:
        raise NotAgreedError(holder.not_agreed)
    return holder


def answer_students(services: VendorServices) -> Response:
    """Answers a request for students. Raises RefusedRequestError for the permission token, the body and the
    privilege."""
    holder = _admit(services)
    require_permission_token(_read_bearer(), holder, services.keys, issuer=services.issuer)
    body = read_body(STUDENTS_BODY)
    get_request_facts().describe_shape = partial(_mask_body, body)
    params = StudentsParams(**body)
    read = services.reader.read_page(authorize_students(services.engine, holder, params))
    response = make_response(_make_students_text(read.page, params))
    response.headers.update(make_state_headers(read.state))
    page = read.page
    services.disclosures.record(holder, Disclosed(page.records, page.people, page.parts, _mask_body(body)))
    return response


def _make_students_text(page: Page, params: StudentsParams) -> str:
    members = {"total": page.total, "limit": params.limit, "offset": params.offset}
    end = params.offset + page.records
    if page.records and end < page.total:
        members["nextOffset"] = end
    return f'{{"students":[{",".join(page.pieces)}],{json.dumps(members)[1:]}'


def answer_status(services: VendorServices) -> Response:
    """Answers a request for the states of the feeds. Raises RefusedRequestError for the permission token, for a query
    parameter, and for a vendor without any grant, as the other paths do."""
    holder = _admit(services)
    require_permission_token(_read_bearer(), holder, services.keys, issuer=services.issuer)
    require_no_parameter()
    admission = holder.admit(guardians=False)
    list_districts(services.engine, holder.vendor_id, admission)
    body = services.status.read(admission, holder.vendor_id, holder.state)
    response = make_response(json.dumps(body, ensure_ascii=False))
    response.headers.update(make_state_headers(holder.state))
    return response


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


def answer_login(services: VendorServices) -> Response:
    """Answers a login: with a permission token for the right e-mail and password of the key's vendor, and what the
    token opens. Raises RefusedRequestError for the body and the credentials, and where nothing is granted;
    ThrottledRequestError after too many failures."""
    holder = _admit(services)
    body = read_body(LOGIN_BODY)
    email, password = body["email"], body["password"]
    attempt = LoginAttempt.of_vendor(holder.vendor_id, email)
    wait = attempt.find_wait(services.counters)
    if wait:
        raise ThrottledRequestError("too many failed logins; `Retry-After` says when to try again", wait)
    with services.accounts.connect() as connection:
        matches = verify_password(connection, holder.vendor_id, email, password)
    if not (matches and holder.enabled):
        attempt.count_failure(services.counters)
        problem = Problem.DISABLED if matches else Problem.CREDENTIALS
        raise RefusedRequestError(problem, "the e-mail or the password is wrong")
    token, ends = make_permission_token(holder, services.keys, issuer=services.issuer)
    # If the rights change during a login, its token is refused at the first use: the login itself shows no record.
    admission = holder.admit(guardians=False, of_any_version=True)
    members = {
        "token": token,
        "tokenType": "Bearer",
        "expiresIn": PERMISSION_TOKEN_SECONDS,
        "expiresAt": format_instant(ends),
        "flags": sorted(holder.flags),
        "districts": list_districts(services.engine, holder.vendor_id, admission),
    }
    return make_response(json.dumps(members, ensure_ascii=False))


@dataclass(frozen=True)
class Path:
    """A path: the schemas of its request and response, and whether it requires a permission token. `request`: None for
    a path that takes GET, any other one takes POST."""

    name: str
    summary: str
    request: type[Schema] | None
    response: type[Schema] | dict[str, Any]
    permission_token: bool
    answer: Callable[[VendorServices], Response]


PATHS = (
    Path(
        "login",
        "A permission token for 24 hours",
        LoginRequest,
        LoginAnswer,
        permission_token=False,
        answer=answer_login,
    ),
    Path(
        "students",
        "Students of a district",
        StudentsRequest,
        StudentsAnswer,
        permission_token=True,
        answer=answer_students,
    ),
    Path("status", "The last run of each feed", None, RosterStatus, permission_token=True, answer=answer_status),
)


def register_vendor(app: Flask, services: VendorServices, public_url: str | None, contact: str | None = None) -> None:
    """Registers the paths and their OpenAPI document. `public_url`: the address that clients use, None for the address
    of each request; `contact`: whom they may ask."""
    blueprint = Blueprint("vendor", __name__, url_prefix=ROOT)
    for path in PATHS:
        operation = document(
            path.name, path.summary, path.request, path.response, permission_token=path.permission_token
        )
        view = blueprint.doc(**operation)(partial(path.answer, services))
        # Flask would answer OPTIONS by itself, but the interface refuses every method except POST.
        vars(view)["provide_automatic_options"] = False
        method = "GET" if path.request is None else "POST"
        blueprint.add_url_rule(f"/{path.name}", endpoint=path.name, view_func=view, methods=[method])
    blueprint.after_request(add_rate_headers)
    make_api(app, public_url, contact).register_blueprint(blueprint)

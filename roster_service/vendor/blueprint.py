"""The paths of the vendor interface, and the blueprint that registers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask_smorest import Blueprint
from marshmallow import Schema

from roster_service.http.request_facts import add_rate_headers
from roster_service.schemas.roster_status import RosterStatus
from roster_service.schemas.vendor_bodies import LoginAnswer, LoginRequest, StudentsAnswer, StudentsRequest
from roster_service.vendor.openapi import document, make_api
from roster_service.vendor.responses import ROOT
from roster_service.vendor.views import (
    RequestPlanner,
    VendorServices,
    make_vendor_view,
    plan_login,
    plan_status,
    plan_students,
)


@dataclass(frozen=True)
class Path:
    """A path: the schemas of its request and response, and whether it requires a permission token. `request`: None for
    a path that takes GET, any other one takes POST."""

    name: str
    summary: str
    request: type[Schema] | None
    response: type[Schema] | dict[str, Any]
    permission_token: bool
    plan: RequestPlanner


PATHS = (
    Path(
        "login",
        "A permission token for 24 hours",
        LoginRequest,
        LoginAnswer,
        permission_token=False,
        plan=plan_login,
    ),
    Path(
        "students",
        "Students of a district",
        StudentsRequest,
        StudentsAnswer,
        permission_token=True,
        plan=plan_students,
    ),
    Path("status", "The last run of each feed", None, RosterStatus, permission_token=True, plan=plan_status),
)


def register_vendor(app: Flask, services: VendorServices, public_url: str | None, contact: str | None = None) -> None:
    """Registers the paths and their OpenAPI document. `public_url`: the address that clients use, None for the address
    of each request; `contact`: whom they may ask."""
    blueprint = Blueprint("vendor", __name__, url_prefix=ROOT)
    for path in PATHS:
        operation = document(
            path.name, path.summary, path.request, path.response, permission_token=path.permission_token
        )
        view = blueprint.doc(**operation)(make_vendor_view(services, path.plan))
        # Flask would answer OPTIONS by itself, but the interface refuses every method except POST.
        vars(view)["provide_automatic_options"] = False
        method = "GET" if path.request is None else "POST"
        blueprint.add_url_rule(f"/{path.name}", endpoint=path.name, view_func=view, methods=[method])
    blueprint.after_request(add_rate_headers)
    make_api(app, public_url, contact).register_blueprint(blueprint)

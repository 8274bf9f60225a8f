"""The blueprint of the vendor interface: its paths as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask_smorest import Blueprint
from marshmallow import Schema

from roster_service.schemas.vendor_bodies import LoginAnswer, LoginRequest, StudentsAnswer, StudentsRequest
from roster_service.vendor.openapi import TITLE, document, make_api
from roster_service.vendor.responses import ROOT
from roster_service.vendor.views import Answer, VendorServices, answer_login, answer_students, make_vendor_view


@dataclass(frozen=True)
class Path:
    """One path: what it takes and gives, and whether it wants a permission token."""

    name: str
    summary: str
    request: type[Schema]
    gives: type[Schema] | dict[str, Any]
    permission_token: bool
    answer: Answer


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
)


def register_vendor(app: Flask, services: VendorServices) -> None:
    """Registers the paths and their document."""
    blueprint = Blueprint("vendor", __name__, url_prefix=ROOT, description=TITLE)
    for path in PATHS:
        described = document(path.name, path.summary, path.request, path.gives, permission_token=path.permission_token)
        view = blueprint.doc(**described)(make_vendor_view(services, path.answer))
        # The framework would answer OPTIONS by itself; any method but POST is refused.
        vars(view)["provide_automatic_options"] = False
        blueprint.add_url_rule(f"/{path.name}", endpoint=path.name, view_func=view, methods=["POST"])
    blueprint.after_request(services.throttle.add_headers)
    make_api(app).register_blueprint(blueprint)

"""`/livez`: the process answers. `/readyz`: it can answer requests with records; if not, the reason.

Load balancers and container engines ask them without credentials, so a reason names no address, no account and no
record. The log has the details.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from flask import Flask, Response

from roster_service.web.json_responses import make_json
from roster_service.web.request_facts import LIVE_PATH, READY_PATH
from roster_service.web.stop_notice import is_draining


class Need(StrEnum):
    """A thing that the service needs to answer requests with records."""

    RUNNING = "running"
    SETTINGS = "settings"
    DATABASE = "database"
    SCHEMA = "schema"
    SIGNING_KEY = "signing_key"


# Raises any error if its need is not met.
Check = Callable[[], object]

REASONS: Mapping[Need, str] = {
    Need.RUNNING: "the service is stopping",
    Need.SETTINGS: "a setting is wrong",
    Need.DATABASE: "the database does not answer",
    Need.SCHEMA: "the tables or roles of the database are not those that this version needs",
    Need.SIGNING_KEY: "the signing key cannot be read",
}


def register_health(app: Flask, find_unmet: Callable[[], Need | None]) -> None:
    """Registers both paths. `find_unmet`: returns a need that is not met; None if the service is ready."""

    def show_alive() -> Response:
        return make_json({"status": "alive"}, 200)

    def show_ready() -> Response:
        unmet = Need.RUNNING if is_draining() else find_unmet()
        if unmet is None:
            return make_json({"status": "ready"}, 200)
        return make_json({"status": "not ready", "unmet": unmet, "reason": REASONS[unmet]}, 503)

    app.add_url_rule(LIVE_PATH, endpoint="livez", view_func=show_alive, methods=["GET"])
    app.add_url_rule(READY_PATH, endpoint="readyz", view_func=show_ready, methods=["GET"])


def find_first_unmet(checks: Mapping[Need, Check]) -> Need | None:
    """Returns the first need whose check fails."""
    for need, check in checks.items():
        try:
            check()
        except Exception:  # noqa: BLE001  (whatever fails, the need is not met)
            return need
    return None

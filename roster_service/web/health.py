"""`/livez`: the process answers. `/readyz`: it can answer requests with records; if not, the reason.

Load balancers and container engines ask them without credentials, so a reason names no address, no account and no
record. The log has the details.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from flask import Flask, Response

from roster_service.http.request_facts import LIVE_PATH, READY_PATH
from roster_service.http.stages import make_json
from roster_service.serving.standby import Standby
from roster_service.web.time_limit import is_draining


class Need(StrEnum):
    """A thing that the service needs to answer requests with records."""

    RUNNING = "running"
    SETTINGS = "settings"
    DATABASE = "database"
    SCHEMA = "schema"
    SIGNING_KEY = "signing_key"


# Raises any error if its need is not met.
HealthCheck = Callable[[], object]

REASONS: Mapping[Need, str] = {
    Need.RUNNING: "the service is stopping",
    Need.SETTINGS: "a setting is wrong",
    Need.DATABASE: "the database does not answer",
    Need.SCHEMA: "the tables or roles of the database are not those that this version needs",
    Need.SIGNING_KEY: "the signing key cannot be read",
}


def register_health(app: Flask, find_unmet: Callable[[], Need | None], standby: Standby | None = None) -> None:
    """Registers both paths. `find_unmet`: returns a need that is not met; None if the service is ready. `standby`: a
    service without it is ready all the same."""

    def show_alive() -> Response:
        return make_json({"status": "alive"}, 200)

    def show_ready() -> Response:
        unmet = Need.RUNNING if is_draining() else find_unmet()
        if unmet is None:
            return make_json({"status": "ready", **_describe(standby)}, 200)
        return make_json({"status": "not ready", "unmet": unmet, "reason": REASONS[unmet]}, 503)

    app.add_url_rule(LIVE_PATH, endpoint="livez", view_func=show_alive, methods=["GET"])
    app.add_url_rule(READY_PATH, endpoint="readyz", view_func=show_ready, methods=["GET"])


def _describe(standby: Standby | None) -> Mapping[str, object]:
    """Returns what the answer says of the standby; nothing if there is none."""
    if standby is None:
        return {}
    lag = standby.read_lag()
    return {"standby": {"answers": not standby.is_away, "lag_seconds": None if lag is None else round(lag, 1)}}


def find_first_unmet(checks: Mapping[Need, HealthCheck]) -> Need | None:
    """Returns the first need whose check fails."""
    for need, check in checks.items():
        try:
            check()
        except Exception:  # noqa: BLE001  (whatever fails, the need is not met)
            return need
    return None

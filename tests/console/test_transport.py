"""All that shows or takes a secret refuses plain http over a network, by one rule and whatever the `Host` says."""

from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import TestResponse

from roster_service.accounts.secret_links import LINK_PATH, make_link
from roster_service.web.transport_check import GUARDED
from tests.actors import TESTER
from tests.console.conftest import ROOT, Console

pytestmark = pytest.mark.shows(
    "Logs and transport",
    "All that takes a password, API key or signature, or shows a secret or token, refuses plain http by one rule.",
)

OUTSIDE = {"REMOTE_ADDR": "192.0.2.7"}
ON_THE_MACHINE = {"REMOTE_ADDR": "127.0.0.1"}
# Of each guarded route or interface: requests that only their transport can have refused over http.
REQUESTS: dict[str, list[tuple[str, str]]] = {
    "issue_token": [("POST", "/oauth/token")],
    "secret_page": [("GET", f"{LINK_PATH}/link-guessed"), ("POST", f"{LINK_PATH}/link-guessed")],
    "vendor": [("POST", "/v1/login"), ("POST", "/v1/students"), ("GET", "/v1/status")],
    "console": [("GET", path) for path in ("", "/login", "/password", "/vendors.json")]
    + [("POST", f"/{path}") for path in ("login", "password", "logout", "vendors/new/add")],
}


def ask(console: Console, name: str, method: str, path: str, root: str, peer: dict[str, str]) -> TestResponse:
    """The answer to a request that comes from a network address, for the address `root`."""
    app, path = (console.app, ROOT + path) if name == "console" else (console.vendors, path)
    options: dict[str, Any] = {"json": {}} if name == "vendor" and method == "POST" else {}
    return app.test_client().open(path, method=method, base_url=root, environ_overrides=peer, **options)


@pytest.mark.parametrize("name", REQUESTS)
def test_plain_http_is_refused_by_one_rule(console: Console, name: str) -> None:
    for method, path in REQUESTS[name]:
        for root in ("http://localhost", "http://127.0.0.1:8000", "http://[::1]", "http://roster.example"):
            answer = ask(console, name, method, path, root, OUTSIDE)
            assert (answer.status_code, "over https only" in answer.text) == (GUARDED[name][1], True), (path, root)
            assert answer.headers["Cache-Control"] == "no-store"
        answer = ask(console, name, method, path, "http://roster.example", ON_THE_MACHINE)
        assert "over https only" in answer.text, path
        for root, peer in (("https://roster.example", OUTSIDE), ("http://localhost", ON_THE_MACHINE)):
            assert "over https only" not in ask(console, name, method, path, root, peer).text, path


def test_all_that_takes_a_form_or_a_body_is_guarded(console: Console) -> None:
    for app in (console.app, console.vendors):
        for rule in app.url_map.iter_rules():
            name = rule.endpoint if "." not in rule.endpoint else rule.endpoint.partition(".")[0]
            assert "POST" not in (rule.methods or ()) or name in GUARDED, rule
    assert set(REQUESTS) == set(GUARDED)


def test_the_address_of_the_vendors_is_not_that_of_the_console(make_console: Any) -> None:
    """A public URL with https says nothing of a request to the port of the console."""
    console = make_console(public_url="https://roster.example")
    for name, is_refused in (("secret_page", False), ("vendor", False), ("console", True)):
        for method, path in REQUESTS[name]:
            answer = ask(console, name, method, path, "http://backend:8000", OUTSIDE)
            assert ("over https only" in answer.text) is is_refused, path


@pytest.mark.parametrize("public_url", [None, "https://roster.example/sis"])
def test_the_page_of_a_secret_names_the_public_url_and_no_other_address(
    make_console: Any, public_url: str | None
) -> None:
    console = make_console(public_url=public_url)
    with console.engine.begin() as connection:
        link = make_link(connection, TESTER, console.client.form()["client_id"])
    path = f"{LINK_PATH}/{link}"
    caller = console.vendors.test_client()
    refused = caller.post(path, base_url="http://roster.example", headers={"Accept": "text/html"})
    if public_url is None:
        assert (refused.status_code, refused.mimetype) == (403, "text/html")
        assert "secret-" not in refused.text
        caller.get(path, base_url="https://evil.example")
        made = caller.post(path, base_url="https://evil.example")
    else:
        made = refused
    assert "secret-" in made.text
    assert ("https://roster.example/sis/oauth/token" in made.text) is (public_url is not None)
    assert "evil" not in made.text
    assert ("The letter of the district has the addresses" in made.text) is (public_url is None)

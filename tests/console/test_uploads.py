"""Large forms over the HTTP server of a worker: session, role and token come before the body."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from roster_service.accounts.operators import set_operator_enabled
from roster_service.change_log.actors import OperatorRole
from roster_service.console.blueprint import MAX_FORM_BYTES, MAX_UPLOAD_BYTES
from roster_service.server.late_app import LateApp
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.console.conftest import SECRET, Console, add_operator
from tests.server.conftest import Worker

pytestmark = pytest.mark.shows(
    "Console",
    "Session, role and token of the form are asked before the body of an upload is read; a worker takes one at a time.",
)

EMAIL = "uploads@operators.example"


@pytest.fixture(scope="module")
def worker(console: Console) -> Iterator[Worker]:
    """A server of the console on a port of its own."""
    app = LateApp(lambda: console.app, 30, Settings().v1p2_errors)
    app.start()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        made = Worker(listener, stack, app)
        yield made
        made.server.close()


UPLOAD, FORM, VENDOR = "/console/feeds/upload", "/console/feeds/springfield/settings", "/v1/students"
# Path, the bytes of the body, the change of the request, and the status without a body; None if the body is read.
ASKED = {
    "an editor": (UPLOAD, MAX_UPLOAD_BYTES, "", None),
    "more than an export has": (UPLOAD, MAX_UPLOAD_BYTES + 1, "", 413),
    "without the token": (UPLOAD, MAX_UPLOAD_BYTES, "no token", 413),
    "with another token": (UPLOAD, MAX_UPLOAD_BYTES, "other token", 413),
    "from another site": (UPLOAD, MAX_UPLOAD_BYTES, "other site", 413),
    "a viewer": (UPLOAD, MAX_UPLOAD_BYTES, "viewer", 403),
    "a disabled operator": (UPLOAD, MAX_UPLOAD_BYTES, "disabled", 303),
    "a forged cookie": (UPLOAD, MAX_UPLOAD_BYTES, "forged", 303),
    "another form": (FORM, MAX_FORM_BYTES, "no token", None),
    "an export in another form": (FORM, MAX_FORM_BYTES + 1, "", 413),
    "a page": ("/console/feeds", MAX_FORM_BYTES, "", 405),
    "another interface": (VENDOR, MAX_FORM_BYTES, "", 404),
}


@pytest.mark.parametrize(("path", "length", "change", "status"), ASKED.values(), ids=ASKED)
def test_a_large_body_is_read_for_an_operator_who_may_send_the_form(
    console: Console, worker: Worker, path: str, length: int, change: str, status: int | None
) -> None:
    email = f"{path.replace('/', '-')}-{length}-{change.replace(' ', '-')}{EMAIL}"
    add_operator(console.engine, email, OperatorRole.VIEWER if change == "viewer" else OperatorRole.EDITOR, SECRET)
    browser = console.open()
    browser.log_in(email)
    token = {"no token": "", "other token": "guessed"}.get(change, browser.read_csrf("/account"))
    cookie = browser.client.get_cookie("roster_console", path="/console")
    assert cookie is not None
    value = cookie.value[:-1] if change == "forged" else cookie.value
    if change == "disabled":
        with console.engine.begin() as connection:
            set_operator_enabled(connection, TESTER, email, enabled=False)
    lines = [
        f"POST {path}?csrf={token} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Cookie: roster_console={value}",
        "Content-Type: multipart/form-data; boundary=x",
        f"Content-Length: {length}",
        f"Sec-Fetch-Site: {'cross-site' if change == 'other site' else 'same-origin'}",
    ]
    connection = worker.connect("\r\n".join((*lines, "", "")).encode())
    answer = worker.receive(connection)
    connection.close()
    worker.work()
    assert answer[9:12] == (b"" if status is None else str(status).encode())

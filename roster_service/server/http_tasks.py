"""The responses of a connection: of the application, and to a request that cannot be read."""

from __future__ import annotations

import contextlib
import logging
from http import HTTPStatus

from waitress.channel import ClientDisconnected
from waitress.task import ErrorTask, Task, WSGITask
from waitress.utilities import build_http_date

from roster_service.errors import FAULT_DESCRIPTION, ErrorProfile, Problem, describe_fault
from roster_service.http.request_facts import REQUEST_ID, choose_request_id
from roster_service.logs import facts
from roster_service.rostering.status_info import STATUS_INFO, make_failure
from roster_service.server.http_parser import REQUEST_ID_KEY
from roster_service.web.time_limit import ARRIVED_AT, BODY_REFUSED

REFUSAL_HEADERS = (
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
THROTTLED = str(int(HTTPStatus.TOO_MANY_REQUESTS))

log = logging.getLogger(__name__)


class OwnHead(Task):  # type: ignore[misc]  # waitress has no types
    """A response with the head as the application made it. waitress's own head changes the case of names, and ends the
    connection after each 304, because it has no length."""

    def build_response_header(self) -> bytes:
        """Returns the head of the response."""
        headers = list(self.response_headers)
        if self.has_body and not any(name.lower() == "content-length" for name, _ in headers):
            if self.content_length is None:
                # The body ends with the connection.
                self.close_on_finish = True
            else:
                headers.append(("Content-Length", str(self.content_length)))
        headers.append(("Date", build_http_date(self.start_time)))
        if self.request.connection_close or self.version == "1.0" or self.channel.server.is_ending:
            self.close_on_finish = True
        if self.close_on_finish:
            headers.append(("Connection", "close"))
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {text}" for name, text in headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    def set_close_on_finish(self) -> None:
        """Lets the connection end with this response."""
        self.close_on_finish = True


class ApplicationTask(OwnHead, WSGITask):  # type: ignore[misc]
    """Answers a request by the application."""

    def get_environment(self) -> dict[str, object]:
        """Returns the WSGI environment."""
        environ: dict[str, object] = super().get_environment()
        environ[ARRIVED_AT] = self.request.arrived_at
        if self.channel.is_refused:
            environ[BODY_REFUSED] = True
        return environ

    def service(self) -> None:
        """Writes the response. If the application fails, or the master aborts it (SystemExit), it is a 500."""
        try:
            self.start()
            self.execute()
            self.finish()
            self.channel.was_throttled = self.status.startswith(THROTTLED)
        except ClientDisconnected:
            self.close_on_finish = True
        except (Exception, SystemExit) as error:  # noqa: BLE001  (waitress would log the address of the request)
            request_id = find_request_id(self)
            words = "a request from %s was not answered: %s"
            log.error(words, name_peer(self), describe_fault(error), extra=facts(request_id=request_id))
            if self.wrote_header:
                self.close_on_finish = True
            else:
                request = f"{self.request.command} {self.request.path}"[:500]
                write_refusal(self, Problem.INTERNAL, FAULT_DESCRIPTION, request, request_id)


class RefusalTask(OwnHead, ErrorTask):  # type: ignore[misc]
    """Answers a request that cannot be read, in the error format of the rostering interface."""

    def service(self) -> None:
        """Writes the response, and a line of the log."""
        request_id, reason = find_request_id(self), self.request.reason
        log.warning("a request from %s cannot be read: %s", name_peer(self), reason, extra=facts(request_id=request_id))
        self.start()
        write_refusal(self, Problem.PARAMETER, reason, "a request that was not read", request_id)


def write_refusal(task: Task, problem: Problem, description: str, request: str, request_id: str) -> None:
    """Writes a whole response, and ends the connection. `request`: method and address of the refused request."""
    body = make_failure(problem, description, request, ErrorProfile.SPECIFICATION).encode()
    status = HTTPStatus(STATUS_INFO[problem][0])
    task.status = f"{status} {status.phrase}"
    task.response_headers = [*REFUSAL_HEADERS, (REQUEST_ID, request_id)]
    task.content_length, task.complete = len(body), True
    task.channel.is_refused = True
    task.close_on_finish = True
    with contextlib.suppress(ClientDisconnected):
        task.write(body)


def find_request_id(task: Task) -> str:
    """Returns the id of a request that the application does not answer."""
    return choose_request_id(task.request.headers.get(REQUEST_ID_KEY, ""))


def name_peer(task: Task) -> str:
    """Returns the address of the other side of a connection."""
    return str(task.channel.addr[0])

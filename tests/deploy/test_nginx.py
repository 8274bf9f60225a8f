"""The service behind a real nginx with deploy/nginx.conf: calls of the README, long and bad requests, slow clients."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import pytest

from roster_service.accounts.secret_links import LINK_PATH
from roster_service.cli.demo import STUDENTS
from roster_service.serving.params import LONGEST_FILTER
from tests.conditions import wait_for
from tests.contract.client import ROOTS
from tests.deploy.behind import Behind, serve_behind
from tests.deploy.proxy import NAME, find_free_ports, proxying
from tests.deploy.slow import READING, slow_clients
from tests.docs.test_calls import CALLS, Calls, read_program, read_shell_lines

pytestmark = pytest.mark.long_with("nginx", "curl")

# What an ordinary request may take beside all the slow ones, on a busy machine.
GENEROUS_SECONDS = 60
BESIDE_SECONDS = 15
ROOT = ROOTS["v1p2"]
PAGE = f"{ROOT}/enrollments?limit=10000"
PUPIL = "Quetzalcoatl"
FILTERED = f"{ROOT}/users?filter=" + quote(f"familyName='{PUPIL}'")


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    """A service behind nginx; no log of it names a pupil at the end."""
    with serve_behind(tmp_path_factory.mktemp("home")) as made:
        yield made
        assert PUPIL not in made.proxy.log
        assert "filter" not in made.proxy.log


def read_log(behind: Behind) -> list[dict[str, str]]:
    """The lines of the access log."""
    return [json.loads(line) for line in (behind.proxy.folder / "access.log").read_text().splitlines()]


@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls.shell[1])
def test_the_calls_of_the_readme_work_through_it(behind: Behind, calls: Calls, tmp_path: Path) -> None:
    places = {"http://127.0.0.1:8000": behind.proxy.root, ".venv/bin/": f"{Path(sys.executable).parent}/"}
    program = read_program(*calls.python)
    script = f"{read_shell_lines(*calls.shell)}\necho; echo CALLED; .venv/bin/python - <<'END'\n{program}END\n"
    for printed, here in places.items():
        script = script.replace(printed, here)
    trusted = dict.fromkeys(("CURL_CA_BUNDLE", "SSL_CERT_FILE"), str(behind.proxy.certificate))
    environment = {**behind.environment, **trusted, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    done = subprocess.run(
        ["sh", "-e"], input=script, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    called, _, listed = done.stdout.partition("\nCALLED\n")
    assert len(json.loads(called.splitlines()[-1])[calls.key]) == calls.count
    assert len(listed.splitlines()) == STUDENTS


def test_addresses_are_public_ones(behind: Behind) -> None:
    reply = behind.proxy.ask("GET", f"{ROOT}/classes?limit=2", behind.bearer)
    assert reply.status == 200
    links = [part.strip() for part in reply.headers["Link"].split(",")]
    assert all(link.startswith(f"<{behind.proxy.root}{ROOT}/classes?") for link in links)
    body = json.loads(reply.body)
    assert all(one["school"]["href"].startswith(f"{behind.proxy.root}{ROOT}/") for one in body["classes"])
    assert reply.headers["Strict-Transport-Security"]


def test_the_longest_filter_passes(behind: Behind) -> None:
    """Each of its letters takes 12 bytes in the request line."""
    start = "familyName!='"
    longest = f"{start}{'😀' * (LONGEST_FILTER - len(start) - 1)}'"
    target = f"{ROOT}/users?limit=1&filter={quote(longest)}"
    assert len(target) > 48_000
    assert behind.proxy.ask("GET", target, behind.bearer).status == 200
    longer = behind.proxy.ask("GET", f"{ROOT}/users?filter={'x' * 100_000}", behind.bearer)
    assert (longer.status, json.loads(longer.body)["statusInfoSet"]["imsx_codeMinor"]) == (400, "invaliddata")


def test_a_token_of_64_kilobytes_reaches_the_service(behind: Behind) -> None:
    answers = [
        behind.proxy.ask("GET", f"{ROOT}/users", {"Authorization": f"Bearer {'x' * length}"})
        for length in (65_000, 200_000)
    ]
    # The service says that the token is not valid; nginx says that the head is too long.
    assert [answer.status for answer in answers] == [401, 400]
    assert json.loads(answers[1].body)["statusInfoSet"]["imsx_codeMinor"] == "invaliddata"


@pytest.mark.parametrize(("path", "key"), [("/v1/login", "code"), ("/oauth/token", "error")])
def test_a_body_that_is_too_large_is_refused_in_the_words_of_its_interface(behind: Behind, path: str, key: str) -> None:
    reply = behind.proxy.ask("POST", path, {"Content-Type": "application/json"}, b" " * 100_000)
    assert (reply.status, key in json.loads(reply.body)) == (400, True)


@pytest.mark.parametrize("host", ['bad host/"x', "a<script>", "evil.example", "127.0.0.1", ""])
@pytest.mark.parametrize("path", [f"{ROOT}/orgs", f"{ROOTS['v1p1']}/orgs", "/v1/login", "/oauth/token", "/docs", "/x"])
def test_another_host_is_refused_at_every_path(behind: Behind, path: str, host: str) -> None:
    reply = behind.proxy.ask("GET", path, {**behind.bearer, "Host": host})
    assert reply.status == 400
    assert b"href" not in reply.body
    assert not host or host.encode() not in reply.body


@pytest.mark.parametrize(
    "path", ["/metrics", "/health", "/status", "/console", "/v1p1", "/ims/../metrics", "/%6Detrics"]
)
def test_internal_paths_are_closed(behind: Behind, path: str) -> None:
    reply = behind.proxy.ask("GET", path, {})
    assert (reply.status, json.loads(reply.body)["error"]) == (404, "not_found")


def test_an_encoded_slash_reaches_the_service_as_it_is(behind: Behind) -> None:
    reply = behind.proxy.ask("GET", f"{ROOT}/users/a%2Fb", behind.bearer)
    assert (reply.status, b"a%2Fb" in reply.body) == (404, True)


def test_what_a_client_says_of_itself_does_not_count(behind: Behind) -> None:
    """It is neither another address, nor another host, and nginx makes the id of the request."""
    said = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"}
    reply = behind.proxy.ask("GET", f"{ROOT}/classes?limit=1", {**behind.bearer, **said, "X-Request-Id": "made-up"})
    assert reply.status == 200
    assert b"evil.example" not in reply.body + reply.headers["Link"].encode()

    def find() -> list[dict[str, str]]:
        return [line for line in read_log(behind) if line["service_request_id"] == reply.headers["X-Request-Id"]]

    # The line is written when the client has the answer already.
    wait_for(lambda: bool(find()))
    [line] = find()
    assert (line["client"], line["path"], line["status"]) == ("127.0.0.1", f"{ROOT}/classes", "200")
    assert len(line["request_id"]) == 32


def test_the_access_log_names_no_record(behind: Behind) -> None:
    """Neither a query string nor an id; what it writes of each path."""
    for target in (FILTERED, f"{ROOT}/users/{PUPIL}", f"{ROOT}/schools/{PUPIL}/students"):
        behind.proxy.ask("GET", target, behind.bearer)
    behind.proxy.ask("GET", f"/{PUPIL}", {})
    shown = [f"{ROOT}/users", f"{ROOT}/users/{{id}}", f"{ROOT}/schools/{{id}}/students", "-"]
    wait_for(lambda: [line["path"] for line in read_log(behind)[-4:]] == shown)


def test_the_link_of_a_secret_reaches_the_service_and_no_log(behind: Behind) -> None:
    reply = behind.proxy.ask("GET", f"{LINK_PATH}/link-{PUPIL}", {})
    # In the words of the service, not of nginx.
    assert (reply.status, b"the answer at / lists" in reply.body) == (404, True)
    wait_for(lambda: read_log(behind)[-1]["path"] == f"{LINK_PATH}/{{token}}")


def test_plain_http_opens_nothing(behind: Behind) -> None:
    connection = HTTPConnection(NAME, behind.proxy.plain_port, timeout=30)
    connection.request("GET", f"{ROOT}/orgs", headers=behind.bearer)
    response = connection.getresponse()
    assert (response.status, "Location" in response.headers) == (400, False)
    response.read()
    connection.close()


def test_too_many_requests_of_an_address_are_refused(behind: Behind) -> None:
    """At the login; each refusal says when to try again."""
    replies = [behind.proxy.ask("POST", "/v1/login", {}, b"{}") for _ in range(120)]
    refused = [reply for reply in replies if reply.status == 429]
    assert refused
    assert json.loads(refused[0].body)["code"] == "rate-limited"
    assert int(refused[0].headers["Retry-After"]) > 0


def test_a_service_that_is_away_is_503_in_the_words_of_each_interface() -> None:
    [service_port, port, plain_port] = find_free_ports(3)
    with proxying(service_port, port, plain_port) as proxy:
        for path, key in ((FILTERED, "statusInfoSet"), ("/v1/login", "code"), ("/oauth/token", "error")):
            reply = proxy.ask("GET", path, {})
            assert (reply.status, key in json.loads(reply.body)) == (503, True)
            assert int(reply.headers["Retry-After"]) > 0
        assert PUPIL not in proxy.log
        assert '"upstream_status": "502"' in proxy.log


@pytest.mark.shows("Load", "No worker waits for a slow client.")
def test_slow_clients_keep_nobody_waiting(behind: Behind) -> None:
    """Ordinary requests are answered beside connections that are half open, drip, or read a large page slowly."""
    whole = behind.proxy.ask("GET", PAGE, behind.bearer)
    assert len(json.loads(whole.body)["enrollments"]) == 10_000
    with slow_clients(behind.proxy, PAGE, behind.bearer) as clients:
        begin, answered = time.monotonic(), 0
        while time.monotonic() - begin < BESIDE_SECONDS or answered < 3:
            reply = behind.proxy.ask("GET", f"{ROOT}/users?limit=100", behind.bearer, timeout=GENEROUS_SECONDS)
            assert reply.status == 200
            answered += 1
        # The readers are served, slowly; who does not send a whole head in time is sent away.
        assert len(clients.reading) == READING
        assert sum(is_open(connection) for connection in clients.reading) == READING
        assert not any(is_open(connection) for connection in clients.half_open[::2])


def is_open(connection: socket.socket) -> bool:
    """Whether the other side has not closed it."""
    connection.settimeout(0.01)
    try:
        return bool(connection.recv(1))
    except TimeoutError:
        return True
    except OSError:
        return False

"""Announcements arrive by e-mail and at a webhook; a channel that fails is a sentence and nothing more."""

from __future__ import annotations

import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from roster_service.feeds.run_outcomes import OUTCOMES
from roster_service.settings import Settings
from sync_scripts.announce import main
from sync_scripts.engine.exit_codes import ExitCode
from sync_scripts.notifications.announcement import KINDS, Announcement, AnnouncementKind
from sync_scripts.notifications.channels import MAIL, SIGNATURE, announce

SECRET = "a secret of the tests, of more than 32 characters"
PAGE = "https://roster.example/console/runs/17"
HELD = Announcement("held", "Äpfel", "1,204 of 9,870 enrollments would vanish", 17, page=PAGE)


@dataclass
class Received:
    """What a server of the tests received: the mails, the bodies with their headers, and the SMTP commands."""

    port: int = 0
    mails: list[bytes] = field(default_factory=list)
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


@contextmanager
def serve(server: socketserver.BaseServer) -> Iterator[None]:
    """A server in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def mail_server() -> Iterator[Received]:
    """A mail server without TLS, which takes every mail."""
    received = Received()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 ready\r\n")
            while line := self.rfile.readline():
                command = line.decode().strip()
                received.commands.append(command)
                if command.upper().startswith("EHLO"):
                    self.wfile.write(b"250-here\r\n250 AUTH PLAIN LOGIN\r\n")
                elif command.upper() == "DATA":
                    self.wfile.write(b"354 go on\r\n")
                    body = b""
                    while (part := self.rfile.readline()) != b".\r\n":
                        body += part
                    received.mails.append(body)
                    self.wfile.write(b"250 taken\r\n")
                elif command.upper() == "QUIT":
                    self.wfile.write(b"221 bye\r\n")
                    return
                else:
                    self.wfile.write(b"250 well\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server, serve(server):
        received.port = server.server_address[1]
        yield received


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Received]:
    """A receiver of webhooks, which answers with the status of the test, or 204, and any GET with 204."""
    received = Received()
    status = getattr(request, "param", 204)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.posts.append((dict(self.headers), body))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server, serve(server):
        received.port = server.server_address[1]
        yield received


def test_a_mail_has_what_happened_and_what_to_do(mail_server: Received) -> None:
    settings = Settings(
        smtp_url=f"smtp://127.0.0.1:{mail_server.port}",
        mail_from="roster@district.example",
        mail_to="a@x.example, b@x.example",
    )
    assert announce(settings, HELD) == {}
    (sent,) = (message_from_bytes(body, policy=policy.default) for body in mail_server.mails)
    assert sent["Subject"] == "Roster Service: Äpfel is held: a person must decide"
    assert (sent["From"], sent["To"]) == ("roster@district.example", "a@x.example, b@x.example")
    text = sent.get_body().get_content()  # type: ignore[union-attr]
    shown = ("Feed: Äpfel", "Run: 17", f"Page: {PAGE}", f"held: {HELD.message}", "`roster sync approve 17` applies it")
    assert [words for words in shown if words not in text] == []
    assert [line for line in mail_server.commands if line.lower().startswith("rcpt")] == [
        "rcpt TO:<a@x.example>",
        "rcpt TO:<b@x.example>",
    ]


def test_a_password_is_not_sent_without_tls(mail_server: Received) -> None:
    settings = Settings(smtp_url=f"smtp://user:s3cret@127.0.0.1:{mail_server.port}", mail_to="a@x.example")
    assert announce(settings, HELD) == {"e-mail": "the e-mail about Äpfel was not sent (SMTPNotSupportedError)"}
    assert mail_server.mails == []
    assert not [line for line in mail_server.commands if line.upper().startswith("AUTH")]


def test_a_webhook_gets_signed_json(hook: Received) -> None:
    settings = Settings(webhook_url=f"http://127.0.0.1:{hook.port}/x", webhook_secret=SECRET)
    assert announce(settings, HELD) == {}
    ((headers, body),) = hook.posts
    said = json.loads(body)
    assert said.pop("at").endswith("Z")
    assert said == {"kind": "held", "feed": "Äpfel", "run": 17, "message": HELD.message, "page": PAGE}
    at, signature = (part.partition("=")[2] for part in headers[SIGNATURE].split(","))
    assert signature == hmac.new(SECRET.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()


def test_the_end_of_a_credential_names_its_vendor(hook: Received, mail_server: Received) -> None:
    settings = Settings(
        webhook_url=f"http://127.0.0.1:{hook.port}",
        smtp_url=f"smtp://127.0.0.1:{mail_server.port}",
        mail_to="a@x.example",
    )
    ends = Announcement(AnnouncementKind.CREDENTIAL, None, "the api key key-0 ends", vendor="reading@example.com")
    assert announce(settings, ends) == {}
    said = json.loads(hook.posts[0][1])
    assert (said["kind"], said["vendor"], said["run"]) == ("credential", "reading@example.com", None)
    assert "feed" not in said
    (sent,) = (message_from_bytes(body, policy=policy.default) for body in mail_server.mails)
    assert sent["Subject"] == "Roster Service: a key or secret of reading@example.com ends soon"
    assert "Vendor: reading@example.com" in sent.get_body().get_content()  # type: ignore[union-attr]


def test_a_mail_of_its_own_goes_to_nobody_else(mail_server: Received) -> None:
    settings = Settings(smtp_url=f"smtp://127.0.0.1:{mail_server.port}", mail_to="a@x.example")
    ends = Announcement(AnnouncementKind.CONTACT, None, "it ends", vendor="app@v.example", to="privacy@v.example")
    assert announce(settings, ends, {MAIL}) == {}
    (sent,) = (message_from_bytes(body, policy=policy.default) for body in mail_server.mails)
    assert (sent["To"], sent["Cc"]) == ("privacy@v.example", None)
    assert "Ask the district for the next one" in sent.get_body().get_content()  # type: ignore[union-attr]
    recipients = [line for line in mail_server.commands if line.lower().startswith("rcpt")]
    assert recipients == ["rcpt TO:<privacy@v.example>"]


def test_a_webhook_without_a_secret_has_no_signature(hook: Received) -> None:
    assert announce(Settings(webhook_url=f"http://127.0.0.1:{hook.port}"), HELD) == {}
    assert SIGNATURE not in hook.posts[0][0]


@pytest.mark.parametrize("hook", [301, 302, 303, 307, 400, 500], indirect=True)
def test_a_refused_webhook_is_a_sentence_and_the_mail_is_sent(hook: Received, mail_server: Received) -> None:
    """Also one that was moved: whoever follows sends no body."""
    settings = Settings(
        webhook_url=f"http://127.0.0.1:{hook.port}/secret-path",
        smtp_url=f"smtp://127.0.0.1:{mail_server.port}",
        mail_to="a@x.example",
    )
    assert announce(settings, HELD) == {"webhook": "the webhook about Äpfel was not sent (HTTPError)"}
    assert len(mail_server.mails) == 1
    # Again over the one that failed alone.
    assert announce(settings, HELD, ["webhook"]).keys() == {"webhook"}
    assert (len(mail_server.mails), len(hook.posts)) == (1, 2)


def test_channels_that_nobody_answers_are_sentences_without_addresses() -> None:
    settings = Settings(webhook_url="http://127.0.0.1:1/x", smtp_url="smtp://127.0.0.1:1", mail_to="a@x.example")
    failures = announce(settings, HELD)
    assert {channel: failure.partition(" (")[0] for channel, failure in failures.items()} == {
        channel: f"the {channel} about Äpfel was not sent" for channel in ("e-mail", "webhook")
    }
    assert "127.0.0.1" not in "".join(failures.values())


def test_without_channels_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert announce(Settings(), HELD) == {}
    for name in ("SMTP_URL", "WEBHOOK_URL"):
        monkeypatch.delenv(f"ROSTER_{name}", raising=False)
    done = CliRunner().invoke(main)
    assert (done.exit_code, done.stdout) == (ExitCode.UNAVAILABLE, "")
    assert "nothing is announced: set ROSTER_SMTP_URL and ROSTER_MAIL_TO, or ROSTER_WEBHOOK_URL" in done.stderr


def test_every_announced_outcome_has_a_subject_and_a_remedy() -> None:
    announced = {it.word for it in OUTCOMES.values() if it.is_announced}
    assert set(KINDS) == announced | set(AnnouncementKind)
    assert [kind for kind, (_, remedy) in KINDS.items() if not remedy.endswith(".")] == []

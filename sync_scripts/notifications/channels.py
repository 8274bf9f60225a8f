"""The channels of announcements: e-mail over SMTP, and a webhook with a signed JSON body.

An announcement goes to each channel that the settings name. A channel that fails changes nothing but the log: neither
the run nor the other channel.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import smtplib
import ssl
import time
import urllib.request
from collections.abc import Callable, Collection, Iterator
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from roster_service.errors import name_fault
from roster_service.settings import Settings
from sync_scripts.notifications.announcement import Announcement

SECONDS = 10
MAIL = "e-mail"
SIGNATURE = "X-Roster-Signature"
# The ports of SMTP: for submission, and with TLS from the start.
PORTS = {"smtp": 587, "smtps": 465}


def announce(settings: Settings, announcement: Announcement, over: Collection[str] | None = None) -> dict[str, str]:
    """Sends an announcement to every channel, or to those named in `over`. Returns a sentence for each that failed, by
    its name, without addresses and passwords."""
    failures = {}
    for name, send in list_channels(settings):
        if over is not None and name not in over:
            continue
        try:
            send(settings, announcement)
        except Exception as error:  # noqa: BLE001  (whatever fails, the run goes on)
            failures[name] = f"the {name} about {announcement.name} was not sent ({name_fault(error)})"
    return failures


def list_channels(settings: Settings) -> Iterator[tuple[str, Callable[[Settings, Announcement], None]]]:
    """Yields the name and the function of each channel that the settings name."""
    if settings.smtp_url is not None and settings.mail_to is not None:
        yield MAIL, send_mail
    if settings.webhook_url is not None:
        yield "webhook", post_webhook


def send_mail(settings: Settings, announcement: Announcement) -> None:
    """Sends an e-mail. `smtps` uses TLS from the start, `smtp` as soon as the server offers it. Raises OSError and
    SMTPException; it never sends the password over a connection without TLS."""
    url = urlsplit(settings.smtp_url or "")
    message = EmailMessage()
    message["Subject"] = announcement.subject
    message["From"] = settings.mail_from
    message["To"] = announcement.to or settings.mail_to
    message.set_content(announcement.text)
    context = ssl.create_default_context()
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    with (
        smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=context)
        if url.scheme == "smtps"
        else smtplib.SMTP(host, port, timeout=SECONDS)
    ) as server:
        server.ehlo()
        if url.scheme == "smtp" and server.has_extn("starttls"):
            server.starttls(context=context)
            server.ehlo()
        if url.username:
            if not isinstance(server.sock, ssl.SSLSocket):
                raise smtplib.SMTPNotSupportedError("the server offers no TLS")
            server.login(unquote(url.username), unquote(url.password or ""))
        server.send_message(message)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect the error that it is: urllib would follow it with a GET, which has no body."""

    def redirect_request(self, *_given: object) -> None:
        """Returns no request."""


_opener = urllib.request.build_opener(_NoRedirects)


def post_webhook(settings: Settings, announcement: Announcement) -> None:
    """Posts the announcement as JSON, with a signature if there is a secret. Raises OSError; any status but 2xx is one
    of its kinds."""
    body = json.dumps(announcement.to_json(), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "roster-service"}
    if settings.webhook_secret is not None:
        headers[SIGNATURE] = sign(body, settings.webhook_secret, int(time.time()))
    request = urllib.request.Request(settings.webhook_url or "", body, headers, method="POST")  # noqa: S310  (http only)
    with _opener.open(request, timeout=SECONDS):
        pass


def sign(body: bytes, secret: str, at: int) -> str:
    """Returns the signature of a body, `t=SECONDS,v1=HEX`: the HMAC-SHA256 of the seconds since the epoch, a dot and
    the body. The receiver refuses old times, so that nobody can send a body again."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"

"""The head of a request as it arrives: bounds on its size, and what waitress would accept beside HTTP/1.1."""

from __future__ import annotations

import re
from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError, TransferEncodingNotImplemented

from roster_service.http.request_facts import REQUEST_ID
from roster_service.web.time_limit import RequestHead

# The bound of the request line. The longest filter takes 49 kB, if each of its letters takes 12 bytes.
LINE_BYTES = 65_536
# The bound of the request line and all headers together. A permission token of a vendor with many single schools takes
# 64 kB alone.
HEAD_BYTES = LINE_BYTES + 131_072
# waitress joins headers of one name, and copies all of them for each one more.
HEADERS = 100
# waitress's name of the header.
REQUEST_ID_KEY = REQUEST_ID.upper().replace("-", "_")

LONG_LINE = f"the request line has more than {LINE_BYTES} bytes"
LONG_HEAD = (
    f"the request line and the headers have more than {HEAD_BYTES} bytes, or there are more than {HEADERS} headers"
)
NOT_HTTP = "this is not an HTTP/1.1 request"
NOT_ENCODED = (
    "a character of the URL is not percent-encoded; encode the value of each parameter: a space as %20, a letter "
    "beyond ASCII as its bytes in UTF-8"
)
LOWER_CASE = "the method must be in capital letters, as GET"

REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Z-]+ (/|https?://)[\x21-\x7e]* HTTP/1\.[01]")
# Lines whose mistake has a name: a method in small letters; a URL with spaces or bytes beyond ASCII.
MISTAKES = (
    (re.compile(rb"(?=[A-Z]*[a-z])[A-Za-z]{3,7} (/|https?://)[\x21-\x7e]* HTTP/1\.[01]"), LOWER_CASE),
    (re.compile(rb"[A-Z]{3,7} (/|https?://)[\x20-\x7e\x80-\xff]* HTTP/1\.[01]"), NOT_ENCODED),
)
# A header that goes on in the next line; and white space for which waitress's pattern of a header takes a time that
# grows with the square of its length.
SUSPECT = re.compile(rb"\r\n[ \t]|[ \t]{100}")
GIVEN_ID = re.compile(rb"\r\n%b:([^\r\n]*)" % REQUEST_ID.encode(), re.IGNORECASE)


class BoundedParser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """A request as it arrives. `reason`: why it is refused, if `error` is set; it quotes nothing of the request;
    `arrived_at`: the instant at which the kernel had its last byte, by `time.monotonic`; the channel sets it."""

    reason = NOT_HTTP
    arrived_at = 0.0
    adj: Any

    def received(self, data: bytes) -> int:
        """Takes bytes from the front of `data`. Returns how many it took."""
        taken: int = super().received(data)
        if self.header_bytes_received >= HEAD_BYTES:
            self.reason = LONG_HEAD
        if self.error or self.body_rcv is None:
            # waitress would ask for a body that is refused, or wait for one that does not exist.
            self.expect_continue = False
        return taken

    def parse_header(self, header_plus: bytes) -> None:
        """Parses the head. Raises ParsingError if it is too long or malformed."""
        try:
            self._parse_header(header_plus)
        except (ParsingError, TransferEncodingNotImplemented):
            # The refusal has the id of the request, which may not be parsed by then.
            if (found := GIVEN_ID.search(header_plus)) is not None:
                self.headers.setdefault(REQUEST_ID_KEY, found[1].strip().decode("latin-1"))
            raise

    def _parse_header(self, header_plus: bytes) -> None:
        line, _, fields = header_plus.partition(b"\r\n")
        if len(line) > LINE_BYTES:
            self._refuse(LONG_LINE)
        # Each header and the head end with a line break.
        if fields.count(b"\r\n") > HEADERS + 1:
            self._refuse(LONG_HEAD)
        if not REQUEST_LINE.fullmatch(line):
            self._refuse(next((reason for mistake, reason in MISTAKES if mistake.fullmatch(line)), NOT_HTTP))
        if SUSPECT.search(header_plus):
            self._refuse(NOT_HTTP)
        try:
            super().parse_header(header_plus)
        except ValueError:
            # Of an address with a malformed host, or a length of thousands of digits.
            self._refuse(NOT_HTTP)
        has_two_lengths = self.chunked and "CONTENT_LENGTH" in self.headers
        # waitress reads a transfer coding in HTTP/1.1 alone, and would take the body for the next request.
        if has_two_lengths or "TRANSFER_ENCODING" in self.headers:
            self._refuse(NOT_HTTP)
        if self.headers.get("EXPECT", "100-continue").lower() != "100-continue":
            self._refuse(NOT_HTTP)
        if self.chunked or self.content_length >= self.adj.max_request_body_size:
            headers = {name.replace("_", "-"): value for name, value in self.headers.items()}
            self.adj = self.adj.find_bounds(RequestHead(self.command, self.path, self.query, headers))

    def _refuse(self, reason: str) -> None:
        self.reason = reason
        raise ParsingError(reason)

"""The head of a request as it arrives: bounds on its size, and what waitress would accept beside HTTP/1.1."""

from __future__ import annotations

import re
from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError

# The bound of the request line. The longest filter takes 49 kB, if each of its letters takes 12 bytes.
LINE_BYTES = 65_536
# The bound of the request line and all headers together. A permission token of a vendor with many single schools takes
# 64 kB alone.
HEAD_BYTES = LINE_BYTES + 131_072
# waitress joins headers of one name, and copies all of them for each one more.
HEADERS = 100

LONG_LINE = f"the request line has more than {LINE_BYTES} bytes"
LONG_HEAD = (
    f"the request line and the headers have more than {HEAD_BYTES} bytes, or there are more than {HEADERS} headers"
)
NOT_HTTP = "this is not an HTTP/1.1 request"

REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Z-]+ (/|https?://)[\x21-\x7e]* HTTP/1\.[01]")
# A header that goes on in the next line; and white space for which waitress's pattern of a header takes a time that
# grows with the square of its length.
SUSPECT = re.compile(rb"\r\n[ \t]|[ \t]{100}")


class BoundedParser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """A request as it arrives. `reason`: why it is refused, if `error` is set; it quotes nothing of the request."""

    reason = NOT_HTTP
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
        line, _, fields = header_plus.partition(b"\r\n")
        if len(line) > LINE_BYTES:
            self._refuse(LONG_LINE)
        # Each header and the head end with a line break.
        if fields.count(b"\r\n") > HEADERS + 1:
            self._refuse(LONG_HEAD)
        if not REQUEST_LINE.fullmatch(line) or SUSPECT.search(header_plus):
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
        if self.adj.takes_upload(self.path, self.headers.get("COOKIE", "")):
            self.adj = self.adj.of_uploads

    def _refuse(self, reason: str) -> None:
        self.reason = reason
        raise ParsingError(reason)

"""Answers with records are compressed as the client wants it; what is in them is the same."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import zstandard
from isal import igzip
from werkzeug.http import parse_accept_header

from roster_service.web.compression import choose_coding, find_codings

from .client import ROOTS, Answer, RosterClient

UNPACK: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gzip": igzip.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
}
CHOICES = [
    ("", None),
    ("gzip", "gzip"),
    ("zstd", "zstd"),
    ("gzip, deflate, br, zstd", "zstd"),
    ("gzip;q=1, zstd;q=0.5", "gzip"),
    ("gzip;q=0", None),
    ("gzip;q=0, *;q=0", None),
    ("zstd;q=0, *", "gzip"),
    ("*", "zstd"),
    ("br", None),
    ("identity", None),
    ("identity;q=1, gzip;q=0.5", None),
    ("identity;q=0.5, gzip;q=0.8", "gzip"),
    ("GZIP", "gzip"),
]


@pytest.mark.parametrize(("header", "coding"), CHOICES)
def test_the_client_s_choice_is_taken(header: str, coding: str | None) -> None:
    assert choose_coding(parse_accept_header(header)) == coding


def fetch(client: RosterClient, path: str, **headers: str) -> Answer:
    """An answer as it comes over the wire."""
    return client.fetch(
        ROOTS["v1p1"] + path,
        headers={"Authorization": f"Bearer {client.token('v1p1')}"}
        | {k.replace("_", "-"): v for k, v in headers.items()},
    )


@pytest.mark.parametrize("coding", [None, "gzip", "zstd"])
def test_a_page_is_the_same_in_every_coding(client: RosterClient, coding: str | None) -> None:
    plain = fetch(client, "/users")
    answer = fetch(client, "/users", Accept_Encoding=coding or "identity")
    assert answer.headers.get("Content-Encoding") == coding
    assert UNPACK[coding](answer.body) == plain.body
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert answer.headers["Vary"] == "Accept-Encoding"
    # One strong tag stands for one sequence of bytes.
    weak = "" if coding is None else "W/"
    assert answer.headers["ETag"] == weak + plain.headers["ETag"]


def test_the_tag_of_a_compressed_answer_is_known(client: RosterClient) -> None:
    tag = fetch(client, "/users", Accept_Encoding="gzip").headers["ETag"]
    answer = fetch(client, "/users", Accept_Encoding="gzip", If_None_Match=tag)
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/orgs/spr-high", "/users?limit=0", "/users/no-such-record", "/openapi.json"], ids=lambda path: path
)
def test_small_answers_and_those_without_records_are_plain(client: RosterClient, path: str) -> None:
    assert "Content-Encoding" not in fetch(client, path, Accept_Encoding="gzip").headers


@pytest.mark.parametrize(
    ("missing", "offered"),
    [
        ((), ["zstd", "gzip"]),
        (("zstandard",), ["gzip"]),
        (("isal",), ["zstd", "gzip"]),
        (("isal", "zstandard"), ["gzip"]),
    ],
)
def test_the_codings_follow_from_the_installed_packages(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], offered: list[str]
) -> None:
    for package in missing:
        monkeypatch.setitem(sys.modules, package, None)
    codings = find_codings()
    assert list(codings) == offered
    body = b'{"users": []}' * 100
    assert all(UNPACK[coding](compress(body)) == body for coding, compress in codings.items())

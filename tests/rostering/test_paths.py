"""Ids in paths: what a WSGI server hands over, made into segments again."""

from __future__ import annotations

from typing import Any

import pytest

from roster_service.rostering.paths import EncodedIds, IdConverter, read_raw_path

# What was sent -> the path that routing sees (still encoded once), and the path for links.
from tests.offenders import in_one_test

SENT = [
    pytest.param("/a/b", "/a/b", "/a/b", id="plain"),
    pytest.param("/a/b?c=/d", "/a/b", "/a/b", id="query"),
    pytest.param("/a/b%2Fc", "/a/b%2Fc", "/a/b%2Fc", id="slash"),
    pytest.param("/a/b%2fc", "/a/b%2Fc", "/a/b%2fc", id="lower-case-slash"),
    pytest.param("/a/b%252Fc", "/a/b%252Fc", "/a/b%252Fc", id="encoded-twice"),
    pytest.param("/a/b%25", "/a/b%25", "/a/b%25", id="percent"),
    pytest.param("/a/%41", "/a/A", "/a/%41", id="letter"),
    pytest.param("/a/b,c", "/a/b,c", "/a/b%2Cc", id="comma"),
    pytest.param("/a//b", "/a//b", "/a//b", id="empty-segment"),
    pytest.param("/a/b/", "/a/b/", "/a/b", id="trailing-slash"),
    pytest.param("/a/b//", "/a/b//", "/a/b/", id="empty-segment-at-the-end"),
    pytest.param("/a/%C3%A9", "/a/\u00c3\u00a9", "/a/%C3%A9", id="letter-beyond-ascii"),
    pytest.param("/", "/", "", id="root"),
]


def run(environ: dict[str, Any]) -> dict[str, Any]:
    """The environment that the application behind the middleware gets."""
    seen: dict[str, Any] = {}

    def application(inner: dict[str, Any], _start: object) -> list[bytes]:
        seen.update(inner)
        return []

    assert EncodedIds(application)(environ, lambda *_: None) == []  # type: ignore[arg-type, return-value]
    return seen


@in_one_test
@pytest.mark.parametrize("variable", ["RAW_URI", "REQUEST_URI"])
@pytest.mark.parametrize(("sent", "routed", "shown"), SENT)
def test_a_segment_keeps_its_own_slashes(variable: str, sent: str, routed: str, shown: str) -> None:
    seen = run({variable: sent, "PATH_INFO": "whatever"})
    assert seen["PATH_INFO"] == routed
    assert read_raw_path(seen) == shown


def test_below_a_prefix_the_prefix_is_not_part_of_the_path() -> None:
    seen = run({"RAW_URI": "/rosters/a/b%2Fc", "SCRIPT_NAME": "/rosters", "PATH_INFO": "/a/b/c"})
    assert seen["PATH_INFO"] == "/a/b%2Fc"


def test_a_server_that_does_not_report_the_sent_path_is_taken_at_its_word() -> None:
    seen = run({"PATH_INFO": "/a/b c%,\u00c3\u00a9"})
    assert seen["PATH_INFO"] == "/a/b c%25,\u00c3\u00a9"
    assert read_raw_path(seen) == "/a/b%20c%25%2C%C3%A9"


@pytest.mark.parametrize(
    ("segment", "sourced_id"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("a%2Fb", "a/b", id="slash"),
        pytest.param("a%25b", "a%b", id="percent"),
        pytest.param("a%252Fb", "a%2Fb", id="a-percent-sign-before-digits"),
    ],
)
def test_a_segment_is_an_id_and_back(segment: str, sourced_id: str) -> None:
    converter = IdConverter(None)  # type: ignore[arg-type]
    assert converter.to_python(segment) == sourced_id
    assert converter.to_url(sourced_id) == segment

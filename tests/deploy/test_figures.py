"""The figures of deploy/nginx.conf beside those of the service: nginx takes no less, and waits no shorter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roster_service.errors import BUSY_RETRY_SECONDS
from roster_service.schemas.vendor_bodies import MAX_BODY_BYTES
from roster_service.server.gunicorn_app import find_worker_timeout
from roster_service.server.http_parser import HEAD_BYTES, LINE_BYTES
from roster_service.settings import Settings

CONFIGURATION = (Path(__file__).parents[2] / "deploy" / "nginx.conf").read_text()


def find(pattern: str) -> int:
    """The number that a pattern finds in the configuration, once."""
    [number] = re.findall(pattern, CONFIGURATION)
    return int(number)


def test_a_request_line_and_a_header_of_the_service_s_limit_pass() -> None:
    each = find(r"large_client_header_buffers 4 (\d+)k;") * 1024
    assert each > LINE_BYTES
    assert 4 * each > HEAD_BYTES
    assert find(r"client_max_body_size (\d+)k;") * 1024 == MAX_BODY_BYTES


def test_the_longest_request_of_the_service_is_waited_for() -> None:
    assert find(r"proxy_read_timeout (\d+)s;") > find_worker_timeout(Settings())


def test_the_refusal_of_a_service_that_is_away_says_the_same_seconds() -> None:
    assert find(r"add_header Retry-After (\d+) always;\n.*\n\s+return 503") == BUSY_RETRY_SECONDS


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Request-Id", "Host"])
def test_what_a_client_says_is_replaced(header: str) -> None:
    [value] = re.findall(rf"proxy_set_header {header} (\S+);", CONFIGURATION)
    assert value in {"$remote_addr", "$scheme", "$host", "$request_id"}


def test_no_log_has_a_query_string() -> None:
    [log_format] = re.findall(r"log_format roster (.*?);", CONFIGURATION, re.DOTALL)
    assert not set(re.findall(r"\$\w+", log_format)) & {"$request", "$request_uri", "$args", "$query_string", "$uri"}

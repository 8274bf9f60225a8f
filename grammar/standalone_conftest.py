"""The fixtures of the library's tests in its source distribution, where the service is not."""

import os

import pytest


@pytest.fixture(scope="session")
def server_url() -> str:
    """The PostgreSQL of ROSTER_TEST_DATABASE_URL, whose tests are skipped without it."""
    url = os.environ.get("ROSTER_TEST_DATABASE_URL")
    if url is None:
        pytest.skip("ROSTER_TEST_DATABASE_URL names no PostgreSQL")
    return url

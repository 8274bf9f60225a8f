"""Clients of others, as their authors publish them, read the roster.

The variable OPENAPI_TOOLS is the virtual environment that `make check-long` makes, with the clients.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients
from roster_service.auth.scopes import Scope, ScopeName
from tests.actors import TESTER
from tests.contract.client import ROOTS
from tests.contract.conftest import SECRET_KEY
from tests.faults.services import fill, serving

TOOLS = os.environ.get("OPENAPI_TOOLS")
pytestmark = [
    pytest.mark.long_with(),
    pytest.mark.skipif(TOOLS is None, reason="OPENAPI_TOOLS names no virtual environment"),
]

# The package `oneroster` signs with HMAC-SHA256, and follows `Link` to the end.
SIGNING_CLIENT = """
import json, sys
import oneroster

host, client_id, client_secret = sys.argv[1:]
connector = oneroster.ClasslinkConnector(host=host, client_id=client_id, client_secret=client_secret, page_size=2)
print(json.dumps([user["sourcedId"] for user in connector.get_users(user_filter="students")]))
"""


def test_a_client_that_signs_reads_all_students(engine: sa.Engine, tmp_path: Path) -> None:
    credentials = fill(engine)
    with engine.begin() as connection:
        scopes = [Scope("v1p1", ScopeName.CORE)]
        made = clients.add_client(connection, TESTER, credentials.account.email, "signs", scopes, secret_key=SECRET_KEY)
    url = engine.url.render_as_string(hide_password=False)
    with serving(url, credentials, tmp_path, oauth1="true") as service:
        root = f"http://127.0.0.1:{service.port}{ROOTS['v1p1']}/"
        command = [Path(str(TOOLS)).resolve() / "bin" / "python", "-c", SIGNING_CLIENT]
        done = subprocess.run(
            [*command, root, made.client_id, made.client_secret], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        service.get_tokens()
        expected = service.ask("v1p1", "/students?limit=100").json["users"]
    assert json.loads(done.stdout) == [user["sourcedId"] for user in expected]
    assert len(expected) > 2

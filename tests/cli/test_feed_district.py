"""An export without a district, from the loader to a vendor's requests."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.cli.test_serve import environment_of, serving
from tests.extent import cases
from tests.sync.applying.test_feed_district import CASES, FEED, Case
from tests.sync.conftest import EXPORTS

STUDENTS = {
    "springfield-1.1": ("spr-high", {"spr-student-3", "spr-student-4", "spr-student-5", "spr-student-6"}),
    "shelbyville-1.2": ("shv-south", {"shv-student-3", "shv-student-4"}),
    "northhaven-sds": ("nh-2", {"u1"}),
}
SERVED = {name: CASES[name] for name in ("1.1, schools alone", "1.2, a school and a campus", "sds, schools alone")}


def call(address: str, headers: Mapping[str, str], body: bytes | None = None) -> Any:
    with urlopen(Request(address, body, dict(headers))) as answer:
        return json.load(answer)


@pytest.mark.parametrize("case", cases(SERVED, quick=["1.1, schools alone"]))
def test_a_vendor_sees_the_schools_of_a_feed_without_a_district(
    database_url: str, tmp_path: Path, answer: Callable[..., Any], case: Case
) -> None:
    """In both interfaces, once the district that is made of the feed is granted by the feed's name."""
    export = Path(shutil.copytree(EXPORTS / case.export, tmp_path / "export"))
    case.bend(export)
    environment = environment_of(database_url=database_url, home=str(tmp_path), port=str(find_port()), workers="1")
    loader = [sys.executable, "-m", f"sync_scripts.load_{case.family.name}", "--now", "--feed", FEED, str(export)]
    loaded = subprocess.run(loader, env=environment, capture_output=True, text=True, check=True)
    assert f"the feed itself is the district {FEED}" in loaded.stdout
    runs = answer("sync", "list")
    assert any(f"the feed itself is the district {FEED}" in notice for notice in runs[0]["notices"])

    email = "reading@example.com"
    vendor = answer("vendor", "add", email, "--name", "Reading App")
    answer("vendor", "grant", email, "--district", FEED)
    client = answer("client", "add", "--vendor", email, "--name", "production", "--scope", "v1p1/roster.readonly")
    school, students = STUDENTS[case.export]
    with serving(environment, "--json") as (_, printed):
        url = json.loads(printed.splitlines()[-1])["url"]
        login = b64encode(f"{client['client_id']}:{client['client_secret']}".encode()).decode()
        form = urlencode({"grant_type": "client_credentials", "scope": "v1p1/roster.readonly"}).encode()
        token = call(f"{url}/oauth/token", {"Authorization": f"Basic {login}"}, form)["access_token"]
        bearer = {"Authorization": f"Bearer {token}"}
        root = f"{url}/ims/oneroster/v1p1"
        found = {it["sourcedId"]: it for it in call(f"{root}/orgs", bearer)["orgs"]}
        assert {key: it.get("parent", {}).get("sourcedId") for key, it in found.items()} == {
            **case.parents,
            f"{FEED}:district": None,
        }
        rostered = call(f"{root}/schools/{school}/students", bearer)["users"]
        assert {it["sourcedId"] for it in rostered} == students

        key = {"x-api-key": vendor["api_key"], "Content-Type": "application/json"}
        pair = json.dumps({"email": email, "password": vendor["password"]}).encode()
        permission_token = call(f"{url}/v1/login", key, pair)["token"]
        asked = json.dumps({"districtlea": FEED, "schools": [school]}).encode()
        queried = call(f"{url}/v1/students", {**key, "Authorization": f"Bearer {permission_token}"}, asked)["students"]
        assert {it["sourcedId"] for it in queried} == students


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""An export without a district, from the loader to a vendor's requests."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from roster_service.app import create_app
from roster_service.settings import Settings
from tests.cli.conftest import make_environment
from tests.conftest import close_app
from tests.extent import cases
from tests.sync.applying.test_feed_district import CASES, FEED, Case
from tests.sync.conftest import EXPORTS

SECRET_KEY = "a secret key of the tests, long enough to be one"
STUDENTS = {
    "springfield-1.1": ("spr-high", {"spr-student-3", "spr-student-4", "spr-student-5", "spr-student-6"}),
    "shelbyville-1.2": ("shv-south", {"shv-student-3", "shv-student-4"}),
    "northhaven-sds": ("nh-2", {"u1"}),
}
SERVED = {name: CASES[name] for name in ("1.1, schools alone", "1.2, a school and a campus", "sds, schools alone")}


@pytest.mark.parametrize("case", cases(SERVED, quick=["1.1, schools alone"]))
def test_a_vendor_sees_the_schools_of_a_feed_without_a_district(
    database_url: str, tmp_path: Path, answer: Callable[..., Any], case: Case
) -> None:
    """In both interfaces, once the district that is made of the feed is granted by the feed's name."""
    export = Path(shutil.copytree(EXPORTS / case.export, tmp_path / "export"))
    case.bend(export)
    (tmp_path / "secret_key").write_text(SECRET_KEY)
    loader = importlib.import_module(f"sync_scripts.load_{case.family.name}").main
    environment = make_environment(database_url=database_url, home=str(tmp_path))
    loaded = CliRunner().invoke(loader, ["--now", "--feed", FEED, str(export)], env=environment)
    assert loaded.exit_code == 0, loaded.output
    assert f"the feed itself is the district {FEED}" in loaded.output
    runs = answer("sync", "list")
    assert any(f"the feed itself is the district {FEED}" in notice for notice in runs[0]["notices"])

    email = "reading@example.com"
    vendor = answer("vendor", "add", email, "--name", "Reading App")
    answer("vendor", "grant", email, "--district", FEED)
    client = answer("client", "add", "--vendor", email, "--name", "production", "--scope", "v1p1/roster.readonly")
    school, students = STUDENTS[case.export]
    app = create_app(Settings(secret_key=SECRET_KEY, home=tmp_path), database_url)
    http = app.test_client()
    form = {"grant_type": "client_credentials", "scope": "v1p1/roster.readonly"}
    token = http.post("/oauth/token", data=form, auth=(client["client_id"], client["client_secret"])).json
    assert token is not None

    def read(path: str, key: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        answer = http.get(f"/ims/oneroster/v1p1{path}", headers=headers).json
        assert answer is not None
        return {it["sourcedId"]: it for it in answer[key]}

    found = {key: it.get("parent", {}).get("sourcedId") for key, it in read("/orgs", "orgs").items()}
    assert found == {**case.parents, f"{FEED}:district": None}
    assert read(f"/schools/{school}/students", "users").keys() == students
    headers = {"x-api-key": vendor["api_key"]}
    pair = {"email": email, "password": vendor["password"]}
    login = http.post("/v1/login", json=pair, headers=headers).json
    assert login is not None
    headers["Authorization"] = f"Bearer {login['token']}"
    queried = http.post("/v1/students", json={"districtlea": FEED, "schools": [school]}, headers=headers).json
    assert queried is not None
    assert {it["sourcedId"] for it in queried["students"]} == students
    close_app(app)

"""`roster delivery` and `roster export`."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
import sqlalchemy as sa

from sync_scripts.engine.load import load
from tests.contract.conftest import EXPORTS, add_vendor
from tests.deliveries.checker import check

from .conftest import Roster

EMAIL = "elementary@vendors.example"


@pytest.fixture
def granted(engine: sa.Engine) -> str:
    """A vendor who sees a school."""
    load(engine, "springfield", EXPORTS / "springfield-1.1")
    with engine.begin() as connection:
        client_id, _ = add_vendor(connection, "elementary", [("spr-district", ("spr-elementary",))])
    return client_id


def test_a_preview_is_a_private_file_and_in_the_change_log(granted: str, roster: Roster, tmp_path: Path) -> None:
    out = tmp_path / "out.zip"
    done = roster("delivery", "preview", EMAIL, "--preset", "oneroster-1.2", "--out", str(out), "--reason", "a test")
    assert done.exit_code == 0, done.output
    assert "users.csv: 7 rows" in done.stdout
    assert out.stat().st_mode & 0o777 == 0o600
    assert check(out.read_bytes()) == []
    row = json.loads(roster("changes", "--json").stdout)[-1]
    assert (row["verb"], row["subject"], row["vendor"]) == ("delivery preview", "oneroster-1.2", EMAIL)
    assert json.loads(roster("audit", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("delivery", "preview", "nobody@vendors.example", "--preset", "apple"), "there is no vendor"),
        (("delivery", "preview", EMAIL, "--preset", "apple", "--client", "client-x"), "no such client"),
        (("export", "pupils", "--as", EMAIL), "there is no collection pupils; there are orgs,"),
    ],
)
def test_a_refusal_leaves_no_file(
    granted: str, roster: Roster, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    done = roster(*arguments, "--out", str(folder / "out"))
    assert done.exit_code == 1
    assert words in done.stderr
    assert list(folder.iterdir()) == []


def test_an_export_has_the_json_of_the_interface_by_line(granted: str, roster: Roster, tmp_path: Path) -> None:
    out = tmp_path / "users.ndjson"
    done = roster("export", "students", "--as", EMAIL, "--version", "v1p1", "--out", str(out), "--json")
    assert done.exit_code == 0, done.output
    assert out.stat().st_mode & 0o777 == 0o600
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert json.loads(done.stdout)["records"] == len(records) > 0
    assert {it["role"] for it in records} == {"student"}
    assert {it["orgs"][0]["href"] for it in records} == {"http://127.0.0.1:8000/ims/oneroster/v1p1/orgs/spr-elementary"}


def test_a_zip_opens_with_any_program(granted: str, roster: Roster, tmp_path: Path) -> None:
    out = tmp_path / "out.zip"
    roster("delivery", "preview", EMAIL, "--preset", "st-math", "--out", str(out))
    with zipfile.ZipFile(io.BytesIO(out.read_bytes())) as packed:
        assert packed.testzip() is None

"""`roster settings`: every setting, its value and its source."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from roster_service.cli import main
from roster_service.explore.listed_settings import EMBEDDED
from roster_service.settings import PREFIX, Settings

from .conftest import make_environment

SECRET = "hunter2" * 6


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data folder of the defaults does not exist here."""
    monkeypatch.chdir(tmp_path)


def list_settings(**settings: str) -> dict[str, tuple[str | None, str]]:
    """(value, source) of each variable; both forms of the output have no secret in them, and nothing is made."""
    before = sorted(Path().rglob("*"))
    environment = make_environment(**settings)
    plain = CliRunner().invoke(main, ("settings",), env=environment)
    done = CliRunner().invoke(main, ("settings", "--json"), env=environment)
    assert (plain.exit_code, done.exit_code, done.stderr) == (0, 0, "")
    assert "hunter2" not in plain.output + done.output
    assert sorted(Path().rglob("*")) == before
    listed = {row["variable"]: (row["value"], row["source"]) for row in json.loads(done.stdout)}
    assert all(variable in plain.output for variable in listed)
    return listed


def test_without_variables_every_setting_has_its_default() -> None:
    expected = {
        PREFIX + row.name.upper(): (None if row.default is None else str(row.default), "default")
        for row in dataclasses.fields(Settings)
    }
    assert list_settings() == expected


@pytest.mark.shows(
    "Machine and database",
    "`roster settings` shows no secret; a file of exported accounts has mode 0600.",
)
def test_a_value_says_where_it_comes_from_and_hides_its_secret(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text(SECRET)
    listed = list_settings(
        database_url=f"postgresql://roster:{SECRET}@host/name",
        role_password=SECRET,
        port="81",
        secret_key_file="kept",
        smtp_url=f"smtp://:{SECRET}@host",
    )
    assert {variable: row for variable, row in listed.items() if row[1] != "default"} == {
        "ROSTER_DATABASE_URL": ("postgresql://roster:***@host/name", "environment"),
        "ROSTER_ROLE_PASSWORD": ("***", "environment"),
        "ROSTER_PORT": ("81", "environment"),
        "ROSTER_SECRET_KEY": ("***", "file kept"),
        "ROSTER_SMTP_URL": ("smtp://:***@host", "environment"),
    }


def test_the_address_that_roster_run_gives_its_workers_is_from_nobodys_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(EMBEDDED, "1")
    assert list_settings(database_url="postgresql://host/name", port="81") | {
        "ROSTER_DATABASE_URL": ("postgresql://host/name", "embedded server"),
        "ROSTER_PORT": ("81", "environment"),
    } == list_settings(database_url="postgresql://host/name", port="81")


def test_a_setting_of_the_file_in_the_data_folder_names_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "roster.env").write_text(f"ROSTER_WEBHOOK_SECRET={SECRET}\nROSTER_PORT=81\n")
    listed = list_settings(home="data", port="82")
    assert listed["ROSTER_WEBHOOK_SECRET"] == ("***", "file data/roster.env")
    assert listed["ROSTER_PORT"] == ("82", "environment")


def test_the_secret_key_of_the_data_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret_key").write_text(SECRET)
    assert list_settings(home="data")["ROSTER_SECRET_KEY"] == ("***", "file data/secret_key")

"""The public list of vendors: who may see it, and that it says what vendors may get and nothing of anybody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import agreements, vendor_rights, vendors
from roster_service.accounts.parts import PARTS, list_received
from roster_service.accounts.transparency import publish, set_published
from roster_service.app import create_app
from roster_service.roster.withheld import WithheldField
from roster_service.settings import Settings
from tests.accounts.agreed import DISTRICT, TODAY, VENDOR, WHOLE, Asked, add_asked
from tests.accounts.test_agreements import find_shown
from tests.accounts.test_parts import SECRET_KEY
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.conftest import close_app
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SHELBYVILLE

HOSTILE = '<script>alert(1)</script>"'


@pytest.fixture
def asked(engine: sa.Engine, database_url: str, tmp_path: Path) -> Iterator[Asked]:
    """The service with a vendor, and the page."""
    load_first(engine, "shelbyville", EXPORTS / SHELBYVILLE)
    app = create_app(Settings(secret_key=SECRET_KEY, home=tmp_path), database_url)
    yield add_asked(engine, app)
    close_app(app)


def show(asked: Asked) -> None:
    with asked.engine.begin() as connection:
        set_published(connection, TESTER, published=True)


def save(asked: Asked, **changed: Any) -> None:
    """Saves an agreement, as a form does."""
    with asked.engine.begin() as connection:
        agreements.set_agreement(connection, TESTER, VENDOR, replace(WHOLE, **changed))
        publish(connection)


def read(asked: Asked) -> list[dict[str, Any]]:
    """The vendors of the only district, as JSON."""
    found: list[dict[str, Any]] = asked.http.get(f"/transparency/{DISTRICT}.json").json[0]["vendors"]
    return found


def test_there_is_no_page_until_an_owner_says_so(asked: Asked) -> None:
    paths = ("/transparency", "/transparency.json", f"/transparency/{DISTRICT}")
    assert {asked.http.get(path).status_code for path in paths} == {404}
    show(asked)
    assert {asked.http.get(path).status_code for path in paths} == {200}
    assert asked.http.get("/transparency/nowhere").status_code == 404
    with asked.engine.begin() as connection:
        connection.execute(sa.text("UPDATE published_vendors SET district_id = 'a/b%2F', district = 'Slash'"))
    assert {asked.http.get(f"/transparency/a%2Fb%252F{end}").status_code for end in ("", ".json")} == {200}
    with asked.engine.begin() as connection:
        set_published(connection, TESTER, published=False)
        assert connection.execute(sa.text("SELECT FROM published_vendors")).all() == []
    assert {asked.http.get(path).status_code for path in paths} == {404}


@pytest.mark.shows("Visibility", "The public list of vendors names each part that an answer has, and nobody.")
def test_the_page_says_what_vendors_may_get_and_nothing_of_anybody(asked: Asked) -> None:
    show(asked)
    for changed in (
        {},
        {"elements": ("names", "classes", "email", "sex")},
        {"districts": (), "schools": ("shv-north",)},
    ):
        save(asked, purpose=HOSTILE, **changed)
        [vendor] = read(asked)
        parts, _ = find_shown(asked)
        words = {PARTS[part].words for part in parts}
        assert words <= set(vendor["elements"])
        with asked.engine.connect() as connection:
            assert set(vendor["elements"]) == {PARTS[part].words for part in list_received(connection)[VENDOR]}
        assert vendor["schools"] == (["North School"] if "schools" in changed else [])
        page = asked.http.get(f"/transparency/{DISTRICT}").text
        assert HOSTILE not in page
        assert vendor["name"] in page
        names = sa.text("SELECT family_name FROM users UNION SELECT sourced_id FROM users")
        with asked.engine.connect() as connection:
            assert [name for name in connection.scalars(names) if name in page + json.dumps(vendor)] == []
    assert (vendor["since"], vendor["until"]) == (str(WHOLE.first_day), str(WHOLE.last_day))


def test_a_district_without_an_active_school_has_its_vendors(asked: Asked) -> None:
    """Its people may have their roles at the district itself."""
    with asked.engine.begin() as connection:
        connection.execute(sa.text("UPDATE orgs SET status = 'tobedeleted' WHERE type = 'school'"))
    show(asked)
    save(asked)
    [vendor] = read(asked)
    assert vendor["schools"] == []


def test_what_ends_leaves_the_page(asked: Asked) -> None:
    show(asked)
    save(asked)
    # Nobody writes the list at the instant of the end.
    with asked.engine.begin() as connection:
        connection.execute(sa.text("UPDATE published_vendors SET ends_at = now()"))
    assert read(asked) == []
    asked.remove()
    save(asked)
    assert len(read(asked)) == 1
    with asked.engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled=False)
        publish(connection)
    assert asked.http.get("/transparency.json").json == []
    assert "No vendor gets anything" in asked.http.get("/transparency").text


def test_what_begins_later_comes_by_itself(asked: Asked) -> None:
    show(asked)
    save(asked)
    [shown] = read(asked)
    assert "starts_at" not in shown
    asked.remove()
    save(asked, first_day=TODAY + timedelta(days=9))
    assert read(asked) == []
    with asked.engine.begin() as connection:
        begun = """UPDATE published_vendors SET body = body || '{"starts_at": "2026-11-30T00:00:00.000Z"}'"""
        connection.execute(sa.text(begun))
    assert read(asked) == [shown | {"since": str(TODAY + timedelta(days=9))}]
    # A disabled vendor does not come, and neither does one that lacks the agreement which owners require.
    with asked.engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled=False)
        publish(connection)
    assert asked.http.get("/transparency.json").json == []
    asked.remove()
    with asked.engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, VENDOR, enabled=True)
        agreements.require_agreements(connection, TESTER, required=True)
        publish(connection)
    assert asked.http.get("/transparency.json").json == []


def test_each_change_by_a_command_is_on_the_page(asked: Asked, database_url: str, tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text(SECRET_KEY)
    assert run_roster(database_url, tmp_path, "agreement", "publish", "yes", "--yes").exit_code == 0
    assert PARTS["birthDate"].words in read(asked)[0]["elements"]
    tag = asked.http.get("/transparency.json").headers["ETag"]
    assert asked.http.get("/transparency.json", headers={"If-None-Match": tag}).status_code == 304
    fields = [field.value for field in WithheldField]
    assert run_roster(database_url, tmp_path, "vendor", "set-withheld", VENDOR, *fields, "--yes").exit_code == 0
    assert PARTS["birthDate"].words not in read(asked)[0]["elements"]
    assert asked.http.get("/transparency.json", headers={"If-None-Match": tag}).status_code == 200
    done = run_roster(database_url, tmp_path, "vendor", "set-withheld", VENDOR, "--none", "--yes", "--dry-run")
    assert done.exit_code == 0
    assert PARTS["birthDate"].words not in read(asked)[0]["elements"]


def test_two_changes_at_once_both_are_on_the_page(asked: Asked) -> None:
    show(asked)
    with asked.engine.connect() as first, asked.engine.connect() as second:
        vendors.add_vendor(first, TESTER, "other@vendor.example", "Other")
        vendor_rights.grant(first, TESTER, "other@vendor.example", DISTRICT, ())
        publish(first)
        second.execute(sa.text("SET LOCAL lock_timeout = '100ms'"))
        with pytest.raises(sa.exc.OperationalError, match="lock timeout"):
            publish(second)
        first.commit()
    assert [it["name"] for it in read(asked)] == ["App", "Other"]

"""`roster vendor set-withheld` and its default: what they change, show and refuse, and what the change log has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.schemas.flags import PermissionFlag
from tests.actors import TESTER
from tests.cli.conftest import Roster
from tests.postgres.loaded import load_first
from tests.sync.conftest import EXPORTS, SPRINGFIELD

Answer = Callable[..., Any]
FLAGGED, PLAIN = "flagged@vendor.example", "plain@vendor.example"


@pytest.fixture(autouse=True)
def accounts(engine: sa.Engine) -> None:
    """A district, a vendor with the flag for phone numbers and one without, each with a client."""
    load_first(engine, "springfield", EXPORTS / SPRINGFIELD)
    with engine.begin() as connection:
        for email, flags in ((FLAGGED, [PermissionFlag.CONTACTS]), (PLAIN, [])):
            vendors.add_vendor(connection, TESTER, email, email)
            vendor_rights.grant(connection, TESTER, email, "spr-district", (), flags)
            clients.add_client(connection, TESTER, email, "app", [Scope("v1p2", ScopeName.FULL)])


def test_a_list_is_set_shown_and_taken_back(answer: Answer, roster: Roster) -> None:
    for arguments, own, shown in (
        (("middleName", "email", "email"), ["email", "middleName"], ["email", "middleName"]),
        (("--none",), [], []),
        (("--default",), None, []),
    ):
        changed = answer("vendor", "set-withheld", FLAGGED, *arguments, "--yes")
        assert (changed["own_withheld"], changed["withheld"]) == (own, shown)
        found = answer("vendor", "show", FLAGGED)
        assert (found["own_withheld"], found["withheld"]) == (own, shown)
        assert {tuple(row["withheld_fields"]) for row in answer("access", "--vendor", FLAGGED)} == {tuple(shown)}
    assert "withheld  nothing (the default)" in roster("vendor", "show", FLAGGED).stdout
    assert "withheld  phone, sms (the default)" in roster("vendor", "show", PLAIN).stdout
    assert "phone sms" in roster("access", "--vendor", PLAIN, "--csv").stdout
    assert not any("pronouns" in row["withheld_fields"] for row in answer("access", "--vendor", PLAIN))
    answer("vendor", "set-withheld", PLAIN, "pronouns", "--yes")
    assert all("pronouns" in row["withheld_fields"] for row in answer("access", "--vendor", PLAIN))


def test_the_default_is_of_the_vendors_without_a_list(answer: Answer) -> None:
    answer("vendor", "set-withheld", PLAIN, "agents", "--yes")
    versions = {it["email"]: it["grant_version"] for it in answer("vendor", "list")}
    changed = answer("vendor", "set-withheld-default", "birthDate", "sex", "--yes")
    assert changed == {"withheld": ["birthDate", "sex"], "vendors": [FLAGGED], "dry_run": False}
    after = {it["email"]: it for it in answer("vendor", "list")}
    assert {email: it["withheld"] for email, it in after.items()} == {
        FLAGGED: ["birthDate", "sex"],
        PLAIN: ["agents", "phone", "sms"],
    }
    assert {email for email, it in after.items() if it["grant_version"] > versions[email]} == {FLAGGED}
    answer("vendor", "set-withheld-default", "--none", "--yes")
    assert answer("vendor", "show", FLAGGED)["withheld"] == []


def test_the_change_log_has_the_lists_before_and_after(answer: Answer) -> None:
    start = len(answer("changes"))
    answer("vendor", "set-withheld", FLAGGED, "sms", "email", "--yes", "--reason", "a parents' vote")
    answer("vendor", "set-withheld", FLAGGED, "--default", "--yes")
    answer("vendor", "set-withheld-default", "pronouns", "--yes")
    rows = answer("changes")[start:]
    assert [(it["kind"], it["subject"], it["before"], it["after"], it["reason"]) for it in rows] == [
        ("vendor", FLAGGED, {"withheld": None}, {"withheld": ["email", "sms"]}, "a parents' vote"),
        ("vendor", FLAGGED, {"withheld": ["email", "sms"]}, {"withheld": None}, None),
        ("service", "withheld", {"withheld": []}, {"withheld": ["pronouns"]}, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("set-withheld", FLAGGED, "e-mail"), 2, "'e-mail' is not one of 'email', 'phone'", id="a typo"),
        pytest.param(("set-withheld", FLAGGED, "givenName"), 2, "is not one of", id="a required field"),
        pytest.param(("set-withheld", FLAGGED), 2, "name the FIELDs, or --none, or --default", id="nothing named"),
        pytest.param(("set-withheld", FLAGGED, "email", "--none"), 2, "name the FIELDs", id="fields and none"),
        pytest.param(("set-withheld", FLAGGED, "--none", "--default"), 2, "name the FIELDs", id="none and default"),
        pytest.param(("set-withheld", "nobody@vendor.example", "email"), 1, "there is no vendor", id="unknown vendor"),
        pytest.param(("set-withheld-default",), 2, "name the FIELDs, or --none", id="no default named"),
        pytest.param(("set-withheld-default", "sex", "--none"), 2, "name the FIELDs, or --none", id="both"),
    ],
)
def test_a_list_that_is_not_clear_changes_nothing(
    answer: Answer, roster: Roster, arguments: tuple[str, ...], code: int, said: str
) -> None:
    before = answer("vendor", "list")
    refused = roster("vendor", *arguments, "--yes")
    assert refused.exit_code == code
    assert said in " ".join(refused.stderr.split())
    assert answer("vendor", "list") == before


def test_a_default_is_changed_neither_in_a_dry_run_nor_without_a_confirmation(answer: Answer, roster: Roster) -> None:
    command = ("set-withheld-default", "email")
    before = (answer("vendor", "list"), answer("changes"))
    assert answer("vendor", *command, "--dry-run")["dry_run"] is True
    assert "would" in roster("vendor", *command, "--dry-run").stdout
    assert roster("vendor", *command).exit_code == 1
    assert (answer("vendor", "list"), answer("changes")) == before

"""What operators read of a refused request, and of an answer without a record: the remedy that fits the rights and the
roster of now."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import UTC
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.reports import RefusedRow, count_refused, read_refused
from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.kept_people import keep_from_vendor
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.db.instants import find_today
from roster_service.errors import Problem
from roster_service.explore.refusals import explain_refused
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER

from .client import ROOTS
from .conftest import SECRET_KEY, Served, roster, served

__all__ = ["roster", "served"]

SCOPES = (ScopeName.CORE, ScopeName.GUARDIANS)


RULES = Rules("grades~'03'", None, Staff.NONE, guardians=False)
Narrow = Callable[[sa.Connection, str], None]


NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def own(make_served: Callable[..., Served]) -> Served:
    """The application of these tests, each of which has a vendor of its own."""
    return make_served()


@pytest.fixture
def ask(own: Served) -> Callable[..., Sequence[RefusedRow]]:
    """Narrows what the vendor sees, and asks for a path with a query and a token of one scope; what is listed of it.
    The vendor is of one district, and middle names and birth dates are withheld from it."""
    email = f"asks-{next(NUMBERS)}@vendor.example"
    with own.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, email, "Asks")
        vendor_rights.grant(connection, TESTER, email, "spr-district", ())
        vendor_rights.change_withheld(connection, TESTER, email, [WithheldField.MIDDLE_NAME, WithheldField.BIRTH_DATE])
        scopes = [Scope("v1p1", name) for name in SCOPES]
        made = clients.add_client(connection, TESTER, email, "tests", scopes, secret_key=SECRET_KEY)
        vendor_id = vendors.find_vendor(connection, email).id

    def run(path: str, query: str, scope: ScopeName, narrow: Sequence[Narrow] = ()) -> Sequence[RefusedRow]:
        with own.engine.begin() as connection:
            for change in narrow:
                change(connection, email)
        http = own.app.test_client()
        form = {"grant_type": "client_credentials", "scope": f"v1p1/{scope}"}
        token = http.post("/oauth/token", data=form, auth=(made.client_id, made.client_secret)).json["access_token"]
        http.get(f"{ROOTS['v1p1']}{path}?{query}", headers={"Authorization": f"Bearer {token}"})
        own.app.extensions["roster_access_log"].flush()
        with own.engine.connect() as connection:
            rows = explain_refused(connection, read_refused(connection, vendor_id, None))
            refused = [row for row in rows if row.cause != NOTHING_FOUND]
            assert count_refused(connection, vendor_id, find_today(UTC)) == len(refused)
        return rows

    return run


def query(text: str, **others: str) -> str:
    """A query string with a filter."""
    return urlencode({"filter": text, **others})


@pytest.mark.shows(
    "Logs and transport",
    "Counters of refused requests have templates and names of fields; unknown callers add no row.",
)
@pytest.mark.parametrize(
    ("path", "sent", "scope", "cause", "remedy"),
    [
        pytest.param(
            "/demographics", "", ScopeName.CORE, Problem.SCOPE.value, "give the client v1p1/roster-demographics.",
            id="a scope that the client lacks",
        ),
        pytest.param("/users", "", ScopeName.GUARDIANS, Problem.SCOPE.value, "the client has v1p1/roster-core.readonly",
                     id="a scope that the product did not ask for"),
        pytest.param("/users", query("middleName='Zyx'"), ScopeName.CORE, Problem.FILTER.value,
                     "`middleName` is withheld from the vendor", id="a field that we withhold"),
        pytest.param("/users", query("birthDate='Zyx'"), ScopeName.CORE, Problem.FILTER.value,
                     "the vendor must correct the request", id="a withheld field of other paths"),
        pytest.param("/users", query("givenName>>'Zyx'"), ScopeName.CORE, Problem.FILTER.value,
                     "the vendor must correct the request", id="a filter that nobody could read"),
        pytest.param("/users", query("grades='6'"), ScopeName.CORE, NOTHING_FOUND, "there, `grades` is 03 or 09",
                     id="a grade that the roster does not write so"),
        pytest.param("/users", query("status='Zyx'"), ScopeName.CORE, NOTHING_FOUND,
                     "compare the values that the product asks for", id="a status that is none"),
        pytest.param("/users", query("familyName='Zyx'"), ScopeName.CORE, NOTHING_FOUND,
                     "compare the values that the product asks for with those of the roster",
                     id="a name that nobody has"),
    ],
)  # fmt: skip
def test_the_remedy_is_the_true_one(
    ask: Callable[..., Sequence[RefusedRow]], path: str, sent: str, scope: ScopeName, cause: str, remedy: str
) -> None:
    [row] = ask(path, sent, scope)
    assert (row.cause, row.status == 200) == (cause, cause == NOTHING_FOUND)
    assert remedy in row.remedy
    assert "Zyx" not in str(row)


def add_rule(connection: sa.Connection, email: str) -> None:
    vendor_rights.grant(connection, TESTER, email, "spr-district", (), rules=RULES)


def keep_one(connection: sa.Connection, email: str) -> None:
    vendor = vendors.find_vendor(connection, email)
    keep_from_vendor(connection, vendor.id, "spr-student-1")


@pytest.mark.parametrize("narrow", [(), (add_rule,), (keep_one,), (add_rule, keep_one)])
@pytest.mark.parametrize("sent", ["grades='9'", "grades='10'", "sourcedId='spr-student-1' AND role='teacher'"])
def test_an_answer_that_a_rule_or_a_decision_empties_is_no_fault_of_the_values(
    ask: Callable[..., Sequence[RefusedRow]], narrow: Sequence[Narrow], sent: str
) -> None:
    """Whatever emptied it: no value is kept."""
    rows = ask("/users", query(sent), ScopeName.CORE, narrow)
    is_empty = sent != "grades='10'" or add_rule in narrow
    assert len(rows) == is_empty
    for row in rows:
        assert row.remedy.startswith("compare the values that the product asks for with those of the roster: there, ")
        by_rule = "the rules of a grant leave them out (only grade 3; no staff; no guardians)"
        assert (by_rule in row.remedy) == (add_rule in narrow)
        assert ("a person who is kept from the vendor" in row.remedy) == (keep_one in narrow)
        assert ("; or else " in row.remedy) == bool(narrow)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(query("dateLastModified>'2040-01-01'"), id="a delta"),
        pytest.param(query("dateLastModified>'2040-01-01'", fields="givenName", sort="grades"), id="a delta of fields"),
        pytest.param(query("status='tobedeleted'"), id="tombstones"),
        pytest.param(query("grades='03'", limit="0"), id="a count of some"),
        pytest.param(query("grades='03'", offset="1000"), id="a page after the last"),
        pytest.param("", id="no filter"),
    ],
)
def test_what_finds_something_or_is_a_delta_is_not_listed(ask: Callable[..., Sequence[RefusedRow]], sent: str) -> None:
    assert ask("/users", sent, ScopeName.CORE) == []

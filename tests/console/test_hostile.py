"""Names that break a page that trusts them, on every screen that a link leads to, as a page, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from werkzeug.test import TestResponse

from roster_service.accounts import clients, operators, vendor_rights, vendors
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.change_log.actors import Actor, ActorKind, OperatorRole
from roster_service.console.login import ROOT
from roster_service.console.screens import SCREENS
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.private_files import FORMULA_STARTS
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.console.conftest import SECRET, Browser, Console
from tests.console.links import find_addresses, list_links, make_pattern
from tests.console.states import HOSTILE, SCRIPT, make_hostile, make_rejected

ACTOR = Actor(ActorKind.SYSTEM_USER, "tester@tests", SCRIPT)
# Markup of roster data, as a page that trusts it would have it.
RAW = ("<script>alert", "<img src=x", "</textarea>")
# Screens to which a form leads, or the page of a person alone, which `test_person_answer.py` opens with hostile names.
BEHIND_FORMS = {"export_preview", "erasure", "find", "person_answer", "deletion"}


@pytest.fixture(scope="module")
def browser(make_console: Callable[..., Console], tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The browser of an owner, on a roster whose names are all hostile."""
    own = make_console()
    folder = tmp_path_factory.mktemp("exports")
    for export in (make_hostile(folder / "hostile"), make_rejected(folder / "rejected"), folder / "hostile"):
        load(own.engine, "springfield", export, options=Options(allow_mass_delete=True))
    strict = Settings(home=own.home, hold_least_records=1)
    held = load(own.engine, "springfield", folder / "rejected", options=Options(settings=strict))
    assert held.outcome == HELD
    with own.engine.begin() as connection:
        vendors.add_vendor(connection, ACTOR, "hostile@vendors.example", SCRIPT)
        vendor_rights.grant(connection, ACTOR, "hostile@vendors.example", "spr-district", ())
        clients.add_client(connection, ACTOR, "hostile@vendors.example", SCRIPT, [Scope("v1p2", ScopeName.CORE)])
        operators.add_operator(connection, ACTOR, "hostile@operators.example", SCRIPT, OperatorRole.VIEWER, SECRET)
    return own.log_in()


@dataclass(frozen=True)
class Crawl:
    """What the links of pages lead to. `addresses`: of each screen; `answers`: of those that were opened."""

    browser: Browser
    addresses: Mapping[str, Sequence[str]]
    answers: dict[str, TestResponse]

    def get(self, address: str) -> TestResponse:
        """The answer at an address, which is opened once."""
        if address not in self.answers:
            self.answers[address] = self.browser.get(address.removeprefix(ROOT))
        return self.answers[address]


@pytest.fixture(scope="module")
def crawl(browser: Browser) -> Crawl:
    """A few pages of each screen."""
    made = Crawl(browser, {}, {})
    found = find_addresses(lambda address: made.get(address).text, SCREENS, most=150, of_each=6)
    return replace(made, addresses=found)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda it: it.name)
def test_no_name_becomes_markup(crawl: Crawl, screen: object) -> None:
    for address in crawl.addresses[screen.name]:  # type: ignore[attr-defined]
        answered = crawl.get(address)
        assert answered.status_code == 200, address
        # Without the empty fields of forms.
        text = re.sub(r"<textarea[^>]*></textarea>", "", answered.text)
        assert [raw for raw in RAW if raw in text] == [], address
        assert len(answered.data) < 100_000, address


@pytest.mark.parametrize("screen", [it for it in SCREENS if it.rows is not None], ids=lambda it: it.name)
def test_no_name_becomes_a_formula(browser: Browser, crawl: Crawl, screen: object) -> None:
    for address in crawl.addresses[screen.name]:  # type: ignore[attr-defined]
        path, _, query = address.removeprefix(ROOT).partition("?")
        text = browser.get(f"{path or '/index'}.csv?{query}").text
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert [cell for cell in cells if cell.startswith(FORMULA_STARTS) and cell in HOSTILE] == [], address


def test_the_names_are_there(crawl: Crawl) -> None:
    pages = [crawl.get(found).text for name in ("roster", "vendors", "operators") for found in crawl.addresses[name]]
    assert sum("&lt;script&gt;alert" in page for page in pages) >= 3


def test_every_screen_is_linked_from_another_one(crawl: Crawl) -> None:
    linked = {
        screen.name
        for name, found in crawl.addresses.items()
        for address in found
        for link in list_links(crawl.get(address).text)
        for screen in SCREENS
        if screen.name != name and make_pattern(screen).match(link.partition("?")[0])
    }
    assert [screen.name for screen in SCREENS if screen.name not in linked | BEHIND_FORMS] == []

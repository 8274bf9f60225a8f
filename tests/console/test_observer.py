"""An operator who may see no person: the screens of the role, as pages, as JSON and as CSV."""

from __future__ import annotations

import html
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from roster_service.access_log.causes import CAUSES
from roster_service.change_log.actors import OperatorRole
from roster_service.console.screens import SCREENS
from roster_service.db.tables import feeds, refused_requests, users, vendor_grants, vendors
from roster_service.feeds.run_outcomes import OUTCOMES
from roster_service.settings import Settings
from sync_scripts.engine.load import Options, load
from tests.console.conftest import Browser, Console
from tests.console.links import list_links, make_pattern
from tests.sync.export_changes import cell_of, without_rows

# A screen that is not named here is none of the role's.
LEFT = "left.pupil"
SEEN = {"tonight", "runs", "run", "feeds", "usage", "account"}


@pytest.fixture(scope="module")
def runs(console: Console, export: Path) -> tuple[int, int]:
    """A run with rejected rows, and one that is held, whose preview has names."""
    cell_of("users", "spr-student-1", "enabledUser", "maybe")(export)
    cell_of("users", "spr-student-2", "givenName", "Changed")(export)
    options = Options(Settings(home=console.home), allow_mass_delete=True)
    loaded = load(console.engine, "springfield", export, options=options)
    assert loaded.rejected > 0
    without_rows("demographics", "spr-student-2")(export)
    held = load(
        console.engine, "springfield", export, options=Options(Settings(home=console.home, hold_least_records=5))
    )
    assert held.outcome == "held"
    return int(loaded.run or 0), int(held.run or 0)


@pytest.fixture(scope="module")
def observer(console: Console) -> Browser:
    """A browser of the role."""
    return console.log_in(OperatorRole.OBSERVER)


def test_the_screens_of_the_role_are_these() -> None:
    assert {screen.name for screen in SCREENS if screen.least is OperatorRole.OBSERVER} == SEEN


@pytest.mark.parametrize("ending", ["", ".json", ".csv"])
def test_no_answer_names_a_person(console: Console, observer: Browser, runs: tuple[int, int], ending: str) -> None:
    with console.engine.begin() as connection:
        people = connection.execute(sa.select(users.c.sourced_id, users.c.family_name, users.c.email)).all()
        # Who has left is in no school any more, so the rule opens nothing.
        gone = sa.update(vendor_grants).values(staff="all", students=f"username='{LEFT}'")
        connection.execute(gone)
        for feed, first in (("springfield", date(2020, 1, 1)), ("shelbyville", date(2999, 1, 1))):
            pause = {"pause_from": first, "pause_until": date(2999, 1, 2), "pause_reason": f"guardian of {LEFT}"}
            connection.execute(sa.update(feeds).where(feeds.c.name == feed).values(pause))
    named = {LEFT, *(str(value) for person in people for value in person if value and len(str(value)) > 4)}
    assert len(named) > 10
    # An owner's page of the held run names them, so the search can find what it looks for.
    owner = console.log_in()
    assert [value for value in named if value in owner.get(f"/runs/{runs[1]}.json").text]
    assert LEFT in owner.get("/index.json").text
    assert f"guardian of {LEFT}" in owner.get("/feeds/springfield").text
    places = ["/index" if ending else "", "/feeds", "/runs", "/disclosures/usage", *(f"/runs/{run}" for run in runs)]
    for place in places:
        answer = observer.get(place + ending)
        assert answer.status_code == (404 if ending == ".csv" and place.count("/") == 2 and "runs/" in place else 200)
        assert [value for value in named if value in answer.text] == [], place


def test_no_link_leads_to_a_screen_of_another_role(console: Console, observer: Browser, runs: tuple[int, int]) -> None:
    others = [make_pattern(screen) for screen in SCREENS if screen.name not in SEEN]

    def list_others(browser: Browser, place: str) -> list[str]:
        page = browser.get(place).text
        found = [*list_links(page), *re.findall(r'action="([^"]+)"', page)]
        return [link for link in found if any(other.match(link.partition("?")[0]) for other in others)]

    owner = console.log_in()
    for place in ("", "/feeds", "/runs", "/disclosures/usage", "/account", *(f"/runs/{run}" for run in runs)):
        assert list_others(owner, place), place
        assert list_others(observer, place) == [], place


@pytest.mark.parametrize("role", list(OperatorRole))
def test_a_page_asks_nobody_for_what_the_role_may_not_do(
    console: Console, runs: tuple[int, int], role: OperatorRole
) -> None:
    """It names who may: of every table of remedies, in every state that the pages are in."""
    now, changed = datetime.now(UTC), sa.update(vendor_grants).values(staff="all", students="grades~'99'")
    with console.engine.begin() as connection:
        connection.execute(sa.update(feeds).where(feeds.c.name == "shelbyville").values(path=None))
        ids = dict(map(tuple, connection.execute(sa.select(vendors.c.email, vendors.c.id))))
        vendor = ids["both@vendors.example"]
        row = {
            "vendor_id": vendor, "hour": now, "caller": "reader", "status": 400, "fields": [],
            "endpoint": "GET /ims/oneroster/rostering/v1p2/users", "requests": 1, "addresses": [],
            "first_at": now, "first_request_id": "a", "last_at": now, "last_request_id": "a",
        }  # fmt: skip
        connection.execute(sa.insert(refused_requests), [row | {"cause": cause} for cause in CAUSES])
        connection.execute(changed.where(vendor_grants.c.vendor_id == ids["springfield@vendors.example"]))
    remedies = {outcome.remedy for outcome in OUTCOMES.values()} | {cause.remedy for cause in CAUSES.values()}
    remedies |= {"change the rule, if its course or subject has another name", "give it the path of its export"}
    remedies |= {"give each the path of its export", "give the client "}
    reader, places = console.log_in(role), ["", "/feeds", *(f"/runs/{run}" for run in runs), "/disclosures/usage"]
    places += [f"/feeds/{name}" for name in ("springfield", "shelbyville")]
    places += [f"/vendors/{vendor}", f"/vendors/{vendor}/requests"]
    said, may_act = 0, role.includes(OperatorRole.EDITOR)
    for place in places:
        page = html.unescape(re.sub(r"<[^>]+>", "", reader.get(place).text))
        assert may_act or not re.search(r"needs? you|for you", page), place
        for remedy in filter(None, remedies):
            for found in re.finditer(f"(For an editor: )?{re.escape(remedy)}", page, re.IGNORECASE):
                assert bool(found[1]) == (not may_act), (place, page[found.start() - 99 : found.end()])
                said += 1
    assert said > 3


def test_every_other_screen_is_refused(observer: Browser, runs: tuple[int, int]) -> None:
    places = ("/roster", "/records/spr-student-2", f"/runs/{runs[1]}/held", f"/runs/{runs[0]}/rejected")
    places += (f"/runs/{runs[0]}/changes", "/quality", "/disclosures", "/access", "/changes", "/people", "/vendors/1")
    for place in places:
        for ending in ("", ".json", ".csv"):
            assert observer.get(place + ending).status_code in (403, 404), place
        assert observer.get(place).status_code == 403, place

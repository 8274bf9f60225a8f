"""A parent's answer beside what really leaves and what was really sent, and its words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.accounts import vendor_rights, vendors
from roster_service.accounts.agreements import set_agreement
from roster_service.accounts.kept_people import keep_from_vendor
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_segment
from roster_service.db.instants import describe_day, find_today
from roster_service.db.tables import audit
from roster_service.explore.person_words import PART_WORDS
from roster_service.roster.person_parts import PersonPart
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.sharing_rules import Rules, Staff
from sync_scripts.access_log_days import fold_days
from tests.accounts.agreed import WHOLE
from tests.actors import TESTER
from tests.cli.conftest import run_roster
from tests.console.conftest import Browser, Console
from tests.console.hostile import SCRIPT, TEXTS, add_people
from tests.console.test_statements import read
from tests.console.test_ways import alone, world
from tests.console.ways import (
    CORE,
    DISTRICT,
    GUARDIAN,
    PARTS_SAID,
    PUPIL,
    TEACHER,
    VENDOR,
    World,
    add_client,
    add_world,
    ask_as_client,
    disable_vendor,
    find_of_person,
    get_all,
    leave,
    list_open,
    list_sent,
    plant_delivery,
    plant_key,
    plant_secret,
    revoke,
)
from tests.console.ways import narrow as narrow_scopes
from tests.extent import examples

__all__ = ["alone", "world"]

HOSTILE_PURPOSE = "Lessons <b>in reading</b>"


@pytest.fixture(autouse=True)
def log(world: World) -> None:
    """An empty access log."""
    world.console.vendors.extensions["roster_access_log"].flush()
    for table in ("audit_days", "audit"):
        world.run(f"DELETE FROM {table}")


DAY = timedelta(days=1)
LATER = find_today(UTC) + 9 * DAY


def ask(browser: Browser, person: str = PUPIL, query: str = "") -> Any:
    """The answer as JSON."""
    return browser.get(f"/records/{person}/answer.json{query}").json["answer"]


def find_company(answer: Any, email: str = VENDOR) -> Any:
    """What an answer has of the vendor; None if it is one of those of a single sentence."""
    return next((it for it in answer["companies"] if it["email"] == email), None)


def let_leave(planted: World, person: str) -> set[str]:
    """The parts of one person that leave by all that the vendor holds."""
    return find_of_person(planted, get_all(planted), person)


@pytest.mark.parametrize("person", [GUARDIAN, TEACHER])
def test_the_page_of_a_guardian_and_a_teacher(browser: Browser, world: World, person: str) -> None:
    planted = plant_secret(world)
    assert list_open(find_company(ask(browser, person))) == let_leave(planted, person) > {"names"}
    plant_core = add_client(world, CORE, datetime.now(UTC) + timedelta(hours=1))
    assert plant_core.client_id


def keep_one(person: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        with world.console.engine.begin() as connection:
            keep_from_vendor(connection, world.find_number(), person)

    return change


# For each vendor, what happens to it, and whether the records of these people name somebody.
NAMING: Mapping[str, tuple[Callable[[World], None], Sequence[str], bool]] = {
    "the child is kept": (keep_one(PUPIL), (PUPIL, GUARDIAN), False),
    "the guardian is kept": (keep_one(GUARDIAN), (PUPIL, GUARDIAN), False),
    "withheld": (lambda world: withhold(world, [WithheldField.AGENTS]), (PUPIL, GUARDIAN, TEACHER), False),
    "agents with another role, and no scope of guardians": (narrow_scopes, (PUPIL, TEACHER), True),
    "open": (leave, (PUPIL, GUARDIAN, TEACHER), True),
}


@pytest.mark.parametrize("person", [PUPIL, GUARDIAN, TEACHER])
def test_who_is_whose_guardian_is_said_where_a_record_names_somebody(
    console: Console, browser: Browser, world: World, person: str
) -> None:
    worlds = {
        name: plant_secret(add_world(console, number))
        for number, (name, (_, people, _)) in enumerate(NAMING.items())
        if person in people
    }
    for name, planted in worlds.items():
        NAMING[name][0](planted)
    url = console.engine.url.render_as_string(hide_password=False)
    answer, grid = ask(browser, person), browser.get(f"/records/{person}.json").json["person"]["grid"]
    printed = json.loads(run_roster(url, console.home, "access", "--person", person, "--json").stdout)
    for name, planted in worlds.items():
        email, is_named = planted.vendor, NAMING[name][2]
        views = json.loads(run_roster(url, console.home, "show", person, "--as", email, "--json").stdout)
        names = any("agents" in view["body"]["user"] for view in views if "user" in (view["body"] or {}))
        assert names == is_named, name
        assert ("guardians" in list_open(find_company(answer, email))) == names, name
        [row] = [it for it in grid if it["vendor"] == email]
        assert (row["cells"][3]["state"] == "sees") == names, (name, row)
        assert any("guardians" in it["parts"] for it in printed if it["vendor"] == email) == names, name


def test_a_withheld_field_is_not_open_and_is_named(console: Console, browser: Browser, world: World) -> None:
    """Alone, also where it is one of several of its part; after it was withheld, the answers do not have it. Of each
    field there is a vendor."""
    before = let_leave(plant_secret(world), PUPIL)
    every = tuple(WithheldField)
    fields = examples(every[::4], every, every)
    worlds = {field: plant_secret(add_world(console, number)) for number, field in enumerate(fields)}
    for field, planted in worlds.items():
        withhold(planted, [field])
    answer = ask(browser)
    for field, planted in worlds.items():
        company = find_company(answer, planted.vendor)
        after = let_leave(planted, PUPIL)
        assert list_open(company) == after, field
        gone = {PART_WORDS[PersonPart(part)] for part in before - after}
        assert gone <= set(company["held_back"]), field
        assert bool(company["held_back"]) or not gone, field
    assert len(before) > 10


def test_what_no_scope_opens_is_named_as_held_back(browser: Browser, world: World) -> None:
    add_client(world, CORE, datetime.now(UTC) + timedelta(hours=1))
    company = find_company(ask(browser))
    seen = {word for part in company["may_get"] for word in part["parts"]}
    assert PART_WORDS[PersonPart.BIRTH_DATE] in company["held_back"]
    assert seen.isdisjoint(company["held_back"])


def flush(world: World, days_ago: int = 0, **values: Any) -> None:
    """Moves the answers of today to the log, and then to a day before."""
    world.console.vendors.extensions["roster_access_log"].flush()
    own = (audit.c.vendor_id == world.find_number(), audit.c.at > sa.func.now() - DAY)
    with world.console.engine.begin() as connection:
        moved = sa.update(audit).where(*own)
        connection.execute(moved.values(at=datetime.now(UTC) - days_ago * DAY, **values))


def withhold(world: World, fields: Collection[WithheldField]) -> None:
    with world.console.engine.begin() as connection:
        vendor_rights.change_withheld(connection, TESTER, world.vendor, fields)


def keep(world: World) -> None:
    with world.console.engine.begin() as connection:
        keep_from_vendor(connection, world.find_number(), PUPIL)


def narrow(world: World) -> None:
    """The rules leave the pupil out."""
    with world.console.engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, VENDOR, DISTRICT)
        rules = Rules("grades~'77'", None, Staff.CLASSES, guardians=False)
        vendor_rights.grant(connection, TESTER, VENDOR, DISTRICT, (), rules=rules, even_nothing=True)


def remove(world: World) -> None:
    with world.console.engine.begin() as connection:
        vendors.remove_vendor(connection, TESTER, VENDOR)


def let_agreement_end(world: World) -> None:
    agreement = replace(WHOLE, districts=(DISTRICT,), purpose=HOSTILE_PURPOSE)
    with world.console.engine.begin() as connection:
        set_agreement(connection, TESTER, VENDOR, agreement)
        connection.execute(sa.text("UPDATE agreements SET starts_at = 'epoch', ends_at = '2020-07-01 05:00Z'"))


ENDS: Mapping[str, tuple[Callable[[World], None], str]] = {
    "revoked": (revoke, "it has no permission for any school"),
    "kept": (keep, "everything about this person is kept from it"),
    "rules": (narrow, "it may get some people only, and this person is not one of them"),
    "agreement": (let_agreement_end, "no agreement with it holds now"),
    "disabled": (disable_vendor, "its access is switched off"),
    "removed": (remove, "it is no longer one of the companies that use this service"),
}


@pytest.mark.parametrize(("end", "why"), ENDS.values(), ids=ENDS)
def test_what_was_sent_before_an_end_stays(
    browser: Browser, world: World, end: Callable[[World], None], why: str
) -> None:
    """With what was in the answers then: a field that was withheld on a day is not of that day."""
    planted = plant_secret(world)
    withhold(world, [WithheldField.BIRTH_DATE, WithheldField.EMAIL])
    first = let_leave(planted, PUPIL)
    flush(world, 5)
    withhold(world, [])
    second = let_leave(planted, PUPIL)
    flush(world, 3)
    end(world)
    assert second - first == {"birthDate", "email"}
    for _ in range(2):
        [company] = ask(browser)["companies"]
        assert list_sent(company) == second
        of_days = {
            PARTS_SAID[words]: (one["first"], one["last"], one["days"])
            for one in company["sent"]
            for words in one["parts"]
        }
        days = [(find_today(UTC) - ago * DAY).isoformat() for ago in (5, 3)]
        assert {of_days[part] for part in first} == {(days[0], days[1], 2)}
        assert {of_days[part] for part in second - first} == {(days[1], days[1], 1)}
        assert (company["may_get"], company["nothing"]) == ([], why)
        page = read(browser.get(f"/records/{PUPIL}/answer").text)
        assert f"Nothing: {why}." in page
        assert (company["name"], company["email"]) == (
            (None, f"{VENDOR} (removed)") if end is remove else ("App", VENDOR)
        )
        assert (company["kept_since"] == find_today(UTC).isoformat()) == (end is keep)
        assert (company["purpose"], company["agreed_until"]) == (
            (HOSTILE_PURPOSE, "2020-06-30") if end is let_agreement_end else (None, None)
        )
        assert ("The agreement’s last day is 30 Jun 2020" in page) == (end is let_agreement_end)
        # The period of the first day alone, and of the days between.
        [company] = ask(browser, query=f"?until={days[0]}")["companies"]
        assert list_sent(company) == first
        between = (find_today(UTC) - 4 * DAY).isoformat()
        assert [it["sent"] for it in ask(browser, query=f"?since={between}&until={between}")["companies"]] in ([], [[]])
        fold_days(world.console.engine)


def test_what_the_log_cannot_say(browser: Browser, world: World) -> None:
    """Rows with another key; the days before the log."""
    planted = plant_secret(world)
    assert "has none now. Of what was sent before, it can say nothing." in ask(browser)["log"][0]
    ask_as_client(planted, str(planted.secret), PUPIL)
    withhold(world, [WithheldField.BIRTH_DATE])
    flush(world, 9)
    answer = ask(browser)
    company = find_company(answer)
    assert {"names", "birthDate"} <= list_sent(company)
    first = find_today(UTC) - 9 * DAY
    assert (answer["since"], answer["until"]) == (first.isoformat(), find_today(UTC).isoformat())
    assert f"its oldest is of {describe_day(first)}." in answer["log"][0]
    whole = len(answer["log"])
    assert {one["days"] for one in company["sent"]} == {1}
    other = PersonHasher("another secret key of the tests, long enough").hash_people([PUPIL]).hex()
    world.run(f"UPDATE audit SET people = decode('{other}', 'hex') WHERE length(people) > 0")
    answer = ask(browser)
    assert answer["companies"] == [{**company, "sent": []}]
    assert len(answer["log"]) == whole + 1
    assert any("logged with another secret key" in sentence for sentence in answer["log"])


def test_an_erased_person_has_what_the_log_has(console: Console, browser: Browser, world: World) -> None:
    gone = "shv-student-2"
    planted = plant_secret(world)
    sent = let_leave(planted, gone)
    flush(world)
    assert browser.send(f"/records/{gone}/erasure/erase", typed=gone).status_code == 303
    company = find_company(ask(browser, gone))
    assert list_sent(company) == sent > {"names"}
    assert (company["may_get"], company["nothing"]) == ([], "this person is erased")
    page = read(browser.get(f"/records/{gone}/answer").text)
    assert f"for {gone}, a person whom the school’s records here do not have" in page
    viewer = console.log_in(OperatorRole.VIEWER)
    assert viewer.get(f"/records/{gone}/answer").status_code == 404
    assert viewer.get(f"/records/{PUPIL}/answer").status_code == 200
    assert console.log_in(OperatorRole.OBSERVER).get(f"/records/{PUPIL}/answer").status_code == 403


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("since=2026-11-03&until=2026-11-01", "The period ends on 1 Nov 2026, before it begins on 3 Nov 2026."),
        ("since=yesterday", "yesterday is no day: give one as 2026-11-28"),
        ("until=2026-02-30", "2026-02-30 is no day"),
        (f"since={LATER}", f"The period begins on {describe_day(LATER)}, after today"),
        (f"since={LATER}&until={LATER + DAY}", "after today"),
    ],
)
def test_a_period_that_is_none_is_refused(browser: Browser, world: World, query: str, why: str) -> None:
    answer = browser.get(f"/records/{PUPIL}/answer?{query}")
    page = read(answer.text)
    assert (answer.status_code, why.casefold() in page.casefold()) == (200, True)
    assert "as far as the log says" not in page
    assert browser.get(f"/records/{PUPIL}/answer.json?{query}").json["answer"] is None


def test_a_period_that_reaches_into_the_future_ends_today(browser: Browser, world: World) -> None:
    for query in ("", f"?until={LATER}", "?until=9999-12-31", "?since=0001-01-01"):
        assert ask(browser, query=query)["until"] == find_today(UTC).isoformat()
    assert browser.get("/records/nobody/answer").status_code == 404


# What a parent need not know.
INTERNAL = re.compile(
    r"(?i:\b(?:scopes?|flags?|API|endpoints?|OAuth|clients?|SFTP|vendors?|roster|tokens?|metadata)\b)|\b[a-z]+[A-Z]\w*"
)


FIRST_FILE = "in files that are sent to it, once the district has looked at the first one and let it go"


def test_the_paper_has_no_internal_word(browser: Browser, world: World) -> None:
    plant_delivery("oneroster-1.2")(plant_key(plant_secret(world)))
    withhold(world, [WithheldField.SMS, WithheldField.BIRTH_DATE])
    assert "This page does not print" in browser.get(f"/records/{PUPIL}/answer").text
    page = browser.send(f"/records/{PUPIL}/answer/letter").text
    paper = page.partition("<main")[2].partition("</main>")[0]
    for left_out in (r'<p class="formats">.*?</p>', r'<p class="screen-only">.*?</p>', "<footer.*"):
        paper = re.sub(left_out, "", paper, flags=re.DOTALL)
    text = read(paper)
    assert INTERNAL.findall(text) == []
    assert (
        "Held back from it, although the school’s records have it: the phone number for text messages; birth date."
        in text
    )
    assert all(way in text for way in ("when its product asks for it", FIRST_FILE, ", or "))


def make_twins(engine: sa.Engine) -> tuple[str, str, str]:
    """The ids of twins, and of somebody of another family."""
    twins = add_people(engine, [("Mia", "Twin"), ("Lea", "Twin"), ("Mia", "Other")], "twin")
    with engine.begin() as connection:
        for person in twins:
            born = {"person": person}
            copied = "INSERT INTO demographics SELECT (jsonb_populate_record(own, jsonb_build_object("
            copied += "'sourced_id', :person, 'birth_date', '2014-05-01'))).* FROM demographics own LIMIT 1"
            connection.execute(sa.text(copied), born | {"person": person})
    return twins[0], twins[1], twins[2]


def test_a_letter_is_one_row_of_the_change_log_and_a_choice_where_several_people_fit(
    console: Console, browser: Browser, world: World
) -> None:
    plant_secret(world)
    mia, lea, other = make_twins(console.engine)
    own, sister, alone = (f"/records/{to_segment(person)}/answer" for person in (mia, lea, other))

    def count() -> int:
        rows = sa.text("SELECT count(*) FROM changes WHERE verb = 'person answer' AND kind = 'person'")
        with console.engine.connect() as connection:
            return connection.scalar(rows) or 0

    before = count()
    assert "Several people fit" not in browser.get(alone).text
    assert browser.send(f"{alone}/letter").status_code == 200
    assert count() == before + 1
    page = browser.get(own).text
    assert ("Several people fit" in page, page.count("born 2014"), " checked" in page) == (True, 3, False)
    # Without the second choice there is no letter.
    for form in ({}, {"whose": other}):
        refused = browser.send(f"{own}/letter", **form)
        assert (refused.status_code, "choose for whom the letter is" in refused.text) == (422, True)
    moved = browser.send(f"{own}/letter", whose=lea)
    assert (moved.status_code, moved.location.removeprefix("http://localhost")) == (303, f"/console{sister}")
    # It is of the same period.
    moved = browser.send(f"{own}/letter", whose=lea, since="2026-11-01", until="")
    assert moved.location.endswith(f"{sister}?since=2026-11-01")
    assert count() == before + 1
    letter = browser.send(f"{own}/letter", whose=mia)
    assert (letter.status_code, "Mia Twin" in letter.text, "Lea" in letter.text) == (200, True, False)
    assert count() == before + 2
    named = browser.send(f"{own}/letter", whose=mia, reason="for Mia Twin")
    assert (named.status_code, count()) == (422, before + 2)
    run = run_roster(console.engine.url.render_as_string(hide_password=False), console.home, "person", "answer", mia)
    assert "somebody else may be meant: Lea Twin" in run.stderr
    assert count() == before + 3


def test_hostile_names_are_texts(console: Console, browser: Browser, world: World) -> None:
    people = add_people(console.engine, [(text, text) for text in TEXTS])
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "hostile@ways.example", SCRIPT)
    for person, text in zip(people, TEXTS, strict=True):
        segment = re.sub(r"[^A-Za-z0-9_-]", lambda sign: "".join(f"~{byte:02X}" for byte in sign[0].encode()), person)
        page = browser.get(f"/records/{segment}/answer")
        assert page.status_code == 200, person
        assert "<script>alert" not in page.text
        assert f"{text} {text}" in read(page.text) or "<" in text
        assert "49" not in read(page.text).partition("Made on")[2].partition("20")[0]
        asking = browser.get(f"/records/{segment}/deletion").text
        assert ("<script>alert" in asking, text in read(asking) or "<" in text) == (False, True)


def test_the_command_says_the_same(console: Console, browser: Browser, world: World) -> None:
    planted = plant_secret(world)
    let_leave(planted, PUPIL)
    flush(world, 1)
    withhold(world, [WithheldField.BIRTH_DATE])
    url = console.engine.url.render_as_string(hide_password=False)

    def run(*arguments: str) -> Any:
        return run_roster(url, console.home, "person", "answer", *arguments)

    assert json.loads(run(PUPIL, "--json").stdout) == ask(browser)
    printed = run(PUPIL).stdout
    day = describe_day(find_today(UTC) - DAY)
    assert "was sent name, user name or grade; e-mail address;" in printed
    assert f"on 1 day from {day} to {day}" in printed
    assert "does not get, although the school has it: birth date" in printed
    keep(world)
    assert f"kept from it since {describe_day(find_today(UTC))}" in run(PUPIL).stdout
    assert run(PUPIL, "--since", "2026-02-30").exit_code == 2
    refused = run(PUPIL, "--since", "2026-11-03", "--until", "2026-11-01")
    assert (refused.exit_code, "before it begins" in refused.stderr) == (1, True)
    assert (run("nobody").exit_code, run("nobody").stdout) == (2, "")

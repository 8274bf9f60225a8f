"""The screens of vendors: what a form opens and closes, what is shown once, and what of it works."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.credentials import list_credentials
from roster_service.accounts.vendors import find_vendor
from roster_service.auth.scopes import PRESET_VERSIONS, Scope, ScopeName
from roster_service.change_log.actors import OperatorRole
from roster_service.console.filters import to_instant
from roster_service.db.instants import format_instant
from roster_service.db.tables import changes
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER
from tests.console.conftest import Browser, Console, name_operator

HOSTILE = '<script>alert(1)</script>"><b>x'
DISTRICT = "spr-district"
# What the form sends for all records of the chosen schools.
ALL = {"staff": "all", "guardians": "yes"}


@pytest.fixture
def owner(console: Console) -> Browser:
    return console.log_in()


def add_vendor(console: Console, name: str) -> int:
    """The number of a new vendor."""
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, f"{name}@console.example", name)
        return find_vendor(connection, f"{name}@console.example").id


def read_grants(console: Console, number: int) -> set[tuple[str, str | None]]:
    """The grants of a vendor."""
    with console.engine.connect() as connection:
        found = vendors.find_vendor_by_id(connection, number)
    return {(it.district_id, it.school_id) for it in found.grants}


def test_a_vendor_is_added_and_its_credentials_work_once_shown(console: Console, owner: Browser) -> None:
    shown = owner.send(
        "/vendors/new/add", name="New vendor", email="NEW@console.example", product="students", reason="a contract"
    )
    key = re.search(r"key-[0-9a-f]{8}-[\w-]{43}", shown.text)
    password = re.search(r"Password</dt><dd><code[^>]*>([^<]+)<", shown.text)
    assert key is not None
    assert password is not None
    login = {"email": "new@console.example", "password": html.unescape(password[1])}
    answered = console.vendors.test_client().post("/v1/login", json=login, headers={"x-api-key": key[0]})
    # Key, e-mail and password are right; nothing is granted yet.
    assert (answered.status_code, answered.json["code"]) == (403, "no-privilege")
    assert key[0] not in owner.get("/vendors").text
    with console.engine.connect() as connection:
        of_vendor = sa.select(changes).where(changes.c.vendor == "new@console.example").order_by(changes.c.id)
        row = connection.execute(of_vendor.limit(1)).one()
    assert (row.verb, row.actor, row.reason) == ("vendor add", name_operator(OperatorRole.OWNER), "a contract")
    assert key[0] not in str(row)


def test_the_list_says_how_many_vendors_call(console: Console, owner: Browser) -> None:
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, "silent@vendors.example", "Silent")
        used = "EXISTS (SELECT FROM last_uses WHERE vendor_id = vendors.id)"
        counted = sa.text(f"SELECT count(*), count(*) FILTER (WHERE NOT {used}) FROM vendors")
        number, silent = connection.execute(counted).one()
    assert f"{number} vendors; {silent} ha" in owner.get("/vendors").text


def test_a_client_is_added_and_its_secret_gets_a_token(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "client")
    shown = owner.send(
        f"/vendors/{number}/credentials/client",
        name="program",
        scope=["v1p2/roster-core.readonly", "v1p1/roster.readonly"],
    )
    found = re.search(r"curl -s -u '([^:]+):([^']+)'", html.unescape(shown.text))
    assert found is not None
    login = base64.b64encode(f"{found[1]}:{found[2]}".encode()).decode()
    answered = console.vendors.test_client().post(
        "/oauth/token",
        data={"grant_type": "client_credentials", "scope": "v1p1/roster.readonly"},
        headers={"Authorization": f"Basic {login}"},
    )
    assert answered.status_code == 200
    page = owner.get(f"/vendors/{number}/credentials").text
    assert found[1] in page
    assert found[2] not in page


@pytest.mark.parametrize("public_url", [None, "https://roster.example"])
def test_a_preset_says_in_words_what_a_client_reads_and_the_card_what_to_send(
    make_console: Callable[..., Console], public_url: str | None
) -> None:
    console = make_console(public_url=public_url)
    owner = console.log_in()
    number = add_vendor(console, "preset")
    assert (
        "students and teachers, with their schools, terms, classes and enrollments"
        in owner.get(f"/vendors/{number}/credentials").text
    )
    shown = owner.send(f"/vendors/{number}/credentials/client", name="program", preset="guardians", version="v1p2").text
    assert "v1p2/roster.readonly, v1p2/guardians.readonly" in shown
    origin = public_url or "http://127.0.0.1:8000"
    for address in ("/oauth/token", "/ims/oneroster/rostering/v1p2", "/docs"):
        assert f"{origin}{address}</code>" in shown
    assert ("ROSTER_PUBLIC_URL is not set" in shown) == (public_url is None)
    assert ("127.0.0.1" in shown) == (public_url is None)


def test_the_forms_and_the_command_give_a_preset_for_the_same_versions(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "versions")
    for page in ("/vendors/new", f"/vendors/{number}/credentials"):
        text = owner.get(page).text
        for name, versions in PRESET_VERSIONS.items():
            assert re.search(f'<option value="{name}"[^>]*>{versions.words}</option>', text)
    path = f"/vendors/{number}/credentials/client"
    shown = owner.send(path, name="program", preset="demographics", version="both").text
    names = ("roster.readonly", "roster-demographics.readonly")
    assert ", ".join(f"{version}/{name}" for version in ("v1p2", "v1p1") for name in names) in shown
    refused = owner.send(path, name="other program", preset="demographics", version="all")
    assert (refused.status_code, "hoose a version of OneRoster" in refused.text) == (422, True)


CHOICES = {
    "the whole district": ({"extent": "whole"}, {(DISTRICT, None)}),
    "single schools": ({"extent": "some", "school": ["spr-elementary"]}, {(DISTRICT, "spr-elementary")}),
    "nothing": ({"extent": "nothing"}, set()),
}


@pytest.mark.parametrize(("form", "expected"), CHOICES.values(), ids=CHOICES)
def test_the_form_of_a_district_sets_its_grants(
    console: Console, owner: Browser, form: dict[str, object], expected: set[tuple[str, str | None]]
) -> None:
    number = add_vendor(console, f"grants-{len(expected)}-{form['extent']}")
    path = f"/vendors/{number}/grants/{DISTRICT}"
    for before in ({"extent": "whole"}, {"extent": "some", "school": ["spr-high"]}):
        owner.send_shown(path, "set", **before, **ALL)
        sent = owner.send_shown(path, "set", **form, **ALL)
        assert sent.status_code == 303, sent.text
        assert read_grants(console, number) == expected


REFUSED = {
    "no choice": ({}, "Choose what the vendor may see"),
    "an unknown choice": ({"extent": "all"}, "Choose what the vendor may see"),
    "nothing, but a school is checked": ({"extent": "nothing", "school": ["spr-high"]}, "Schools are checked"),
    "the district, but a school is checked": ({"extent": "whole", "school": ["spr-high"]}, "Schools are checked"),
    "single schools, but none": ({"extent": "some"}, "Choose at least one school, or nothing"),
    "a school of another district": ({"extent": "some", "school": ["shv-north"]}, "There is no school"),
    "no choice of staff": ({"extent": "whole", "staff": ""}, "Choose which staff the vendor may see"),
    "boxes and a filter": (
        {"extent": "whole", "grade": ["03"], "students": "grades~'03'"},
        "Students are chosen by boxes or words, and by a filter",
    ),
    "a filter that means nothing": ({"extent": "whole", "classes": "noSuchField='x'"}, "noSuchField"),
    "no filter": ({"extent": "whole", "classes": HOSTILE}, "column 1"),
    "rules that open nothing": ({"extent": "whole", "students": "grades~'99'"}, "even if they open nothing"),
    "a hostile school": ({"extent": "some", "school": [HOSTILE]}, "There is no school"),
}


@pytest.mark.parametrize(("form", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_form_of_a_district_changes_nothing_and_says_why(
    console: Console, owner: Browser, form: dict[str, object], reason: str
) -> None:
    number = add_vendor(console, f"refused-{len(str(form))}-{len(reason)}-{form.get('extent')}")
    path = f"/vendors/{number}/grants/{DISTRICT}"
    owner.send_shown(path, "set", extent="whole", **ALL)
    sent = owner.send_shown(path, "set", **{**ALL, **form})
    assert sent.status_code == 422
    assert reason in sent.text
    assert HOSTILE not in sent.text
    assert read_grants(console, number) == {(DISTRICT, None)}


def test_the_effect_of_a_choice_is_counted_before_it_is_made(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "effect")
    path = f"/vendors/{number}/grants/{DISTRICT}.json"
    whole = owner.get(f"{path}?extent=whole").json
    single = [owner.get(f"{path}?extent=some&school={it['sourced_id']}").json["students"] for it in whole["schools"]]
    assert whole["now"] == 0
    assert [it["students"] for it in whole["schools"]] == single
    assert 0 < max(single) <= whole["students"] <= sum(single)
    assert read_grants(console, number) == set()


WITHHELD = {
    "own fields": ({"list": "own", "field": ["email", "asian", "nothing-such"]}, ("email", "asian")),
    "none": ({"list": "own"}, ()),
    "the default": ({"list": "default"}, None),
}


def test_checked_fields_beside_the_default_are_refused_and_not_forgotten(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "contradiction")
    sent = owner.send_shown(f"/vendors/{number}", "withheld", list="default", field=["email"])
    assert sent.status_code == 422
    assert "Fields are checked, and the choice is the default" in sent.text


@pytest.mark.parametrize(("form", "expected"), WITHHELD.values(), ids=WITHHELD)
def test_fields_are_withheld(
    console: Console, owner: Browser, form: dict[str, object], expected: tuple[str, ...] | None
) -> None:
    number = add_vendor(console, f"withheld-{len(str(form))}")
    owner.send_shown(f"/vendors/{number}", "withheld", list="own", field=["sms"])
    assert owner.send_shown(f"/vendors/{number}", "withheld", **form).status_code == 303
    with console.engine.connect() as connection:
        assert vendors.find_vendor_by_id(connection, number).own_withheld == expected
    assert "Fields that are withheld from it" in owner.get(f"/vendors/{number}").text


LIMITS = {
    "none": ({}, 303),
    "some": ({"per_second": "5", "rostering_at_once": "3"}, 303),
    "a burst that is no multiple": ({"per_second": "5", "burst": "7"}, 422),
    "a text": ({"per_day": "many"}, 422),
    "too large": ({"per_second": "10001"}, 422),
    "negative": ({"burst": "-1"}, 422),
}


@pytest.mark.parametrize(("form", "status"), LIMITS.values(), ids=LIMITS)
def test_limits(console: Console, owner: Browser, form: dict[str, str], status: int) -> None:
    number = add_vendor(console, f"limits-{status}-{len(str(form))}")
    for _ in range(2):
        assert owner.send(f"/vendors/{number}/limits", **form).status_code == status
    assert ("nothing was changed" in owner.get(f"/vendors/{number}").text) is (status == 303)
    with console.engine.connect() as connection:
        found = vendors.find_vendor_by_id(connection, number)
        recorded = sa.select(sa.func.count()).where(changes.c.vendor == found.email, changes.c.verb == "vendor limits")
        assert connection.scalar(recorded) == (form == LIMITS["some"][0])
    stored = (found.allowance.requests_per_second, found.rostering.at_once)
    assert stored == ((5, 3) if form == LIMITS["some"][0] else (None, None))


def test_a_client_of_another_vendor_cannot_be_changed(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "own")
    with console.engine.connect() as connection:
        other = clients.list_clients(connection)[0]
    for form in ("scopes", "secret", "client-enable", "client-remove"):
        sent = owner.send(
            f"/vendors/{number}/credentials/{form}",
            client=other.client_id,
            typed=other.name,
            scope="v1p1/roster.readonly",
        )
        assert sent.status_code == 422
        assert "is not one of own@console.example" in sent.text
    with console.engine.connect() as connection:
        assert clients.find_listed_client(connection, other.client_id) == other


def test_other_scopes_are_saved(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "scoped")
    with console.engine.begin() as connection:
        scopes = [Scope("v1p2", ScopeName.FULL)]
        made = clients.add_client(connection, TESTER, "scoped@console.example", "program", scopes)
    form = {"client": made.client_id, "scope": "v1p2/roster-core.readonly"}
    assert owner.send(f"/vendors/{number}/credentials/scopes", **form).status_code == 303
    with console.engine.connect() as connection:
        assert clients.find_listed_client(connection, made.client_id).scopes == ("v1p2/roster-core.readonly",)


def test_a_removal_needs_the_name_typed(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "removed")
    for typed in ("", "removed", "REMOVED@console.example"):
        assert owner.send(f"/vendors/{number}/remove", typed=typed).status_code == 422
    assert owner.get(f"/vendors/{number}").status_code == 200
    assert owner.send(f"/vendors/{number}/remove", typed="removed@console.example").status_code == 303
    assert owner.get(f"/vendors/{number}").status_code == 404


def test_hostile_names_are_text(console: Console, owner: Browser) -> None:
    owner.send("/vendors/new/add", name=HOSTILE, email="hostile@console.example", product="students")
    for path in ("/vendors", "/vendors.csv"):
        page = owner.get(path)
        assert ("<script>alert" in page.text) is path.endswith(".csv")
    with console.engine.connect() as connection:
        number = find_vendor(connection, "hostile@console.example").id
    for path in ("", "/credentials", "/files", "/requests"):
        page = owner.get(f"/vendors/{number}{path}").text
        assert ("<script>alert" in page, "&lt;script&gt;alert" in page) == (False, True), path


def test_a_viewer_sees_no_form_of_a_vendor(console: Console) -> None:
    viewer = console.log_in(OperatorRole.VIEWER)
    number = add_vendor(console, "viewed")
    for path, shown in {"": {"limits"}, "/credentials": set(), "/files": set(), "/requests": set()}.items():
        # The limits are fields that take nothing.
        page = viewer.get(f"/vendors/{number}{path}").text
        assert set(re.findall(rf'action="/console/vendors/{number}/([^"]*)"', page)) == shown


def test_both_secrets_are_shown_with_their_ends_and_the_old_one_is_ended(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "rotated")
    scopes = [Scope("v1p1", ScopeName.FULL)]
    with console.engine.begin() as connection:
        made = clients.add_client(connection, TESTER, "rotated@console.example", "program", scopes)

    def ask(secret: str) -> int:
        form = {"grant_type": "client_credentials", "client_id": made.client_id, "client_secret": secret}
        return console.vendors.test_client().post("/oauth/token", data=form).status_code

    path, form = f"/vendors/{number}/credentials", {"client": made.client_id}
    assert "the earlier one is valid until" not in owner.get(path).text
    assert owner.send(f"{path}/old-secret", **form).status_code == 422
    owner.send(f"{path}/secret", grace="24", **form)
    with console.engine.connect() as connection:
        [listed] = [item for item in list_credentials(connection) if item.name == made.client_id]
    assert listed.earlier_ends_at is not None
    page = owner.get(path).text
    assert f'the earlier one is valid until <time datetime="{listed.earlier_ends_at}">' in page
    assert "<dd>does not expire; the earlier" in page
    assert ask(made.client_secret) == 200
    ended = owner.send(f"{path}/old-secret", **form)
    assert (ended.status_code, ask(made.client_secret)) == (303, 401)
    assert "the earlier one is valid until" not in owner.get(path).text
    with console.engine.connect() as connection:
        row = connection.execute(sa.select(changes).order_by(changes.c.id.desc()).limit(1)).one()
    assert (row.verb, row.before["previous_secret_ends_at"] is None, row.after) == (
        "client end-old-secret",
        False,
        {"previous_secret_ends_at": None},
    )


def read_once(page: str, action: str) -> str:
    """The random text of a form."""
    found = re.search(rf'action="[^"]*{action}">(?s:.{{0,300}}?)name="once" value="([^"]+)', page)
    assert found is not None, action
    return found[1]


MADE_ONCE = {
    "a secret": ("/vendors/{0}/credentials", "/vendors/{0}/credentials/secret", {"client": "{1}"}),
    "a link": ("/vendors/{0}/credentials", "/vendors/{0}/credentials/link", {"client": "{1}"}),
    "a client": (
        "/vendors/{0}/credentials",
        "/vendors/{0}/credentials/client",
        {"name": "again", "preset": "guardians", "version": "v1p2"},
    ),
    "a key": ("/vendors/{0}/credentials", "/vendors/{0}/credentials/key", {}),
    "a vendor": (
        "/vendors/new",
        "/vendors/new/add",
        {"name": "Twice", "email": "twice@console.example", "product": "students"},
    ),
    "an operator": ("/operators", "/operators/add", {"name": "Twice", "email": "twice@x.example", "role": "viewer"}),
    "a link of an operator": ("/operators", "/operators/reset", {"email": "observer@operators.example"}),
}


@pytest.mark.parametrize(("page", "action", "form"), MADE_ONCE.values(), ids=MADE_ONCE)
def test_a_page_of_credentials_that_is_reloaded_says_when_they_were_made(
    console: Console, owner: Browser, page: str, action: str, form: dict[str, str]
) -> None:
    name = re.sub(r"\W", "", action)
    number = add_vendor(console, name)
    with console.engine.begin() as connection:
        scopes = [Scope("v1p2", ScopeName.FULL)]
        made = clients.add_client(connection, TESTER, f"{name}@console.example", "program", scopes)
    path = action.format(number)
    fields = {name: value.format(number, made.client_id) for name, value in form.items()}
    fields["once"] = read_once(owner.get(page.format(number)).text, path)

    def count() -> int:
        with console.engine.connect() as connection:
            return connection.scalar(sa.select(sa.func.count()).select_from(changes)) or 0

    first = owner.send(path, **fields)
    assert (first.status_code, 'class="secret"' in first.text) == (200, True)
    before = count()
    again = owner.send(path, **fields)
    assert (again.status_code, 'class="secret"' in again.text, count()) == (200, False, before)
    with console.engine.connect() as connection:
        at = format_instant(connection.scalars(sa.select(changes.c.at).order_by(changes.c.id.desc())).first())
    assert f"Made {to_instant(None, at)}, and shown then" in again.text
    assert f'href="/console{page.format(number).removesuffix("/new")}">go back' in again.text
    assert fields["once"] not in owner.get("/changes.json").text
    fields["once"] = read_once(owner.get(page.format(number)).text, path)
    if "Twice" not in fields.values():
        assert 'class="secret"' in owner.send(path, **fields).text


def test_a_form_that_is_sent_twice_at_once_makes_one_secret(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "double")
    with console.engine.begin() as connection:
        scopes = [Scope("v1p2", ScopeName.FULL)]
        made = clients.add_client(connection, TESTER, "double@console.example", "program", scopes)
    csrf = owner.read_csrf("/account")
    form = {"csrf": csrf, "once": "x" * 22, "client": made.client_id, "grace": "24"}
    cookies = owner.client._cookies

    def send(_: int) -> str:
        browser = console.app.test_client()
        browser._cookies.update(cookies)
        return browser.post(f"/console/vendors/{number}/credentials/secret", data=form).text

    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(send, range(2)))
    assert sorted('class="secret"' in text for text in texts) == [False, True]


STALE = {
    "grants": ("/grants/spr-district", "set", {"extent": "some", "school": ["spr-high"], **ALL}),
    "withheld fields": ("", "withheld", {"list": "own", "field": ["email"]}),
    "flags": ("", "flags", {"flag": ["contacts"]}),
}


@pytest.mark.parametrize(("page", "form", "values"), STALE.values(), ids=STALE)
def test_a_page_that_lay_open_takes_nothing_back(
    console: Console, owner: Browser, page: str, form: str, values: dict[str, object]
) -> None:
    number = add_vendor(console, f"stale-{form}")
    screen, email = f"/vendors/{number}{page}", f"stale-{form}@console.example"
    hidden = {"version": "1", "shown": ""}
    with console.engine.begin() as connection:
        vendor_rights.change_withheld(connection, TESTER, email, [WithheldField.SMS])
        before = vendors.find_vendor(connection, email)
    sent = owner.send(f"{screen}/{form}", **hidden, **values)
    assert (sent.status_code, "has changed since this page was shown" in sent.text) == (422, True)
    assert f'name="version" value="{before.grant_version}"' in sent.text
    with console.engine.connect() as connection:
        assert vendors.find_vendor(connection, email) == before
    assert owner.send_shown(screen, form, **values).status_code == 303


def test_grants_are_set_once_their_effect_was_shown(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "unseen")
    screen = f"/vendors/{number}/grants/{DISTRICT}"
    narrow: dict[str, object] = {"extent": "whole", "grade": ["03"], **ALL}
    assert owner.send_shown(screen, "set", **narrow).status_code == 303
    shown = dict(re.findall(r'name="(version|shown)" value="([^"]*)"', owner.get(screen).text))
    sent = owner.send(f"{screen}/set", **shown, **{**narrow, "staff": "none"})
    assert (sent.status_code, "first look at the effect of this choice" in sent.text) == (422, True)
    with console.engine.connect() as connection:
        assert [it.rules.words for it in vendors.find_vendor_by_id(connection, number).grants if it.rules] == [
            "grade 3"
        ]


def test_the_effect_of_a_page_that_lay_open_does_not_renew_it(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "swapped")
    screen, email = f"/vendors/{number}/grants/{DISTRICT}", "swapped@console.example"
    version = re.findall(r'name="version" value="([^"]*)"', owner.get(screen).text)[0]
    with console.engine.begin() as connection:
        vendor_rights.change_withheld(connection, TESTER, email, [WithheldField.SMS])
    # What a change of the form swaps.
    effect = owner.get(f"{screen}?extent=whole&staff=all&guardians=yes").text.partition('id="effect"')[2]
    effect = effect.partition("Set the access")[0]
    shown = re.findall(r'name="shown" value="([^"]+)"', effect)[0]
    assert 'name="version"' not in effect
    sent = owner.send(f"{screen}/set", version=version, shown=shown, extent="whole", **ALL)
    assert (sent.status_code, read_grants(console, number)) == (422, set())


def test_several_rules_are_not_made_one_unseen(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "several")
    screen, email = f"/vendors/{number}/grants/{DISTRICT}", "several@console.example"
    with console.engine.begin() as connection:
        for school, grades in (("spr-elementary", "03"), ("spr-high", "10")):
            rules = Rules(f"grades~'{grades}'", None, Staff.ALL, guardians=True)
            vendor_rights.grant(connection, TESTER, email, DISTRICT, [school], rules=rules)
        before = vendors.find_vendor(connection, email)
    hidden = dict(re.findall(r'name="(version|shown)" value="([^"]*)"', owner.get(screen).text))
    schools = ["spr-elementary", "spr-high"]
    sent = owner.send(f"{screen}/set", **hidden, extent="some", school=schools, grade=["03"], **ALL, even_nothing="yes")
    assert (sent.status_code, "first look at the effect" in sent.text) == (422, True)
    with console.engine.connect() as connection:
        assert vendors.find_vendor(connection, email) == before


def test_fields_that_are_withheld_already_change_nothing(console: Console, owner: Browser) -> None:
    number = add_vendor(console, "unchanged")
    for words in ("has changed", "nothing has changed"):
        sent = owner.send_shown(f"/vendors/{number}", "withheld", list="own", field=["sms"])
        assert words in owner.get(f"/vendors/{number}").text, sent.text
    with console.engine.connect() as connection:
        assert vendors.find_vendor_by_id(connection, number).grant_version == 2

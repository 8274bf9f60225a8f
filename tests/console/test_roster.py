"""The roster in the console: search, facets and filters against models and the interface, and hostile texts."""

from __future__ import annotations

import html
import itertools
import random
import re
import unicodedata

import pytest
import sqlalchemy as sa
from oneroster_filter.folding import fold

from roster_service.accounts.clients import list_clients
from roster_service.change_log.actors import OperatorRole
from roster_service.console.views import roster
from roster_service.console.views.roster import KINDS
from roster_service.db.tables import changes, pulls, users
from roster_service.explore.known_people import find_people
from tests.console.conftest import SECRET, Browser, Console
from tests.console.hostile import SCRIPT, TEXTS, add_people

ASSIGNED = random.Random(7)
LETTERS = "aAbBİiIıσςΣ%_'-ß é"
NAMES = [
    tuple("".join(ASSIGNED.choices(LETTERS, k=ASSIGNED.randint(2, 5))).strip() or "aa" for _ in range(2))
    for _ in range(60)
]
BIG_PAGE = 100_000


@pytest.fixture(scope="module")
def browser(console: Console) -> Browser:
    """A viewer, for a roster that has hostile texts and people with random names."""
    add_people(console.engine, [*itertools.product(TEXTS, TEXTS[:2])])
    add_people(console.engine, NAMES, "random")  # type: ignore[arg-type]
    return console.log_in(OperatorRole.VIEWER)


def find(browser: Browser, **query: str) -> dict[str, object]:
    """The content of the list."""
    answer = browser.get("/roster.json", query_string=query)
    assert answer.status_code == 200
    content = answer.get_json()
    assert isinstance(content, dict)
    return content


def list_ids(browser: Browser, **query: str) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    for page in itertools.count(1):
        content = find(browser, page=str(page), **query)
        found += [row["sourcedId"] for row in content["rows"]]  # type: ignore[attr-defined]
        if content["following"] is None:
            return found
    raise AssertionError


def is_named(person: object, typed: str) -> bool:
    """The model of the search."""
    names = [
        getattr(person, f"{name}_name") for name in ("given", "middle", "family", "preferred_first", "preferred_last")
    ]
    plain = [person.sourced_id, person.identifier, person.username]  # type: ignore[attr-defined]
    words = [word for name in names for word in bare(name or "").split()]
    wanted = bare(typed).split()[:5]
    return (
        fold(person.email or "").startswith(fold(typed))  # type: ignore[attr-defined]
        or any(text.startswith(form) for text in plain if text for form in (typed, typed.lower(), typed.upper()))
        or (bool(wanted) and all(any(word.startswith(it) for word in words) for it in wanted))
    )


def bare(name: str) -> str:
    """A name without accents and case, with blanks between its words."""
    letters = "".join(it for it in unicodedata.normalize("NFD", name) if not unicodedata.combining(it))
    letters = fold(letters).replace("ø", "o").replace("ł", "l").replace("đ", "d").replace("ð", "d").replace("ı", "i")
    return re.sub("[-'’.,_/()\"]", " ", letters)


@pytest.mark.parametrize(
    "typed",
    [
        *("Søren Łukasz", "soren", "García López", "lopez garcia", "LOPEZ", "maria jose", "jose lopez", "o'brien"),
        *("obrien", "brien", "lopez-p", "pena", "garc lop mar"),
    ],
)
def test_a_person_is_found_by_parts_of_the_name_in_any_order_without_accents(
    console: Console, browser: Browser, typed: str
) -> None:
    names = {"spr-student-2": ("María José", "García López-Peña"), "spr-student-3": ("Søren Łukasz", "O'Brien")}
    with console.engine.begin() as connection:
        for person, (given, family) in names.items():
            own = users.c.sourced_id == person
            connection.execute(users.update().where(own).values(given_name=given, family_name=family))
        people = connection.execute(sa.select(users)).all()
    wanted = {person.sourced_id for person in people if is_named(person, typed)}
    assert bool(wanted) == (typed != "obrien")
    assert set(list_ids(browser, kind="users", search=typed)) == wanted
    if wanted:
        with console.engine.connect() as connection:
            assert {it.sourcedId for it in find_people(connection, typed, SECRET)} == wanted


def test_the_search_finds_whom_its_model_finds(console: Console, browser: Browser) -> None:
    with console.engine.connect() as connection:
        people = connection.execute(sa.select(users)).all()
    chance = random.Random(3)
    typed = ["random.1", "RANDOMn", "spr-student", "SPR-", "wang", "王", "иван", "О'", "%_", "{{", "<script", "xxxx"]
    for given, family in chance.sample(NAMES, 30):
        typed += [given[:2], family[:3].upper(), f"{family[:1]} {given[:1]}", f"{family}, {given}"]
    for text in {text.strip() for text in typed}:
        if len(text) >= 2:
            wanted = {person.sourced_id for person in people if is_named(person, text)}
            assert set(list_ids(browser, kind="users", search=text)) == wanted, text


@pytest.mark.parametrize(
    ("collection", "filter_"),
    [
        ("users", "familyName~'o'"),
        ("users", "roles.role='teacher' OR grades='09'"),
        ("users", "email!='x' AND status='active'"),
        ("classes", "school.sourcedId='spr-elementary'"),
        ("enrollments", "role='teacher'"),
        ("orgs", "type='school'"),
        ("academicSessions", "startDate>'2026-01-01'"),
        ("users", "givenNme='x'"),
        ("users", "givenName='x"),
        ("users", "dateLastModified>'yesterday'"),
        ("classes", "sourcedId='a' AND title='b' AND title='c'"),
    ],
)
def test_a_filter_means_what_it_means_on_the_interface(
    console: Console, browser: Browser, collection: str, filter_: str
) -> None:
    answer = console.client.call("v1p2", f"/{collection}", {"filter": filter_, "limit": "1000"})
    content = find(browser, kind=collection, filter=filter_)
    if answer.status == 200:
        assert content["problem"] is None
        assert set(list_ids(browser, kind=collection, filter=filter_)) == set(answer.ids)
    else:
        assert content["problem"] is not None
        assert content["problem"] in answer.description
        assert html.escape(str(content["problem"])[1:]) in read_page(browser, kind=collection, filter=filter_)


def read_page(browser: Browser, **query: str) -> str:
    """The page of the list."""
    answer = browser.get("/roster", query_string=query)
    assert answer.status_code == 200
    assert len(answer.data) < BIG_PAGE
    return answer.text.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")


@pytest.mark.parametrize("collection", ["orgs", "users", "classes", "courses", "academicSessions", "enrollments"])
def test_the_counts_of_facets_are_those_of_the_lists(browser: Browser, collection: str) -> None:
    everything = list_ids(browser, kind=collection)
    content = find(browser, kind=collection)
    assert content["count"] == len(everything)
    for facet in content["facets"]:  # type: ignore[attr-defined]
        for choice in facet["choices"]:
            found = list_ids(browser, kind=collection, **{facet["name"]: choice["value"]})
            assert len(found) == (choice["count"] or 0), choice
            assert set(found) <= set(everything)


def test_a_district_leads_to_its_schools_classes_and_people(console: Console, browser: Browser) -> None:
    (district,) = (row for row in find(browser)["rows"] if row["sourcedId"] == "spr-district")  # type: ignore[attr-defined]
    below = {link["text"]: link["query"] for link in district["inside"]}
    schools = find(browser, **below["Schools"])["rows"]
    assert [row["sourcedId"] for row in schools] == ["spr-elementary", "spr-high"]  # type: ignore[attr-defined]
    (school,) = (row for row in schools if row["sourcedId"] == "spr-elementary")  # type: ignore[attr-defined]
    below = {link["text"]: link["query"] for link in school["inside"]}
    answer = console.client.call("v1p2", "/schools/spr-elementary/classes")
    assert set(list_ids(browser, **below["Classes"])) == set(answer.ids)
    people = set(list_ids(browser, **below["People"]))
    for role in ("students", "teachers"):
        assert people >= set(console.client.call("v1p2", f"/schools/spr-elementary/{role}").ids)
    (taught,) = find(browser, kind="classes", search="spr-class-math3-a")["rows"]  # type: ignore[misc]
    below = {link["text"]: link["query"] for link in taught["inside"]}
    members = {
        key
        for role in ("students", "teachers")
        for key in console.client.call("v1p2", f"/classes/spr-class-math3-a/{role}").ids
    }
    assert members
    assert members <= set(list_ids(browser, **below["People"]))


def test_hostile_texts_are_texts(browser: Browser) -> None:
    for search in TEXTS:
        page = read_page(browser, kind="users", search=search)
        assert SCRIPT not in page
        assert "<img" not in page
        assert html.escape(search) in page
    table = browser.get("/roster.csv", query_string={"kind": "users", "search": "=HYP"}).text
    assert "\n=" not in table
    assert ",=" not in table


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"page": "minus one"}, None),
        ({"page": "99999999999999999999"}, None),
        ({"kind": "teachers"}, None),
        ({"kind": "users", "search": "a"}, "Type at least 2 characters"),
        ({"kind": "users", "search": "a" * 300}, "at most 256 characters"),
        ({"kind": "users", "filter": "x" * 5000}, "characters"),
        ({"kind": "users", "sort": "name"}, "not a sortable field"),
        ({"kind": "users", "role": "wizard", "grade": "09", "feed": "none", "status": "gone"}, None),
    ],
)
def test_a_wrong_value_is_answered_with_its_reason(browser: Browser, query: dict[str, str], reason: str | None) -> None:
    page = read_page(browser, **query)
    assert reason is None or reason in page


def test_the_first_page_finds_people(browser: Browser) -> None:
    assert "Find a person" in read_page(browser)
    assert set(list_ids(browser, search="spr-student")) == set(list_ids(browser, kind="users", search="spr-student"))


def test_a_csv_has_all_pages(browser: Browser) -> None:
    everyone = list_ids(browser, kind="users")
    assert len(everyone) > len(find(browser, kind="users")["rows"])  # type: ignore[arg-type]
    lines = browser.get("/roster.csv", query_string={"kind": "users"}).text.splitlines()
    assert len([line for line in lines if line.endswith(",active")]) == len(everyone)


def test_the_name_of_a_csv_says_that_it_has_the_first_rows_alone(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    [screen] = roster.SCREENS
    monkeypatch.setattr(roster, "MOST_ROWS", 3)
    monkeypatch.setitem(vars(screen), "most_rows", 3)
    for query, rows, name in (({}, 3, "roster-first-3"), ({"search": "spr-student-1"}, 1, "roster")):
        answer = browser.get("/roster.csv", query_string={"kind": "users", **query})
        assert (len(answer.text.splitlines()), answer.headers["Content-Disposition"]) == (
            rows + 1,
            f'attachment; filename="{name}.csv"',
        )


def test_a_csv_has_the_columns_of_the_page(browser: Browser) -> None:
    for kind in KINDS:
        lines = browser.get("/roster.csv", query_string={"kind": kind}).text.splitlines()
        columns = find(browser, kind=kind)["columns"]
        assert len(lines[0].split(",")) == 4 + len(columns), kind  # type: ignore[arg-type]
    lines = browser.get("/roster.csv", query_string={"kind": "users", "search": "spr-student-1"}).text.splitlines()
    assert lines[0] == "sourcedId,name,roles,grades,identifier,email,feed,status"
    assert lines[1].startswith("spr-student-1,Zoë O'Brien,")
    assert lines[1].endswith(",springfield,active")


@pytest.mark.parametrize("vendor", ["both", "elementary"])
@pytest.mark.parametrize("version", ["v1p1", "v1p2"])
@pytest.mark.parametrize(
    ("collection", "filter_"), [("users", None), ("users", "familyName~'o'"), ("classes", None), ("demographics", None)]
)
def test_a_look_as_a_vendor_has_the_records_of_the_interface(
    console: Console, browser: Browser, vendor: str, version: str, collection: str, filter_: str | None
) -> None:
    form = {"client": find_client_id(console, vendor), "version": version, "kind": collection, "filter": filter_ or ""}
    found: list[str] = []
    query = {"limit": "1000", **({"filter": filter_} if filter_ else {})}
    wanted = console.client.call(version, f"/{collection}", query, vendor=vendor).ids
    for page in itertools.count(1):
        looked = browser.send("/roster/look", csrf_of="/account", page=str(page), **form)
        assert looked.status_code == 200
        assert len(looked.data) < BIG_PAGE
        found += re.findall(r'<span class="quiet">([^<]+)</span></td>\n<td><details class="screen-only">', looked.text)
        if "Next page" not in looked.text:
            break
    assert [html.unescape(it) for it in found] == wanted


def test_a_look_as_a_vendor_without_a_grant_shows_the_refusal(console: Console, browser: Browser) -> None:
    form = {"client": find_client_id(console, "nobody"), "version": "v1p2", "kind": "users", "filter": ""}
    looked = browser.send("/roster/look", csrf_of="/account", page="1", **form)
    assert (looked.status_code, "no district or school is granted to you" in looked.text) == (200, True)


def find_client_id(console: Console, vendor: str) -> str:
    """The client of a vendor."""
    with console.engine.connect() as connection:
        return next(it.client_id for it in list_clients(connection) if it.vendor == f"{vendor}@vendors.example")


def test_a_look_is_recorded_without_the_values_of_its_filter(console: Console, browser: Browser) -> None:
    form = {"client": find_client_id(console, "both"), "version": "v1p2", "kind": "users"}
    looked = browser.send("/roster/look", **form, filter="familyName='Ivanov'", reason="a question")
    assert "spr-student" not in looked.text.replace("shv-student", "")
    with console.engine.connect() as connection:
        row = connection.execute(sa.select(changes).order_by(changes.c.id.desc()).limit(1)).one()
        assert connection.scalar(sa.select(sa.func.count()).select_from(pulls)) == 0
    assert (row.verb, row.vendor, row.reason) == ("show", "both@vendors.example", "a question")
    assert row.subject == "/ims/oneroster/rostering/v1p2/users familyName='*'"


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"filter": "givenNme='x'"}, 200, "did you mean"),
        ({"filter": "givenName='\x00'"}, 400, "NUL"),
        ({"client": "none"}, 422, "none"),
        ({"version": "v9"}, 422, "Choose a version"),
        ({"kind": "teachers"}, 422, "Choose a collection"),
    ],
)
def test_a_look_that_is_not_possible_says_why(
    console: Console, browser: Browser, changed: dict[str, str], status: int, words: str
) -> None:
    form = {"client": find_client_id(console, "both"), "version": "v1p2", "kind": "users", **changed}
    looked = browser.send("/roster/look", **form)
    assert (looked.status_code, words in looked.text) == (status, True)

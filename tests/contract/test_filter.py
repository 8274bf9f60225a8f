"""The `filter` parameter: tables of filters and the records they give, in both versions where it matters."""

from __future__ import annotations

import pytest

from tests.offenders import in_one_test

from .client import VERSIONS, RosterClient
from .evaluation import select, values_at
from .model import RESOURCES, filterable, is_shared

each_version = pytest.mark.parametrize("version", VERSIONS)


def case(name: str, path: str, text: str, ids: str, *versions: str) -> list[object]:
    """One case per version (both, where none is named): a filter on a collection, and the ids that it gives."""
    return [
        pytest.param(version, path, text, sorted(ids.split()), id=f"{name}-{version}")
        for version in versions or VERSIONS
    ]


GIVEN = [
    *case("text-equal", "/users", "givenName='Anna'", "shv-student-3"),
    *case("text-equal-knows-case", "/users", "givenName='anna'", ""),
    *case("text-equal-knows-scripts", "/users", "givenName='Аnna'", "shv-student-2"),
    *case("text-equal-knows-accents", "/users", "givenName='Zoe'", ""),
    *case("text-equal-does-not-normalise", "/users", "givenName='Zoe\N{COMBINING DIAERESIS}'", "shv-teacher-1"),
    *case("text-with-spaces-around", "/users", "  givenName  =  'Anna'  ", "shv-student-3"),
    *case("text-keeps-its-own-spaces", "/users", "givenName='Anna '", ""),
    *case("doubled-quote", "/users", "familyName='O''Brien' AND grades='03'", "spr-student-1 spr-student-2"),
    *case("only-a-quote", "/users", "familyName=''''", "spr-proctor@1"),
    *case("typographic-quote", "/users", "familyName='O’Brien'", "shv-guardian-1 shv-student-1"),
    *case("percent-is-no-wildcard", "/users", "givenName~'%'", "spr-student-6"),
    *case("underscore-is-no-wildcard", "/users", "givenName~'_'", "spr-student-6"),
    *case("percent-underscore-in-order", "/users", "username~'%_'", "spr-student-6"),
    *case("underscore-percent-not-in-order", "/users", "username~'_%'", ""),
    *case("escape-character-is-a-letter", "/users", "username~'/%'", ""),
    *case("backslash-is-a-letter", "/users", r"username~'\%'", ""),
    *case("and-inside-a-value", "/classes", "title='Chemistry: Acid'' AND ''Base'", "spr-class-chem-1"),
    *case("and-inside-both-values", "/classes", "title~''' AND ''' AND title!='x AND y'", "spr-class-chem-1"),
    *case("contains-ignores-case", "/users", "familyName~'OBRIEN' OR familyName~'ŻÓŁĆ'", "spr-teacher-1"),
    *case("contains-ignores-greek-case", "/users", "familyName~'ΠΑΠΑΔΟΠΟΎΛΟΥ'", "spr-teacher-2"),
    *case("contains-ignores-cyrillic-case", "/users", "familyName~'ивано'", "spr-relative-1 spr-student-4"),
    *case("contains-is-not-transliterated", "/users", "familyName~'ivano'", "shv-student-4"),
    *case("contains-keeps-sharp-s", "/users", "familyName~'gross'", ""),
    *case("contains-han", "/users", "givenName~'明'", "spr-student-3"),
    *case("contains-arabic", "/users", "familyName~'فاس'", "spr-student-5"),
    *case("contains-nothing-is-any-value", "/users", "middleName~''", "shv-student-1 spr-student-1 spr-student-4"),
    *case("empty-value-equals-no-name", "/users", "middleName=''", ""),
    *case("the-word-null-is-a-word", "/users", "familyName='Null' OR middleName='null'", "spr-student-6"),
    *case(
        "absent-is-not-equal",
        "/courses",
        "schoolYear.sourcedId!='spr-2027' AND org.sourcedId='spr-district'",
        "spr-course-chem spr-course-homeroom",
    ),
    *case("order-by-code-point", "/users", "familyName>'a' AND familyName<'z'", "spr-admin-district"),
    *case("order-beyond-ascii", "/users", "givenName>='李'", "shv-principal-1"),
    *case(
        "order-includes-its-bound",
        "/orgs",
        "name>='Springfield High School' AND name<='Springfield High School'",
        "spr-high",
    ),
    *case("flag-true", "/enrollments", "primary='true' AND school.sourcedId='spr-high'", "spr-enr-12 spr-enr-14"),
    *case("flag-false", "/users", "enabledUser='false'", "shv-student-4 spr-student-5"),
    *case(
        "flag-absent-is-not-true",
        "/demographics",
        "white!='true' AND sex='male'",
        "shv-student-4 spr-student-3 spr-student-5",
    ),
    *case("instant", "/users", "dateLastModified='2026-11-01T00:00:00.001Z'", "spr-student-2"),
    *case("instant-without-milliseconds", "/users", "dateLastModified='2026-11-01T00:00:00Z'", "spr-student-1"),
    *case(
        "instant-finer-than-milliseconds", "/users", "dateLastModified='2026-11-01T00:00:00.001999Z'", "spr-student-2"
    ),
    *case("instant-with-an-offset", "/users", "dateLastModified='2026-11-01T05:30:00.001+05:30'", "spr-student-2"),
    *case(
        "instant-with-a-negative-offset", "/users", "dateLastModified='2026-10-31T19:00:00.001-05:00'", "spr-student-2"
    ),
    *case(
        "day-of-an-instant-is-the-whole-day",
        "/users",
        "dateLastModified='2026-11-01'",
        "shv-student-1 shv-student-2 spr-student-1 spr-student-2 spr-student-3",
    ),
    *case(
        "after-a-day-is-after-its-first-instant",
        "/users",
        "dateLastModified>'2026-11-01' AND dateLastModified<'2026-11-01T00:00:01Z'",
        "spr-student-2",
    ),
    *case(
        "since-a-day-is-since-its-first-instant",
        "/users",
        "dateLastModified>='2026-11-01' AND dateLastModified<'2026-11-01T00:00:01Z'",
        "spr-student-1 spr-student-2",
    ),
    *case("before-a-day-is-before-its-first-instant", "/users", "dateLastModified<'2026-11-01'", "spr-student-5"),
    *case(
        "until-a-day-is-until-its-last-instant",
        "/users",
        "dateLastModified<='2026-11-01' AND dateLastModified>='2026-11-01T12:30:00.501Z'",
        "shv-student-2 spr-student-3",
    ),
    *case("day", "/demographics", "birthDate='2012-02-29'", "shv-student-1"),
    *case(
        "day-order",
        "/demographics",
        "birthDate>='2018-02-28' AND birthDate<'2018-03-01'",
        "spr-student-1 spr-student-2",
    ),
    *case("list-has-all", "/users", "grades='12,11'", "spr-student-5"),
    *case("list-has-any", "/users", "grades~'12,09'", "shv-student-1 shv-student-2 spr-student-5"),
    *case(
        "list-has-not-all",
        "/courses",
        "grades!='09,10'",
        "shv-course-art spr-course-chem spr-course-homeroom spr-course-math3 spr-course-stats",
    ),
    *case("list-item-with-spaces", "/courses", "subjects~'Probability and Statistics'", "spr-course-stats"),
    *case("list-item-is-whole", "/courses", "subjects~'Statistics'", ""),
    *case("through-a-reference", "/enrollments", "user.sourcedId='spr-proctor@1'", "spr-enr-15"),
    *case(
        "through-a-reference-with-a-slash",
        "/enrollments",
        "class.sourcedId='spr-class/stats@1' AND role='student'",
        "spr-enr-09 spr-enr-10",
    ),
    *case(
        "absent-reference-is-not-equal",
        "/orgs",
        "parent.sourcedId!='spr-district' AND type='district'",
        "shv-district spr-district",
    ),
    *case("through-a-list-of-references", "/orgs", "children.sourcedId='spr-high-science'", "spr-high"),
    *case(
        "no-child-of-that-name",
        "/orgs",
        "children.sourcedId!='spr-high-science' AND type='school'",
        "shv-north shv-south spr-elementary",
    ),
    *case("terms", "/classes", "terms.sourcedId='spr-2027-fall' AND school.sourcedId='spr-high'", "spr-class/stats@1"),
    *case("user-ids", "/users", "userIds.type='LTI'", "spr-student-1"),
    *case("user-ids-contain", "/users", "userIds.identifier~':21'", "spr-teacher-1"),
    *case("agents", "/users", "agents.sourcedId='spr-guardian-1'", "spr-student-1 spr-student-2"),
    *case("orgs-of-a-user", "/users", "orgs.sourcedId='spr-elementary' AND role='teacher'", "spr-teacher-1", "v1p1"),
    *case(
        "role-said-in-1.1",
        "/users",
        "role='administrator' AND orgs.sourcedId='spr-district'",
        "spr-admin-district",
        "v1p1",
    ),
    *case("type-said-in-1.1", "/orgs", "type='local'", "shv-campus", "v1p1"),
    *case("type-said-in-1.2", "/orgs", "type='ext:campus'", "shv-campus", "v1p2"),
    *case(
        "roles", "/users", "roles.role='siteAdministrator'", "shv-teacher-1 spr-admin-district spr-admin-school", "v1p2"
    ),
    *case("roles-at-an-org", "/users", "roles.org.sourcedId='spr-high-science'", "spr-proctor@1", "v1p2"),
    *case("roles-by-day", "/users", "roles.endDate>'2027-01-01'", "shv-student-1", "v1p2"),
    *case("any-role-may-hold", "/users", "roles.role='teacher' AND roles.role='parent'", "shv-teacher-1", "v1p2"),
    *case("primary-org", "/users", "primaryOrg.sourcedId='shv-south'", "shv-student-3 shv-teacher-1", "v1p2"),
    *case("profiles", "/users", "userProfiles.vendorId='example.org/library'", "shv-student-1", "v1p2"),
    *case("profiles-contain-quotes", "/users", "userProfiles.description~'\"LEARNING\"'", "shv-student-1", "v1p2"),
    *case("credentials", "/users", "userProfiles.credentials.type='username'", "shv-student-1 shv-teacher-1", "v1p2"),
    *case("empty-identifier-where-1.2-shows-one", "/orgs", "identifier=''", "shv-south spr-high-science", "v1p2"),
    *case("no-identifier-where-1.1-shows-none", "/orgs", "identifier=''", "", "v1p1"),
    *case("metadata", "/orgs", "metadata.city='Springfield'", "spr-district spr-elementary"),
    *case("metadata-contains", "/demographics", "metadata.notes~'\"HI\"'", "spr-student-1"),
    *case("metadata-key-with-a-dot", "/users", "metadata.lunch.plan='free'", "spr-student-1"),
    *case("metadata-key-that-no-record-has", "/orgs", "metadata.nothing='x'", ""),
    *case("or-of-two-fields", "/terms", "title='Fall Semester' OR schoolYear='2026'", "spr-2027-fall"),
    *case("below-a-parent", "/schools/spr-high/students", "grades='11'", "spr-student-3 spr-student-5"),
    *case(
        "below-a-parent-with-or",
        "/classes/spr-class-math3-a/students",
        "grades='11' OR givenName='Conor'",
        "spr-student-2",
    ),
]


@in_one_test
@pytest.mark.parametrize(("version", "path", "text", "ids"), GIVEN)
def test_a_filter_gives_these_records(client: RosterClient, version: str, path: str, text: str, ids: list[str]) -> None:
    answer = client.call(version, path, {"filter": text})
    assert answer.ids == ids
    assert answer.total == len(ids)
    assert answer.info is None


@each_version
@pytest.mark.parametrize("path", RESOURCES)
def test_every_field_is_filtered_as_in_python(client: RosterClient, version: str, path: str) -> None:
    """Each field, with the operators of its kind, on a value that some record shows, and texts on a part of it.

    Of what is the same in both versions, one operator will do for 1.1.
    """
    records = client.call(version, path).records
    kinds = filterable(version, path)
    for name, kind in kinds.items():
        made = _filters_on(name, kind, records)
        for text in made[:1] if version == "v1p1" and is_shared(path, name) else made:
            answer = client.call(version, path, {"filter": text, "fields": "sourcedId"})
            assert answer.ids == select(records, text, kinds), text


def _filters_on(name: str, kind: str, records: list[dict[str, object]]) -> list[str]:
    plain = kind.removeprefix("many ")
    values = sorted({value for record in records for value in values_at(record, name)})
    strangers = {"flag": "true", "instant": "2026-11-01", "day": "2026-09-01", "texts": "09,10"}
    value = values[len(values) // 2] if values else strangers.get(plain, "x")
    quoted = value.replace("'", "''")
    signs = {"flag": "= !=", "instant": "= != > >= < <=", "day": "= != > >= < <=", "texts": "= != ~"}
    made = [f"{name}{sign}'{quoted}'" for sign in signs.get(plain, "= != > <=").split()]
    if plain == "text":
        made.append(f"{name}~'{value[1:3].upper().replace(chr(39), chr(39) * 2)}'")
    return made


@pytest.mark.shows("Visibility", "A caller's `OR` stands in parentheses beside the condition of visibility.")
@each_version
def test_an_or_does_not_escape_the_path(client: RosterClient, version: str) -> None:
    """Both halves of an OR stay below what the path means and what the vendor may see."""
    everything = "status='active' OR status!='active'"
    for path in ("/students", "/schools/spr-high/students", "/classes/spr-class-chem-1/students", "/users"):
        for vendor in ("both", "springfield", "elementary"):
            plain = client.call(version, path, vendor=vendor)
            filtered = client.call(version, path, {"filter": everything}, vendor=vendor)
            assert (filtered.ids, filtered.total) == (plain.ids, plain.total)


@in_one_test
@each_version
@pytest.mark.parametrize("name", ["limit", "offset", "filter", "sort", "orderBy", "fields", "revision"])
@pytest.mark.parametrize("text", ["", "%20", "+%20"])
def test_a_parameter_without_a_text_is_400(client: RosterClient, version: str, name: str, text: str) -> None:
    """One rule for all of them."""
    answer = client.call(version, "/orgs", f"{name}={text}")
    codes = {"filter": "invalid_filter_field", "fields": "invalid_blank_selection_field"}
    assert (answer.status, answer.minor) == (400, codes.get(name, "invaliddata"))
    assert f"`{name}` is empty; give it a value, or leave it out" in answer.description


@each_version
def test_a_plus_in_a_query_is_a_space(client: RosterClient, version: str) -> None:
    assert client.call(version, "/users", "filter=familyName='de+la+Cruz'").ids == ["spr-admin-district"]


@each_version
def test_characters_that_clients_leave_raw_are_taken(client: RosterClient, version: str) -> None:
    """Quotes, commas, tildes, brackets and equals signs need no encoding."""
    assert client.call(version, "/users", "filter=givenName='Zo%C3%AB'&sort=email").total == 2
    assert client.call(version, "/users", "filter=grades~'11,12'&limit=1").total == 2
    assert client.call(version, "/users", "filter=givenName~'_%25'").ids == ["spr-student-6"]


@in_one_test
@each_version
@pytest.mark.parametrize("text", ["%ZZ", "%", "%2", "50%'", "%%41", "%G1"])
def test_a_percent_sign_without_digits_is_400(client: RosterClient, version: str, text: str) -> None:
    """Read as a text, it would find other records than its sender meant."""
    for query in (f"filter=givenName='{text}'", f"{text}=1", f"limit=1&sort=a{text}"):
        answer = client.call(version, "/users", query)
        assert (answer.status, answer.minor) == (400, "invaliddata"), query
        assert "write `%25` for a `%`" in answer.description


CEDS = "IT, PR, PK, TK, KG, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, PS, UG, Other"


@each_version
@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        pytest.param("/users", "status='Active'", "`active`, `tobedeleted`", id="other-case"),
        pytest.param("/users", "status='inactive' OR grades='3'", "`active`, `tobedeleted`", id="the-first-of-two"),
        pytest.param("/users", "grades='3'", CEDS, id="grade"),
        pytest.param("/courses", "grades~'K,12th'", CEDS, id="list"),
        pytest.param("/enrollments", "role='Teacher'", "`student`, `teacher`", id="enrollment"),
        pytest.param("/demographics", "sex='m'", "`female`, `male`", id="sex"),
    ],
)
def test_a_word_that_the_field_never_has_is_a_warning_with_the_words(
    client: RosterClient, version: str, path: str, text: str, words: str
) -> None:
    answer = client.call(version, path, {"filter": text})
    assert (answer.total, answer.minor) == (0, "invalid_filter_field")
    assert answer.info is not None
    assert answer.info["imsx_severity"] == "warning"
    assert words in answer.description.replace("`", "" if words == CEDS else "`")


@each_version
@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/users", "status='Active' OR grades='03'", id="found-by-the-other"),
        pytest.param("/users", "status!='Active'", id="not-equal"),
        pytest.param("/users", "status~'Act'", id="contains"),
        pytest.param("/users", "status!='Active' AND familyName='nobody'", id="not-equal-and-nothing-found"),
        pytest.param("/users", "status~'gone'", id="contains-and-nothing-found"),
        pytest.param("/users", "status>'z'", id="greater-and-nothing-found"),
        pytest.param("/users", "grades='01'", id="a-word-without-records"),
        pytest.param("/users", "familyName='Active'", id="a-text"),
    ],
)
def test_no_warning_where_records_are_found_or_the_word_exists(
    client: RosterClient, version: str, path: str, text: str
) -> None:
    assert client.call(version, path, {"filter": text}).info is None


def test_an_extension_of_1_2_is_a_word_of_it(client: RosterClient) -> None:
    assert client.call("v1p2", "/users", {"filter": "roles.role='ext:none'"}).info is None
    answer = client.call("v1p2", "/users", {"filter": "roles.role='administrator'"})
    assert (answer.total, "`ext:` and a name" in answer.description) == (0, True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("sent", "is_warned"),
    [
        pytest.param("filter=sourcedId='s+123'", True, id="as it is"),
        pytest.param("limit=5&filter=sourcedId%3D%27s+123%27", True, id="all but the plus sign is encoded"),
        pytest.param("filter=familyName='x'+OR+sourcedId~'s,s+1'", True, id="in a list of a second clause"),
        pytest.param("filter=sourcedId='s%2B123'", False, id="encoded"),
        pytest.param("filter=familyName='x'+AND+givenName='y'", False, id="a blank between clauses"),
        pytest.param("filter=familyName='x%20y'&sort=a+b", False, id="in another parameter"),
        pytest.param("filter=familyName!='x+y'", False, id="where records are found"),
    ],
)
def test_a_plus_sign_that_a_filter_lost_is_a_warning_where_it_finds_nothing(
    client: RosterClient, version: str, sent: str, is_warned: bool
) -> None:
    answer = client.call(version, "/users", raw_query=sent.encode())
    assert answer.status == 200
    said = str(answer.json.get("statusInfoSet")) + str(answer.headers)
    assert ("write a plus sign as `%2B`" in said) == is_warned

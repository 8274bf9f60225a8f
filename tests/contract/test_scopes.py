"""Each row of the specification's table of scopes: what it opens, and that nothing else opens it."""

from __future__ import annotations

import pytest

from tests.extent import pair

from .client import (
    CORE,
    DEMOGRAPHIC_METADATA,
    DEMOGRAPHICS,
    FULL,
    GUARDIANS,
    GUARDIANS_METADATA,
    ORGS_METADATA,
    SCOPES,
    STUDENTS_METADATA,
    VERSIONS,
    Answer,
    RosterClient,
)
from .document import walk
from .expected import GUARDIANS as GUARDIAN_IDS

pytestmark = pytest.mark.shows(
    "Visibility",
    "Metadata and demographics need their scope, an `include` its permission flag: by the query alone.",
)

each_version = pytest.mark.parametrize("version", VERSIONS)
PLAIN = (CORE, FULL, DEMOGRAPHICS)


def without(*names: str) -> list[str]:
    """All scopes but these."""
    return [scope for scope in SCOPES if scope not in names]


# --- guardians ---------------------------------------------------------------------------------------------------


@each_version
def test_guardians_are_users_with_the_scope_alone(client: RosterClient, version: str) -> None:
    everyone = client.call(version, "/users")
    others = client.call(version, "/users", scopes=without(GUARDIANS))
    assert set(everyone.ids) - set(others.ids) == GUARDIAN_IDS
    assert (everyone.total, others.total) == (26, 23)


@each_version
@pytest.mark.parametrize("sourced_id", sorted(GUARDIAN_IDS))
def test_a_guardian_is_unknown_without_the_scope(client: RosterClient, version: str, sourced_id: str) -> None:
    assert client.call(version, f"/users/{sourced_id}").ids == [sourced_id]
    hidden = client.call(version, f"/users/{sourced_id}", scopes=without(GUARDIANS))
    unknown = client.call(version, "/users/spr-guardian-9", scopes=without(GUARDIANS))
    assert (hidden.status, hidden.minor) == (unknown.status, unknown.minor) == (404, "unknownobject")
    assert hidden.description.replace(sourced_id, "spr-guardian-9") == unknown.description
    assert client.call(version, f"/users/{sourced_id}/classes", scopes=without(GUARDIANS)).ids == []


@each_version
def test_guardians_stand_in_no_answer_without_the_scope(client: RosterClient, version: str) -> None:
    for path in ("/users", "/students", "/teachers", "/enrollments", "/demographics", "/orgs", "/classes"):
        body = client.call(version, path, scopes=without(GUARDIANS)).body.decode()
        assert not [sourced_id for sourced_id in GUARDIAN_IDS if sourced_id in body]


@each_version
def test_agents_show_guardians_with_the_scope_alone(client: RosterClient, version: str) -> None:
    """A student without any agent to be seen has no `agents`; one who is also something else is still shown."""

    def agents(sourced_id: str, scopes: list[str]) -> list[str]:
        (record,) = client.call(version, f"/users/{sourced_id}", scopes=scopes).records
        return [item["sourcedId"] for item in record.get("agents", [])]

    assert agents("spr-student-1", list(SCOPES)) == ["spr-guardian-1", "spr-parent-1"]
    assert agents("spr-student-1", without(GUARDIANS)) == []
    assert agents("shv-student-1", without(GUARDIANS)) == ["shv-guardian-1"]
    assert agents("shv-teacher-1", without(GUARDIANS)) == ["shv-student-1"]


def test_the_guardian_role_of_somebody_else_is_hidden_too(client: RosterClient) -> None:
    """A teacher who is also a parent, and a guardian who helps in a class, are shown for the rest of what they are."""
    hidden = without(GUARDIANS)
    (teacher,) = client.call("v1p2", "/users/shv-teacher-1", scopes=hidden).records
    assert sorted({role["role"] for role in teacher["roles"]}) == ["siteAdministrator", "teacher"]
    (helper,) = client.call("v1p2", "/users/shv-guardian-1", scopes=hidden).records
    assert [(role["roleType"], role["role"]) for role in helper["roles"]] == [("secondary", "ext:volunteer")]
    (helper,) = client.call("v1p1", "/users/shv-guardian-1", scopes=hidden).records
    assert (helper["role"], [org["sourcedId"] for org in helper["orgs"]]) == ("aide", ["shv-north"])


@pytest.mark.parametrize(
    ("version", "text"),
    [
        pytest.param("v1p1", "role='guardian' OR role='parent'", id="role"),
        pytest.param("v1p1", "role='relative' OR role='guardian'", id="relative"),
        pytest.param("v1p2", "roles.role='guardian' OR roles.role='parent'", id="roles"),
        pytest.param("v1p2", "roles.role='relative' OR roles.role~'GUARD'", id="roles-contain"),
        pytest.param("v1p1", "agents.sourcedId~'guardian' AND grades='03'", id="agents"),
        pytest.param("v1p2", "agents.sourcedId='spr-relative-1' OR agents.sourcedId='spr-parent-1'", id="agents-too"),
        pytest.param("v1p2", "givenName='Siobhán' OR sourcedId='spr-parent-1'", id="themselves"),
    ],
)
def test_no_filter_finds_a_guardian_without_the_scope(client: RosterClient, version: str, text: str) -> None:
    assert client.call(version, "/users", {"filter": text}).total > 0
    assert client.call(version, "/users", {"filter": text}, scopes=without(GUARDIANS)).total == 0


@pytest.mark.shows(
    "Visibility",
    "No filter, sort, field or reference reads a hidden value; hidden metadata and guardians count as absent.",
)
def test_no_sort_reveals_of_a_guardian_role_without_the_scope(client: RosterClient) -> None:
    """1.1 sorts by the role that is shown to this caller."""
    answer = client.call("v1p1", "/users", "sort=role", scopes=without(GUARDIANS))
    roles = [record["role"] for record in answer.records]
    assert roles == sorted(roles)
    assert not {"guardian", "parent", "relative"} & set(roles)


# --- metadata ----------------------------------------------------------------------------------------------------

# scope -> collection, and whose metadata it shows.
METADATA = {
    ORGS_METADATA: ("/orgs", {"shv-district", "shv-north", "spr-district", "spr-elementary"}),
    STUDENTS_METADATA: ("/users", {"shv-student-1", "spr-student-1", "spr-student-2"}),
    GUARDIANS_METADATA: ("/users", {"spr-guardian-1"}),
    DEMOGRAPHIC_METADATA: ("/demographics", {"spr-student-1"}),
}


def with_metadata(answer: Answer) -> set[str]:
    """The ids of the records that show metadata."""
    return {record["sourcedId"] for record in answer.records if "metadata" in record}


@pytest.mark.parametrize(("version", "scope"), [*pair(list(METADATA), VERSIONS)])
def test_metadata_is_shown_with_its_scope_alone(client: RosterClient, version: str, scope: str) -> None:
    """On the collection, on each single record, and in no other resource."""
    path, ids = METADATA[scope]
    only = (*PLAIN, GUARDIANS, scope)
    for other in {path for path, _ in METADATA.values()} | {"/courses", "/classes", "/enrollments", "/terms"}:
        assert with_metadata(client.call(version, other, scopes=only)) == (ids if other == path else set())
    assert not with_metadata(client.call(version, path, scopes=without(scope))) & ids
    for sourced_id in client.call(version, path, scopes=only).ids:
        answer = client.call(version, f"{path}/{sourced_id}", scopes=only)
        assert with_metadata(answer) == ids & {sourced_id}


@each_version
def test_without_any_metadata_scope_there_is_none_at_all(client: RosterClient, version: str) -> None:
    for path in ("/orgs", "/users", "/demographics", "/classes", "/courses", "/enrollments", "/academicSessions"):
        answer = client.call(version, path, scopes=(*PLAIN, GUARDIANS))
        assert "metadata" not in [name for name, _ in walk(answer.json)]


@each_version
def test_a_scope_that_is_missing_is_said_so_to_programs_too(client: RosterClient, version: str) -> None:
    answer = client.call(version, "/demographics", scopes=(CORE,))
    assert answer.status == 403
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="roster", error="insufficient_scope"'


@each_version
def test_the_refusal_of_the_other_version_says_how_to_register(client: RosterClient, version: str) -> None:
    other = "v1p2" if version == "v1p1" else "v1p1"
    answer = client.call(version, "/orgs", bearer=client.token(other))
    assert (answer.status, answer.minor) == (400, "invaliddata")
    assert f"`--scope {version}/roster.readonly`" in answer.description


@each_version
def test_metadata_scopes_alone_open_no_path(client: RosterClient, version: str) -> None:
    for scope, (path, _) in METADATA.items():
        assert client.call(version, path, scopes=[scope]).status == 403


@each_version
def test_a_guardian_s_metadata_needs_the_guardian_to_be_seen(client: RosterClient, version: str) -> None:
    scopes = (*PLAIN, GUARDIANS_METADATA)
    assert with_metadata(client.call(version, "/users", scopes=scopes)) == set()
    filtered = client.call(version, "/users", {"filter": "metadata.busRoute='none'"}, scopes=scopes)
    assert (filtered.ids, filtered.total) == ([], 0)


@each_version
@pytest.mark.parametrize(
    ("scope", "text", "ids"),
    [
        pytest.param(STUDENTS_METADATA, "metadata.busRoute='7'", ["spr-student-1", "spr-student-2"], id="students"),
        pytest.param(STUDENTS_METADATA, "metadata.busRoute~'n'", [], id="not-guardians"),
        pytest.param(GUARDIANS_METADATA, "metadata.busRoute~'n'", ["spr-guardian-1"], id="guardians"),
        pytest.param(GUARDIANS_METADATA, "metadata.busRoute='7'", [], id="not-students"),
        pytest.param(GUARDIANS_METADATA, "metadata.busRoute>='0'", ["spr-guardian-1"], id="not-in-order-either"),
    ],
)
def test_a_filter_reaches_only_the_metadata_that_is_shown(
    client: RosterClient, version: str, scope: str, text: str, ids: list[str]
) -> None:
    assert client.call(version, "/users", {"filter": text}, scopes=(*PLAIN, GUARDIANS, scope)).ids == ids


@pytest.mark.shows(
    "Visibility",
    "No filter, sort, field or reference reads a hidden value; hidden metadata and guardians count as absent.",
)
@each_version
def test_hidden_metadata_is_absent_to_not_equal_and_to_sort(client: RosterClient, version: str) -> None:
    """`!=` holds for all whose metadata is hidden, whatever it is; a sort puts them with those who have none."""
    scopes = (*PLAIN, GUARDIANS, STUDENTS_METADATA)
    others = client.call(version, "/users", {"filter": "metadata.busRoute!='none'"}, scopes=scopes)
    assert others.total == 26
    order = client.call(version, "/users", "sort=metadata.busRoute", scopes=scopes).ids
    assert order[:2] == ["spr-student-1", "spr-student-2"]
    assert order[2:] == sorted(order[2:])


# --- demographics ------------------------------------------------------------------------------------------------


@each_version
def test_demographics_need_their_scope_and_no_other(client: RosterClient, version: str) -> None:
    for path in ("/demographics", "/demographics/spr-student-1"):
        assert client.call(version, path, scopes=[DEMOGRAPHICS]).status == 200
        refused = client.call(version, path, scopes=without(DEMOGRAPHICS))
        assert (refused.status, refused.minor) == (403, "forbidden")


@each_version
def test_the_demographics_scope_opens_nothing_else(client: RosterClient, version: str) -> None:
    for path in ("/users", "/students/spr-student-1", "/schools/spr-high/students", "/orgs"):
        assert client.call(version, path, scopes=[DEMOGRAPHICS]).status == 403


@each_version
def test_nothing_demographic_stands_in_a_user(client: RosterClient, version: str) -> None:
    shown = {name for name, _ in walk(client.call(version, "/users").json)}
    assert not {"birthDate", "sex", "white", "cityOfBirth"} & shown

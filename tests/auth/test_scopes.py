"""Scopes: how they are spelled, what is granted of what is asked for, and what they let a caller see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roster_service.auth.scopes import (
    EXPLANATIONS,
    Scope,
    ScopeName,
    describe_refused_scopes,
    grant_scopes,
    make_content_rights,
    read_scope,
    read_scopes,
)
from roster_service.roster.visibility import ContentRights, MetadataOf, Viewer
from tests.offenders import in_one_test

LONG = "https://purl.imsglobal.org/spec/or/v1p1/scope/"

# The names of the specification and the standard.
NAMES = {
    "roster-core.readonly": ScopeName.CORE,
    "roster.readonly": ScopeName.FULL,
    "roster-demographics.readonly": ScopeName.DEMOGRAPHICS,
    "guardians.readonly": ScopeName.GUARDIANS,
    "guardians-metadata.readonly": ScopeName.GUARDIANS_METADATA,
    "students-metadata.readonly": ScopeName.STUDENTS_METADATA,
    "demographic-metadata.readonly": ScopeName.DEMOGRAPHIC_METADATA,
    "orgs-metadata.readonly": ScopeName.ORGS_METADATA,
}


def test_these_are_all_scopes_and_each_is_explained() -> None:
    assert set(NAMES.values()) == set(ScopeName) == set(EXPLANATIONS)
    assert {str(name) for name in ScopeName} == set(NAMES)


@in_one_test
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", ["v1p1", "v1p2"])
def test_every_scope_is_read_in_each_spelling(version: str, name: str) -> None:
    scope = Scope(version, NAMES[name])
    long = f"https://purl.imsglobal.org/spec/or/{version}/scope/{name}"
    for text in (long, long.replace("https", "http"), f"{version}/{name}"):
        assert read_scope(text) == scope
    assert str(scope) == long
    assert scope.short == f"{version}/{name}"


@in_one_test
@pytest.mark.parametrize(
    "text",
    [
        "",
        "roster.readonly",
        "v1p1",
        "v1p1/",
        "v1p1/roster",
        "v1p1/roster.readonly/",
        "v1p1//roster.readonly",
        "/v1p1/roster.readonly",
        "v1p3/roster.readonly",
        "V1P1/roster.readonly",
        "v1p1/Roster.readonly",
        "v1p1/CORE",
        " v1p1/roster.readonly",
        "v1p1/roster.readonly\n",
        "v1p1/gradebook.readonly",
        f"{LONG}gradebook.createput",
        f"{LONG}",
        f"x{LONG}roster.readonly",
        "ftp://purl.imsglobal.org/spec/or/v1p1/scope/roster.readonly",
        "https://purl.imsglobal.org.evil.example/spec/or/v1p1/scope/roster.readonly",
        "https://purl.imsglobal.org/spec/or/v1p1/roster.readonly",
        "https://purlximsglobal.org/spec/or/v1p1/scope/roster.readonly",
    ],
)
def test_what_is_none_of_ours_is_no_scope(text: str) -> None:
    assert read_scope(text) is None


def test_several_are_read_in_order_and_foreign_ones_left_out() -> None:
    texts = ["v1p2/guardians.readonly", "openid", f"{LONG}roster.readonly"]
    assert read_scopes(texts) == (Scope("v1p2", ScopeName.GUARDIANS), Scope("v1p1", ScopeName.FULL))


REGISTERED = (
    Scope("v1p1", ScopeName.FULL),
    Scope("v1p2", ScopeName.FULL),
    Scope("v1p1", ScopeName.GUARDIANS),
    Scope("v1p2", ScopeName.CORE),
)

GRANTED = [
    pytest.param(None, f"{LONG}roster.readonly {LONG}guardians.readonly", id="nothing-asked"),
    pytest.param("", f"{LONG}roster.readonly {LONG}guardians.readonly", id="blank"),
    pytest.param("  ", f"{LONG}roster.readonly {LONG}guardians.readonly", id="spaces"),
    pytest.param("v1p2/roster.readonly", "v1p2/roster.readonly", id="one"),
    pytest.param(
        "v1p1/guardians.readonly v1p1/roster.readonly", "v1p1/guardians.readonly v1p1/roster.readonly", id="order"
    ),
    pytest.param(
        f"v1p1/roster.readonly {LONG}roster.readonly",
        f"v1p1/roster.readonly {LONG}roster.readonly",
        id="both-spellings",
    ),
    pytest.param("v1p1/roster.readonly v1p1/roster.readonly", "v1p1/roster.readonly", id="twice"),
    pytest.param("v1p1/roster.readonly v1p1/roster-core.readonly", "v1p1/roster.readonly", id="not-registered"),
    pytest.param(f"{LONG}gradebook.readonly v1p2/roster-core.readonly", "v1p2/roster-core.readonly", id="foreign"),
    pytest.param("v1p2/guardians.readonly", "", id="nothing-left"),
    pytest.param("v1p1/roster.readonly v1p2/roster.readonly", "", id="both-versions"),
    pytest.param("v1p1/roster.readonly v1p2/orgs-metadata.readonly", "", id="both-versions-one-not-registered"),
    pytest.param("openid profile", "", id="only-foreign"),
]


@pytest.mark.parametrize(("asked", "granted"), GRANTED)
def test_this_is_granted_of_what_is_asked(asked: str | None, granted: str) -> None:
    assert grant_scopes(asked, REGISTERED) == granted


def test_a_scope_that_the_client_lacks_is_named_with_those_that_it_has() -> None:
    text = describe_refused_scopes("v1p2/guardians.readonly", REGISTERED)
    assert text.startswith("the client may not have the scope `v1p2/guardians.readonly`")
    assert all(scope.short in text for scope in REGISTERED)


def test_the_first_registered_scope_chooses_the_version() -> None:
    granted = grant_scopes(None, REGISTERED[::-1])
    assert "v1p1" not in granted
    assert granted.split()[0].endswith("/v1p2/scope/roster-core.readonly")


NOTHING = ContentRights(
    Viewer.ONE_VENDOR, guardians=False, metadata=frozenset(), metadata_keys=None, withheld=frozenset()
)
RIGHTS_OF_SCOPES = [
    (ScopeName.GUARDIANS, replace(NOTHING, guardians=True)),
    (ScopeName.ORGS_METADATA, replace(NOTHING, metadata=frozenset({MetadataOf.ORGS}))),
    (ScopeName.STUDENTS_METADATA, replace(NOTHING, metadata=frozenset({MetadataOf.STUDENTS}))),
    (ScopeName.GUARDIANS_METADATA, replace(NOTHING, metadata=frozenset({MetadataOf.GUARDIANS}))),
    (ScopeName.DEMOGRAPHIC_METADATA, replace(NOTHING, metadata=frozenset({MetadataOf.DEMOGRAPHICS}))),
    (ScopeName.CORE, NOTHING),
    (ScopeName.FULL, NOTHING),
    (ScopeName.DEMOGRAPHICS, NOTHING),
]


@pytest.mark.parametrize(("name", "rights"), [pytest.param(*row, id=str(row[0])) for row in RIGHTS_OF_SCOPES])
def test_a_scope_lets_see_this_and_no_more(name: ScopeName, rights: ContentRights) -> None:
    assert make_content_rights(frozenset({name}), frozenset(), None) == rights


def test_scopes_add_up() -> None:
    every = replace(NOTHING, guardians=True, metadata=frozenset(MetadataOf))
    assert make_content_rights(frozenset(ScopeName), frozenset(), None) == every
    assert make_content_rights(frozenset(), frozenset(), None) == NOTHING

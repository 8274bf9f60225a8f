"""The form of errors and warnings in OneRoster 1.2, for each value of `ROSTER_V1P2_ERRORS`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from jsonschema import Draft202012Validator

from roster_service.errors import ErrorProfile

from .client import CORE, ROOTS, Answer
from .conftest import Served
from .document import inline

# The part of the official OpenAPI document of OneRoster 1.2 that describes errors.
OFFICIAL = Draft202012Validator(
    {
        "type": "object",
        "properties": {
            "imsx_codeMajor": {"type": "string", "enum": ["success", "processing", "failure", "unsupported"]},
            "imsx_severity": {"type": "string", "enum": ["status", "warning", "error"]},
            "imsx_description": {"type": "string"},
            "imsx_CodeMinor": {
                "type": "object",
                "properties": {
                    "imsx_codeMinorField": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "properties": {
                                "imsx_codeMinorFieldName": {"type": "string"},
                                "imsx_codeMinorFieldValue": {
                                    "type": "string",
                                    "enum": [
                                        "fullsuccess",
                                        "invalid_filter_field",
                                        "invalid_selection_field",
                                        "invaliddata",
                                        "unauthorisedrequest",
                                        "forbidden",
                                        "server_busy",
                                        "unknownobject",
                                        "internal_server_error",
                                    ],
                                },
                            },
                            "required": ["imsx_codeMinorFieldName", "imsx_codeMinorFieldValue"],
                            "additionalProperties": False,
                        },
                    }
                },
                "required": ["imsx_codeMinorField"],
                "additionalProperties": False,
            },
        },
        "required": ["imsx_codeMajor", "imsx_severity"],
        "additionalProperties": False,
    }
)
# Path, method, token, status.
REFUSED = [
    pytest.param("/users?filter=shoeSize='1'", "GET", True, 400, id="filter"),
    pytest.param("/users?fields=", "GET", True, 400, id="blank-selection"),
    pytest.param("/users?shoeSize=1", "GET", True, 400, id="parameter"),
    pytest.param("/users", "POST", True, 400, id="method"),
    pytest.param("/users", "GET", False, 401, id="token"),
    pytest.param("/demographics", "GET", True, 403, id="scope"),
    pytest.param("/users/nobody", "GET", True, 404, id="record"),
    pytest.param("/nothing", "GET", True, 404, id="path"),
]
KEYS = {
    ErrorProfile.SPECIFICATION: {"statusInfoSet"},
    ErrorProfile.OFFICIAL: {"imsx_codeMajor", "imsx_severity", "imsx_description", "imsx_CodeMinor"},
}
KEYS[ErrorProfile.BOTH] = KEYS[ErrorProfile.SPECIFICATION] | KEYS[ErrorProfile.OFFICIAL]


@pytest.fixture(scope="module", params=list(ErrorProfile))
def profile(request: pytest.FixtureRequest) -> ErrorProfile:
    """Each profile."""
    found: ErrorProfile = request.param
    return found


@pytest.fixture(scope="module")
def own(make_served: Callable[..., Served], served: Served, profile: ErrorProfile) -> Served:
    """An application with the profile."""
    return make_served(served.url, v1p2_errors=profile)


def ask(own: Served, path: str, method: str = "GET", *, version: str = "v1p2", token: bool = True) -> Answer:
    """The answer, which the document of another profile does not describe."""
    headers = {"Authorization": f"Bearer {own.client.token(version, (CORE,))}"} if token else {}
    return own.client.fetch(ROOTS[version] + path, method, headers)


@pytest.mark.parametrize(("path", "method", "token", "status"), REFUSED)
def test_an_error_has_the_members_of_the_profile(
    own: Served, profile: ErrorProfile, path: str, method: str, token: bool, status: int
) -> None:
    answer = ask(own, path, method, token=token)
    assert answer.status == status
    assert set(answer.json) == KEYS[profile]
    if profile is not ErrorProfile.SPECIFICATION:
        OFFICIAL.validate({name: value for name, value in answer.json.items() if name != "statusInfoSet"})
    if profile is ErrorProfile.BOTH:
        assert answer.json["imsx_description"] == answer.description


def test_1_1_has_the_form_of_the_specification_in_every_profile(own: Served) -> None:
    assert set(ask(own, "/users/nobody", version="v1p1").json) == {"statusInfoSet"}
    assert list(ask(own, "/users?sort=shoe", version="v1p1").json) == ["users", "statusInfoSet"]


@pytest.mark.parametrize(
    "path", ["/users?sort=shoe%C3%A9&fields=,sourcedId", "/users/spr-student-1?fields=sourcedId,x"]
)
def test_a_warning_is_in_the_body_or_in_a_header(own: Served, profile: ErrorProfile, path: str) -> None:
    answer = ask(own, path)
    assert answer.status == 200
    assert ("statusInfoSet" in answer.json) is (profile is not ErrorProfile.OFFICIAL)
    assert ("X-Roster-Warning" in answer.headers) is (profile is not ErrorProfile.SPECIFICATION)
    if profile is not ErrorProfile.SPECIFICATION:
        warning = json.loads(answer.headers["X-Roster-Warning"])
        assert warning["imsx_codeMinor"] == ("invalid_sort_field" if "sort" in path else "invalid_selection_field")
        assert "ignored" in warning["imsx_description"]
    assert "X-Roster-Warning" not in ask(own, path.partition("?")[0]).headers


def test_the_document_describes_the_profile(own: Served, profile: ErrorProfile) -> None:
    document = inline(own.client.fetch(f"{ROOTS['v1p2']}/openapi.json").json)
    responses = document["paths"][f"{ROOTS['v1p2']}/users"]["get"]["responses"]
    for status, path in (("400", "/users?filter=x"), ("200", "/users?sort=shoe")):
        schema = responses[status]["content"]["application/json"]["schema"]
        Draft202012Validator({**document, **schema}).validate(ask(own, path).json)
    refused = responses["400"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert set(document["components"]["schemas"][refused]["required"]) == KEYS[profile]
    assert ("X-Roster-Warning" in responses["200"]["headers"]) is (profile is not ErrorProfile.SPECIFICATION)

"""Tools of others read the served OpenAPI documents: a linter, and two generators whose clients call the service.

The variable OPENAPI_TOOLS is the virtual environment that `make check-long` makes for the generators.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.alone_check import find_free_port
from tests.cli.test_serve import environment_of, serving
from tests.contract.client import ROOTS

pytestmark = pytest.mark.long_with()
TOOLS = os.environ.get("OPENAPI_TOOLS")
needs_generators = pytest.mark.skipif(TOOLS is None, reason="OPENAPI_TOOLS names no virtual environment")
LINTER = "@redocly/cli@2.77.0"
PUBLIC_URL = "https://roster.district.test"
VERSION = "v1p2"

# Each program gets a token, and prints, on a line, the number of records of a call: a page, a filter, a record, and two
# nested paths.
PLAIN_CLIENT = """
import sys
from made import AuthenticatedClient, Client
from made.api.authorization import get_access_token
from made.api.classes_management import get_students_for_class
from made.api.enrollments_management import get_all_enrollments
from made.api.orgs_management import get_all_orgs
from made.api.schools_management import get_classes_for_school
from made.api.users_management import get_user
from made.models import GetAccessTokenBody, GetAccessTokenBodyGrantType

wanted = GetAccessTokenBody(GetAccessTokenBodyGrantType.CLIENT_CREDENTIALS, "v1p2/roster.readonly", *sys.argv[2:])
token = get_access_token.sync(client=Client(base_url=sys.argv[1]), body=wanted).access_token
client = AuthenticatedClient(base_url=sys.argv[1], token=token)
orgs = get_all_orgs.sync(client=client, limit=3).orgs
enrollments = get_all_enrollments.sync(client=client, limit=1, filter_="role='student'").enrollments
user = get_user.sync(enrollments[0].user.sourced_id, client=client).user
students = get_students_for_class.sync(enrollments[0].class_.sourced_id, client=client).users
classes = get_classes_for_school.sync(enrollments[0].school.sourced_id, client=client, limit=2).classes
print(len(orgs), len(enrollments), user.given_name, user in students, len(classes))
"""
TYPED_CLIENT = """
import sys
import openapi_client as made

authorization = made.AuthorizationApi(made.ApiClient(made.Configuration(host=sys.argv[1])))
token = authorization.get_access_token("client_credentials", "v1p2/roster.readonly", *sys.argv[2:]).access_token
client = made.ApiClient(made.Configuration(host=sys.argv[1], access_token=token))
orgs = made.OrgsManagementApi(client).get_all_orgs(limit=3).orgs
enrollments = made.EnrollmentsManagementApi(client).get_all_enrollments(limit=1, filter="role='student'").enrollments
enrollment = enrollments[0].actual_instance
user = made.UsersManagementApi(client).get_user(enrollment.user.sourced_id).user.actual_instance
students = made.ClassesManagementApi(client).get_students_for_class(enrollment.var_class.sourced_id).users
schools = made.SchoolsManagementApi(client)
classes = schools.get_classes_for_school(enrollment.school.sourced_id, limit=2).classes
print(len(orgs), len(enrollments), user.given_name, user in [one.actual_instance for one in students], len(classes))
"""


@dataclass(frozen=True)
class Demo:
    """A running demo: its address, the id and the secret of its client, and the folder with its documents."""

    url: str
    credentials: tuple[str, str]
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo, behind a public URL."""
    folder = tmp_path_factory.mktemp("documents")
    port = find_free_port()
    home = str(tmp_path_factory.mktemp("home"))
    environment = environment_of(home=home, port=str(port), workers="1", public_url=PUBLIC_URL)
    with serving(environment, "--json") as (_, printed):
        account = json.loads(printed.splitlines()[-1])["demo"]
        url = f"http://127.0.0.1:{port}"
        for name, root in {**ROOTS, "v1": "/v1"}.items():
            with urlopen(f"{url}{root}/openapi.json") as answer:
                (folder / f"{name}.json").write_bytes(answer.read())
        yield Demo(url, (account["client_id"], account["client_secret"]), folder)


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its success is required."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long_with("npx")
@pytest.mark.parametrize("name", [*ROOTS, "v1"])
def test_the_linter_finds_nothing(demo: Demo, name: str) -> None:
    found = run("npx", "--yes", LINTER, "lint", f"{name}.json", "--format", "json", cwd=demo.folder)
    assert json.loads(found)["problems"] == []


GENERATED = {
    "openapi-python-client": (
        ("generate", "--path", "{document}", "--output-path", "made", "--meta", "none"),
        PLAIN_CLIENT,
    ),
    "openapi-generator-cli": (("generate", "-i", "{document}", "-g", "python", "-o", "."), TYPED_CLIENT),
}


@needs_generators
@pytest.mark.parametrize("generator", GENERATED)
def test_a_generated_client_gets_a_token_and_makes_five_calls(demo: Demo, generator: str, tmp_path: Path) -> None:
    arguments, program = GENERATED[generator]
    folder = Path(str(TOOLS)).resolve() / "bin"
    document = str(demo.folder / f"{VERSION}.json")
    run(folder / generator, *(text.format(document=document) for text in arguments), cwd=tmp_path)
    printed = run(folder / "python", "-c", program, demo.url, *demo.credentials, cwd=tmp_path)
    orgs, enrollments, name, found, classes = printed.split()
    assert (orgs, enrollments, found, classes) == ("3", "1", "True", "2")
    assert name

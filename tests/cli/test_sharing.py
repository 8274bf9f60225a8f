"""`roster vendor grant` with rules: what it says before and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from roster_service.accounts import vendors
from roster_service.cli import main
from roster_service.db.tables import changes, vendor_grants
from tests.actors import TESTER
from tests.cli.conftest import Roster, make_environment
from tests.postgres.loaded import load_districts

Answer = Callable[..., Any]
EMAIL = "ruled@vendor.example"
GRANT = ("vendor", "grant", EMAIL, "--district", "spr-district")
SPRINGFIELD, SHELBYVILLE = "Springfield Unified School District", "Shelbyville School District"
RULES = ("--students", "grades~'03'", "--classes", "subjects~'Mathematics'", "--staff", "classes")


@pytest.fixture(autouse=True)
def vendor(engine: sa.Engine) -> None:
    load_districts(engine)
    with engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, EMAIL, "ruled")


def read_rows(engine: sa.Engine) -> tuple[int, ...]:
    """The numbers of grants and of rows of the change log."""
    with engine.connect() as connection:
        counts = (sa.select(sa.func.count()).select_from(table) for table in (vendor_grants, changes))
        return tuple(connection.scalar(count) or 0 for count in counts)


def test_a_dry_run_says_what_a_grant_opens_and_changes_nothing(answer: Answer, engine: sa.Engine) -> None:
    before = read_rows(engine)
    shown = answer(*GRANT, *RULES, "--dry-run")
    counts = {it["kind"]: (it["now"], it["then"], it["come"], it["go"]) for it in shown["preview"]["counts"]}
    assert (counts["students"], counts["classes"]) == ((0, 3, 3, 0), (0, 1, 1, 0))
    assert len(shown["preview"]["coming"]) == 3
    students = {
        school["sourcedId"]: [it["then"] for it in school["counts"] if it["kind"] == "students"]
        for school in shown["preview"]["schools"]
    }
    assert students["spr-elementary"] == [3]
    assert shown["grants"][0]["rules"]["students"] == "grades~'03'"
    assert read_rows(engine) == before
    answer(*GRANT, *RULES)
    assert read_rows(engine) == (before[0] + 1, before[1] + 1)
    again = answer(*GRANT, "--school", "spr-elementary", "--dry-run")["preview"]["counts"]
    assert {"kind": "classes", "now": 1, "then": 2, "come": 1, "go": 0} in again


def test_a_grant_replaces_rules_once_the_difference_is_confirmed(
    roster: Roster, answer: Answer, engine: sa.Engine, database_url: str, tmp_path: Path
) -> None:
    """A wrong answer, and rules that are refused, leave those of now."""
    answer(*GRANT, *RULES)
    other = (*GRANT, "--students", "grades~'03'", "--staff", "none")

    def read() -> tuple[list[Any], tuple[int, ...]]:
        return answer("vendor", "show", EMAIL)["grants"], read_rows(engine)

    def type_in(text: str, *arguments: str) -> Result:
        return CliRunner().invoke(
            main, arguments, env=make_environment(database_url=database_url, home=str(tmp_path)), input=text
        )

    before = read()
    for refused in (
        type_in("no\n", *other),
        type_in("", *other),
        roster(*GRANT, "--students", "noSuchField='x'", "--staff", "none", "--yes"),
        type_in(f"{EMAIL}\n", *GRANT, "--students", "grades~'99'", "--staff", "none"),
    ):
        assert refused.exit_code == 1
        assert read() == before
    done = type_in(f"{EMAIL}\n", *other)
    assert done.exit_code == 0, done.output
    asked = done.stderr
    assert "This replaces Springfield" in asked
    assert "only grade 3, mathematics" in asked
    classes = next(line.split() for line in asked.splitlines() if line.split()[:2] == ["all", "classes"])
    assert classes[:4] == ["all", "classes", "1", "5"]
    [grant] = read()[0]
    assert (grant["rules"]["classes"], grant["rules"]["staff"]) == (None, "none")
    assert answer(*GRANT, "--yes")["grants"][0]["rules"] is None
    assert answer(*GRANT)["grants"][0]["rules"] is None, "the same grant asks nothing"


def test_rules_are_shown_in_words_with_the_counts(roster: Roster) -> None:
    done = roster(*GRANT, *RULES, "--no-guardians")
    assert done.exit_code == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["of", "kind", "now", "then", "comes", "goes"]
    assert lines[0].split() == ["all", "students", "0", "3", "3", "0"]
    assert any(line.startswith("sees, such as: ") for line in lines)
    words = "only grade 3, mathematics; the teachers of these classes; no guardians"
    assert lines[-1].endswith(words)
    assert words in roster("vendor", "show", EMAIL).stdout
    assert "district, only grade 3, mathematics" in roster("access", "--vendor", EMAIL).stdout


def test_a_dry_run_counts_what_the_vendor_can_get(roster: Roster, answer: Answer) -> None:
    """With the flags of the same command, and by the clients that it has."""
    wrong = (*GRANT, "--students", "grades~'3'", "--staff", "all", "--dry-run")
    lines = roster(*wrong).stdout.splitlines()
    assert "no student of the roster has the grade 3: the grades of the roster are 03, 09, 10, 11, 12" in lines
    none = "guardians do not count: no client, delivery or key of the vendor may read them"
    assert none in lines
    assert answer(*GRANT, "--dry-run")["preview"]["notes"] == [none]
    shown = answer(*GRANT, "--flag", "contacts", "--dry-run")["preview"]
    assert (shown["notes"], shown["counts"][3]["kind"]) == ([], "guardians")
    answer("client", "add", "--vendor", EMAIL, "--name", "app", "--preset", "guardians")
    assert answer(*GRANT, "--dry-run")["preview"]["notes"] == []


def test_rules_that_open_nothing_need_a_yes(roster: Roster, engine: sa.Engine) -> None:
    nothing = ("--students", "grades~'99'", "--staff", "none")
    before = read_rows(engine)
    assert "with --yes" in roster(*GRANT, *nothing).stderr
    assert roster(*GRANT, *nothing, "--dry-run").exit_code == 0
    assert read_rows(engine) == before
    assert roster(*GRANT, *nothing, "--yes").exit_code == 0


def test_the_schools_of_a_rule_without_guardians_have_none_of_them(answer: Answer) -> None:
    answer("client", "add", "--vendor", EMAIL, "--name", "app", "--preset", "guardians")
    answer(*GRANT, "--staff", "all", "--no-guardians")
    answer("vendor", "grant", EMAIL, "--district", "shv-district")
    rows = answer("access", "--vendor", EMAIL)
    assert {row["district"]: "guardians" in row["parts"] for row in rows} == {SPRINGFIELD: False, SHELBYVILLE: True}
    assert {row["district"] for row in answer("access", "--vendor", EMAIL, "--part", "guardians")} == {SHELBYVILLE}


def test_a_school_beside_its_whole_district_is_said_to_narrow_nothing(roster: Roster) -> None:
    said = "spr-district is granted as a whole, so the grant of spr-elementary opens nothing more, and narrows nothing"
    assert said not in roster(*GRANT, "--school", "spr-elementary").stdout
    assert said in roster(*GRANT, "--dry-run").stdout.splitlines()
    assert said in roster(*GRANT).stdout.splitlines()
    assert said in roster(*GRANT, "--school", "spr-elementary").stdout.splitlines()


@pytest.mark.parametrize(
    ("gone", "place", "said"),
    [
        (
            "UPDATE orgs SET parent_id = NULL, district_id = NULL WHERE type = 'school'",
            (),
            "no active school lies below spr-district; Quality lists the schools that lie below no district",
        ),
        (
            "DELETE FROM user_roles WHERE org_id = 'spr-elementary'",
            ("--school", "spr-elementary"),
            "nobody has a role at spr-elementary",
        ),
    ],
)
def test_a_grant_that_opens_no_school_or_nobody_says_so(
    roster: Roster, engine: sa.Engine, gone: str, place: tuple[str, ...], said: str
) -> None:
    assert said not in roster(*GRANT, *place, "--dry-run").stdout
    with engine.begin() as connection:
        connection.execute(sa.text(gone))
    assert said in roster(*GRANT, *place, "--dry-run").stdout.splitlines()
    assert said in roster(*GRANT, *place).stdout.splitlines()

"""The README cannot rot: its tour and its commands are run, and its tables are those of the code."""

import doctest
import importlib
import io
import re
import shlex
from pathlib import Path
from types import FunctionType
from typing import Any

import oneroster_filter
import pytest
from oneroster_filter import OPERATORS, Operator
from oneroster_filter.command import main
from oneroster_filter.refusals import REFUSALS
from oneroster_filter.syntax_refusals import SYNTAX_REFUSALS

from tests.offenders import in_one_test

from . import LIBRARY

README = (LIBRARY / "README.md").read_text()
PAGES = {"README.md": README, "adaptors.md": (LIBRARY / "docs" / "adaptors.md").read_text()}


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run_as_they_are_printed(page: str) -> None:
    tour = "\n".join(blocks("pycon", PAGES[page]))
    examples = doctest.DocTestParser().get_doctest(tour, {}, page, page, 0)
    runner = doctest.DocTestRunner()
    report = io.StringIO()

    failed, run = runner.run(examples, out=report.write)

    assert (failed, report.getvalue()) == (0, "")
    assert run > 20


def test_the_first_example_answers_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(blocks("python")[0], names)
    with names["engine"].begin() as connection:
        names["users"].create(connection)
        connection.execute(names["users"].insert(), {"id": "1", "family_name": "O'Brien", "status": "active"})
    client = names["app"].test_client()

    def ask(text: str) -> Any:
        return client.get("/users", query_string={"filter": text}).get_json()

    assert ask("familyName~'BRIEN' AND status='active'") == client.get("/users").get_json()
    assert ask("status='tobedeleted'") == {"users": []}
    assert ask("statsu='active'")["suggestion"] == "status"
    names["engine"].dispose()


def test_the_commands_answer_as_they_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = next(block for block in blocks("console") if block.startswith("$ cat"))
    answered = 0
    for entry in session.removeprefix("$ ").split("\n$ "):
        line, _, expected = entry.rstrip("\n").partition("\n")
        command = shlex.split(line)
        if command[0] == "cat":
            Path(command[1]).write_text(f"{expected}\n")
        else:
            output = io.StringIO()
            assert command[0] == "oneroster-filter"
            assert main(command[1:], output, output) == 0
            assert output.getvalue() == f"{expected}\n"
            answered += 1

    assert answered == 4


def test_the_table_of_operators_has_a_mark_where_the_code_has_a_row() -> None:
    rows = dict(re.findall(r"^\| `([A-Z]+)` \| (.*) \|$", README, re.MULTILINE))
    columns = (
        (Operator.EQUAL,),
        (Operator.NOT_EQUAL,),
        (Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL),
        (Operator.CONTAINS,),
    )
    [head] = re.findall(r"^\| kind \| values \| (.*) \|$", README, re.MULTILINE)

    assert [cell.split() for cell in head.split(" | ")] == [[f"`{one.value}`" for one in ones] for ones in columns]
    assert {one for ones in columns for one in ones} == set(Operator)

    assert set(rows) == {kind.name for kind in OPERATORS}
    for kind, taken in OPERATORS.items():
        _, *cells = (cell.strip() for cell in rows[kind.name].split("|"))
        assert [bool(cell) for cell in cells] == [set(operators) <= set(taken) for operators in columns], kind


def test_the_grammar_has_every_operator() -> None:
    [rule] = re.findall(r"^operator = (.*) ;$", README, re.MULTILINE)

    assert set(rule.split(" | ")) == {f'"{operator.value}"' for operator in Operator}


def test_the_table_of_errors_has_every_code_of_every_class() -> None:
    listed = {
        name: set(re.findall(r"`([a-z-]+)`", codes))
        for name, codes in re.findall(r"^\| `(\w+Error)` \| (.*) \|$", README, re.MULTILINE)
    }
    known: dict[str, set[str]] = {}
    for rows in (REFUSALS.values(), *SYNTAX_REFUSALS.values()):
        for row in rows:
            known.setdefault(row.error.__name__, set()).add(row.code)

    assert listed == known


PUBLIC = {
    module: importlib.import_module(f"oneroster_filter{module}")
    for module in ("", ".sqlalchemy", ".django", ".pandas", ".polars", ".dialect", ".typing")
}
NAMES = [(module, name) for module, loaded in PUBLIC.items() for name in getattr(loaded, "__all__", ())]


@pytest.mark.parametrize(
    "name", ["apply_filter", "parse", "check", "to_text", "to_query", "predicate", "F", "field_types"]
)
def test_the_tour_shows_every_function_of_every_day(name: str) -> None:
    assert f"{name}(" in "".join(blocks("pycon") + blocks("python"))


@in_one_test
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_everything_public_is_there_is_documented_and_says_what_it_is_for(module: str, name: str) -> None:
    thing = getattr(PUBLIC[module], name)

    assert re.search(rf"\b{name}\b", "".join(PAGES.values()))
    if isinstance(thing, (type, FunctionType)):
        assert thing.__doc__


def test_the_library_itself_has_about_thirty_names() -> None:
    assert len(oneroster_filter.__all__) <= 34

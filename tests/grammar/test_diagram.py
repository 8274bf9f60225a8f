"""The pages of the grammar and of examples are made of the grammar and by the library."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from .diagram import LIBRARY, PICTURE, list_files, make_page, read_rules


@pytest.mark.parametrize(("path", "text"), list(list_files()), ids=lambda it: it.name if isinstance(it, Path) else "")
def test_the_files_are_those_of_the_grammar(path: Path, text: str) -> None:
    assert path.read_text() == text, f"run `python -m tests.grammar.diagram` after a change of {LIBRARY.name}"


def test_the_page_has_every_rule_and_terminal() -> None:
    page = make_page(read_rules())

    for line in (
        "any_of   = all_of, { or, all_of } ;",
        "clause   = field, operator, value ;",
        'operator = "!=" | ">=" | "<=" | "=" | ">" | "<" | "~" ;',
        """value    = "'", { ? any character but ' ? }, { "''", { ? any character but ' ? } }, "'" ;""",
    ):
        assert line in page.splitlines()


def test_the_diagram_names_every_rule() -> None:
    labels = [element.text for element in ET.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")]

    assert {name.lower().strip("_") for name in read_rules()} <= set(labels)

"""The page of the grammar: EBNF and a railroad diagram, both made of `filter.lark`.

`python -m tests.grammar.diagram` writes them, and the page of examples, to `grammar/docs`; a test compares them.
"""

import re._parser as regex  # the standard library has no other parser of patterns
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import railroad
from lark import Token, Tree
from lark.load_grammar import load_grammar

from . import LIBRARY, example_page

SOURCE = LIBRARY / "oneroster_filter" / "filter.lark"
PAGE = LIBRARY / "docs" / "grammar.md"
PICTURE = LIBRARY / "docs" / "grammar.svg"
EXAMPLE_PAGE = LIBRARY / "docs" / "examples.md"
WIDTH, LABEL_HEIGHT = 760, 26


@dataclass(frozen=True)
class Part:
    """A part of a rule.

    Args:
        kind: `text`, `name`, `characters`, `sequence`, `choice` or `repeat`.
        text: The text itself, the name of another rule, or the description of a set of characters.
        parts: The parts of a sequence, a choice or a repetition.
        least: How often the part of a repetition occurs at least: 0 or 1.
    """

    kind: str
    text: str = ""
    parts: tuple["Part", ...] = ()
    least: int = 0


def join(kind: str, parts: Sequence[Part]) -> Part:
    """A sequence or a choice; its only part, if there is one."""
    return parts[0] if len(parts) == 1 else Part(kind, parts=tuple(parts))


def read_rules() -> dict[str, Part]:
    """The rules and terminals of the grammar, by name, but for the ignored spaces."""
    grammar, _ = load_grammar(SOURCE.read_text(), SOURCE.name, [], False)
    rules = {str(name): read_tree(tree) for name, _, tree, _ in grammar.rule_defs}
    terminals = {str(name): read_tree(tree) for name, (tree, _) in grammar.term_defs if name not in grammar.ignore}
    return rules | terminals


def read_tree(tree: Any) -> Part:
    """A part of Lark's own tree of a rule."""
    if not isinstance(tree, Tree):
        return Part("name", tree.name)
    if tree.data == "literal":
        return read_pattern(regex.parse(str(tree.children[0]).strip("/")))
    if tree.data == "expr":
        inner, operator = tree.children
        assert operator == Token("OP", "*"), operator
        return Part("repeat", parts=(read_tree(inner),))
    kind = "choice" if tree.data == "expansions" else "sequence"
    return join(kind, [read_tree(child) for child in tree.children])


def read_pattern(pattern: Any) -> Part:
    """A parsed regular expression."""
    parts: list[Part] = []
    for operation, argument in pattern:
        part = read_operation(str(operation), argument)
        if part.kind == "text" and parts and parts[-1].kind == "text":
            parts[-1] = Part("text", parts[-1].text + part.text)
        else:
            parts.append(part)
    return join("sequence", [part for part in parts if part.kind != "text" or part.text])


def read_operation(operation: str, argument: Any) -> Part:
    """One operation of a regular expression. What is beside the text, such as the space before AND, is left out."""
    match operation:
        case "ASSERT":
            return Part("text")
        case "LITERAL":
            return Part("text", chr(argument))
        case "NOT_LITERAL":
            return Part("characters", f"any character but {chr(argument)}")
        case "IN":
            return read_set(argument)
        case "BRANCH":
            branches = [read_pattern(branch) for branch in argument[1]]
            return Part("choice", parts=tuple(inner for one in branches for inner in (one.parts or (one,))))
        case "MAX_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, inner = argument
            return Part("repeat", parts=(read_pattern(inner),), least=least)
    raise ValueError(operation)


def read_set(members: Any) -> Part:
    """A set of characters: a choice of texts if it has only single characters."""
    if all(str(operation) == "LITERAL" for operation, _ in members):
        return Part("choice", parts=tuple(Part("text", chr(code)) for _, code in members))
    spelled = [
        f"{chr(argument[0])} to {chr(argument[1])}" if str(operation) == "RANGE" else chr(argument)
        for operation, argument in members
    ]
    return Part("characters", ", ".join(spelled))


def write_ebnf(part: Part) -> str:
    """A part in EBNF (ISO 14977)."""
    match part.kind:
        case "text":
            return f'"{part.text}"'
        case "name":
            return part.text.lower().strip("_")
        case "characters":
            return f"? {part.text} ?"
        case "sequence":
            return ", ".join(
                f"( {write_ebnf(one)} )" if one.kind == "choice" else write_ebnf(one) for one in part.parts
            )
        case "choice":
            return " | ".join(map(write_ebnf, part.parts))
    [inner] = map(write_ebnf, part.parts)
    return f"{inner}, {{ {inner} }}" if part.least else f"{{ {inner} }}"


def draw(part: Part) -> railroad.DiagramItem:
    """A part as an item of a diagram."""
    match part.kind:
        case "text":
            return railroad.Terminal(part.text)
        case "name":
            return railroad.NonTerminal(part.text.lower().strip("_"))
        case "characters":
            return railroad.NonTerminal(part.text)
        case "sequence":
            return railroad.Sequence(*map(draw, part.parts))
        case "choice":
            return railroad.Choice(0, *map(draw, part.parts))
    [inner] = map(draw, part.parts)
    return railroad.OneOrMore(inner) if part.least else railroad.ZeroOrMore(inner)


def make_page(rules: dict[str, Part]) -> str:
    """The page."""
    names = {name: name.lower().strip("_") for name in rules}
    width = max(map(len, names.values()))
    lines = [f"{names[name]:{width}} = {write_ebnf(part)} ;" for name, part in rules.items()]
    return "\n".join(
        [
            "# The grammar of OneRoster filters",
            "",
            f"This page is made of `{SOURCE.name}`, the grammar by which the library parses. A filter is an `any_of`.",
            "Spaces may be between any two parts of a clause; `AND` and `OR` need a space on both sides. The grammar",
            "itself has no limit of clauses: `parse` counts them.",
            "",
            "```ebnf",
            *lines,
            "```",
            "",
            f"![Railroad diagram of the grammar]({PICTURE.name})",
            "",
        ]
    )


def make_picture(rules: dict[str, Part]) -> str:
    """The railroad diagram: an SVG with a diagram for each rule, below its name."""
    pieces: list[str] = []
    top = 0.0
    for name, part in rules.items():
        diagram = railroad.Diagram(draw(part), type="complex")
        diagram.format()
        svg: list[str] = []
        diagram.writeSvg(svg.append)
        height = float(diagram.attrs["height"])
        pieces.append(f'<text style="text-anchor: start" x="10" y="{top + 18:g}">{name.lower().strip("_")}</text>')
        pieces.append(f'<svg y="{top + LABEL_HEIGHT:g}"{"".join(svg).strip().removeprefix("<svg")}')
        top += LABEL_HEIGHT + height
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="railroad-diagram" viewBox="0 0 {WIDTH} {top:g}">',
            f"<style>{railroad.DEFAULT_STYLE}</style>",
            *pieces,
            "</svg>",
            "",
        ]
    )


def list_files() -> Iterator[tuple[Path, str]]:
    """The files and their contents."""
    rules = read_rules()
    yield PAGE, make_page(rules)
    yield PICTURE, make_picture(rules)
    yield EXAMPLE_PAGE, example_page.make_page()


def main() -> None:
    """Write the files."""
    for path, text in list_files():
        path.write_text(text)


if __name__ == "__main__":
    main()

"""The words of the code: `python -m tests.style.words` refuses retired words in the names that the tree defines.

`docs/glossary.md` has the words to use. A name is split at underscores and capitals; each part is one word.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("roster_service", "sync_scripts", "tools", "grammar", "tests")
# The retired word, and what to say instead.
RETIRED: Mapping[str, str] = {
    "asker": "vendor",
    "brake": "throttle",
    "bury": "mark deleted",
    "door": "interface",
    "draft": "params, or a temporary file",
    "grave": "purge order",
    "ground": "retention",
    "incoming": "desired state",
    "journal": "access log",
    "lease": "TTL",
    "messenger": "round trips",
    "night": "run, or nightly sync",
    "opening": "visible orgs",
    "outcast": "quarantine",
    "outline": "query shape",
    "permit": "permission token",
    "proving": "check",
    "quirk": "tolerated deviation",
    "recall": "fast read",
    "settle": "normalize",
    "sift": "changed rows",
    "sight": "content rights",
    "standing": "retained",
    "surroundings": "services",
    "tell": "notify, describe",
    "told": "notice, description",
    "unlisted": "no manifest",
    "walk": "ordering",
    "wish": "params",
}
# Classes whose name several things claimed: the file whose they are, and what others say.
ONE_MEANING: Mapping[str, tuple[str, str]] = {
    "Access": ("roster_service/explore/access.py", "Scopes"),
    "Address": ("roster_service/schemas/kinds.py", "RequestAddress"),
    "Caller": ("roster_service/server/http_channel.py", "VendorCaller"),
    "Cell": ("sync_scripts/formats/model.py", "GridCell, CellText"),
    "Change": ("roster_service/change_log/changes.py", "ChangedRecord"),
    "Check": ("sync_scripts/checking/", "QualityCheck"),
    "Client": ("roster_service/accounts/clients.py", "TokenClient"),
    "Disclosures": ("roster_service/console/views/disclosures.py", "DisclosureRecorder"),
    "ExcludedPeople": ("roster_service/feeds/exclusions.py", "ExclusionsPage"),
    "Feed": ("roster_service/feeds/feeds.py", "NightlyFeed"),
    "Findings": ("sync_scripts/reading/rejections.py", "FindingsPage"),
    "Invitation": ("roster_service/console/views/operators.py", "PasswordLink"),
    "Kind": ("grammar/oneroster_filter/field_types.py", "CellKind, AnnouncementKind, KeptRows"),
    "Limit": ("roster_service/auth/throttling/limits.py", "FeedLimit"),
    "Limits": ("roster_service/serving/params.py", "HoldLimits"),
    "Login": ("roster_service/console/login.py", "VendorLogin"),
    "Operator": ("grammar/oneroster_filter/nodes.py", "OperatorAccount"),
    "Package": ("roster_service/deliveries/package.py", "ExportPackage"),
    "Part": ("sync_scripts/formats/model.py", "ShownPart"),
    "Preset": ("roster_service/schemas/file_presets.py", "ScopePreset"),
    "Reference": ("roster_service/roster/references.py", "RecordReference, CellReference"),
    "Role": ("roster_service/schemas/v1p2.py", "DatabaseRole"),
    "Rows": ("sync_scripts/reading/lines.py", "ChildRows"),
    "SchoolRow": ("roster_service/explore/school_access.py", "HeldSchool"),
    "Stage": ("sync_scripts/staging/", "ConnectionState"),
    "Subject": ("roster_service/change_log/changes.py", "ChangeSubject"),
    "TextList": ("grammar/oneroster_filter/", "TextArray"),
    "VendorList": ("roster_service/console/views/vendors.py", "LookPage"),
}
# Names that say a retired word in its plain sense: a consumer walks through pages.
CONSUMER_NAMES = frozenset({"walk", "measure_walk", "WALK_TARGET", "walk_raw"})
# Modules are nouns; these are called by the steps of a run, by what the service is, or by a term of Unicode or Python.
ROOMS = frozenset(
    {"serving", "applying", "checking", "reading", "staging", "throttling", "rostering", "folding", "typing"}
)


@dataclass(frozen=True)
class Name:
    """A name that a file defines; `line` counts from 1, and is 0 for the name of the module itself."""

    path: Path
    line: int
    text: str
    is_class: bool = False


def split_words(name: str) -> list[str]:
    """The words of an identifier, in lower case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def find_retired(name: str) -> str | None:
    """The retired word in a name, None if there is none."""
    if name in CONSUMER_NAMES:
        return None
    words = set(split_words(name))
    return next((word for word in RETIRED if not words.isdisjoint(_inflect(word))), None)


def _inflect(word: str) -> tuple[str, ...]:
    stem = word.removesuffix("e")
    return (word, f"{word}s", f"{word}d", f"{stem}ed", f"{stem}ing")


def list_names(path: Path, source: str) -> Iterator[Name]:
    """The name of a module, and every name that it defines: classes, functions, parameters, variables, attributes."""
    yield Name(path, 0, path.parent.name if path.name == "__init__.py" else path.stem)
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield Name(path, node.lineno, node.name, isinstance(node, ast.ClassDef))
            case ast.arg() if node.arg != "it":
                # In `lambda it: it.name` the place of the lambda says what it is.
                yield Name(path, node.lineno, node.arg)
            case ast.Name(ctx=ast.Store()):
                # A name like that of a class is an alias of a type.
                yield Name(path, node.lineno, node.id, re.fullmatch(r"([A-Z][a-z]+)+", node.id) is not None)
            case ast.Attribute(ctx=ast.Store()):
                yield Name(path, node.lineno, node.attr)


def list_troubles(path: Path, source: str) -> Iterator[str]:
    """A sentence for each retired word, for a class with the name of another, for a loop through `it`, and for a module
    whose name is a bare gerund."""
    for name in list_names(path, source):
        word = find_retired(name.text)
        if word is not None:
            yield f"{path}:{name.line}: {name.text}: `{word}` is retired; say: {RETIRED[word]}"
        place, others = ONE_MEANING.get(name.text, ("", ""))
        if name.is_class and not path.as_posix().startswith((place, "tests/")):
            yield f"{path}:{name.line}: {name.text} is another thing ({place}); say: {others}"
        if name.text == "it" and path.parts[0] != "tests":
            yield f"{path}:{name.line}: `it` is no name for what a loop goes through; say what it is"
        if (
            name.line == 0
            and name.text.endswith("ing")
            and not name.text.startswith("test_")
            and name.text not in ROOMS
        ):
            yield f"{path}: the module is called by a bare gerund; name it by what it holds"


def main() -> int:
    """Prints the troubles of the tree. Returns 1 if there are any."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    found = [trouble for path in paths for trouble in list_troubles(path.relative_to(ROOT), path.read_text())]
    sys.stdout.writelines(f"{trouble}\n" for trouble in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

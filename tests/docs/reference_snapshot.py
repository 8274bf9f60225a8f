"""`python -m tests.docs.reference_snapshot`: writes `docs/reference.md` from settings, commands and deviations."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator, Mapping

import click

from roster_service.cli import main as roster
from roster_service.settings import PREFIX, Settings
from sync_scripts.formats.model import Format
from sync_scripts.formats.sds_v1 import SDS_V1
from sync_scripts.formats.tolerated import DEVIATIONS
from sync_scripts.reading.registry import FAMILIES
from tests.docs.pages import ROOT
from tests.sync.formats.shown_deviations import list_places

PAGE = ROOT / "docs" / "reference.md"
LOADERS = [f"load_{family}" for family in FAMILIES]
SCRIPTS = (*LOADERS, "nightly", "purge")
# Every command has them.
COMMON = ("as_json", "help", None)
# click's words for kinds of values, and those of the page.
VALUES = {"INTEGER RANGE": "N", "FLOAT RANGE": "N", "INTEGER": "N", "%Y-%m-%d": "DAY", "READ_DURATION": "DURATION"}
HEAD = """# Settings, commands and tolerated deviations

Generated from the code by `python -m tests.docs.reference_snapshot`.

## Settings

Environment variables, or lines of the file `roster.env` in the data folder, which the service, the console, the
commands and the sync read at their start; `make run` makes it, with mode 0600. The environment wins.
An unknown `ROSTER_` name is refused. The name with `_FILE` gives a setting from a file
(`ROSTER_SECRET_KEY_FILE=/run/secrets/roster_key`); a setting with both is refused. `roster settings` shows what
counts, and from where. Here, each has its default, if there is one:

"""
COMMANDS = """
## Commands

Every `roster` command but `console` and `sync run` takes `--json`; each says more with `--help`, and exits with 0
(done), 1 (refused, with the reason) or 2 (wrong usage, or nobody has the id), `sync run` as the nightly sync. Those
that leave a row of the change log take `--reason TEXT`. `--district` and `--school` take a sourcedId, an identifier,
or a name that no other has. The loaders and the nightly sync have
[exit codes of their own](sync.md#exit-codes). Commands work on the data folder `var` of the current folder, unless
`ROSTER_HOME` or `ROSTER_DATABASE_URL` says otherwise. Only `roster run` and `roster db upgrade` make a database.

"""
TOLERATED = """
## Tolerated deviations

What the sync reads although the format of the export says otherwise. Exports of a marked format can have it; at ○, a
[strict feed](sync.md#tolerated-deviations) accepts it too.

"""
# The columns of the formats whose exports can have a deviation.
FORMS: Mapping[str, tuple[Format, ...]] = {
    "OneRoster": FAMILIES["oneroster"].forms,
    "Clever": FAMILIES["clever"].forms,
    "SDS v1": (SDS_V1,),
    "SDS v2": tuple(form for form in FAMILIES["sds"].forms if form is not SDS_V1),
}


def make_reference() -> str:
    """The text of the page."""
    settings = [f"- `{show_setting(row)}`: {row.metadata['help']}\n" for row in dataclasses.fields(Settings)]
    commands = [f"- `{usage}`: {does}\n" for usage, does in list_rows()]
    return HEAD + "".join(settings) + COMMANDS + "".join(commands) + TOLERATED + "".join(list_deviations())


def list_deviations() -> Iterator[str]:
    """The lines of the table of deviations, with a mark for each format whose declaration says that exports can have
    it."""
    columns = ("deviation", "in the export", "is read as", "remedy", *FORMS)
    yield f"|{'|'.join(columns)}|\n{'|---' * len(columns)}|\n"
    shown = [{it for form in forms for it in list_places(form)} for forms in FORMS.values()]
    for row in DEVIATIONS:
        mark = "○" if row.allowed else "●"
        marks = (mark if row in found else "" for found in shown)
        yield f"|{'|'.join((row.taken, *map(show_cell, row.example), row.remedy, *marks))}|\n"


def show_cell(text: str) -> str:
    """A text of an export, or the words for it."""
    shown = text.replace("\ufeff", "U+FEFF ") or "nothing"
    return shown if " " in text.strip() or shown == "nothing" else f"`{shown}`"


def show_setting(row: dataclasses.Field[object]) -> str:
    """The variable of a setting with its default, as a line of the file has it."""
    name = f"{PREFIX}{row.name.upper()}"
    # The default follows from the machine.
    if row.default is None or row.name == "workers":
        return name
    return f"{name}={str(row.default).lower() if isinstance(row.default, bool) else row.default}"


def list_rows() -> Iterator[tuple[str, str]]:
    """The usage and the purpose of each command."""
    yield from list_commands(roster, "roster")
    for name in SCRIPTS:
        command = importlib.import_module(f"sync_scripts.{name}").main
        usage, purpose = make_usage(f"python -m sync_scripts.{name}", command), make_purpose(command)
        # Loaders are one command, made for each format.
        if name == LOADERS[0]:
            others = " and ".join(f"`{other}`" for other in LOADERS[1:])
            yield usage, f"{purpose} {others} do so with exports of their formats."
        elif name not in LOADERS:
            yield usage, purpose


def list_commands(group: click.Group, name: str) -> Iterator[tuple[str, str]]:
    """Those below a group."""
    for key, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from list_commands(command, f"{name} {key}")
        else:
            yield make_usage(f"{name} {key}", command), make_purpose(command)


def make_usage(name: str, command: click.Command) -> str:
    """A command with its arguments and options."""
    context = click.Context(command)
    words = [name]
    for given in sorted(command.params, key=lambda it: not it.required):
        if given.name in COMMON or (given.name == "reason" and not given.required) or getattr(given, "hidden", False):
            continue
        shown = given.make_metavar(context)
        if isinstance(given, click.Option):
            has_value = not (given.is_flag or given.count)
            names = "/".join([given.opts[0], *given.secondary_opts[:1]])
            shown = shown.strip("[]")
            shown = f"{names}={VALUES.get(shown, shown)}" if has_value else names
            shown += " …" if given.multiple else ""
            shown = shown if given.required else f"[{shown}]"
        words.append(shown.replace("|", "/"))
    return " ".join(words)


def make_purpose(command: click.Command) -> str:
    """The first paragraph of the help of a command."""
    first = (command.help or "").replace("\b", "").split("\n\n")[0]
    return re.sub(r"\|", "/", " ".join(first.split()))


if __name__ == "__main__":
    PAGE.write_text(make_reference())

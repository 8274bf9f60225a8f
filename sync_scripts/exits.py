"""How a sync script ends: one table from what went wrong to the exit code and the words for it."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import sys
from collections.abc import Iterator

import click

from roster_service.errors import CommandError, DatabaseUnavailableError, RosterServiceError, SettingError
from sync_scripts.refusals import RefusedExportError, cut_value
from sync_scripts.runs import LockedError


class Exit(enum.IntEnum):
    """Exit codes. 1 and 3 are kept for runs that refuse single rows, and for runs that are held."""

    LOADED = 0
    REFUSED = 2
    LOCKED = 4
    UNAVAILABLE = 5


# code, its name in JSON, what it means
MEANINGS = {
    Exit.LOADED: ("loaded", "loaded, or nothing to change"),
    Exit.REFUSED: ("refused", "the export (or the command line) is refused; nothing was changed"),
    Exit.LOCKED: ("locked", "another run is under way; nothing was changed"),
    Exit.UNAVAILABLE: ("unavailable", "a setting is wrong, or the database cannot be used"),
}
CODES: dict[type[RosterServiceError], Exit] = {
    RefusedExportError: Exit.REFUSED,
    CommandError: Exit.REFUSED,
    LockedError: Exit.LOCKED,
    SettingError: Exit.UNAVAILABLE,
    DatabaseUnavailableError: Exit.UNAVAILABLE,
}
# For the end of --help; \b keeps click from filling the lines.
HELP = "\b\nExit codes:\n" + "\n".join(f"  {code:d}  {meaning}" for code, (_, meaning) in MEANINGS.items())


@contextlib.contextmanager
def exit_on_refusal(*, as_json: bool) -> Iterator[None]:
    """Ends the script with a code of the table, and with words instead of a traceback, where an error of ours is
    raised inside. `as_json`: one JSON object on standard output; else text on standard error."""
    try:
        yield
    except tuple(CODES) as error:
        code = next(code for kind, code in CODES.items() if isinstance(error, kind))
        if as_json:
            click.echo(json.dumps(_to_json(error, code), ensure_ascii=False))
        else:
            click.echo(_to_text(error), err=True)
        sys.exit(code)


def _to_json(error: RosterServiceError, code: Exit) -> dict[str, object]:
    told: dict[str, object] = {"outcome": MEANINGS[code][0]}
    if isinstance(error, RefusedExportError):
        refusals = [
            dataclasses.asdict(refusal) | {"value": refusal.value and cut_value(refusal.value)}
            for refusal in error.findings.first
        ]
        return {**told, "total": error.findings.total, "refusals": refusals}
    return {**told, "message": str(error)}


def _to_text(error: RosterServiceError) -> str:
    if isinstance(error, RefusedExportError):
        total = error.findings.total
        return f"refused for {total} {'reason' if total == 1 else 'reasons'}; nothing was changed\n{error}"
    return str(error)

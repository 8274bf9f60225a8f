"""`roster settings`: every setting, its value and its source, without secrets."""

from __future__ import annotations

import dataclasses
import os

import click

from roster_service.cli.console import as_json, make_table, read_settings, show
from roster_service.settings import HIDDEN, PREFIX, Settings, read_setting_texts


@dataclasses.dataclass(frozen=True)
class ListedSetting:
    """A setting for the command line. `value`: None if there is none; a secret is hidden. `source`: `default`,
    `environment`, or `file` and its path."""

    variable: str
    value: str | None
    source: str


@click.command("settings")
@as_json
def settings_list(as_json: bool) -> None:
    """List every setting, its value and where it comes from. Secrets are not shown."""
    listed = list_settings(read_settings())
    show(listed, as_json, lambda _: make_table([_make_row(item) for item in listed], ""))


def list_settings(settings: Settings) -> list[ListedSetting]:
    """Lists the settings of this process, in the order of their declaration."""
    given = read_setting_texts(os.environ)
    listed = []
    for row in dataclasses.fields(settings):
        value, source = getattr(settings, row.name), "default"
        shown = None if value is None else row.metadata["show"](str(value))
        if row.name in given:
            path = given[row.name].path
            source = "environment" if path is None else f"file {path}"
        elif row.name == "secret_key" and settings.secret_key_path.exists():
            shown, source = HIDDEN, f"file {settings.secret_key_path}"
        listed.append(ListedSetting(PREFIX + row.name.upper(), shown, source))
    return listed


def _make_row(item: ListedSetting) -> dict[str, str]:
    return {"variable": item.variable, "value": "-" if item.value is None else item.value, "source": item.source}

"""`roster settings`: every setting, its value and its source, without secrets."""

from __future__ import annotations

import click

from roster_service.cli.terminal import as_json, make_table, read_settings, show
from roster_service.explore.listed_settings import ListedSetting, list_settings


@click.command("settings")
@as_json
def settings_list(as_json: bool) -> None:
    """List every setting, its value and where it comes from. Secrets are not shown."""
    listed = list_settings(read_settings())
    show(listed, as_json, lambda _: make_table([_make_row(item) for item in listed], ""))


def _make_row(item: ListedSetting) -> dict[str, str]:
    return {"variable": item.variable, "value": "-" if item.value is None else item.value, "source": item.source}

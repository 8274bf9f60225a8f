"""Every setting with its value and its source, without secrets, as operators see it."""

from __future__ import annotations

import dataclasses
import os

from roster_service.settings import HIDDEN, PREFIX, Settings, read_environment, read_setting_texts

# Set by `roster run` for its workers, which use its embedded server by the two settings that it gives them.
EMBEDDED = "EMBEDDED_ROSTER"
DEFAULT = "default"
_OF_EMBEDDED = ("database_url", "console")


@dataclasses.dataclass(frozen=True)
class ListedSetting:
    """A setting as operators see it. `value`: None if there is none; a secret is hidden. `source`: `default`,
    `environment`, `embedded server`, or `file` and its path; `words`: what it is for."""

    variable: str
    value: str | None
    source: str
    words: str


def list_settings(settings: Settings) -> list[ListedSetting]:
    """Lists the settings of this process, in the order of their declaration."""
    given = read_setting_texts(read_environment(os.environ))
    listed = []
    for row in dataclasses.fields(settings):
        value, source = getattr(settings, row.name), DEFAULT
        shown = None if value is None else row.metadata["show"](str(value))
        if row.name in given:
            path = given[row.name].path
            if given[row.name].variable not in os.environ:
                path = str(settings.settings_path)
            source = "environment" if path is None else f"file {path}"
            source = "embedded server" if row.name in _OF_EMBEDDED and EMBEDDED in os.environ else source
        elif row.name == "secret_key" and settings.secret_key_path.exists():
            shown, source = HIDDEN, f"file {settings.secret_key_path}"
        listed.append(ListedSetting(PREFIX + row.name.upper(), shown, source, row.metadata["help"]))
    return listed

"""All screens and forms of the console, and the five words of its menu, below which they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

from roster_service.change_log.actors import OperatorRole
from roster_service.console.screen import Form, Screen
from roster_service.console.views import (
    access,
    agreement,
    changes,
    clients,
    deletions,
    disclosures,
    export_previews,
    feeds,
    files,
    find,
    grants,
    held,
    operators,
    people,
    person_answer,
    quality,
    records,
    rejected,
    roster,
    runs,
    system,
    tonight,
    vendor,
    vendors,
    wizard,
)

# The views by the word of the menu that has them. The first screen of a word with a name of its own in the menu is
# that to which the word leads; the others with a name stand beside it.
SECTIONS: Mapping[str, Sequence[ModuleType]] = {
    "Tonight": (tonight, runs, rejected, held, feeds, export_previews),
    "Roster": (roster, records, quality),
    "Vendors": (vendors, wizard, vendor, agreement, grants, clients, files, access),
    "Privacy": (disclosures, people, person_answer, deletions),
    "Settings": (system, operators, changes),
}
_OF_SECTION: Mapping[str, Sequence[Screen]] = {
    word: tuple(screen for view in views for screen in view.SCREENS) for word, views in SECTIONS.items()
}
# The search belongs to no word.
SCREENS: Sequence[Screen] = (*(screen for screens in _OF_SECTION.values() for screen in screens), *find.SCREENS)
FORMS: Sequence[Form] = tuple(form for views in SECTIONS.values() for view in views for form in view.FORMS)


def list_menu(role: OperatorRole) -> Mapping[str, Sequence[Screen]]:
    """Returns the screens of the menu that a role may use, by the word that has them."""
    return {
        word: [screen for screen in screens if screen.menu is not None and role.includes(screen.least)]
        for word, screens in _OF_SECTION.items()
    }


def list_closed(role: OperatorRole) -> Sequence[str]:
    """Returns the names in the menu of the screens that a role may not use."""
    return [screen.menu for screen in SCREENS if screen.menu is not None and not role.includes(screen.least)]


def find_place(shown: Screen | None, path: str) -> tuple[str | None, Screen | None]:
    """Returns (the word of the menu, the screen of the menu) that a page belongs to, None for none. `shown`: its
    screen, None if it has none, such as a page of credentials; `path`: its own, below the root of the console."""
    listed = [screen for screen in SCREENS if screen.menu is not None and f"{path}/".startswith(f"{screen.path}/")]
    opened = max(listed, key=lambda screen: len(screen.path), default=None)
    if opened is not None and not opened.path and path:
        opened = None
    for word, screens in _OF_SECTION.items():
        if (shown or opened) in screens:
            return word, opened if opened in screens else None
    return None, None

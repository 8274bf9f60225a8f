"""All screens and forms of the console, in the order of the menu."""

from __future__ import annotations

from collections.abc import Sequence

from roster_service.console.screen import Form, Screen
from roster_service.console.views import (
    access,
    changes,
    clients,
    disclosures,
    export_previews,
    feeds,
    files,
    grants,
    held,
    operators,
    people,
    quality,
    records,
    rejected,
    roster,
    runs,
    system,
    tonight,
    vendor,
    vendors,
)

_VIEWS = (
    tonight,
    runs,
    rejected,
    held,
    feeds,
    export_previews,
    roster,
    records,
    quality,
    vendors,
    vendor,
    grants,
    clients,
    files,
    access,
    disclosures,
    changes,
    people,
    operators,
    system,
)
SCREENS: Sequence[Screen] = tuple(screen for view in _VIEWS for screen in view.SCREENS)
FORMS: Sequence[Form] = tuple(form for view in _VIEWS for form in view.FORMS)

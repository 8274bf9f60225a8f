"""`python -m roster_service.server.gunicorn_app APPLICATION OPTIONS`: gunicorn with these options and no others.

gunicorn's own command would also take options from the environment and from a file in the current folder. APPLICATION:
`module:name`; OPTIONS: a JSON object of gunicorn's settings.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.util import import_app

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class GunicornApplication(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn, in this process."""

    def __init__(self, application: str, options: Mapping[str, Any]) -> None:
        self._application = application
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """Sets the options; gunicorn calls it at its start, and for a reload."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> WSGIApplication:
        """Imports the application; each worker calls it."""
        return import_app(self._application)  # type: ignore[no-any-return]


if __name__ == "__main__":
    GunicornApplication(sys.argv[1], json.loads(sys.argv[2])).run()

"""The logger that `roster run` configures for gunicorn: its lines go to the log of the service, without any request."""

from __future__ import annotations

import os
from typing import Any

from gunicorn import glogging

from roster_service.errors import SettingError
from roster_service.logs import configure_logging
from roster_service.settings import Settings
from roster_service.web.request_log import add_request_facts


def set_up_log(settings: Settings) -> None:
    """Makes this process write its log as the settings say, with the facts of the request in each line."""
    configure_logging(settings.log_format, settings.log_level, add_request_facts)


class Logger(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger, without handlers of its own. The service logs each request itself; the worker has no caller of
    gunicorn's access log, whose lines would have query strings and ids of students."""

    def setup(self, cfg: Any) -> None:
        """Sets up the loggers; gunicorn calls it at its start and after each change of the configuration."""
        super().setup(cfg)
        try:
            settings = Settings.from_environ(os.environ)
        except SettingError:
            # The first worker refuses them with a sentence, and gunicorn stops.
            settings = Settings()
        set_up_log(settings)
        self.error_log.handlers.clear()
        self.error_log.propagate = True

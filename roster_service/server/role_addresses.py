"""What `roster run` tells the workers that serve vendors of the database: the addresses of their roles, and not that of
the owner of the tables.

The addresses lie in a file without a name, whose descriptor the workers inherit: `roster run` writes it when it reaches
the database, which may be after the start of the workers.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from roster_service.db.roles import Addresses, DatabaseRole
from roster_service.errors import DatabaseUnavailableError, SchemaError
from roster_service.settings import FILE_SUFFIX, PREFIX

# The variable with the number of the descriptor.
DESCRIPTOR = "ROLE_ADDRESSES_DESCRIPTOR"
# The settings with the address or the password of a role that these workers are not.
_WITHHELD = ("DATABASE_URL", "READ_DATABASE_URL", "ROLE_PASSWORD")
_WAITING = "`roster run` has not reached the database yet"


def withhold_owner(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a process without the settings that open the database as its owner."""
    gone = {f"{PREFIX}{name}{suffix}" for name in _WITHHELD for suffix in ("", FILE_SUFFIX)}
    return {name: value for name, value in environment.items() if name not in gone}


class SharedAddresses:
    """The file with the addresses, for `roster run`."""

    def __init__(self, prepare: Callable[[], Addresses]) -> None:
        """`prepare`: returns the addresses. Raises DatabaseUnavailableError while the database cannot be used."""
        self._prepare = prepare
        self._is_known = False

    def __enter__(self) -> Self:
        self._file = tempfile.TemporaryFile()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    @property
    def descriptor(self) -> int:
        """The descriptor that the workers inherit."""
        return self._file.fileno()

    def update(self) -> None:
        """Writes the addresses if they are not known yet, or why not."""
        if self._is_known:
            return
        try:
            found = self._prepare()
            text: dict[str, object] = {
                "urls": {role.value: url for role, url in found.urls.items()},
                "standby": found.standby,
                "database_id": found.database_id,
            }
            self._is_known = True
        except DatabaseUnavailableError as error:
            text = {"reason": str(error), "is_schema": isinstance(error, SchemaError)}
        except SQLAlchemyError as error:
            # The driver's message can quote values.
            text = {"reason": f"the database failed ({type(error).__name__})", "is_schema": False}
        written = json.dumps(text).encode()
        os.pwrite(self.descriptor, written, 0)
        os.ftruncate(self.descriptor, len(written))


def read_addresses(descriptor: int) -> Addresses:
    """Returns the addresses that `roster run` has written. Raises DatabaseUnavailableError if it cannot use the
    database."""
    try:
        known = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    except ValueError:
        # Nothing is written, or the worker reads between two writes.
        raise DatabaseUnavailableError(_WAITING) from None
    if "reason" in known:
        raise (SchemaError if known["is_schema"] else DatabaseUnavailableError)(known["reason"])
    urls = {DatabaseRole(name): url for name, url in known["urls"].items()}
    return Addresses(urls, known["standby"], known["database_id"])

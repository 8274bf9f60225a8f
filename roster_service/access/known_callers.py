"""Callers that were admitted lately, as one worker knows them.

What is known of a caller is a guess: whoever answers from it holds it against the database in the same message, with
one of the calls that are made here. Where the database says otherwise, nothing is answered and the caller is found
anew.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, Engine, Text, bindparam, func, select
from sqlalchemy.exc import DBAPIError

from roster_service.access.callers import AccessToken, Caller
from roster_service.access.leases import Lease
from roster_service.db.message import Call
from roster_service.db.visibility import keep_sight

# Each takes about a kilobyte, and more for a vendor with many single schools.
KEPT_CALLERS = 1024

_CLIENT = ("client", "client_version", "grant_version", "key_id")
_STATE = ("vendor", "revision", "as_of", "deletions_since")
_TEXTS = ("client", "key_id", "opening")


def _bind(*names: str) -> list[BindParameter[Any]]:
    return [bindparam(name, type_=Text if name in _TEXTS else None) for name in names]


def bind_facts() -> list[BindParameter[Any]]:
    """The facts of a known caller, as the functions that look up something for one take them."""
    return _bind(*_CLIENT, "guardians", *_STATE)


_STANDS = select(func.client_stands(*_bind(*_CLIENT, *_STATE)))
_READMIT = select(func.readmit_client(*bind_facts(), *_bind("opening")))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownCaller:
    """A caller as they were when they were found.

    `stands` asks whether the database says the same now, but for the districts and schools, which follow from the
    version of the grants: one row, one truth value. `readmit` asks the same, and lets the rest of the transaction read
    what they may; where anything is otherwise, down to the single org, the rest of the transaction sees no record.
    `lease`: for how long the last answer of `stands` counts. `facts`: what statements with `bind_facts` are bound to.
    """

    caller: Caller
    facts: Mapping[str, Any]
    stands: Call
    readmit: Call
    lease: Lease = field(default_factory=Lease, compare=False)


class KnownCallers:
    """What one worker remembers."""

    def __init__(self, engine: Engine) -> None:
        """`engine`: it may write (`make_walking_engine`)."""
        self._engine = engine
        self._known: OrderedDict[AccessToken, KnownCaller] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, token: AccessToken, caller: Caller) -> None:
        """Keeps the caller that was found for a token."""
        known = self.recall(token)
        if known is not None and known.caller == caller:
            return
        self._keep_sight(caller)
        state = caller.state
        facts = {
            "client": token.client_id,
            "client_version": token.client_version,
            "grant_version": token.grant_version,
            "key_id": token.key_id,
            "guardians": caller.sight.guardians,
            "vendor": caller.vendor_id,
            "revision": state.revision,
            "as_of": state.as_of.isoformat(),
            "deletions_since": state.deletions_since.isoformat(),
            "opening": caller.opening,
        }
        with self._lock:
            self._known[token] = KnownCaller(caller, facts, Call(_STANDS, facts), Call(_READMIT, facts))
            self._known.move_to_end(token)
            if len(self._known) > KEPT_CALLERS:
                self._known.popitem(last=False)

    def _keep_sight(self, caller: Caller) -> None:
        """So that the next requests of this caller find what they may see, and do not work it out."""
        try:
            with self._engine.begin() as connection:
                keep_sight(connection, caller.districts, caller.schools)
        except DBAPIError as error:
            # Of a database that takes no writes, it is worked out each time.
            _log.warning("what a caller may see could not be kept: %s", type(error.orig).__name__)

    def recall(self, token: AccessToken) -> KnownCaller | None:
        """The caller that was found for a token lately; None where there was none."""
        with self._lock:
            known = self._known.get(token)
            if known is not None:
                self._known.move_to_end(token)
            return known

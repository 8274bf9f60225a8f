"""The throttles: of logins, token requests, vendor requests, rostering requests and new orderings.

**Logins.** The origin of a vendor's login is the vendor whose API key it uses, so no vendor can slow down the logins of
another. The origin of an operator's login is the network address, or the browser if the operator logged in with it
before: so nobody can keep an operator out. Only one-time codes count for the account alone, because a guesser of codes
has the password. The counters store a hash of the e-mail address.

**Token requests.** Every request counts for its address. Only a request with the right secret counts for the client, so
nobody can use up the limit of somebody else's client. The counters store a hash of the client id or address.

**Vendor requests.** The limits belong to the vendor, not to its API key: during the rotation of a key, both keys share
them.

**Rostering requests.** A page is one round trip, so a call to the counters for each request would double its cost. A
worker takes the requests of a vendor in lots, and counts those of a lot by itself. So the limit is exact to one lot of
each worker.

Requests at the same time are counted by the database: the admission of a request takes a slot of the vendor for its
transaction (`admit_client`). A vendor without a limit of its own may use every worker while it is alone; while this
worker serves other vendors too, the vendor may use all but one of the workers of a machine.

**New orderings.** Each filter or sort that nobody has asked for since the last sync makes the database read, sort and
store a collection. The bound counts the time that this took, in fiftieths of a second, each at least one. Work that is
under way when the bound is reached goes on, so the bound can be exceeded by one ordering of each worker.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network

import sqlalchemy as sa

from roster_service.auth.credentials.api_keys import Allowance
from roster_service.auth.throttling.counters import Counters, Window
from roster_service.auth.throttling.limits import (
    ROSTERING_DEFAULTS,
    Rates,
    RateState,
    RosteringAllowance,
    make_lots,
    make_windows,
)
from roster_service.change_log.actors import normalize_email
from roster_service.db.tables import vendors
from roster_service.errors import ThrottledRequestError, TooManyTriesError

VENDOR_ACCOUNT = Window("login-account", 5)
VENDOR_KEY = Window("login-key", 20)
OPERATOR_ACCOUNT = Window("operator-account", 5)
OPERATOR_ADDRESS = Window("operator-address", 20)
OPERATOR_BROWSER = Window("operator-browser", 5)
OPERATOR_CODE = Window("operator-code", 5)


@dataclass(frozen=True)
class LoginAttempt:
    """A login, as the windows that a failure of it counts in, each with its subject."""

    windows: Sequence[tuple[Window, str]]

    @classmethod
    def of_vendor(cls, vendor_id: int, email: str) -> LoginAttempt:
        """Returns the login with an API key of this vendor and this e-mail."""
        return cls(((VENDOR_ACCOUNT, f"{vendor_id}/{_hash_account(email)}"), (VENDOR_KEY, str(vendor_id))))

    @classmethod
    def of_operator(cls, email: str, address: str | None, browser: str | None) -> LoginAttempt:
        """Returns the login of an operator with this e-mail. `address`: of the network; `browser`: the id of a browser
        with which the operator logged in before, None for any other."""
        if browser is not None:
            return cls(((OPERATOR_BROWSER, browser),))
        origin = _find_network(address)
        return cls(((OPERATOR_ACCOUNT, f"{_hash_account(email)}/{origin}"), (OPERATOR_ADDRESS, origin)))

    @classmethod
    def of_code(cls, email: str, browser: str | None) -> LoginAttempt:
        """Returns the use of a one-time code by an operator who has proved the password. `browser`: as for
        `of_operator`."""
        return cls(((OPERATOR_CODE, f"{_hash_account(email)}/{browser or ''}"),))

    def find_wait(self, counters: Counters) -> int:
        """Returns the seconds until such a login may be tried; 0 if it may now."""
        return max(counters.find_wait(window, subject) for window, subject in self.windows)

    def require_room(self, counters: Counters) -> None:
        """Raises TooManyTriesError if such a login has to wait."""
        wait = self.find_wait(counters)
        if wait:
            raise TooManyTriesError(wait)

    def count_failure(self, counters: Counters) -> None:
        """Counts a failed login."""
        for window, subject in self.windows:
            counters.take(window, subject)


def _find_network(address: str | None) -> str:
    """Returns the address, of IPv6 the network that one subscriber has."""
    try:
        return str(ip_network(f"{address}/64", strict=False)) if ":" in (address or "") else address or ""
    except ValueError:
        return address or ""


def _hash_account(email: str) -> str:
    return _hash(normalize_email(email))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class TokenThrottle:
    """The two counters of the token endpoint."""

    def __init__(self, counters: Counters, rates: Rates) -> None:
        self._counters = counters
        self._per_client = Window("token-client", rates.tokens)
        self._per_address = Window("token-address", rates.token_requests)

    def count_client(self, client_id: str) -> int:
        """Counts a token of a client. Returns 0 if the client may have it, else the seconds until its next token."""
        return self._count(self._per_client, client_id)

    def count_address(self, address: str) -> int:
        """Counts a request of an address. Returns 0 if it may pass, else the seconds until the next request."""
        return self._count(self._per_address, address)

    def _count(self, window: Window, name: str) -> int:
        hashed = _hash(name)
        return 0 if self._counters.take(window, hashed) else max(1, self._counters.find_wait(window, hashed))


def count_vendor_request(counters: Counters, vendor_id: int, allowance: Allowance) -> RateState | None:
    """Counts a request of a vendor, and returns the state of the window that it exceeds, else of the short one. None if
    the counters cannot be reached: then the request passes."""
    subject = str(vendor_id)
    short, day = make_windows(allowance)
    exceeded = next((window for window in (short, day) if not counters.take(window, subject)), None)
    window = exceeded or short
    state = counters.read(window, subject)
    if state is None:
        return None
    return RateState(window.most, state.remaining, state.resets_at, admitted=exceeded is None)


# The longest time without a look at the vendor's limits, which an operator may change.
LOT_SECONDS = 10
# The same for a vendor that has used up its window.
REFUSAL_SECONDS = 1
# A vendor counts as active for this long after a request.
ACTIVE_SECONDS = 10


@dataclass
class _Lot:
    """Requests that a worker may answer for a vendor until `ends_at`, in seconds of `time.monotonic`, or the refusal of
    a lot. `window`: (limit, requests left in the window beside this lot, reset in seconds since 1970) when it was
    taken; None if not known."""

    at_once: int | None
    is_refusal: bool
    left: int
    ends_at: float
    window: tuple[int, int, float] | None


class RosteringThrottle:
    """Counts the requests of vendors for one worker. Threads may share it."""

    def __init__(self, counters: Counters, accounts: sa.Engine, workers: int) -> None:
        """`accounts`: of the role that may read accounts. `workers`: of this machine."""
        self._counters = counters
        self._accounts = accounts
        self._shared_slots = max(1, workers - 1)
        # Both have at most as many entries as there are vendors with a valid token.
        self._lots: dict[int, _Lot] = {}
        # Vendor -> the instant of its last request, the latest last.
        self._active: OrderedDict[int, float] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, vendor_id: int) -> RateState | None:
        """Counts a request, and returns the state of the vendor's window. None if the counters cannot be reached: then
        the request passes. Raises SQLAlchemyError if the database fails."""
        with self._lock:
            lot = self._lots.get(vendor_id)
            now = time.monotonic()
            if lot is None or now >= lot.ends_at or (lot.left == 0 and not lot.is_refusal):
                lot = self._lots[vendor_id] = self._take_lot(vendor_id, now)
            if not lot.is_refusal:
                lot.left -= 1
            if lot.window is None:
                return None
            limit, others, resets_at = lot.window
            return RateState(limit, others + lot.left, resets_at, admitted=not lot.is_refusal)

    def find_slots(self, vendor_id: int) -> int | None:
        """Returns how many requests of the vendor may run at the same time; None for any number. It takes a call of
        `count` as a request of the vendor."""
        with self._lock:
            now = time.monotonic()
            latest = next((other for other in reversed(self._active) if other != vendor_id), None)
            self._active[vendor_id] = now
            self._active.move_to_end(vendor_id)
            own = self._lots[vendor_id].at_once
            if own is not None:
                return own
            has_others = latest is not None and now - self._active[latest] < ACTIVE_SECONDS
            return self._shared_slots if has_others else None

    def _take_lot(self, vendor_id: int, now: float) -> _Lot:
        allowance = self._read_allowance(vendor_id)
        size, window = make_lots(allowance)
        admitted = self._counters.take(window, str(vendor_id))
        found = self._counters.read(window, str(vendor_id))
        state = None if found is None else (window.most * size, found.remaining * size, found.resets_at)
        if admitted:
            return _Lot(allowance.at_once, False, size, now + min(LOT_SECONDS, window.seconds), state)
        wait = min(REFUSAL_SECONDS, found.resets_at - time.time()) if found else 0
        return _Lot(allowance.at_once, True, 0, now + wait, state)

    def _read_allowance(self, vendor_id: int) -> RosteringAllowance:
        columns = (vendors.c.rostering_per_second, vendors.c.rostering_burst, vendors.c.rostering_at_once)
        with self._accounts.connect() as connection:
            row = connection.execute(sa.select(*columns).where(vendors.c.id == vendor_id)).one_or_none()
        # The admission refuses the token of a vendor that is gone.
        return ROSTERING_DEFAULTS if row is None else RosteringAllowance(*row)


PARTS_OF_A_SECOND = 50


class OrderingThrottle:
    """Counts the work for each vendor. Threads may share it."""

    def __init__(self, counters: Counters, rates: Rates) -> None:
        self._counters = counters
        self._window = Window("orderings", rates.ordering_seconds * PARTS_OF_A_SECOND)

    def require_room(self, vendor_id: int) -> None:
        """Raises ThrottledRequestError if the vendor has used its time up."""
        wait = self._counters.find_wait(self._window, str(vendor_id))
        if wait:
            raise ThrottledRequestError(
                "your new filters and sorts have taken too much of the database in the last minute; further pages of "
                "those that you asked for before are answered, and `Retry-After` says when new ones are",
                wait,
            )

    @contextmanager
    def measure(self, vendor_id: int) -> Iterator[None]:
        """Counts the time of the block, also if it fails."""
        began = time.monotonic()
        try:
            yield
        finally:
            parts = math.ceil((time.monotonic() - began) * PARTS_OF_A_SECOND)
            # Work that does not fit into what is left uses all of it up.
            if not self._counters.take(self._window, str(vendor_id), min(parts, self._window.most)):
                state = self._counters.read(self._window, str(vendor_id))
                if state is not None and state.remaining > 0:
                    self._counters.take(self._window, str(vendor_id), state.remaining)

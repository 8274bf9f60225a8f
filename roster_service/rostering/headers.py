"""Response headers: the entity tag, and the links between pages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from roster_service import __version__
from roster_service.auth.credentials.tokens import AccessToken
from roster_service.feeds.roster_state import RosterState, make_state_headers

# In bytes: what fits into the header buffers of common proxies beside the other headers.
LINK_BYTES = 4000


def make_etag(token: AccessToken, state: RosterState, address: str, total: int) -> str:
    """Returns an entity tag that changes whenever the response can change, without reading the records. `total`: the
    number of records on all pages; the tag ends with it, so that a 304 can tell it without counting.

    The response depends on the address, the state of the roster, and the caller's rights. A database restored from a
    backup gives no revision twice (`advance_state`), except for the one of the backup, with the same records.
    """
    # Another version of the service may represent the same record differently.
    facts = (__version__, *make_state_headers(state).values(), str(state.later_revision), token.tag_facts, address)
    digest = hashlib.sha256("\n".join((*facts, str(total))).encode()).hexdigest()[:32]
    return f"{digest}-{total}"


def read_total(tag: str) -> int | None:
    """Returns the `total` of an entity tag; None for a text that `make_etag` did not make."""
    _, _, digits = tag.rpartition("-")
    return int(digits) if re.fullmatch("[0-9]{1,18}", digits) else None


def make_links(
    address: str, pairs: Sequence[tuple[str, str]], limit: int, offset: int, total: int, revision: int
) -> str:
    """Returns the `Link` header (RFC 8288): next, last, first, prev, as absolute URLs with all other parameters.

    `address`: the absolute URL without its query. `pairs`: the query of the request. `revision`: of the pull; the links
    name it, so that pulls of one client at the same time do not mix; the first page begins a new pull. Commas inside a
    URL are percent-encoded, because real clients split the header on commas. The result is empty where `limit` is 0.
    Where the query is long, it has only the first link, or none: proxies answer 502 to headers larger than their
    buffers.
    """
    if limit == 0:
        return ""
    last = max(0, (total - 1) // limit * limit)
    # `next` and `prev` keep an offset that is no multiple of the limit; `last` is always a multiple. Past the end,
    # `prev` is the last page that has records.
    previous = last if offset >= total else max(0, offset - limit)
    offsets = {"next": offset + limit, "last": last, "first": 0, "prev": previous}
    if offset + limit >= total:
        del offsets["next"]
    if offset == 0:
        del offsets["prev"]
    kept = [(name, text) for name, text in pairs if name not in ("limit", "offset", "revision")]
    others = urlencode(kept, quote_via=quote, safe="") + "&" if kept else ""
    pull = {start: f"&revision={revision}" if start else "" for start in offsets.values()}
    links = [
        f'<{address}?{others}limit={limit}&offset={start}{pull[start]}>; rel="{rel}"' for rel, start in offsets.items()
    ]
    return next((text for text in (", ".join(links), links[0]) if len(text) <= LINK_BYTES), "")

"""The headers of an answer: the entity tag, and the links between pages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from roster_service import __version__
from roster_service.access.credentials.access_token import AccessToken
from roster_service.access.roster_state import RosterState, make_state_headers

# What the buffers of common proxies take beside the other headers.
LINK_BYTES = 4000


def make_etag(token: AccessToken, state: RosterState, address: str) -> str:
    """An entity tag that changes when the answer can: it needs no look at the records.

    What a caller is shown follows from the address, the state of the roster, and the caller's own rights. The state is
    more than the revision: a database that was restored from a backup counts on from an older revision, with other
    records, and no two syncs have the same stamp.
    """
    scopes = ",".join(sorted(token.scope_names))
    caller_facts = (str(token.vendor_id), str(token.grant_version), scopes)
    # Another version of the service may show the same record in another way.
    facts = (__version__, *make_state_headers(state).values(), *caller_facts, address)
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def make_links(address: str, pairs: Sequence[tuple[str, str]], limit: int, offset: int, total: int) -> str:
    """The `Link` header (RFC 8288): next, last, first, prev, each absolute and with every other parameter.

    `address` is the absolute address without its query, `pairs` the query as it was asked. Commas inside an address
    are percent-encoded, because real clients split the header on commas. Empty where there are no pages. Where the
    query is long, the first one alone, or none: proxies answer 502 to headers that are larger than their buffers.
    """
    if limit == 0:
        return ""
    last = max(0, (total - 1) // limit * limit)
    # Pages of an offset that is no multiple of the limit keep their own rhythm.
    offsets = {"next": offset + limit, "last": last, "first": 0, "prev": max(0, offset - limit)}
    if offset + limit >= total:
        del offsets["next"]
    if offset == 0:
        del offsets["prev"]
    kept = [(name, text) for name, text in pairs if name not in ("limit", "offset")]
    others = urlencode(kept, quote_via=quote, safe="") + "&" if kept else ""
    links = [f'<{address}?{others}limit={limit}&offset={start}>; rel="{rel}"' for rel, start in offsets.items()]
    return next((text for text in (", ".join(links), links[0]) if len(text) <= LINK_BYTES), "")

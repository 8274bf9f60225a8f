"""Reads pages and records from a hot standby where it has exactly what the primary has; else from the primary.

The primary admits each request first. So a right that has ended ends at once, however far the standby lags, and the
answer is one that the primary would have given: the standby's counts only if it was read from the same state of the
roster, with the same visible orgs, in the same ordering. A standby that lags behind a sync is not asked again until it
has replayed that sync, so no client sees an older revision after a newer one, and a pull can change between the servers
at each of its pages. The standby writes nothing; the primary makes orderings and remembers pulls.
"""

from __future__ import annotations

from typing import TypeVar

from roster_service.db.round_trip import RoundTrips
from roster_service.errors import Problem, RefusedRequestError
from roster_service.metrics import READS
from roster_service.serving.orderings import Orderings
from roster_service.serving.reader import Reader, ReadPage, ReadRecord
from roster_service.serving.request import AuthorizedRequest
from roster_service.serving.standby import Standby

Found = TypeVar("Found", ReadPage, ReadRecord)


class StandbyReader(Reader):
    """Reads pages and records for the requests of one worker, from two servers."""

    def __init__(self, round_trips: RoundTrips, orderings: Orderings, pull_minutes: int, standby: Standby) -> None:
        """`round_trips`, `orderings`: of the primary. `pull_minutes`: as for `Reader`."""
        super().__init__(round_trips, orderings, pull_minutes)
        self._standby = standby
        self._on_standby = Reader(standby.round_trips, orderings, pull_minutes)

    def read_record(self, request: AuthorizedRequest) -> ReadRecord:
        """Reads the record that the path of the request names. Raises as `admit`."""
        return self._read_record_there(request) or _count("primary", super().read_record(request))

    def read_page(self, request: AuthorizedRequest) -> ReadPage:
        """Reads the requested page. Raises as `Reader.read_page`."""
        return self._read_page_there(request) or _count("primary", super().read_page(request))

    def _read_record_there(self, request: AuthorizedRequest) -> ReadRecord | None:
        if self._standby.is_away:
            return None
        admitted = self.read_admitted(request.admission, request.vendor_id)
        found = self._standby.read(lambda: self._on_standby.read_record(request))
        if found is None or (found.state, found.visible_set) != (admitted.state, admitted.visible_set):
            return None
        return _count("standby", found)

    def _read_page_there(self, request: AuthorizedRequest) -> ReadPage | None:
        if self._standby.is_away:
            return None
        try:
            known = self.read_collection_state(request)
        except RefusedRequestError as error:
            if error.problem is not Problem.PULL_ENDED:
                raise
            # A page that needs no ordering belongs to no pull: the primary decides.
            return None
        found = self._standby.read(lambda: self._on_standby.read_present_page(request))
        if found is None or (found.state, found.visible_set) != (known.shown, known.visible_set):
            return None
        return _count("standby", found) if self._keep_pull(request, known, found.page) else None


def _count(server: str, found: Found) -> Found:
    """Counts what was read in the metrics, and returns it."""
    READS.labels(server).inc()
    return found

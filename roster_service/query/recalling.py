"""What is known is asked again, in one message: of a caller that was admitted before, the record or the page of a walk.

Where something that is known is otherwise now, there is no answer, and the caller is found anew.

Nearly always, all texts of an answer are documents. A statement that can also make them of the records costs the
database more to get ready than to run, so documents alone are asked for first.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from roster_service.access.known_callers import KnownCaller
from roster_service.db.message import Call, Messenger
from roster_service.db.prepared import Statement
from roster_service.query.documents import (
    reads_documents,
    recalled_single_statement,
    shelved_single_statement,
    single_statement,
)
from roster_service.query.plan import Plan, View
from roster_service.query.run import Page, bind, join_texts, put_root
from roster_service.query.statements import has_own_words
from roster_service.query.walk_statements import kept_page_statement, shelved_page_statement
from roster_service.query.walks import Walks, find_places, make_walk

# So long after a document was missing, they are not asked for alone: the shelf may be empty, or on its way.
GAP_SECONDS = 10
REMEMBERED = 256

Answer = TypeVar("Answer")


class Gaps:
    """The views of which one worker has found documents missing lately."""

    def __init__(self) -> None:
        self._found: OrderedDict[View, float] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, view: View) -> None:
        """Remembers that a document was missing."""
        with self._lock:
            self._found[view] = time.monotonic()
            self._found.move_to_end(view)
            if len(self._found) > REMEMBERED:
                self._found.popitem(last=False)

    def know(self, view: View) -> bool:
        """Whether one was missing lately."""
        return time.monotonic() - self._found.get(view, float("-inf")) < GAP_SECONDS


class Recaller:
    """Asks for what one worker knows."""

    def __init__(self, messenger: Messenger, walks: Walks) -> None:
        self._messenger = messenger
        self._walks = walks
        self._gaps = Gaps()

    def stands(self, known: KnownCaller) -> bool:
        """Whether the database says of the caller and the roster what is known, or has said so just now. For answers
        without a record: see `roster_service.access.leases`."""
        if known.lease.holds:
            return True
        asked_at = time.monotonic()
        stands = self._messenger.fetch_last(known.stands) == [(True,)]
        if stands:
            known.lease.renew(asked_at)
        return stands

    def page(self, plan: Plan, known: KnownCaller) -> Page | None:
        """The page of a walk that this worker knows; None where it does not, or where something that is known is
        otherwise now: then `run_collection` has it."""
        caller, outline = known.caller, plan.outline
        walk = make_walk(plan, bind(plan, caller), caller.state, caller.opening, everyone=caller.everyone)
        found = self._walks.recall(walk)
        if found is None or has_own_words(outline):
            return None
        begin, end = find_places(plan, found.total)
        if begin == end:
            return Page((), 0, found.total) if self.stands(known) else None
        if not found.is_kept:
            return None
        self._walks.note_walking(walk)
        values = {**walk.values, "walk": walk.key, "page_begin": begin, "page_end": end}

        def ask(statement: Statement) -> Page | None:
            rows = self._messenger.fetch_last(known.readmit, Call(statement, values))
            page = join_texts(rows or (), found.total)
            return page if page.records == end - begin else None

        shelved = shelved_page_statement(outline) if reads_documents(outline) else None
        return self._ask(ask, shelved, kept_page_statement(outline), outline.view)

    def single(self, plan: Plan, known: KnownCaller, base_url: str) -> str | None:
        """The JSON text of one record; None where there is none that the caller may see, or where something that is
        known of the caller is otherwise now: then `run_single` says which."""
        outline, caller = plan.outline, known.caller
        values = {**known.facts, **bind(plan, caller)}
        # Finds the document and admits the caller at once, where that is simple.
        at_once = recalled_single_statement(outline) if caller.districts and not caller.schools else None

        def ask(statement: Statement) -> str | None:
            call = Call(statement, values)
            rows = self._messenger.fetch_last(*((call,) if statement is at_once else (known.readmit, call)))
            return put_root(rows[0][0], base_url) if rows else None

        shelved = shelved_single_statement(outline) if at_once is None else at_once
        return self._ask(ask, shelved, single_statement(outline), outline.view)

    def _ask(
        self, ask: Callable[[Statement], Answer | None], shelved: Statement | None, whole: Statement, view: View
    ) -> Answer | None:
        """What `shelved` finds among the documents alone, else what `whole` finds."""
        if shelved is None or self._gaps.know(view):
            return ask(whole)
        answer = ask(shelved)
        if answer is None:
            answer = ask(whole)
            if answer is not None:
                self._gaps.note(view)
        return answer

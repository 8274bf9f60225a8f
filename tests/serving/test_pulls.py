"""Pulls while syncs commit: each has every record of its first page's collection once, or is refused aloud."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, event, example, given, note, settings
from hypothesis import strategies as st

from roster_service.accounts.vendors import invalidate_tokens
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.db import tables
from roster_service.db.engine import make_engine
from roster_service.errors import Problem, RefusedRequestError
from roster_service.feeds.roster_state import RosterState, read_roster_state
from sync_scripts.engine.load import Options, load
from sync_scripts.purge import purge
from tests.extent import examples
from tests.postgres.loaded import EXPORTS, FEEDS
from tests.sync.export_changes import Bend, both, cell_of, column, with_row, without_rows

from .conftest import SECRET_KEY, Questioner, ids_of
from .plain_pages import Question, plain_page

DISTRICTS = ("spr-district", "shv-district")
SCHOOL = "spr-elementary"
# The collections of the pulls. Some are narrow, some are sorted by what the syncs change.
QUESTIONS = [
    {"path": "/users"},
    # Ordered over both districts, and without a sort by district first: two orderings, which must not mix.
    {"path": "/users", "sort": "sourcedId"},
    {"path": "/users", "sort": "phone", "descending": True},
    {"path": "/users", "filter": "status='active'"},
    {"path": "/students"},
    {"path": "/enrollments", "filter": "role='teacher'"},
    {"path": "/schools/{schoolId}/enrollments", "sort": "role"},
]
# What may happen to the export of the first feed. `another-school` changes what the vendor may see.
VARIANTS: dict[str, Bend | None] = {
    "as-it-is": None,
    "changed": column("users", "phone", "1"),
    "left": both(
        without_rows("demographics", "spr-student-4"), without_rows("enrollments", "spr-enr-01", "spr-enr-02")
    ),
    "another-role": cell_of("users", "spr-student-1", "role", "teacher"),
    "another-school": with_row("orgs", sourcedId="spr-new", name="New", type="school", parentSourcedId="spr-district"),
}
EVERYTHING = 10_000
EVERY_USER = Question(path="/users", districts=DISTRICTS, schools=(), school="")


@dataclass
class PlainPull:
    """A pull as a consumer sees it, and the ids of its collection at its first page. `by_link`: it names its revision;
    else it only steps its offset."""

    question: Question
    limit: int
    by_link: bool
    ids: list[str]
    state: RosterState
    visible_set: str
    found: list[str] = field(default_factory=list)


class Consumers:
    """Consumers of one vendor, who ask two workers in turn."""

    def __init__(self, url: str, folders: dict[str, Path], other: Path) -> None:
        self.url, self.folders, self.other = url, folders, other
        self.questioner = Questioner(url, workers=2)
        # The vendor has its rights before anybody leaves: else it would not be told who has left. A former sequence may
        # have left its export behind.
        self.sync("as-it-is")
        self.questioner.find_token(EVERY_USER)
        self.pulls: list[PlainPull] = []
        self.asked = 0

    @property
    def engine(self) -> sa.Engine:
        """An engine of the owner."""
        return self.questioner.owner

    def restart(self) -> None:
        """Replaces the workers; the tokens stay valid."""
        tokens = self.questioner.tokens
        self.questioner.close()
        self.questioner = Questioner(self.url, workers=2)
        self.questioner.tokens = tokens

    def read(self, question: Question, limit: int, offset: int, revision: int | None) -> tuple[list[str], RosterState]:
        """(ids, state) of a page; the count must not change within a pull."""
        self.asked += 1
        worker = self.questioner.workers[self.asked % 2]
        fields = None if self.asked % 3 else ("sourcedId",)
        read = worker.read_page(self.questioner.request(question, limit, offset, fields, revision))
        return ids_of(read.page), read.state

    def begin(self, number: int, limit: int, *, by_link: bool) -> None:
        """Reads a first page."""
        question = Question(**{"districts": DISTRICTS, "schools": (), "school": SCHOOL, **QUESTIONS[number]})
        with self.engine.connect() as connection:
            ids = plain_page(connection, question, EVERYTHING, 0)
            revision = read_roster_state(connection).revision
        page, state = self.read(question, limit, 0, None)
        assert (page, state.revision) == (ids[:limit], revision)
        # A consumer that only steps its offset goes on in the pull that it began last.
        self.pulls = [pull for pull in self.pulls if pull.by_link or pull.question != question]
        self.pulls.append(PlainPull(question, limit, by_link, ids, state, self.read_visible_set(), page))

    def go_on(self, number: int) -> None:
        """Reads the next page of a pull, or finds that it has ended."""
        if not self.pulls:
            return
        pull = self.pulls[number % len(self.pulls)]
        offset = len(pull.found)
        expected = pull.ids[offset : offset + pull.limit]
        may_end = self.read_visible_set() != pull.visible_set or not set(expected) <= self.list_visible(pull.question)
        try:
            page, state = self.read(pull.question, pull.limit, offset, pull.state.revision if pull.by_link else None)
        except RefusedRequestError as error:
            if error.problem is not Problem.PULL_ENDED or not may_end:
                raise
            event("a pull is refused")
            self.pulls.remove(pull)
            return
        assert page == expected
        assert (state.revision, state.as_of, state.deletions_since) == (
            pull.state.revision,
            pull.state.as_of,
            pull.state.deletions_since,
        )
        pull.found += page
        if len(pull.found) == len(pull.ids):
            assert pull.found == pull.ids
            self.pulls.remove(pull)
            event("a pull is whole, across revisions" if state.later_revision else "a pull is whole")

    def list_visible(self, question: Question) -> set[str]:
        """The ids of all records of the type that the vendor sees now."""
        whole = "/users" if question.path in ("/users", "/students") else "/enrollments"
        every = replace(EVERY_USER, path=whole)
        with self.engine.connect() as connection:
            return set(plain_page(connection, every, EVERYTHING, 0))

    def read_visible_set(self) -> str:
        """The hash of what the vendor may see."""
        known = tables.visible_feeds.c
        own = sa.and_(
            known.vendor_id == self.questioner.find_token(EVERY_USER).vendor_id, known.feed_id == tables.WHOLE
        )
        with self.engine.connect() as connection:
            return str(connection.scalar(sa.select(known.visible_set).where(own)))

    def sync(self, variant: str) -> None:
        """Loads an export of the first feed."""
        load(self.engine, "springfield", self.folders[variant], options=Options(allow_mass_delete=True))

    def sync_other(self) -> None:
        """Loads an export of the second feed, whose users are all changed."""
        column("users", "phone", str(self.asked))(self.other)
        load(self.engine, "shelbyville", self.other, options=Options(allow_mass_delete=True))

    def purge_all(self) -> None:
        """Removes every tombstone."""
        with self.engine.begin() as connection:
            for table in tables.ROSTER_TABLES:
                gone = sa.update(table).where(table.c.status == "tobedeleted")
                connection.execute(gone.values(date_last_modified=sa.func.now() - sa.func.make_interval(0, 0, 0, 30)))
        purge(self.engine, 7)


STEPS = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, len(QUESTIONS) - 1), st.integers(1, 5), st.booleans()),
    st.tuples(st.just("go on"), st.integers(0, 5)),
    st.tuples(st.just("go on"), st.integers(0, 5)),
    st.tuples(st.just("go on"), st.integers(0, 5)),
    st.tuples(st.just("sync"), st.sampled_from(sorted(VARIANTS))),
    st.tuples(st.just("sync other")),
    st.tuples(st.just("purge")),
    st.tuples(st.just("restart")),
)


def take_step(consumers: Consumers, step: tuple[object, ...]) -> None:
    """One step of a sequence."""
    note(f"{step}")
    match step:
        case ("begin", int(number), int(limit), bool(by_link)):
            consumers.begin(number, limit, by_link=by_link)
        case ("go on", int(number)):
            consumers.go_on(number)
        case ("sync", str(variant)):
            consumers.sync(variant)
        case ("sync other",):
            consumers.sync_other()
        case ("purge",):
            consumers.purge_all()
        case ("restart",):
            consumers.restart()
        case _:
            raise ValueError(step)


@pytest.fixture
def make_consumers(make_database: Callable[[], str], tmp_path: Path) -> Iterator[Callable[[], Consumers]]:
    """Makes consumers of a roster of two feeds."""
    folders = {name: Path(shutil.copytree(EXPORTS / FEEDS["springfield"], tmp_path / name)) for name in VARIANTS}
    for name, bend in VARIANTS.items():
        if bend is not None:
            bend(folders[name])
    other = Path(shutil.copytree(EXPORTS / FEEDS["shelbyville"], tmp_path / "other"))
    url = make_database()
    engine = make_engine(url)
    for feed, path in (("springfield", folders["as-it-is"]), ("shelbyville", other)):
        load(engine, feed, path)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
    engine.dispose()
    made: list[Consumers] = []

    def make() -> Consumers:
        made.append(Consumers(url, folders, other))
        return made[-1]

    yield make
    for consumers in made:
        consumers.questioner.close()


def test_any_sequence_of_pulls_and_syncs(make_consumers: Callable[[], Consumers]) -> None:
    @settings(
        max_examples=examples(2, 2, 200),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(STEPS, min_size=10, max_size=40))
    # What the vendor sees is again what it was at a pull before the last one.
    @example([("begin", 4, 1, False), ("sync", "another-school"), ("begin", 4, 1, False), ("sync", "as-it-is"),
              ("purge",), ("go on", 0)])  # fmt: skip
    # The list of students shows one of them as left.
    @example([("sync", "another-role"), ("begin", QUESTIONS.index({"path": "/students"}), 5, False)])
    @example([("sync", "another-role"), ("purge",), ("begin", QUESTIONS.index({"path": "/students"}), 3, False)])
    def check(steps: list[tuple[object, ...]]) -> None:
        consumers = make_consumers()
        for step in steps:
            take_step(consumers, step)
        while consumers.pulls:
            consumers.go_on(0)
        consumers.questioner.close()

    check()


def test_a_first_page_of_before_a_change_of_rights_is_not_given_after_it(
    make_consumers: Callable[[], Consumers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pull could not begin, so a later page would be of the present view."""
    questioner = make_consumers().questioner
    request = questioner.request(EVERY_USER, 2, 0)
    orderings = questioner.workers[0]._orderings
    keep = orderings.keep

    def change_first(*given: Any) -> bool:
        with questioner.owner.begin() as connection:
            invalidate_tokens(connection, request.vendor_id)
        return keep(*given)

    monkeypatch.setattr(orderings, "keep", change_first)
    with pytest.raises(RefusedRequestError) as refused:
        questioner.workers[0].read_page(request)
    assert refused.value.problem is Problem.ENDED_TOKEN

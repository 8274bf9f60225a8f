"""The first page: what the last night did, in one sentence, and what a person must do first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from urllib.parse import urlencode

from roster_service.access_log.reports import count_refused, read_usage
from roster_service.accounts.deletion_requests import OVERDUE, DeletionRequest, list_requests
from roster_service.accounts.districts import count_people
from roster_service.accounts.known_agreements import NOTICE_DAYS, KnownAgreement, list_agreements
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import to_counted, to_segment
from roster_service.console.screen import Screen
from roster_service.console.vendor_words import describe_files
from roster_service.console.visit import Visit, address, name_doer
from roster_service.db.instants import describe_day, find_today
from roster_service.db.tables import deletion_requests
from roster_service.deliveries.accounts import WAITING, Delivery, list_deliveries
from roster_service.feeds.data_quality import Doubt, list_doubts
from roster_service.feeds.feed_conditions import NO_PATH, Condition, list_conditions
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import Feed, list_feeds
from roster_service.feeds.figures import read_sync_channels
from roster_service.feeds.held_runs import HELD
from roster_service.feeds.run_history import FinishedRun, list_day_outcomes, list_latest_runs
from roster_service.feeds.run_outcomes import LOADED_OUTCOMES, PARTIAL, UNCHANGED, Colour
from roster_service.feeds.sharing_groups import EmptyRule, list_empty_rules

# The nights that a row shows.
DAYS = 14
# With more feeds than this, only those in need have rows, and no more of them than the second number.
MOST_FEEDS, MOST_IN_NEED = 12, 20
# The types of records that districts count in.
COUNTED = ("users", "classes", "enrollments")
# The feeds in need that the sentence names.
NAMED = 3


@dataclass(frozen=True)
class Task:
    """A thing that a person must do. `subject`: what it is about; `word`, `colour`: its state; `path`: of the page for
    it, below `/console`; `screen`: its name; `verb`: of the remedy, None where it asks nobody for something."""

    subject: str
    word: str
    colour: Colour
    text: str
    remedy: str
    path: str
    screen: str
    verb: Verb | None = None


@dataclass(frozen=True)
class Growth:
    """How the records of a type changed from the last good run but one to the last good run. `percent`: of `before`."""

    type: str
    before: int
    now: int

    @property
    def percent(self) -> float:
        """The change in percent; 100 where there was none before."""
        return 100 * (self.now - self.before) / self.before if self.before else 100.0 * bool(self.now)


@dataclass(frozen=True)
class FeedRow:
    """A feed with its last nights. `conditions`: what is said of it, the gravest first; `task`: the page where a person
    acts, None if nobody must; `is_loaded`: whether its latest run made the roster that of its export; `days`: the
    outcome of each of the last nights, the oldest first, None where no run was; `good`: the last good run; `people`: in
    the roster now, None where none was; `growth`: that of the type that changed most in it."""

    feed: Feed
    conditions: Sequence[Condition]
    task: str | None
    is_loaded: bool
    last: FinishedRun | None
    days: Sequence[str | None]
    good: int | None
    people: int | None
    growth: Growth | None

    @property
    def counts_as_loaded(self) -> bool:
        """Whether the sentence counts the feed as loaded: nothing is loaded during a pause."""
        return self.is_loaded and not self.feed.is_paused


@dataclass(frozen=True)
class Rest:
    """The feeds of one word that have no row. `people`: of them together."""

    word: str
    colour: Colour
    feeds: int
    people: int


@dataclass(frozen=True)
class VendorsToday:
    """The requests of all vendors today, in UTC. `requests`: of callers that the service recognized, also by a token
    that has ended, `wrong` of which were answered 4xx and `failed` 5xx; `refused`: all requests that were refused,
    for whatever cause, of unknown callers, too."""

    vendors: int
    requests: int
    refused: int
    wrong: int
    failed: int


@dataclass(frozen=True)
class Tonight:
    """The content of the page. `sentence`: the state of all feeds; `is_good`: whether nothing needs a person;
    `notices`: what the nights leave out, in sentences; `agreements`: those that do not hold now, end soon or wait for a
    review; `deletions`: what vendors are asked to delete, without an answer yet; `empty_rules`: the rules of grants
    that open nothing now, which may be as it should; `doubts`: the feeds with values that hardly anything but a faulty
    export has, and `more_doubts`: how many more there are; `rows`: the feeds that are shown, those in need first;
    `hidden`: feeds in need without a row; `rest`: the other feeds without one; `period`: the first and the last of the
    days; `is_live`: whether the page changes by itself."""

    sentence: str
    is_good: bool
    notices: Sequence[str]
    deliveries: Sequence[Task]
    agreements: Sequence[Task]
    deletions: Sequence[Task]
    empty_rules: Sequence[Task]
    doubts: Sequence[Task]
    more_doubts: int
    rows: Sequence[FeedRow]
    hidden: int
    rest: Sequence[Rest]
    feeds: int
    period: tuple[str, str]
    vendors: VendorsToday
    is_live: bool


def read_tonight(visit: Visit) -> Tonight:
    """Reads the last nights of every feed, the files that were not sent, and the vendors of today."""
    connection, zone = visit.connection, visit.settings.time_zone
    today = find_today(zone)
    first = today - timedelta(days=DAYS - 1)
    last, good = list_latest_runs(connection, 1), list_latest_runs(connection, 2, is_good=True)
    outcomes, people = list_day_outcomes(connection, first, zone), count_people(connection)
    rows = [
        _make_row(
            feed,
            list_conditions(feed, visit.settings),
            next(iter(last.get(feed.name, ())), None),
            good.get(feed.name, ()),
            [outcomes.get(feed.name, {}).get(first + timedelta(days=number)) for number in range(DAYS)],
            people.get(feed.name, 0),
        )
        for feed in list_feeds(connection, zone)
        if feed.state != FeedState.REMOVED
    ]
    rows.sort(key=lambda row: (row.task is None, row.conditions[0].word != HELD, row.feed.name))
    needy = [row for row in rows if row.task is not None]
    shown = rows if len(rows) <= MOST_FEEDS else needy[:MOST_IN_NEED]
    found = list_deliveries(connection)
    deliveries, doubts = list(_list_delivery_tasks(found)), list_doubts(connection)
    doer = name_doer(visit.signed_in.role, Verb.SYNC_RUN)
    notices = list(_list_notices(visit, rows, has_run=read_sync_channels(connection) is not None))
    return Tonight(
        sentence=make_sentence(rows, describe_files(found), doer, is_whole=not notices),
        is_good=not needy and not deliveries,
        notices=notices,
        deliveries=deliveries,
        agreements=list(_list_agreement_tasks(list_agreements(connection))),
        deletions=list(_list_deletion_tasks(list_requests(connection, today, deletion_requests.c.answered.is_(None)))),
        empty_rules=list(_list_empty_rules(visit, list_empty_rules(connection))),
        doubts=list(_list_doubts(doubts[:MOST_IN_NEED])),
        more_doubts=len(doubts[MOST_IN_NEED:]),
        rows=shown,
        hidden=len(needy) - len([row for row in shown if row.task is not None]),
        rest=list(_sum_rest([row for row in rows if row.task is None])) if len(rows) > MOST_FEEDS else (),
        feeds=len(rows),
        period=(first.isoformat(), today.isoformat()),
        vendors=_sum_vendors(visit),
        # A held run without a task is one whose approval is under way.
        is_live=any(row.feed.is_running or (row.feed.held_run and row.task is None) for row in rows),
    )


def _list_notices(visit: Visit, rows: Sequence[FeedRow], *, has_run: bool) -> Iterator[str]:
    """Yields a sentence for what no night does. `rows`: of all feeds; `has_run`: whether a nightly sync ever ran."""
    if rows and not has_run:
        yield (
            "No nightly sync has ever run, so nothing is loaded by itself. Whoever runs the machine starts it from "
            "cron or a timer: the page “The nightly sync” of the documentation has the line."
        )
    without = [row.feed.name for row in rows if any(said.word == NO_PATH for said in row.conditions)]
    if without:
        names = ", ".join(without[:NAMED]) + (", and others" if len(without) > NAMED else "")
        its = "has no path, so no nightly sync loads it" if len(without) == 1 else "have no path, so none loads them"
        remedy = address(visit.signed_in.role, Verb.FEED_SET, "give each the path of its export, or upload it")
        yield f"{to_counted(len(without), 'feed')} {its}: {names}. {remedy}"


def make_sentence(rows: Sequence[FeedRow], files: str, doer: str, *, is_whole: bool) -> str:
    """Returns the state of all feeds, and of files for vendors, in up to four sentences. `rows`: of all feeds, those
    in need first; `files`: of `describe_files`; `doer`: of `name_doer`; `is_whole`: whether the nights leave nothing
    out."""
    if not rows:
        return "There is no feed yet."
    loaded = sum(row.counts_as_loaded for row in rows)
    states = Counter(row.conditions[0].word for row in rows if not row.counts_as_loaded and row.task is None)
    others = "".join(f", {number} {'is' if number == 1 else 'are'} {word}" for word, number in sorted(states.items()))
    needy = [row for row in rows if row.task is not None]
    partly = sum(row.counts_as_loaded and row.feed.last_outcome == PARTIAL for row in rows)
    of_them = "" if partly == loaded else f" {partly:,} of them"
    but = f",{of_them} with rejected rows" if partly else ""
    text = f"{loaded:,} of {to_counted(len(rows), 'feed')} loaded{but}{others}."
    unsent = files and f" {files}"
    if not needy and unsent:
        return text + unsent
    if not needy:
        is_fine = is_whole and not (partly or others)
        return f"{text} {'Nothing needs' if is_fine else 'No decision waits for'} {doer}."
    if len(needy) > NAMED:
        words = Counter(row.conditions[0].word for row in needy)
        why = ", ".join(f"{number:,} {word}" for word, number in words.most_common())
    else:
        why = "; ".join(f"{row.feed.name}, because {row.conditions[0].first_cause}" for row in needy)
    return f"{text} {to_counted(len(needy), 'feed')} {'needs' if len(needy) == 1 else 'need'} {doer}: {why}.{unsent}"


def _make_row(
    feed: Feed,
    conditions: Sequence[Condition],
    last: FinishedRun | None,
    good: Sequence[FinishedRun],
    days: Sequence[str | None],
    people: int,
) -> FeedRow:
    growths = []
    if len(good) > 1:
        # An export that was loaded already has changed nothing.
        before = good[-1 if feed.last_outcome == UNCHANGED else -2]
        growths = [Growth(name, before.records.get(name, 0), good[-1].records.get(name, 0)) for name in COUNTED]
    return FeedRow(
        feed=feed,
        conditions=conditions,
        task=_find_task(feed, conditions[0]) if conditions[0].needs else None,
        is_loaded=feed.last_outcome in LOADED_OUTCOMES and not feed.is_emptied,
        last=last,
        days=days,
        good=good[-1].run if good else None,
        people=people if good else None,
        growth=max(growths, key=lambda growth: abs(growth.percent), default=None),
    )


def _find_task(feed: Feed, condition: Condition) -> str:
    own = f"/feeds/{to_segment(feed.name)}" if condition.run is None else f"/runs/{condition.run}"
    return f"{own}/held" if condition.word == HELD else own


def _sum_rest(rows: Sequence[FeedRow]) -> Iterator[Rest]:
    """Yields the feeds of each word, the most first."""
    words = Counter(row.conditions[0].word for row in rows)
    for word, number in words.most_common():
        own = [row for row in rows if row.conditions[0].word == word]
        yield Rest(word, own[0].conditions[0].colour, number, sum(row.people or 0 for row in own))


def _list_delivery_tasks(found: Sequence[Delivery]) -> Iterator[Task]:
    """Yields a task for each file of a vendor that was not sent."""
    for delivery in found:
        if delivery.needs:
            colour = Colour.WARN if delivery.state == WAITING else Colour.BAD
            verb = None
            if delivery.state == WAITING:
                verb = Verb.DELIVERY_APPROVE if delivery.enabled else Verb.DELIVERY_STOP
            subject, path = f"{delivery.vendor_name}: {delivery.name}", f"/vendors/{delivery.vendor_id}/files"
            yield Task(
                subject, delivery.word, colour, delivery.sentence, delivery.remedy, path=path, screen="files", verb=verb
            )


def _list_empty_rules(visit: Visit, found: Sequence[EmptyRule]) -> Iterator[Task]:
    """Yields what to look at for each rule that opens nothing. A rule may name a person, whom an observer does not
    see."""
    may_see = visit.signed_in.role.includes(OperatorRole.VIEWER)
    for rule in found:
        named = rule.filter if may_see else "what a rule asks for"
        text = f"no {rule.kind} of {rule.place} has {named} now, so this rule opens nothing"
        remedy = "change the rule, if its course or subject has another name"
        path, verb = f"/vendors/{rule.vendor_id}", Verb.VENDOR_GRANT
        yield Task(rule.vendor, "opens nothing", Colour.WARN, text, remedy, path=path, screen="vendor", verb=verb)


def _list_agreement_tasks(found: Sequence[KnownAgreement]) -> Iterator[Task]:
    """Yields what to look at for each agreement that does not hold now, ends soon, or is to be saved again."""
    for known in found:
        path, verb = f"/vendors/{known.vendor_id}/agreement", Verb.AGREEMENT_SET
        if known.review is not None and known.refusal is None:
            text = f"{known.agreement.title}: this version counts other rights to its elements"
            yield Task(
                known.name, "to review", Colour.WARN, text, known.review, path=path, screen="agreement", verb=verb
            )
        if known.refusal is None and (known.days_left or 0) >= NOTICE_DAYS:
            continue
        word, colour = ("ends soon", Colour.WARN) if known.refusal is None else ("holds not", Colour.BAD)
        text = f"{known.agreement.title}: {known.state}; its last day is {known.agreement.last_day}"
        remedy = (
            f"save the next agreement on its first day, or let it end; {known.agreement.contact} answers at the vendor"
        )
        if known.refusal is not None and known.days_left is not None:
            word, remedy = "begins later", "let it begin, or save one that holds now"
        yield Task(known.name, word, colour, text, remedy, path=path, screen="agreement", verb=verb)


def _list_deletion_tasks(found: Sequence[DeletionRequest]) -> Iterator[Task]:
    """Yields what to look at for each vendor that is asked to delete something and has not answered."""
    for one in found:
        colour = Colour.BAD if one.state == OVERDUE else Colour.WARN
        asked, due = (describe_day(date.fromisoformat(day)) for day in (one.asked, one.due))
        text = f"request {one.number} to delete the data of a person, asked on {asked}: the answer is due by {due}"
        remedy = "ask the vendor again, and note its answer"
        yield Task(one.name, one.state, colour, text, remedy, "/deletions", "deletions", verb=Verb.DELETION_ANSWER)


def _list_doubts(found: Sequence[Doubt]) -> Iterator[Task]:
    """Yields what to look at for each feed with values that hardly anything but a faulty export has."""
    for doubt in found:
        path = f"/quality?{urlencode({'feed': doubt.feed})}"
        remedy = "the page of data quality lists the records, and says what to do"
        yield Task(doubt.feed, "look", Colour.WARN, doubt.describe(), remedy, path, "quality")


def _sum_vendors(visit: Visit) -> VendorsToday:
    today = find_today(UTC)
    rows = read_usage(visit.connection, None, today)
    return VendorsToday(
        vendors=len({row.vendor for row in rows}),
        requests=sum(row.requests for row in rows),
        refused=count_refused(visit.connection, None, today),
        wrong=sum(row.requests for row in rows if row.status == "4xx"),
        failed=sum(row.requests for row in rows if row.status == "5xx"),
    )


SCREENS = (Screen("tonight", "", "Tonight", OperatorRole.OBSERVER, read_tonight, lambda it: it.rows, "Tonight"),)
FORMS = ()

"""The guard for receivers: a file after which a receiver would delete much waits for an operator."""

from __future__ import annotations

import heapq
import hmac
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from roster_service.db.instants import describe_day
from roster_service.deliveries.accounts import FIRST
from roster_service.feeds.feed_conditions import list_conditions
from roster_service.feeds.feeds import list_feeds
from roster_service.settings import Settings

KINDS = ("users", "classes", "enrollments")
# Beside the kinds in a sample: the hash of no id, which tells with which key the others were made.
KEY = "key"
# The ids of a kind that are compared: those with the smallest hashes, the same ones every night.
SAMPLED = 500
_HASH_BYTES = 6
# An erased person may have so many times the enrollments of the average one.
_ENROLLED = 3


@dataclass(frozen=True)
class Content:
    """What a file has, as a run keeps it. `at`: when it was made; `rows`, `schools`: as in `Package`; `sample`: the
    smallest hashes of ids by kind; `erased`: how many people were erased since."""

    at: datetime
    rows: Mapping[str, int]
    schools: Mapping[str, Mapping[str, int]]
    sample: Mapping[str, Sequence[int]]
    erased: int = 0


def make_sample(secret_key: str, ids: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[int]]:
    """Returns the smallest keyed hashes of the ids of each kind, and that of `KEY`."""
    key = hmac.digest(secret_key.encode(), b"roster sample of ids", "sha256")

    def hash_id(sourced_id: str) -> int:
        return int.from_bytes(hmac.digest(key, sourced_id.encode(), "sha256")[:_HASH_BYTES])

    return {KEY: [hash_id("")], **{kind: heapq.nsmallest(SAMPLED, map(hash_id, own)) for kind, own in ids.items()}}


def find_losses(new: Content, sent: Sequence[Content], percent: int, least: int) -> Iterator[str]:
    """Yields a sentence for each loss of more than `percent` of people, classes, enrollments or schools, of one school
    or in all, since one of the files that were `sent`, the last one first. A type with fewer than `least` rows counts
    only if all of them are gone. An erased person is no loss."""
    if not sent:
        yield FIRST
    elif not _has_same_key(sent[0], new):
        yield f"the ids cannot be compared with those of {describe_day(sent[0].at)}: ROSTER_SECRET_KEY is another one"
    for file, number in new.rows.items():
        # The last file may have called it absent, after which a receiver keeps what it has.
        before = next((old.rows[file] for old in sent if file in old.rows), 0)
        if before and not number:
            yield f"{file}.csv has no row, after which a receiver deletes all"
    for old in sent:
        day = describe_day(old.at)
        yield from (f"{words}, compared with the file of {day}" for words in _compare(new, old, percent, least))


def _has_same_key(old: Content, new: Content) -> bool:
    """Whether the hashes of two samples were made with one key, which the older ones do not say."""
    return KEY not in old.sample or old.sample[KEY] == new.sample.get(KEY)


def _compare(new: Content, old: Content, percent: int, least: int) -> Iterator[str]:
    def is_excess(before: int, after: int, people: int, kind: str) -> bool:
        share = old.erased / max(people, 1)
        allowed = percent / 100 + share * (_ENROLLED if kind == "enrollments" else 1)
        return before > 0 and (before >= least or after == 0) and before - after > allowed * before

    people = old.rows.get("users", 0)
    for kind in KINDS:
        before, after = old.rows.get(kind, 0), new.rows.get(kind, 0)
        if is_excess(before, after, people, kind):
            yield f"{before - after:,} of {before:,} {kind} would vanish"
        elif _has_same_key(old, new):
            before, after = _count_same(old.sample.get(kind, ()), new.sample.get(kind, ()))
            if is_excess(before, after, min(people, SAMPLED), kind):
                lost = 100 * (before - after) / before
                yield f"{lost:.0f}% of the {kind} would vanish, and others come in their place"
    # 1.2 has the schools of a user in its roles.
    people_at = old.schools.get("users") or old.schools.get("roles", {})
    for kind, counted in old.schools.items():
        for org, number in counted.items():
            left = new.schools.get(kind, {}).get(org, 0)
            if is_excess(number, left, people_at.get(org, 0), kind):
                yield f"{number - left:,} of {number:,} {kind} at {org} would vanish"
    schools = [set[str]().union(*content.schools.values()) for content in (old, new)]
    gone = schools[0] - schools[1]
    if len(gone) > percent / 100 * len(schools[0]):
        yield f"{len(gone):,} of {len(schools[0]):,} schools would vanish"


def _count_same(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """Returns how many of the old hashes can be compared, and how many of them the new file has."""
    ends = [max(hashes) for hashes in (old, new) if len(hashes) >= SAMPLED]
    compared = {hashed for hashed in old if not ends or hashed <= min(ends)}
    return len(compared), len(compared.intersection(new))


def find_feed_problems(connection: sa.Connection, names: Collection[str], settings: Settings) -> Iterator[str]:
    """Yields a sentence for each of these feeds that needs a person: it is held, stale or incomplete."""
    for feed in list_feeds(connection, settings.time_zone):
        if feed.name in names:
            needed = (condition for condition in list_conditions(feed, settings) if condition.needs)
            yield from (f"the feed {feed.name} is {condition.sentence}" for condition in needed)

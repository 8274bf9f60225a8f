"""People whom the roster, or one vendor, must not have: as operators erase, hide and bring them back.

An exclusion takes a person out of the roster in one transaction, and publishes the result. The sync then leaves the
person out of every export (`sync_scripts/staging/exclusions.py`). An erasure also removes the person from the history
of runs, and the exports that are held. A person who is kept from one vendor stays in the roster.

Each change needs an actor, and is one row of the change log, which names the person by a keyed hash.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roster_service.accounts.deletion_requests import DeletionRequest, add_request, forget_person
from roster_service.accounts.kept_people import KeptPerson, forget_kept, keep_from_vendor, list_kept, return_to_vendor
from roster_service.accounts.vendors import find_vendor
from roster_service.change_log.actors import Actor
from roster_service.change_log.changes import State, Subject, Verb, recorded
from roster_service.db.instants import find_today
from roster_service.db.tables import (
    ROSTER_TABLES,
    CTexts,
    changes,
    deletion_requests,
    departures,
    enrollments,
    feeds,
    ordering_chunks,
    orderings,
    sync_runs,
    user_profiles,
    users,
    vendor_grants,
    vendors,
)
from roster_service.errors import CommandError, StorageError
from roster_service.explore.known_people import Whereabouts, require_person
from roster_service.explore.person_names import LEAST_NAMING, is_named, list_ids, make_name_pattern
from roster_service.feeds import exclusions
from roster_service.feeds.exclusions import Exclusion, ExclusionKind, IdHasher
from roster_service.feeds.export_previews import drop_previews_with
from roster_service.feeds.feed_states import list_feed_ids
from roster_service.feeds.held_runs import HELD, close_held, drop_export, has_text, locate_export
from roster_service.feeds.roster_state import publish
from roster_service.feeds.run_history import delete_person_values
from roster_service.feeds.sharing_groups import lock_groups
from roster_service.feeds.sharing_members import note_candidates
from roster_service.feeds.sync_lock import Say, say_later, take_sync_lock
from roster_service.feeds.undo import forget_copies
from roster_service.roster.references import list_owners, list_references_to
from roster_service.roster.stamps import make_next_stamp
from roster_service.schemas.rule_words import replace_values
from roster_service.settings import Settings

_VERBS = {ExclusionKind.ERASED: Verb.PERSON_ERASE, ExclusionKind.HIDDEN: Verb.PERSON_HIDE}
_ENDS = {ExclusionKind.ERASED: Verb.PERSON_LIFT, ExclusionKind.HIDDEN: Verb.PERSON_SHOW}
# The fields of a rule of students whose value is one person's, and what the change log has for an erased one.
_IDENTIFYING = frozenset(
    {
        *("sourcedId", "username", "email", "identifier", "userMasterIdentifier", "userIds.identifier"),
        *("agents.sourcedId", "userProfiles.credentials.username"),
    }
)
_ERASED = "(erased)"
# What an erasure of somebody who is hidden, purged or not there yet cannot find.
_NAMELESS = (
    "the roster has no names of the person now: reasons, rules of grants and rejected rows that have other ones than "
    "the id stay; look for them in `roster changes` and `roster sync rejected`"
)
# Seconds between two looks at the transactions that are still open.
_PAUSE = 0.1


def _say_nothing(_words: str) -> None:
    pass


@dataclass(frozen=True)
class Removal:
    """A person who was taken out of the roster. `reference`: the keyed hash by which the change log names the person;
    `naming`: the pattern of the person's ids and names, None if the person stays in files; `records`: numbers of
    deleted records by table; `ids`: of the person and these records; `held_exports`: the paths of exports that `finish`
    deletes; `kept_exports`: of those that were kept for an undo; `is_named`: whether the roster had the person, and so
    the names."""

    kind: ExclusionKind
    reference: str
    naming: str | None
    records: Mapping[str, int]
    ids: tuple[str, ...]
    held_exports: tuple[str, ...]
    kept_exports: tuple[str, ...]
    is_named: bool


def exclude_person(
    connection: sa.Connection,
    actor: Actor,
    kind: ExclusionKind,
    sourced_id: str,
    settings: Settings,
    say: Say = _say_nothing,
    *,
    must_be_known: bool = True,
) -> Removal:
    """Takes a person out of the roster, and out of every later export. A person whom the roster does not have any more,
    or, without `must_be_known`, has not had yet, is only kept out. It waits for the end of a sync that is under way,
    and says so.

    Consumers of deltas have to read the whole roster, because they see no tombstone. After the commit, the caller calls
    `finish`. Raises UnknownPersonError if nobody has the id and somebody must, and CommandError if the reason of the
    actor names the person, or the rule of a grant names whom it erases.
    """
    hasher = IdHasher(settings.read_secret_key())
    with _recorded(connection, actor, _VERBS[kind], hasher.name_id(sourced_id)):
        take_sync_lock(connection, "takes a person out", say)
        if must_be_known:
            require_person(connection, sourced_id, settings.read_secret_key())
        person = connection.execute(sa.select(users).where(users.c.sourced_id == sourced_id)).one_or_none()
        naming = make_name_pattern(sourced_id, person)
        _require_nameless(actor, naming)
        own = sa.select(enrollments.c.sourced_id).where(enrollments.c.user_id == sourced_id)
        ids = (sourced_id, *connection.scalars(own))
        held: Sequence[str] = ()
        kept: Sequence[str] = ()
        rare: str | None = None
        feed_ids = list_feed_ids(connection) if person is None else [person.feed_id]
        # Before the rows of vendors and the departures, as whoever keeps a person takes it.
        lock_groups(connection)
        if kind is ExclusionKind.ERASED:
            # A short id or number is also the value of others, such as a grade.
            rare = make_name_pattern(sourced_id, person, LEAST_NAMING)
            delete_person_values(connection, ids, rare)
            ids_of_rules = list_ids(sourced_id, person, _list_profile_names(connection, sourced_id))
            _require_no_rule(connection, ids_of_rules)
            forget_kept(connection, sourced_id)
            forget_person(connection, hasher.hash_id(sourced_id))
            _forget_logged(connection, naming, ids_of_rules)
            held = _discard_held(connection, feed_ids, sourced_id, settings.home)
            kept = forget_copies(connection, sync_runs.c.feed_id.in_(feed_ids))
        stamp = make_next_stamp(connection)
        own_record = sa.select(users.c.sourced_id).where(users.c.sourced_id == sourced_id)
        noted = note_candidates(connection, {users: own_record})
        records = _delete_records(connection, sourced_id, stamp)
        departed = connection.execute(sa.delete(departures).where(departures.c.person_id == sourced_id)).rowcount
        exclusions.store_exclusion(connection, hasher, kind, sourced_id)
        _delete_orderings(connection, ids)
        if records or departed:
            publish(connection, feed_ids, as_of=stamp, deletions_since=stamp, noted=noted)
    return Removal(
        kind=kind,
        reference=hasher.name_id(sourced_id),
        naming=rare,
        records=records,
        ids=ids,
        held_exports=tuple(held),
        kept_exports=tuple(kept),
        is_named=person is not None,
    )


def finish(engine: sa.Engine, home: Path, removal: Removal, seconds: float, say: Say = _say_nothing) -> bool:
    """Does what follows the commit of a removal: deletes the exports that have an erased person from the data folder,
    and sweeps. `seconds`: to wait at most; it says so. Returns whether the requests that began before the removal have
    ended. Raises StorageError, after all else, for an export that it cannot find and delete."""
    exports = (*removal.held_exports, *removal.kept_exports)
    left = [str(locate_export(export, home)) for export in exports if not drop_export(export, home)]
    if removal.naming is not None:
        names_person = functools.partial(is_named, naming=removal.naming)
        drop_previews_with(home, lambda folder: export_has(folder, removal.ids[0]), names_person)
    with say_later(say, f"waiting at most {seconds:.0f} seconds for the end of requests that began before"):
        has_ended = sweep(engine, removal, seconds)
    if removal.kind is ExclusionKind.ERASED:
        exclusions.renew_statistics(engine)
    if left:
        raise StorageError(
            f"{', '.join(left)} cannot be found or deleted, and may have the person: delete it as its owner"
        )
    return has_ended


def describe_removal(removal: Removal, *, has_ended: bool, dry_run: bool) -> str:
    """Returns what a removal has deleted, in words."""
    records = ", ".join(f"{count:,} {name}" for name, count in removal.records.items()) or "no records"
    lines = [
        f"{'would be ' if dry_run else ''}{removal.kind}: {records}; the change log says {removal.reference}",
        *([f"held runs discarded: {len(removal.held_exports)}"] if removal.held_exports else []),
        *([_NAMELESS] if removal.kind is ExclusionKind.ERASED and not removal.is_named else []),
        *([] if has_ended else ["a transaction from before is still open; do it again when it has ended"]),
    ]
    return "\n".join(lines)


def add_new_ids(
    connection: sa.Connection, actor: Actor, named: Mapping[str, str], settings: Settings, *, others_gone: bool
) -> None:
    """Keeps excluded people out, and kept ones from their vendors, under their new ids too. `named`: the new ids by the
    former ids or references; `others_gone`: all others are in no export. Raises CommandError for a person who is
    neither, for one of whom nothing is said, and if the reason of the actor has one of the ids."""
    lock_groups(connection)
    hasher = IdHasher(settings.read_secret_key())
    excluded = {item.reference: item for item in exclusions.list_exclusions(connection)}
    kept: dict[str, list[KeptPerson]] = {}
    for person in list_kept(connection):
        kept.setdefault(hasher.name_id(person.sourced_id), []).append(person)
    known = excluded.keys() | kept.keys()
    new_ids = {name if name in known else hasher.name_id(name): new_id for name, new_id in named.items()}
    if unknown := new_ids.keys() - known:
        raise CommandError(
            f"nobody is erased, hidden or kept from a vendor as {', '.join(sorted(unknown))}; `roster person list` "
            "shows all"
        )
    if not others_gone and (missing := known - new_ids.keys()):
        said = sorted(kept[name][0].sourced_id if name in kept else name for name in missing)
        raise CommandError(f"nothing is said of {', '.join(said)}; name the new ids, or say `--others-gone`")
    for sourced_id in (*named, *new_ids.values()):
        _require_nameless(actor, make_name_pattern(sourced_id, None))
    for reference, new_id in new_ids.items():
        if reference in excluded:
            kind = excluded[reference].kind
            with _recorded(connection, actor, _VERBS[kind], hasher.name_id(new_id)):
                exclusions.store_exclusion(connection, hasher, kind, new_id)
        for person in kept.get(reference, ()):
            if list_kept(connection, sourced_id=new_id, vendor_id=person.vendor_id):
                continue
            with _recorded_kept(connection, actor, Verb.PERSON_HIDE, person.vendor, new_id, hasher):
                keep_from_vendor(connection, person.vendor_id, new_id)


def end_exclusion(
    connection: sa.Connection, actor: Actor, kind: ExclusionKind, person: str, settings: Settings
) -> Exclusion:
    """Ends an exclusion; the next load of the feed brings the person back. `person`: a sourcedId, or a reference of
    `list_exclusions`. Raises CommandError if the person is not excluded in this way, and for a sourcedId while another
    exclusion, made with another secret key, may be of the same person."""
    hasher = IdHasher(settings.read_secret_key())
    found = exclusions.find_exclusion(connection, person, hasher.name_id(person))
    if found is None or found.kind is not kind:
        raise CommandError(f"there is no {kind} person with this id; `roster person list` shows all")
    if found.reference != person and exclusions.list_under_other_keys(connection, hasher):
        raise CommandError(
            "some people are excluded under another ROSTER_SECRET_KEY; name the exclusion to end by its reference in "
            "`roster person list`, which shows the key of each"
        )
    with _recorded(connection, actor, _ENDS[kind], found.reference):
        exclusions.delete_exclusion(connection, found.reference)
    return found


def keep_person(
    connection: sa.Connection, actor: Actor, email: str, sourced_id: str, settings: Settings, *, shown: bool = False
) -> KeptPerson:
    """Keeps a person from a vendor, whatever the roster has, or with `shown` ends that; returns the person as kept. The
    vendor is told by its deltas, and nobody else sees a change.

    Raises CommandError for an unknown vendor, for a person who is kept already, or not, and if the reason of the actor
    names the person; UnknownPersonError if nobody has the id.
    """
    vendor = find_vendor(connection, email)
    # An erasure that is about to commit takes the person, too.
    lock_groups(connection)
    hasher = IdHasher(settings.read_secret_key())
    verb = Verb.PERSON_SHOW if shown else Verb.PERSON_HIDE
    with _recorded_kept(connection, actor, verb, vendor.email, sourced_id, hasher):
        before = list_kept(connection, sourced_id=sourced_id, vendor_id=vendor.id)
        if bool(before) != shown:
            raise CommandError(f"{sourced_id} is {'not' if shown else 'already'} kept from {vendor.email}")
        person = connection.execute(sa.select(users).where(users.c.sourced_id == sourced_id)).one_or_none()
        _require_nameless(actor, make_name_pattern(sourced_id, person))
        if shown:
            return_to_vendor(connection, vendor.id, sourced_id)
            return before[0]
        if require_person(connection, sourced_id, settings.read_secret_key()).whereabouts is Whereabouts.ERASED:
            raise CommandError(f"{sourced_id} is erased, so no vendor gets the person, and nothing may tell of them")
        keep_from_vendor(connection, vendor.id, sourced_id)
    return list_kept(connection, sourced_id=sourced_id, vendor_id=vendor.id)[0]


def keep_same_people(connection: sa.Connection, actor: Actor, email: str, new_email: str, settings: Settings) -> None:
    """Keeps from a new account of a company whoever is kept from its other one. Raises CommandError for an unknown
    vendor."""
    hasher, made = IdHasher(settings.read_secret_key()), find_vendor(connection, new_email)
    lock_groups(connection)
    for kept in list_kept(connection, vendor_id=find_vendor(connection, email).id):
        with _recorded_kept(connection, actor, Verb.PERSON_HIDE, made.email, kept.sourced_id, hasher):
            keep_from_vendor(connection, made.id, kept.sourced_id)


def note_answer(connection: sa.Connection, actor: Actor, sourced_id: str, settings: Settings) -> None:
    """Notes that the answer to a parent about a person is made. Raises CommandError if the reason of the actor names
    the person."""
    person = connection.execute(sa.select(users).where(users.c.sourced_id == sourced_id)).one_or_none()
    _require_nameless(actor, make_name_pattern(sourced_id, person))
    reference = IdHasher(settings.read_secret_key()).name_id(sourced_id)
    with recorded(connection, actor, Verb.PERSON_ANSWER, Subject("person", reference), dict):
        pass


def ask_deletion(
    connection: sa.Connection, actor: Actor, email: str, sourced_id: str, due: date, settings: Settings
) -> DeletionRequest:
    """Notes that a vendor is asked to delete what it has of a person, and to answer by a day. Raises UnknownPersonError
    if nobody has the id, and CommandError for an unknown vendor, an erased person, if the reason of the actor names the
    person, and as `add_request`."""
    vendor, key = find_vendor(connection, email), settings.read_secret_key()
    # An erasure that is about to commit takes it, too.
    lock_groups(connection)
    if require_person(connection, sourced_id, key).whereabouts is Whereabouts.ERASED:
        raise CommandError(f"{sourced_id} is erased, and nothing may tell of the person: write to the vendor yourself")
    person = connection.execute(sa.select(users).where(users.c.sourced_id == sourced_id)).one_or_none()
    _require_nameless(actor, make_name_pattern(sourced_id, person))
    today = find_today(settings.time_zone)
    return add_request(connection, actor, vendor, IdHasher(key).hash_id(sourced_id), due, today)


# PostgreSQL shows these columns to every role; a transaction has a lock on its own number until it ends.
_OPEN = sa.text(
    "SELECT l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'virtualxid' "
    "AND a.datname = current_database() AND a.usename IS NOT NULL AND l.pid <> pg_backend_pid()"
)


def sweep(engine: sa.Engine, removal: Removal, seconds: float) -> bool:
    """Deletes what requests that began before the removal have stored of it since. Waits for them, for at most
    `seconds`. Returns whether all of them have ended."""
    with engine.begin() as connection:
        waiting = set(connection.scalars(_OPEN))
    deadline = time.monotonic() + seconds
    while True:
        with engine.begin() as connection:
            waiting &= set(connection.scalars(_OPEN))
            _delete_orderings(connection, removal.ids)
        if not waiting or time.monotonic() > deadline:
            return not waiting
        time.sleep(_PAUSE)


def _recorded(connection: sa.Connection, actor: Actor, verb: Verb, reference: str) -> Any:
    """Records the change of an exclusion that the block makes."""

    def read_state() -> State:
        found = exclusions.find_exclusion(connection, reference)
        return None if found is None else {"kind": found.kind}

    return recorded(connection, actor, verb, Subject("person", reference), read_state)


def _recorded_kept(
    connection: sa.Connection, actor: Actor, verb: Verb, email: str, sourced_id: str, hasher: IdHasher
) -> Any:
    """Records the change of who is kept from a vendor that the block makes."""

    def read_state() -> State:
        return {"kept_from": [kept.vendor for kept in list_kept(connection, sourced_id=sourced_id)]}

    return recorded(connection, actor, verb, Subject("person", hasher.name_id(sourced_id), vendor=email), read_state)


def _delete_records(connection: sa.Connection, sourced_id: str, stamp: Any) -> dict[str, int]:
    """Deletes a user with all that belongs to it. Other users who named it as an agent are changed at the stamp."""
    references = list_references_to(users)
    for named in (reference for reference in references if reference.record is users):
        naming = sa.select(named.own).where(named.column == sourced_id)
        connection.execute(sa.update(users).where(users.c.sourced_id.in_(naming)).values(date_last_modified=stamp))
    counts = {
        column.table: connection.execute(sa.delete(column.table).where(column == sourced_id)).rowcount
        for column in (*list_owners(users), *(reference.column for reference in references), users.c.sourced_id)
    }
    return {table.name: count for table, count in counts.items() if count and table in ROSTER_TABLES}


def _delete_orderings(connection: sa.Connection, ids: Sequence[str]) -> None:
    """Deletes the orderings that have one of the ids. A pull that reads one of them is refused."""
    having = sa.select(ordering_chunks.c.ordering_id).where(
        ordering_chunks.c.ids.overlap(sa.literal(list(ids), CTexts))
    )
    found = connection.scalars(having.distinct()).all()
    for column in (ordering_chunks.c.ordering_id, orderings.c.id):
        connection.execute(sa.delete(column.table).where(column.in_(found)))


def _require_nameless(actor: Actor, naming: str) -> None:
    if is_named(actor.reason or "", naming):
        raise CommandError("the reason names the person, and the change log would keep it; give another reason")


def _require_no_rule(connection: sa.Connection, ids: Collection[str]) -> None:
    rules = sa.select(vendors.c.email, vendor_grants.c.students).where(
        vendors.c.id == vendor_grants.c.vendor_id, vendor_grants.c.students.is_not(None)
    )
    found = {
        email for email, rule in connection.execute(rules) if replace_values(rule, _IDENTIFYING, ids, _ERASED) != rule
    }
    if found:
        raise CommandError(f"the rules of {', '.join(sorted(found))} name the person; grant with other ones first")


def _list_profile_names(connection: sa.Connection, sourced_id: str) -> Iterator[str]:
    """The usernames of a person's profiles."""
    own = sa.select(user_profiles.c.credentials).where(user_profiles.c.user_id == sourced_id)
    for credentials in connection.scalars(own):
        yield from (entry["username"] for entry in credentials or () if entry.get("username"))


def _forget_logged(connection: sa.Connection, naming: str, ids: Collection[str]) -> None:
    """Takes a person out of what operators typed: the reasons that name the person, also of pauses, the answers of
    vendors, and the values in rules of grants."""
    named = _find_naming(connection, changes.c.id, changes.c.reason, naming)
    connection.execute(sa.update(changes).where(named).values(reason=None))
    paused = _find_naming(connection, feeds.c.id, feeds.c.pause_reason, naming)
    connection.execute(sa.update(feeds).where(paused).values(pause_reason=_ERASED))
    for column in (changes.c.before, changes.c.after):
        why = _find_naming(connection, changes.c.id, column["pause_reason"].astext, naming)
        erased_reason = sa.func.jsonb_build_object("pause_reason", _ERASED)
        connection.execute(sa.update(changes).where(why).values({column: column.concat(erased_reason)}))
    # Of those under another secret key, none is found by its person.
    answered = _find_naming(connection, deletion_requests.c.id, deletion_requests.c.words, naming)
    connection.execute(sa.update(deletion_requests).where(answered).values(words=""))
    values = (changes.c.before, changes.c.after)
    has_rule = sa.or_(*(sa.cast(value, sa.Text).contains('"students"') for value in values))
    rows = sa.select(changes.c.id, *values).where(changes.c.kind == "vendor", has_rule)
    for number, *states in connection.execute(rows).all():
        erased = [_erase_grants(state, ids) for state in states]
        if erased != states:
            own = sa.update(changes).where(changes.c.id == number)
            connection.execute(own.values(dict(zip(values, erased, strict=True))))


def _find_naming(
    connection: sa.Connection, key: sa.Column[int], text: sa.ColumnElement[Any], naming: str
) -> sa.ColumnElement[bool]:
    """The condition of the rows, by their key, whose text names a person."""
    rows = connection.execute(sa.select(key, text).where(text.is_not(None)))
    return key.in_([number for number, said in rows if is_named(said, naming)])


def _erase_grants(state: State, ids: Collection[str]) -> State:
    """Returns the state of a vendor with the ids taken out of the rules of students in its grants, and out of the words
    for them."""
    if state is None or "grants" not in state:
        return state

    def erase(part: Any) -> Any:
        if not isinstance(part, dict) or not part.get("students"):
            return part
        rule = replace_values(part["students"], _IDENTIFYING, ids, _ERASED)
        return part | {"students": rule, "only": part["only"].replace(part["students"], rule)}

    return {**state, "grants": [[erase(part) for part in grant] for grant in state["grants"]]}


def export_has(export: Path, sourced_id: str) -> bool:
    """Returns whether an export may have a person. Exports of other formats have the last part of an id alone, without
    its escapes (`make_id` in `sync_scripts/formats/conversion.py`)."""
    own = sourced_id.rpartition(":")[2]
    plain = own.replace("%3A", ":").replace("%25", "%")
    return has_text(export, *(text.replace('"', '""') for text in (own, plain)))


def list_held_with(connection: sa.Connection, sourced_id: str, home: Path) -> list[tuple[int, str]]:
    """Returns (number, feed) of the held runs that an erasure of a person ends, because their exports have the person.
    `home`: the data folder."""
    feed_id = connection.scalar(sa.select(users.c.feed_id).where(users.c.sourced_id == sourced_id))
    feed_ids = list_feed_ids(connection) if feed_id is None else [feed_id]
    return [(row.id, row.feed) for row in _find_held(connection, feed_ids, sourced_id, home)]


def _find_held(connection: sa.Connection, feed_ids: Sequence[int], sourced_id: str, home: Path) -> list[Any]:
    """The held runs of feeds whose exports have a person."""
    held = sa.select(sync_runs.c.id, sync_runs.c.feed_id, sync_runs.c.kept_export, feeds.c.name.label("feed"))
    held = held.join(feeds, feeds.c.id == sync_runs.c.feed_id).order_by(sync_runs.c.id)
    held = held.where(sync_runs.c.feed_id.in_(feed_ids), sync_runs.c.outcome == HELD)
    return [row for row in connection.execute(held) if export_has(locate_export(row.kept_export, home), sourced_id)]


def _discard_held(connection: sa.Connection, feed_ids: Sequence[int], sourced_id: str, home: Path) -> list[str]:
    """Discards the held runs of feeds whose exports have the person, and their digests. Returns their exports."""
    having = _find_held(connection, feed_ids, sourced_id, home)
    own = sync_runs.c.id.in_([row.id for row in having])
    kept = close_held(connection, own, "discarded", "discarded, because its export has a person who was erased since")
    connection.execute(sa.update(sync_runs).where(own).values(kept_digest=None, preview=None))
    of_feeds = feeds.c.id.in_([row.feed_id for row in having])
    connection.execute(sa.update(feeds).where(of_feeds).values(last_digest=None))
    return kept

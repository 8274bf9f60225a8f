"""`roster person`: people whom the roster, or one vendor, must not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

import click

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.writer import move_rows_of_ended_workers
from roster_service.accounts.kept_people import list_kept
from roster_service.cli import terminal
from roster_service.cli.access_log import DAY
from roster_service.db.instants import describe_day, format_instant
from roster_service.deliveries.recipients import WITH_PERSON, list_recipients
from roster_service.explore.known_people import KnownPerson, describe_cut, find_person, list_alike, require_person
from roster_service.explore.person_answer import CompanyAnswer, PersonAnswer, make_answer
from roster_service.feeds.exclusions import Exclusion, ExclusionKind, IdHasher, list_exclusions, list_under_other_keys
from roster_service.people import describe_removal, end_exclusion, exclude_person, finish, keep_person, note_answer
from roster_service.roster.revisions import open_roster_engine

even_unknown = click.option(
    "--even-unknown",
    is_flag=True,
    help="Also if nothing here has this id: whoever comes with it later stays out. A mistyped id keeps nobody out.",
)
# Seconds beyond the longest request for which the command waits for requests that began before it.
MARGIN_SECONDS = 5


@click.group()
def person() -> None:
    """People whom the roster, or one vendor, must not have; and what vendors were sent of one."""


@person.command("erase")
@click.argument("sourced_id", metavar="SOURCEDID")
@even_unknown
@terminal.confirmed_change_options
def person_erase(sourced_id: str, even_unknown: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Erase the person SOURCEDID for good, as a court orders.

    The person goes from the roster, the texts and orderings made of it, the history of runs, and held exports, which
    are discarded. Later exports do not bring the person back, unless `roster person lift` lets them. The files of the
    SIS, and backups, stay as they are. Ask vendors to delete first: nothing asks about an erased person.
    """
    confirm_person(
        "this deletes what the roster has of the person for good, and keeps the person out of later exports.",
        sourced_id,
        is_confirmed=yes,
        dry_run=dry_run,
        even_unknown=even_unknown,
    )
    _exclude(ExclusionKind.ERASED, sourced_id, even_unknown=even_unknown, dry_run=dry_run, as_json=as_json)


@person.command("hide")
@click.argument("sourced_id", metavar="SOURCEDID")
@click.option("--from", "vendor", metavar="EMAIL", help="Keep the person from this vendor alone, as by a court order.")
@even_unknown
@terminal.confirmed_change_options
def person_hide(
    sourced_id: str, vendor: str | None, even_unknown: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Take the person SOURCEDID out of the roster; with --from, out of what one vendor sees.

    A family that opts out of directory data asks for it. `roster person show` ends it.
    """
    if vendor is not None and even_unknown:
        raise click.UsageError("--from keeps a person whom the service knows; --even-unknown does not go with it")
    if vendor is not None:
        confirm_person(f"this keeps the person from {vendor}.", sourced_id, is_confirmed=yes, dry_run=dry_run)
        _keep(sourced_id, vendor, shown=False, dry_run=dry_run, as_json=as_json)
        return
    effect = "this takes the person out of the roster."
    confirm_person(effect, sourced_id, is_confirmed=yes, dry_run=dry_run, even_unknown=even_unknown)
    _exclude(ExclusionKind.HIDDEN, sourced_id, even_unknown=even_unknown, dry_run=dry_run, as_json=as_json)


def confirm_person(
    effect: str, sourced_id: str, *, is_confirmed: bool, dry_run: bool = False, even_unknown: bool = False
) -> None:
    """Names the person, for whom a mistyped id may stand, and who else may be meant, and asks to go on, unless
    `dry_run`. Raises UnknownPersonError if nobody has the id, unless `even_unknown`."""
    if is_confirmed:
        return
    with terminal.open_connection() as connection:
        secret_key = terminal.require_key(connection)
        find = find_person if even_unknown else require_person
        known, alike = find(connection, sourced_id, secret_key), list_alike(connection, sourced_id)
    _name_alike(alike)
    named = terminal.escape(str(known or f"nobody here has the id {sourced_id}"))
    if dry_run:
        _say(f"{named}: {effect}")
    terminal.confirm(f"{named}: {effect}", sourced_id, is_confirmed=dry_run)


def _name_alike(alike: Sequence[KnownPerson]) -> None:
    for person in alike:
        _say(f"somebody else may be meant: {terminal.escape(str(person))}")
    if cut := describe_cut(alike):
        _say(cut)


def _say(words: str) -> None:
    click.echo(words, err=True)


def _exclude(kind: ExclusionKind, sourced_id: str, *, even_unknown: bool, dry_run: bool, as_json: bool) -> None:
    settings = terminal.read_settings()
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        secret_key = terminal.require_key(connection)
        removal = exclude_person(connection, actor, kind, sourced_id, settings, _say, must_be_known=not even_unknown)
        recipients = list_recipients(connection, sourced_id, secret_key)
    has_ended = True
    if not dry_run:
        with open_roster_engine(settings) as engine:
            has_ended = finish(engine, settings.home, removal, settings.request_seconds + MARGIN_SECONDS, _say)
    shown = {
        "reference": removal.reference,
        "kind": kind,
        "records": dict(removal.records),
        "held_runs": len(removal.held_exports),
        "requests_ended": has_ended,
        "recipients": [asdict(recipient) for recipient in recipients],
        "dry_run": dry_run,
    }
    words = [
        describe_removal(removal, has_ended=has_ended, dry_run=dry_run),
        *(recipient.describe(WITH_PERSON) for recipient in recipients),
    ]
    terminal.show(shown, as_json, lambda _: "\n".join(words))


@person.command("lift")
@click.argument("named", metavar="SOURCEDID|REFERENCE")
@terminal.confirmed_change_options
def person_lift(named: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Lift an erasure, so that the next load of the feed may bring the person anew.

    It brings none of the deleted data back.
    """
    effect = "What was deleted stays deleted; this lets the next load of the feed bring the person anew."
    terminal.confirm(effect, named, is_confirmed=yes or dry_run)
    _end(ExclusionKind.ERASED, named, dry_run=dry_run, as_json=as_json)


@person.command("show")
@click.argument("named", metavar="SOURCEDID|REFERENCE")
@click.option("--from", "vendor", metavar="EMAIL", help="No longer keep the person SOURCEDID from this vendor.")
@terminal.confirmed_change_options
def person_show(named: str, vendor: str | None, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Show a hidden person again; with --from, to one vendor.

    The next load of the feed brings a hidden person back.
    """
    if vendor is not None:
        terminal.confirm(f"This lets {vendor} see the person.", named, is_confirmed=yes or dry_run)
        _keep(named, vendor, shown=True, dry_run=dry_run, as_json=as_json)
        return
    terminal.confirm("This lets the next load of the feed bring the person back.", named, is_confirmed=yes or dry_run)
    _end(ExclusionKind.HIDDEN, named, dry_run=dry_run, as_json=as_json)


def _end(kind: ExclusionKind, named: str, *, dry_run: bool, as_json: bool) -> None:
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        terminal.require_key(connection)
        ended = end_exclusion(connection, actor, kind, named, terminal.read_settings())
    words = (
        f"{ended.reference} {'would be' if dry_run else 'is'} no longer {kind}; the next load of the feed brings the "
    )
    words += "person anew: what was deleted stays deleted" if kind is ExclusionKind.ERASED else "person back"
    terminal.show(_to_json(ended) | {"dry_run": dry_run}, as_json, lambda _: words)


def _keep(sourced_id: str, vendor: str, *, shown: bool, dry_run: bool, as_json: bool) -> None:
    settings = terminal.read_settings()
    with terminal.open_change(dry_run=dry_run) as (connection, actor):
        secret_key = terminal.require_key(connection)
        kept = keep_person(connection, actor, vendor, sourced_id, settings, shown=shown)
        recipients = [] if shown else list_recipients(connection, sourced_id, secret_key)
    sent = [recipient for recipient in recipients if recipient.vendor == kept.vendor]
    state = f"{'would be' if dry_run else 'is'} {'no longer ' if shown else ''}kept from {kept.vendor}"
    words = [f"{sourced_id} {state}", *(recipient.describe(WITH_PERSON) for recipient in sent)]
    done = {"sourced_id": sourced_id, "vendor": kept.vendor, "kept": not shown, "dry_run": dry_run}
    terminal.show(done | {"recipients": [asdict(recipient) for recipient in sent]}, as_json, lambda _: "\n".join(words))


@person.command("list")
@terminal.as_json
def person_list(as_json: bool) -> None:
    """List the erased and the hidden people, and those kept from a vendor.

    Erased ones by a keyed hash alone, each with whether it was made with the present secret key.
    """
    with terminal.open_connection() as connection:
        excluded, kept_people = list_exclusions(connection), list_kept(connection)
        hasher = IdHasher(terminal.require_key(connection) if excluded or kept_people else "")
        others = list_under_other_keys(connection, hasher)
    found = [
        _to_json(item) | {"vendor": None, "key": "another" if item.reference in others else "present"}
        for item in excluded
    ]
    found += [
        {
            "reference": hasher.name_id(kept.sourced_id),
            "kind": "kept",
            "sourced_id": kept.sourced_id,
            "at": format_instant(kept.since),
            "vendor": kept.vendor,
            "key": None,
        }
        for kept in kept_people
    ]
    rows = [terminal.to_texts(item, "at") for item in found]
    terminal.show_table(found, as_json, rows, "nobody is erased or hidden, or kept from a vendor")


def _to_json(item: Exclusion) -> dict[str, Any]:
    return asdict(item) | {"at": format_instant(item.at)}


@person.command("answer")
@click.argument("sourced_id", metavar="SOURCEDID")
@click.option("--since", type=DAY, help="The first day of the period, in UTC; none: all that the access log has.")
@click.option("--until", type=DAY, help="The last day of the period, in UTC; none: today.")
@terminal.change_options
def person_answer(sourced_id: str, since: datetime | None, until: datetime | None, as_json: bool) -> None:
    """Answer a parent in plain words: what vendors were sent of the person SOURCEDID, and may get.

    It also says what the access log cannot say, and on the standard error who else may be meant. The console has the
    same as a page to print. The change log records it.
    """
    settings = terminal.read_settings()
    with terminal.open_change() as (connection, actor):
        missing = move_rows_of_ended_workers(connection.engine, settings.access_log_folder)
        secret_key = terminal.require_key(connection)
        answer = make_answer(
            connection,
            require_person(connection, sourced_id, secret_key),
            settings,
            PersonHasher(secret_key),
            since=None if since is None else since.date(),
            until=None if until is None else until.date(),
            is_whole=missing is None,
        )
        note_answer(connection, actor, sourced_id, settings)
        alike = [] if as_json else list_alike(connection, sourced_id)
    _name_alike(alike)
    terminal.show(answer, as_json, lambda _: "\n".join(map(terminal.escape, _describe_answer(answer))))


def _describe_answer(answer: PersonAnswer) -> Iterator[str]:
    person = answer.person
    named = ", ".join(filter(None, (person.name or person.sourcedId, person.detail)))
    yield f"{', '.join([*answer.districts, ''])}made on {_show(answer.made)} for {named}"
    yield f"Period: {'' if answer.since is None else f'from {_show(answer.since)} '}to {_show(answer.until)}"
    for company in answer.companies:
        yield from ("", *_describe_company(company))
    if answer.others:
        yield ""
        yield f"As far as the log says, sent nothing, and may get nothing now: {', '.join(answer.others)}"
    yield from ("", "What the log cannot say:", *(f"  {sentence}" for sentence in answer.log))


def _describe_company(company: CompanyAnswer) -> Iterator[str]:
    yield f"{company.name or 'A company that is gone'} ({', '.join([company.email, *company.products])})"
    if company.purpose is not None and company.agreed_until is not None:
        yield f"  for {company.purpose}; the agreement with it ends after {_show(company.agreed_until)}"
    for sent in company.sent:
        days = "1 day" if sent.days == 1 else f"{sent.days:,} days"
        yield (f"  was sent {'; '.join(sent.parts)}: on {days} from {_show(sent.first)} to {_show(sent.last)}")
    if not company.sent:
        yield "  was sent nothing in this period, as far as the log says"
    for one in company.may_get:
        yield f"  may get {'; '.join(one.parts)}: {', or '.join(one.by)}"
    if company.held_back:
        yield f"  does not get, although the school has it: {'; '.join(company.held_back)}"
    if company.nothing:
        yield f"  may get nothing: {company.nothing}"
    for sentence in company.asked:
        yield f"  {sentence}"
    if company.kept_since is not None:
        yield f"  everything about this person is kept from it since {_show(company.kept_since)}"


def _show(day: str) -> str:
    return describe_day(date.fromisoformat(day))

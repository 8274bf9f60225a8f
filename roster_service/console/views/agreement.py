"""The agreement of a vendor: what the paper says, whether it holds, and what is granted beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date
from hashlib import sha256

import sqlalchemy as sa

from roster_service.accounts.agreements import SavedAgreement, list_always, remove_agreement, save_agreement
from roster_service.accounts.districts import DISTRICT, SCHOOL, DistrictName, find_org, list_named_districts
from roster_service.accounts.known_agreements import Agreement, KnownAgreement, find_agreement, is_required
from roster_service.accounts.parts import PARTS
from roster_service.accounts.vendor_rights import read_withheld_default
from roster_service.change_log.actors import Actor, ActorKind, OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor
from roster_service.console.vendor_words import VendorHead, list_own_clients, read_head
from roster_service.console.views.wizard import make_copy_query
from roster_service.console.visit import Again, Moved, Outcome, Submission, Visit
from roster_service.db.instants import name_zone
from roster_service.errors import CommandError


@dataclass(frozen=True)
class AgreementPage:
    """The agreement of a vendor, None for none. `facts`: what it says, by a word for each; `values`: of the form, by
    the name of each, and `version` that of the agreement which it was made from; `saving`: what it would be with these,
    None before somebody asks, or where that is refused, and `seen`: what a form sends that has shown it; `required`:
    whether a vendor without one gets nothing; `elements`: the words by name, and `always`: those that no right
    withholds; `districts`: to choose from; `zone`: of the settings; `copy`: the query string of a form that copies the
    account."""

    head: VendorHead
    known: KnownAgreement | None
    facts: Mapping[str, str]
    values: Mapping[str, object]
    version: str
    saving: SavedAgreement | None
    seen: str
    required: bool
    elements: Mapping[str, str]
    always: Sequence[str]
    districts: Sequence[DistrictName]
    zone: str
    copy: str


def read_agreement(visit: Visit) -> AgreementPage:
    """Reads the agreement of a vendor. A form that was refused has its own values."""
    head = read_head(visit)
    known = find_agreement(visit.connection, head.vendor)
    values = {} if known is None else known.agreement.list_values()
    saving = None
    if visit.query and visit.may(Verb.AGREEMENT_SET):
        chosen = {"elements": visit.lists("element"), "districts": visit.lists("district")}
        values = {**values, **visit.query, **chosen}
        actor = Actor(ActorKind.OPERATOR, visit.signed_in.email, None)
        # It ends without a commit. The page says why a form was refused.
        with suppress(CommandError), visit.tools.owner.connect() as connection:
            saving = _save(connection, actor, head.vendor.email, visit)
    return AgreementPage(
        head=head,
        known=known,
        facts={} if known is None else known.list_facts(),
        values=values,
        version=visit.get("version") or ("" if known is None else known.agreement.version),
        saving=saving,
        seen="" if saving is None else _digest(saving),
        required=is_required(visit.connection),
        elements={part.name: part.words for part in PARTS.values()},
        always=list_always(visit.connection, head.vendor),
        districts=list_named_districts(visit.connection),
        zone=name_zone(visit.settings.time_zone or UTC),
        copy=make_copy_query(
            head.vendor, list_own_clients(visit, head.vendor), read_withheld_default(visit.connection)
        ),
    )


def show_effect(sent: Submission) -> Outcome:
    """Shows what the agreement of the form would change, and saves nothing."""
    with sent.tools.owner.connect() as connection:
        _save(connection, sent.actor, find_vendor(sent).email, sent)
    return Again()


def save_form(sent: Submission) -> Outcome:
    """Saves the agreement of the form, if the page has shown what it changes."""
    with sent.change() as connection:
        saved = _save(connection, sent.actor, find_vendor(sent).email, sent)
        if sent.get("seen") != _digest(saved):
            raise CommandError("nothing was saved: first look at what it changes now, then save it")
    known = saved.known
    said = "; ".join([known.state, *known.beyond])
    return Moved(f"/vendors/{known.vendor_id}/agreement", f"The agreement of {known.name} is saved: {said}.")


def _digest(saved: SavedAgreement) -> str:
    return sha256("\n".join([*saved.ends, *saved.known.list_facts().values()]).encode()).hexdigest()


def _save(connection: sa.Connection, actor: Actor, email: str, sent: Submission | Visit) -> SavedAgreement:
    schools, keys = ([line.strip() for line in (sent.get(name) or "").splitlines()] for name in ("schools", "keys"))
    agreement = Agreement(
        title=sent.get("title") or "",
        purpose=sent.get("purpose") or "",
        elements=tuple(name for name in PARTS if name in sent.lists("element")),
        metadata_keys=tuple(filter(None, keys)),
        districts=tuple(find_org(connection, name, DISTRICT, None) for name in sent.lists("district")),
        schools=tuple(find_org(connection, name, SCHOOL, None) for name in schools if name),
        zone=sent.get("zone") or name_zone(sent.settings.time_zone or UTC),
        first_day=_read_day(sent, "first_day", "first"),
        last_day=_read_day(sent, "last_day", "last"),
        contact=sent.get("contact") or "",
        deletion=sent.get("deletion") or "",
        address=sent.get("address") or "",
        subcontractors=sent.get("subcontractors") or "",
        link=sent.get("link") or "",
    )
    return save_agreement(connection, actor, email, agreement, shown_version=sent.get("version") or "")


def _read_day(sent: Submission | Visit, name: str, word: str) -> date:
    try:
        return date.fromisoformat(sent.get(name) or "")
    except ValueError:
        raise CommandError(f"the {word} day is a date, such as 2027-06-30") from None


def end_agreement(sent: Submission) -> Outcome:
    """Takes the agreement of a vendor away."""
    with sent.change() as connection:
        vendor = remove_agreement(connection, sent.actor, find_vendor(sent).email)
    return Moved(f"/vendors/{vendor.id}/agreement", f"{vendor.name} has no agreement any more.")


SCREENS = (
    Screen(
        "agreement", "/vendors/<int:vendor>/agreement", "Agreement", OperatorRole.VIEWER, read_agreement, None, None
    ),
)
FORMS = (
    Form("agreement", "effect", Verb.AGREEMENT_SET, show_effect, None),
    Form("agreement", "save", Verb.AGREEMENT_SET, save_form, lambda sent: find_vendor(sent).email),
    Form("agreement", "remove", Verb.AGREEMENT_REMOVE, end_agreement, lambda sent: find_vendor(sent).email),
)

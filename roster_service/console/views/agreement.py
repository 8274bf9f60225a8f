"""The agreement of a vendor: what the paper says, whether it holds, and what is granted beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date

from roster_service.accounts.agreements import (
    Agreement,
    KnownAgreement,
    find_agreement,
    is_required,
    list_always,
    remove_agreement,
    set_agreement,
)
from roster_service.accounts.districts import DISTRICT, SCHOOL, DistrictName, find_org, list_named_districts
from roster_service.accounts.parts import PARTS
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor
from roster_service.console.vendor_words import VendorHead, read_head
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import name_zone
from roster_service.errors import CommandError


@dataclass(frozen=True)
class AgreementPage:
    """The agreement of a vendor, None for none. `facts`: what it says, by a word for each; `values`: of the form, by
    the name of each; `required`: whether a vendor without one gets nothing; `elements`: the words by name, and
    `always`: those that no right withholds; `districts`: to choose from; `zone`: of the settings."""

    head: VendorHead
    known: KnownAgreement | None
    facts: Mapping[str, str]
    values: Mapping[str, object]
    required: bool
    elements: Mapping[str, str]
    always: Sequence[str]
    districts: Sequence[DistrictName]
    zone: str


def read_agreement(visit: Visit) -> AgreementPage:
    """Reads the agreement of a vendor. A form that was refused has its own values."""
    head = read_head(visit)
    known = find_agreement(visit.connection, head.vendor)
    values = {} if known is None else known.agreement.list_values()
    if visit.query:
        chosen = {"elements": visit.lists("element"), "districts": visit.lists("district")}
        values = {**values, **visit.query, **chosen}
    return AgreementPage(
        head=head,
        known=known,
        facts={} if known is None else known.list_facts(),
        values=values,
        required=is_required(visit.connection),
        elements={part.name: part.words for part in PARTS.values()},
        always=list_always(visit.connection, head.vendor),
        districts=list_named_districts(visit.connection),
        zone=name_zone(visit.settings.time_zone or UTC),
    )


def save_agreement(sent: Submission) -> Outcome:
    """Saves the agreement of the form."""
    schools = (line.strip() for line in (sent.get("schools") or "").splitlines())
    with sent.change() as connection:
        agreement = Agreement(
            title=sent.get("title") or "",
            purpose=sent.get("purpose") or "",
            elements=tuple(name for name in PARTS if name in sent.lists("element")),
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
        vendor = set_agreement(connection, sent.actor, find_vendor(sent).email, agreement)
        known = find_agreement(connection, vendor)
    said = [] if known is None else [known.state, *known.beyond]
    return Moved(f"/vendors/{vendor.id}/agreement", f"The agreement of {vendor.name} is saved: {'; '.join(said)}.")


def _read_day(sent: Submission, name: str, word: str) -> date:
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
    Form("agreement", "save", Verb.AGREEMENT_SET, save_agreement, lambda sent: find_vendor(sent).email),
    Form("agreement", "remove", Verb.AGREEMENT_REMOVE, end_agreement, lambda sent: find_vendor(sent).email),
)

"""Refused requests, and answers without a record, with what mends them by the rights and the roster as they are now: a
client may have a scope that its product did not ask for, a field that a filter names may be unknown because it is
withheld, a filter may ask for a word that the roster does not have, or for somebody whom a rule or a decision keeps
from the vendor.

The log has no value of a filter, because that may name a person: what the roster has is said instead.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa

from roster_service.access_log.causes import NOTHING_FOUND
from roster_service.access_log.reports import RefusedRow
from roster_service.accounts.clients import Client, list_clients
from roster_service.accounts.districts import list_all_grades
from roster_service.accounts.kept_people import list_kept
from roster_service.accounts.vendors import Vendor, list_vendors
from roster_service.auth.scopes import Scope, read_scopes
from roster_service.errors import Problem
from roster_service.roster.vocabulary import ENROLLMENT_ROLES, ORG_TYPES, SESSION_TYPES, USER_ROLES
from roster_service.rostering.endpoints import ENDPOINTS
from roster_service.schemas.kinds import list_roster_fields
from roster_service.schemas.sharing_rules import name_rules
from roster_service.schemas.versions import VERSIONS

# The words of a field, which name nobody.
_WORDS: Mapping[str, Sequence[str]] = {
    "role": sorted({*USER_ROLES.words, *ENROLLMENT_ROLES.words}),
    "roles": sorted(USER_ROLES.words),
    "type": sorted({*ORG_TYPES.words, *SESSION_TYPES.words}),
}


def explain_refused(connection: sa.Connection, rows: Sequence[RefusedRow]) -> list[RefusedRow]:
    """Returns rows of `read_refused` with the remedy of now."""
    clients = {client.client_id: client for client in list_clients(connection)}
    vendors = {vendor.id: vendor for vendor in list_vendors(connection)}
    kept = {person.vendor_id for person in list_kept(connection)}
    words = dict(_WORDS)
    if any(row.cause == NOTHING_FOUND and "grades" in row.fields for row in rows):
        words["grades"] = list_all_grades(connection)
    return [
        replace(
            row,
            remedy=_explain_empty(row, vendors.get(row.vendor_id), words, keeps=row.vendor_id in kept)
            if row.cause == NOTHING_FOUND
            else _find_remedy(row, clients.get(row.caller), vendors.get(row.vendor_id)),
        )
        for row in rows
    ]


@functools.cache
def _list_needed() -> Mapping[str, Sequence[Scope]]:
    """The scopes of which a path needs one, by the documented path."""
    return {
        version.root + endpoint.path: [Scope(version.prefix, name) for name in sorted(endpoint.access.value)]
        for version in VERSIONS
        for endpoint in ENDPOINTS
    }


@functools.cache
def _list_withholding() -> Mapping[str, Mapping[str, str]]:
    """The words that withhold the fields of a path, by the documented path and the name of the field."""
    return {
        version.root + endpoint.path: {
            name: field.withheld_as.value
            for name, field in list_roster_fields(version.records[endpoint.resource]).items()
            if field.withheld_as is not None
        }
        for version in VERSIONS
        for endpoint in ENDPOINTS
    }


def _explain_empty(row: RefusedRow, vendor: Vendor | None, words: Mapping[str, Sequence[str]], *, keeps: bool) -> str:
    """What to look at where a filter found nothing. `words`: by field, those of the roster; `keeps`: whether somebody
    is kept from the vendor."""
    known = [f"`{name}` is {' or '.join(words[name])}" for name in row.fields if words.get(name)]
    looked = f"{row.remedy}: there, {', and '.join(known)}" if known else row.remedy
    rules = name_rules(item.rules for item in (vendor.grants if vendor else ()) if item.rules is not None)
    others = [f"the rules of a grant leave them out (only {rules})"] if rules else []
    others += ["the filter asks for a person who is kept from the vendor"] if keeps else []
    return f"{looked}; or else {', or '.join(others)}" if others else looked


def _find_remedy(row: RefusedRow, client: Client | None, vendor: Vendor | None) -> str:
    path = row.endpoint.partition(" ")[2]
    if row.cause == Problem.SCOPE.value and client is not None:
        needed = _list_needed().get(path, ())
        held = [scope.short for scope in needed if scope in read_scopes(client.scopes)]
        if held and vendor is not None and not vendor.limit_scopes(held):
            return f"the agreement of the vendor does not allow {' or '.join(held)}"
        if held:
            return (
                f"the client has {' and '.join(held)}, and the token was without: the product must name it in `scope` "
                "when it asks for a token"
            )
        if needed:
            return f"give the client {' or '.join(scope.short for scope in needed)}, or let the product do without"
    if row.cause in (Problem.FILTER.value, Problem.PARAMETER.value) and vendor is not None:
        words_of = _list_withholding().get(path, {})
        hidden = [name for name in row.fields if words_of.get(name) in vendor.withheld]
        if hidden:
            is_or_are, them = ("is", "it") if len(hidden) == 1 else ("are", "them")
            others = "; if that is not it, the answer said what is wrong" if row.requests > 1 else ""
            return (
                f"{_join(hidden)} {is_or_are} withheld from the vendor, so a request cannot name {them}: show {them} "
                f"to the vendor, or let the product do without{others}"
            )
    return row.remedy


def _join(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)

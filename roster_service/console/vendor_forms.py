"""What the forms of vendors and clients share: the vendor of a form, and the card of new credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from roster_service.accounts import clients
from roster_service.accounts.vendors import Vendor, find_vendor_by_id
from roster_service.auth.scopes import TOKEN_PATH
from roster_service.console.visit import Shown, Submission
from roster_service.errors import CommandError
from roster_service.schemas.versions import VERSIONS, list_roots


@dataclass(frozen=True)
class CredentialCard:
    """Credentials, which are shown once: `client_id` and `client_secret`, or `api_key` and `password`. `origin`: the
    address of the service, and `is_public`: whether a setting says it; `tried`: the scope of the example call, and
    `paths`: the root of the paths that it opens; `roots`: by version of the scopes, the root of its paths;
    `has_ended_others`: whether every earlier secret or key has ended for it; `files`: what becomes of the deliveries
    of the client, blank without any."""

    vendor: Vendor
    origin: str
    is_public: bool
    token_path: str
    roots: Mapping[str, str] = field(default_factory=dict)
    tried: str | None = None
    paths: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scopes: Sequence[str] = ()
    api_key: str | None = None
    password: str | None = None
    has_ended_others: bool = False
    files: str = ""


def find_vendor(sent: Submission) -> Vendor:
    """Returns the vendor of the form. Raises CommandError if it is removed."""
    with sent.tools.owner.connect() as connection:
        return find_vendor_by_id(connection, sent.place["vendor"])


def read_shown_version(sent: Submission) -> int:
    """Returns the grant version of the vendor that the page had shown; 0, which no vendor has, without one."""
    given = sent.get("version") or ""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0


def read_grace(sent: Submission) -> timedelta:
    given = sent.get("grace") or "0"
    if not (given.isascii() and given.isdigit() and len(given) < 5 and int(given) <= 8760):
        raise CommandError("the grace is a whole number of hours, from 0 to 8760")
    return timedelta(hours=int(given))


def show_secret(
    sent: Submission, vendor: Vendor, made: clients.Credentials, *, has_ended_others: bool = False, files: str = ""
) -> Shown:
    # Of the newest version.
    version, tried = next(
        (version, scope)
        for version in reversed(VERSIONS)
        for scope in made.scopes
        if scope.startswith(f"{version.prefix}/")
    )
    card = CredentialCard(
        vendor=vendor,
        origin=sent.tools.service_url,
        is_public=sent.settings.public_url is not None,
        token_path=TOKEN_PATH,
        roots=list_roots(made.scopes),
        tried=tried,
        paths=version.root,
        client_id=made.client_id,
        client_secret=made.client_secret,
        scopes=made.scopes,
        has_ended_others=has_ended_others,
        files=files,
    )
    return Shown("card", f"Credentials of {vendor.name}", card)


def show_key(
    sent: Submission,
    vendor: Vendor,
    title: str,
    api_key: str,
    password: str | None,
    *,
    has_ended_others: bool = False,
) -> Shown:
    is_public = sent.settings.public_url is not None
    card = CredentialCard(
        vendor,
        sent.tools.service_url,
        is_public,
        TOKEN_PATH,
        api_key=api_key,
        password=password,
        has_ended_others=has_ended_others,
    )
    return Shown("card", title, card)

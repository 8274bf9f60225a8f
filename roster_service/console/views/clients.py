"""The credentials of a vendor: its clients for OneRoster, and its API keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from roster_service.access_log.reports import RefusedRow
from roster_service.accounts import clients, vendors
from roster_service.accounts.clients import Client
from roster_service.accounts.credentials import ListedCredential, list_credentials
from roster_service.accounts.secret_links import SecretLink, describe_ended_links, list_links
from roster_service.auth.scopes import EXPLANATIONS, PRESET_VERSIONS, PRESETS, Scope, ScopeName, read_scopes
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor, read_grace, show_key, show_secret
from roster_service.console.vendor_words import VendorHead, list_own_clients, read_head, read_own_refused
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.tables import REFUSED_DAYS, oauth_clients
from roster_service.deliveries.accounts import Delivery, describe_ended_files, end_files, list_deliveries, list_sending
from roster_service.errors import CommandError
from roster_service.schemas.versions import VERSIONS


@dataclass(frozen=True)
class CredentialsPage:
    """The credentials of a vendor. `credentials`: by client id; `links`: by client id, the links with which it makes
    its secrets; `unmade`: the clients whose secret nobody has made, `ended`: those whose secret has ended; `keys`: the
    API keys that have not ended; `files`: by client id, its deliveries that are not stopped; `sending`: the names of
    those that can send; `used`: the last request with any of them, None if there was none; `lasting`: how many secrets
    and keys, of those that were made, never expire, and `unused`: the names of those that nobody has used; `refused`:
    requests of the last `refused_days`, by cause; `scopes`, `presets`,
    `preset_versions`: the words for each."""

    head: VendorHead
    clients: Sequence[Client]
    credentials: Mapping[str, ListedCredential]
    links: Mapping[str, SecretLink]
    unmade: Sequence[str]
    ended: Sequence[str]
    keys: Sequence[ListedCredential]
    files: Mapping[str, Sequence[Delivery]]
    sending: Collection[str]
    used: str | None
    lasting: int
    unused: Sequence[str]
    refused: Sequence[RefusedRow]
    refused_days: int
    scopes: Mapping[str, str]
    presets: Mapping[str, str]
    preset_versions: Mapping[str, str]
    versions: Sequence[str]


def read_credentials(visit: Visit) -> CredentialsPage:
    """Reads the clients and API keys of a vendor."""
    connection, head = visit.connection, read_head(visit)
    vendor = head.vendor
    own = list_own_clients(visit, vendor)
    ids = {item.client_id for item in own}
    listed = [item for item in list_credentials(connection) if item.vendor == vendor.email]
    links = {link.client_id: link for link in list_links(connection, oauth_clients.c.vendor_id == vendor.id)}
    going = [delivery for delivery in list_deliveries(connection, vendor=vendor.email) if not delivery.stopped]
    now, named = datetime.now(UTC), {item.client_id: item.name for item in own}
    ended = {item.name for item in listed if item.has_ended(now)}
    unmade = [
        item.name
        for item in listed
        if item.name in links and item.name in ended and not (links[item.name].used_at or item.used_at)
    ]
    valid = [item for item in listed if item.name not in ended]
    return CredentialsPage(
        head=head,
        clients=own,
        credentials={item.name: item for item in listed if item.name in ids},
        links=links,
        unmade=unmade,
        ended=sorted(ended),
        keys=[item for item in valid if item.name not in ids],
        sending=list_sending(connection),
        files={client_id: [delivery for delivery in going if delivery.client_id == client_id] for client_id in ids},
        lasting=sum(item.expires_at is None for item in valid),
        unused=[named.get(item.name, f"{item.name}-…") for item in valid if item.used_at is None],
        used=max((item.used_at for item in listed if item.used_at), default=None),
        refused=read_own_refused(visit, vendor),
        refused_days=REFUSED_DAYS,
        scopes={name.value: words for name, words in EXPLANATIONS.items()},
        presets={name: preset.words for name, preset in PRESETS.items()},
        preset_versions={name: versions.words for name, versions in PRESET_VERSIONS.items()},
        versions=[version.prefix for version in VERSIONS],
    )


def add_client(sent: Submission) -> Outcome:
    """Adds a client, and shows its secret."""
    name = sent.get("name")
    if name is None:
        raise CommandError("a client needs a name")
    with sent.change() as connection:
        vendor = find_vendor(sent)
        made = clients.add_client(connection, sent.actor, vendor.email, name, _read_scopes(sent))
    return show_secret(sent, vendor, made)


def set_scopes(sent: Submission) -> Outcome:
    """Replaces the scopes of a client."""
    with sent.change() as connection:
        client = find_client(sent)
        clients.change_scopes(connection, sent.actor, client.client_id, _read_scopes(sent))
    return return_to_credentials(sent, f"The scopes of {client.name} have changed. Its tokens have ended.")


def rotate_secret(sent: Submission) -> Outcome:
    """Gives a client a new secret, and shows it."""
    with sent.change() as connection:
        client = find_client(sent)
        key = sent.settings.read_secret_key() if client.oauth1 else None
        grace = read_grace(sent)
        made = clients.rotate_secret(connection, sent.actor, client.client_id, grace, secret_key=key)
        files = end_files_of(sent, connection, client.client_id)
    return show_secret(sent, find_vendor(sent), made, has_ended_others=not grace, files=files)


def end_old_secret(sent: Submission) -> Outcome:
    """Ends the secret of a client that a newer one has replaced."""
    with sent.change() as connection:
        client = find_client(sent)
        clients.end_old_secret(connection, sent.actor, client.client_id)
    return return_to_credentials(
        sent, f"The old secret of {client.name} and all its tokens have ended. The new secret stays valid."
    )


def set_client_enabled(sent: Submission) -> Outcome:
    """Disables or enables a client, as the form says: the page may be of before another one's change."""
    enables = sent.get("enabled") == "yes"
    with sent.change() as connection:
        client = find_client(sent)
        change = clients.enable_client if enables else clients.disable_client
        change(connection, sent.actor, client.client_id)
        links = describe_ended_links(connection, oauth_clients.c.client_id == client.client_id)
        files = "" if enables else end_files_of(sent, connection, client.client_id)
    words = f"{client.name} is {'enabled' if enables else 'disabled'} now."
    return return_to_credentials(sent, " ".join(filter(None, [words, links, files])))


def remove_client(sent: Submission) -> Outcome:
    """Removes a client."""
    with sent.change() as connection:
        client = find_client(sent)
        clients.remove_client(connection, sent.actor, client.client_id)
        files = end_files_of(sent, connection, client.client_id)
    return return_to_credentials(sent, f"{client.name} is removed. {files}".strip())


def end_files_of(sent: Submission, connection: sa.Connection, client_id: str) -> str:
    """Stops the deliveries of a client if the form says so. Returns what becomes of them, as `describe_ended_files`."""
    stops = sent.get("stop_deliveries") == "yes"
    return describe_ended_files(connection, end_files(connection, sent.actor, client_id, stops=stops))


def return_to_credentials(sent: Submission, message: str) -> Moved:
    """Returns the outcome of a form that leads back to the page of the credentials."""
    return Moved(f"/vendors/{find_vendor(sent).id}/credentials", message)


def rotate_key(sent: Submission) -> Outcome:
    """Gives a vendor a new API key, and shows it."""
    with sent.change() as connection:
        vendor = find_vendor(sent)
        grace = read_grace(sent)
        made = vendors.replace_key(connection, sent.actor, vendor.email, grace)
        if not grace:
            # A token of a key that leaked would go on with the new key, for up to a day.
            vendors.invalidate_tokens(connection, vendor.id)
    title = f"A new API key of {vendor.name}"
    return show_key(sent, vendor, title, made.api_key, None, has_ended_others=not grace)


def find_client(sent: Submission) -> Client:
    """Returns the client that the form names. Raises CommandError unless it is one of the vendor."""
    vendor = find_vendor(sent)
    with sent.tools.owner.connect() as connection:
        found = clients.find_listed_client(connection, sent.form.get("client", ""))
    if found.vendor != vendor.email:
        raise CommandError(f"the client is not one of {vendor.email}")
    return found


def _read_scopes(sent: Submission) -> Sequence[Scope]:
    """The scopes of the preset that the form has, or those that it has checked, those of one version together."""
    preset = PRESETS.get(sent.form.get("preset", ""))
    if preset is not None:
        versions = sent.form.get("version", "")
        if versions not in PRESET_VERSIONS:
            raise CommandError("choose a version of OneRoster")
        return preset.list_scopes(versions)
    return sorted({*read_scopes(sent.lists("scope"))}, key=lambda it: (it.version, [*ScopeName].index(it.name)))


SCREENS = (
    Screen(
        "credentials",
        "/vendors/<int:vendor>/credentials",
        "Clients and keys",
        OperatorRole.VIEWER,
        read_credentials,
        None,
        None,
    ),
)
FORMS = (
    Form("credentials", "client", Verb.CLIENT_ADD, add_client, None),
    Form("credentials", "scopes", Verb.CLIENT_SET_SCOPES, set_scopes, None),
    Form("credentials", "secret", Verb.CLIENT_ROTATE_SECRET, rotate_secret, None),
    Form("credentials", "old-secret", Verb.CLIENT_END_OLD_SECRET, end_old_secret, None),
    Form("credentials", "client-enable", Verb.CLIENT_ENABLE, set_client_enabled, None),
    Form("credentials", "client-remove", Verb.CLIENT_REMOVE, remove_client, lambda sent: find_client(sent).name),
    Form("credentials", "key", Verb.VENDOR_ROTATE_KEY, rotate_key, None),
)

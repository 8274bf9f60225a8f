"""The forms of the clients of a vendor."""

from __future__ import annotations

from collections.abc import Sequence

from roster_service.accounts import clients
from roster_service.accounts.clients import Client
from roster_service.auth.scopes import PRESETS, Scope, ScopeName, read_scopes
from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor, read_grace, show_secret
from roster_service.console.visit import Moved, Outcome, Submission
from roster_service.errors import CommandError
from roster_service.schemas.versions import VERSIONS


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
    return Moved(
        f"/vendors/{find_vendor(sent).id}", f"The scopes of {client.name} have changed. Its tokens have ended."
    )


def rotate_secret(sent: Submission) -> Outcome:
    """Gives a client a new secret, and shows it."""
    with sent.change() as connection:
        client = find_client(sent)
        key = sent.settings.read_secret_key() if client.oauth1 else None
        grace = read_grace(sent)
        made = clients.rotate_secret(connection, sent.actor, client.client_id, grace, secret_key=key)
    return show_secret(sent, find_vendor(sent), made, has_ended_others=not grace)


def end_old_secret(sent: Submission) -> Outcome:
    """Ends the secret of a client that a newer one has replaced."""
    with sent.change() as connection:
        client = find_client(sent)
        clients.end_old_secret(connection, sent.actor, client.client_id)
    return _return(sent, f"The old secret of {client.name} and all its tokens have ended. The new secret stays valid.")


def set_client_enabled(sent: Submission) -> Outcome:
    """Disables or enables a client."""
    with sent.change() as connection:
        client = find_client(sent)
        change = clients.disable_client if client.enabled else clients.enable_client
        change(connection, sent.actor, client.client_id)
    return Moved(
        f"/vendors/{find_vendor(sent).id}", f"{client.name} is {'disabled' if client.enabled else 'enabled'} now."
    )


def remove_client(sent: Submission) -> Outcome:
    """Removes a client."""
    with sent.change() as connection:
        client = find_client(sent)
        clients.remove_client(connection, sent.actor, client.client_id)
    return _return(sent, f"{client.name} is removed.")


def _return(sent: Submission, message: str) -> Moved:
    return Moved(f"/vendors/{find_vendor(sent).id}", message)


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
        version = sent.form.get("version", "")
        if version not in {known.prefix for known in VERSIONS}:
            raise CommandError("choose a version of OneRoster")
        return preset.list_scopes(version)
    return sorted({*read_scopes(sent.lists("scope"))}, key=lambda it: (it.version, [*ScopeName].index(it.name)))


SCREENS: Sequence[Screen] = ()
FORMS = (
    Form("vendor", "client", Verb.CLIENT_ADD, add_client, None),
    Form("vendor", "scopes", Verb.CLIENT_SET_SCOPES, set_scopes, None),
    Form("vendor", "secret", Verb.CLIENT_ROTATE_SECRET, rotate_secret, None),
    Form("vendor", "old-secret", Verb.CLIENT_END_OLD_SECRET, end_old_secret, None),
    Form("vendor", "client-enable", Verb.CLIENT_ENABLE, set_client_enabled, None),
    Form("vendor", "client-remove", Verb.CLIENT_REMOVE, remove_client, lambda sent: find_client(sent).name),
)

"""The files of a vendor: the zip that it would get, and the deliveries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from roster_service.accounts.clients import Client
from roster_service.accounts.vendors import Vendor
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor
from roster_service.console.vendor_words import VendorHead, list_own_clients, read_head
from roster_service.console.visit import Download, Moved, Outcome, Submission, Visit
from roster_service.deliveries.accounts import (
    Delivery,
    add_delivery,
    approve_file,
    change_delivery,
    find_delivery,
    list_deliveries,
    remove_delivery,
    stop_delivery,
)
from roster_service.deliveries.previews import preview_package, require_same_file
from roster_service.errors import CommandError
from roster_service.feeds.scripts import name_folder, start_script
from roster_service.schemas.file_presets import PRESETS

Made = TypeVar("Made")


@dataclass(frozen=True)
class FilesPage:
    """The deliveries of a vendor. `file_presets`: the words for what receivers of files take."""

    head: VendorHead
    deliveries: Sequence[Delivery]
    clients: Sequence[Client]
    file_presets: Mapping[str, str]


def read_files(visit: Visit) -> FilesPage:
    """Reads the deliveries of a vendor."""
    head = read_head(visit)
    return FilesPage(
        head=head,
        deliveries=list_deliveries(visit.connection, vendor=head.vendor.email),
        clients=list_own_clients(visit, head.vendor),
        file_presets={name: preset.words for name, preset in PRESETS.items()},
    )


def download_file(sent: Submission) -> Outcome:
    """Makes the zip that the vendor would get now; with the digest of a file that waits, only if it is that one."""
    preset = sent.get("preset") or ""
    given = (sent.tools.owner, sent.actor, find_vendor(sent).email, preset, sent.get("client"), sent.settings)
    _package, file = _take_time(lambda: preview_package(*given, digest=sent.get("digest")))
    return Download(f"{preset}.zip", file)


def _take_time(make: Callable[[], Made]) -> Made:
    """Returns what a function makes of the roster."""
    # The time of a request is for its answer to the database; a large district takes longer, as the command does.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


def approve_waiting(sent: Submission) -> Outcome:
    """Approves the file of a delivery that waits, and starts to send it. Raises CommandError where another file would
    wait in its place."""
    vendor, name = _find_own(sent)
    digest = sent.get("digest") or ""
    with sent.tools.owner.connect() as connection:
        found = find_delivery(connection, name)
    if found.may_differ and found.digest == digest:
        _take_time(lambda: require_same_file(sent.tools.owner, found, digest, sent.settings))
    with sent.change() as connection:
        approve_file(connection, sent.actor, name, digest)
    _start(sent, name)
    return _return(vendor, f"The file of {name} is approved, and sent now. Look again soon.")


def add_to_vendor(sent: Submission) -> Outcome:
    """Adds a delivery, and starts to make its first file, which waits. The secret is never shown again."""
    vendor, name, row = find_vendor(sent), sent.get("name"), _read_row(sent)
    if name is None or "secret" not in row:
        raise CommandError(f"the {'secret' if name else 'name'} is missing")
    with sent.change() as connection:
        add_delivery(connection, sent.actor, name, vendor.email, row, sent.settings)
    _start(sent, name)
    return _return(vendor, f"{name} is added. Its first file is made now, and waits here for you.")


def change_of_vendor(sent: Submission) -> Outcome:
    """Changes a delivery, and starts to make the next file if it waits as a first one."""
    vendor, name = _find_own(sent)
    with sent.change() as connection:
        changed = change_delivery(connection, sent.actor, name, _read_row(sent), sent.settings)
    if not changed.is_first or changed.stopped:
        return _return(vendor, f"{name} is changed.")
    _start(sent, name)
    return _return(vendor, f"{name} is changed. Its file is made now, and waits here for you.")


def stop_of_vendor(sent: Submission) -> Outcome:
    """Stops a delivery."""
    return _stop(sent, stopped=True)


def start_of_vendor(sent: Submission) -> Outcome:
    """Lets a stopped delivery go on."""
    return _stop(sent, stopped=False)


def send_of_vendor(sent: Submission) -> Outcome:
    """Starts to make the file of a delivery anew and to send it, as `roster delivery send` does."""
    vendor, name = _find_own(sent)
    _start(sent, name)
    return _return(vendor, f"The file of {name} is made now, and sent unless it must wait.")


def _stop(sent: Submission, *, stopped: bool) -> Outcome:
    vendor, name = _find_own(sent)
    with sent.change() as connection:
        stop_delivery(connection, sent.actor, name, stopped=stopped)
    words = "is stopped: no file is sent" if stopped else "goes on: its next file is sent when it is due"
    return _return(vendor, f"{name} {words}.")


def _read_row(sent: Submission) -> dict[str, Any]:
    """The columns of the form of a delivery. An empty secret stays as it is."""
    row: dict[str, Any] = {name: sent.get(name) or "" for name in ("preset", "host", "username", "folder", "host_key")}
    if missing := [name for name in row if name != "folder" and not row[name]]:
        raise CommandError(f"{', '.join(missing).replace('_', ' ')} is missing")
    # Not `get`, which takes the blanks around a password.
    if secret := sent.form.get("secret", "").replace("\r\n", "\n"):
        row |= {"secret": secret, "has_private_key": sent.get("login") == "key"}
    hour = sent.get("hour")
    return row | {
        "client_id": sent.get("client"),
        "port": _read_number(sent.get("port") or "22", "port", 65535),
        "hour": None if hour is None else _read_number(hour, "hour", 23),
        "in_place": sent.get("in_place") is not None,
        "contact": sent.get("contact"),
    }


def remove_from_vendor(sent: Submission) -> Outcome:
    """Removes a delivery."""
    vendor, name = _find_own(sent)
    with sent.change() as connection:
        remove_delivery(connection, sent.actor, name)
    return _return(vendor, f"{name} is removed: no more files are sent.")


def _find_own(sent: Submission) -> tuple[Vendor, str]:
    """The vendor of the form, and the name of its delivery."""
    vendor, name = find_vendor(sent), sent.get("delivery") or ""
    with sent.tools.owner.connect() as connection:
        if find_delivery(connection, name).vendor != vendor.email:
            raise CommandError(f"{vendor.name} has no delivery {name}")
    return vendor, name


def _return(vendor: Vendor, message: str) -> Moved:
    return Moved(f"/vendors/{vendor.id}/files", message)


def _read_number(given: str, what: str, most: int) -> int:
    if not (given.isascii() and given.isdigit() and len(given) < 6 and int(given) <= most):
        raise CommandError(f"the {what} is a whole number up to {most}")
    return int(given)


def _start(sent: Submission, name: str) -> None:
    home = sent.settings.home
    with sent.tools.owner.connect() as connection:
        start_script(connection, home, name_folder(home, "deliver", name), "deliver", name)


def _read_typed(sent: Submission) -> str:
    return sent.get("delivery") or ""


SCREENS = (Screen("files", "/vendors/<int:vendor>/files", "Files", OperatorRole.VIEWER, read_files, None, None),)
FORMS = (
    Form("files", "file", Verb.DELIVERY_PREVIEW, download_file, None),
    Form("files", "approve-file", Verb.DELIVERY_APPROVE, approve_waiting, None),
    Form("files", "delivery", Verb.DELIVERY_ADD, add_to_vendor, None),
    Form("files", "delivery-set", Verb.DELIVERY_SET, change_of_vendor, None),
    Form("files", "delivery-stop", Verb.DELIVERY_STOP, stop_of_vendor, None),
    Form("files", "delivery-start", Verb.DELIVERY_START, start_of_vendor, None),
    Form("files", "delivery-send", Verb.DELIVERY_START, send_of_vendor, None),
    Form("files", "delivery-remove", Verb.DELIVERY_REMOVE, remove_from_vendor, _read_typed),
)

"""The files of a vendor: the zip that it would get, and the deliveries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from roster_service.change_log.changes import Verb
from roster_service.console.screen import Form, Screen
from roster_service.console.vendor_forms import find_vendor
from roster_service.console.visit import Download, Moved, Outcome, Submission
from roster_service.deliveries.accounts import approve_file, find_delivery
from roster_service.deliveries.previews import preview_package
from roster_service.errors import CommandError
from roster_service.feeds.scripts import name_folder, start_script


def download_file(sent: Submission) -> Outcome:
    """Makes the zip that the vendor would get now."""
    preset = sent.get("preset") or ""
    given = (sent.tools.owner, sent.actor, find_vendor(sent).email, preset, sent.get("client"), sent.settings)
    # The time of a request is for its answer to the database; a large district takes longer, as the command does.
    with ThreadPoolExecutor(1) as thread:
        _package, file = thread.submit(preview_package, *given).result()
    return Download(f"{preset}.zip", file)


def approve_waiting(sent: Submission) -> Outcome:
    """Approves the file of a delivery that waits, and starts to send it."""
    name, vendor = sent.get("delivery") or "", find_vendor(sent)
    with sent.change() as connection:
        if find_delivery(connection, name).vendor != vendor.email:
            raise CommandError(f"{vendor.name} has no delivery {name}")
        approve_file(connection, sent.actor, name, sent.get("digest") or "")
    home = sent.settings.home
    with sent.tools.owner.connect() as connection:
        start_script(connection, home, name_folder(home, "deliver", name), "deliver", name)
    return Moved(f"/vendors/{vendor.id}", f"The file of {name} is approved, and sent now. Look again in a minute.")


SCREENS: tuple[Screen, ...] = ()
FORMS = (
    Form("vendor", "file", Verb.DELIVERY_PREVIEW, download_file, None),
    Form("vendor", "approve-file", Verb.DELIVERY_APPROVE, approve_waiting, None),
)

"""`python -m sync_scripts.deliver`: sends the files whose hour it is; what cron runs each hour. Those without an hour
are sent by the nightly sync.

A file that was not sent is tried again after growing pauses. It is made anew each time, so none is older than the
rights of the vendor.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime

import click
from sqlalchemy.exc import SQLAlchemyError

from roster_service.deliveries.accounts import FAILED, SENT, WAITING, Delivery, list_deliveries
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError, name_fault
from roster_service.roster.revisions import open_roster_engine
from roster_service.settings import Settings
from sync_scripts.engine.exit_codes import HELP, ExitCode, exit_on_error
from sync_scripts.engine.progress import Notify, print_line
from sync_scripts.notifications.announcement import Announcement, AnnouncementKind
from sync_scripts.notifications.channels import announce

# Seconds before each try.
PAUSES = (0, 60, 300, 1500)


def is_due(delivery: Delivery, now: datetime, *, after_sync: bool) -> bool:
    """Whether a delivery is sent now: after the nightly sync, or from its hour on, once a day in the time zone of
    `now`. A file that waits for an operator at its hour is made once. After the sync, the receiver gets what it has not
    yet, also on the same day: two syncs may begin on one day, and an approval may send a file before one."""
    if delivery.stopped or after_sync != (delivery.hour is None):
        return False
    if delivery.hour is None:
        return delivery.is_first or delivery.has_changed or not _is_today(delivery.sent_at, now)
    done = delivery.at if delivery.state == WAITING else delivery.sent_at
    return now.hour >= delivery.hour and not _is_today(done, now)


def _is_today(done: str | None, now: datetime) -> bool:
    return done is not None and datetime.fromisoformat(done).astimezone(now.tzinfo).date() == now.date()


def send_due(
    sender: Sender, notify: Notify, *, after_sync: bool, sleep: Callable[[float], None] = time.sleep
) -> ExitCode:
    """Sends the deliveries that are due. Passes an event for each to `notify`, and announces those that were not sent.
    Returns the exit code."""
    with sender.owner.connect() as connection:
        due = [one for one in list_deliveries(connection) if is_due(one, sender.now(), after_sync=after_sync)]
    found = {delivery.name: delivery for delivery in due}
    left = list(found)
    ended: dict[str, Delivery] = {}
    for pause in PAUSES:
        if left:
            sleep(pause)
        for name in left:
            try:
                ended[name] = sender.deliver(name)
            except CommandError as error:
                # Another process sends it, or somebody has removed it.
                notify({"step": "delivery", "delivery": name, "message": str(error), "exit": ExitCode.LOADED})
            except SQLAlchemyError as error:
                # The run could not be recorded, either. The deliveries after this one may be.
                ended[name] = dataclasses.replace(found[name], state=FAILED, message=name_fault(error))
        left = [name for name in left if name in ended and ended[name].state == FAILED]
    for end in ended.values():
        code = ExitCode.FAILED if end.state == FAILED else ExitCode.LOADED
        notify({"step": "delivery", "delivery": end.name, "outcome": end.state, "message": end.message, "exit": code})
        if end.state != SENT:
            words = f"The file of {end.name} {'waits' if end.state == WAITING else 'was not sent'}: {end.message}."
            announcement = Announcement(AnnouncementKind.DELIVERY, None, words, vendor=end.vendor)
            for failure in announce(sender.settings, announcement).values():
                notify({"step": "announce", "vendor": end.vendor, "message": failure, "exit": ExitCode.LOADED})
    return ExitCode.FAILED if left else ExitCode.LOADED


@click.command(epilog=HELP)
@click.argument("name", required=False)
def main(name: str | None) -> None:
    """Send the files whose hour it is, or that of the delivery NAME alone."""
    with exit_on_error(as_json=not sys.stdout.isatty()):
        settings = Settings.read(os.environ)
        with open_roster_engine(settings) as engine:
            sender = Sender(engine, settings)
            if name is None:
                code = send_due(sender, lambda event: print_line(event, err=False), after_sync=False)
            else:
                ended = sender.deliver(name)
                print_line({"delivery": name, "outcome": ended.state, "message": ended.message}, err=False)
                code = ExitCode.FAILED if ended.state == FAILED else ExitCode.LOADED
    sys.exit(code)


if __name__ == "__main__":
    main()

"""The service itself: its settings and where each comes from, its health, and a test of its announcements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roster_service import __version__
from roster_service.accounts.vendor_rights import change_withheld_default, read_withheld_default
from roster_service.accounts.vendors import list_vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import format_instant
from roster_service.errors import CommandError
from roster_service.explore.listed_settings import ListedSetting, list_settings
from roster_service.feeds.figures import read_ordering_size, read_server, read_sync_channels
from roster_service.feeds.roster_state import read_roster_state
from roster_service.feeds.scripts import run_script
from roster_service.roster.withheld import WithheldField


@dataclass(frozen=True)
class Fact:
    """A fact of the health of the service, for people. `meaning`: None if it needs no explanation."""

    name: str
    value: str
    meaning: str | None


@dataclass(frozen=True)
class System:
    """The settings, and the health. `channels`: over which the last nightly sync announces, None before the first;
    `withheld`: the fields that are
    withheld from vendors without a list of their own; `following`: the number of these vendors."""

    facts: Sequence[Fact]
    withheld: Sequence[str]
    withholdable: Sequence[str]
    following: int
    channels: Sequence[str] | None
    settings: Sequence[ListedSetting]


def read_system(visit: Visit) -> System:
    """Reads the settings of this process and the state of the database."""
    connection, settings = visit.connection, visit.settings
    state = read_roster_state(connection)
    server, size = read_server(connection)
    orderings = read_ordering_size(connection)
    return System(
        facts=[
            Fact("Version", __version__, None),
            Fact("PostgreSQL", server, None),
            Fact("Database", _to_megabytes(size), "on disk, all in all"),
            Fact(
                "Orderings",
                f"{_to_megabytes(orderings)} of {settings.ordering_megabytes:,} MB",
                "lists of ids that vendors are paging through; the service removes the oldest",
            ),
            Fact("Revision of the roster", f"{state.revision:,}", "grows with each sync that changes the roster"),
            Fact("Roster as of", format_instant(state.as_of), "the last change that vendors see"),
        ],
        withheld=read_withheld_default(connection),
        withholdable=[field.value for field in WithheldField],
        following=sum(vendor.own_withheld is None for vendor in list_vendors(connection)),
        channels=read_sync_channels(connection),
        settings=list_settings(settings),
    )


def _to_megabytes(size: int) -> str:
    return f"{size / 10**6:,.1f} MB"


def set_default(sent: Submission) -> Outcome:
    """Makes the fields that are withheld by default those of the form."""
    fields = [field for field in WithheldField if field.value in sent.lists("field")]
    with sent.change() as connection:
        change_withheld_default(connection, sent.actor, fields)
    return Moved("/system", f"Withheld by default: {', '.join(fields) or 'nothing'}.")


def send_test(sent: Submission) -> Outcome:
    """Sends a test announcement over every channel."""
    with sent.change() as connection:
        subject = Subject("service", "announcements")
        with recorded(connection, sent.actor, Verb.ANNOUNCE, subject, dict):
            done = run_script(connection, "announce")
        if done.returncode:
            raise CommandError(done.stderr.strip() or "the test announcement was not sent")
    return Moved("/system", f"The test announcement was {done.stdout.strip()}.")


SCREENS = (Screen("system", "/system", "System", OperatorRole.OWNER, read_system, lambda it: it.settings, "System"),)
FORMS = (
    Form("system", "announce", Verb.ANNOUNCE, send_test, None),
    Form("system", "withheld", Verb.VENDOR_SET_WITHHELD_DEFAULT, set_default, None),
)

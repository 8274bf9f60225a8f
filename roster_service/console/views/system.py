"""The service itself: its settings and where each comes from, its health, and a test of its announcements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from roster_service import __version__
from roster_service.accounts.agreements import require_agreements
from roster_service.accounts.credentials import list_credentials
from roster_service.accounts.known_agreements import is_required, list_lacking
from roster_service.accounts.transparency import is_published, set_published
from roster_service.accounts.vendor_rights import change_withheld_default, read_withheld_default
from roster_service.accounts.vendors import list_vendors
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Subject, Verb, recorded
from roster_service.console.filters import to_counted
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Moved, Outcome, Submission, Visit
from roster_service.db.instants import describe_instant
from roster_service.errors import CommandError
from roster_service.explore.listed_settings import DEFAULT, ListedSetting, list_settings
from roster_service.feeds.feed_conditions import list_conditions
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.feeds import list_feeds
from roster_service.feeds.figures import read_ordering_size, read_server, read_sync_channels
from roster_service.feeds.roster_state import read_roster_state
from roster_service.feeds.run_outcomes import Colour
from roster_service.feeds.scripts import run_script
from roster_service.roster.withheld import WithheldField

# The days before the end of a credential from which on it is told, and the percent of orderings.
ENDS_SOON, FULL = 14, 90
# The answers of a form that switches something.
YES, NO = "yes", "no"
# What a good light means.
GOOD = {
    "Feeds": "no feed needs a person",
    "Announcements": "the last nightly sync announced what it had to say",
    "Credentials": f"none ends within {ENDS_SOON} days",
    "Address": "vendors are given the address of the settings",
    "Paging": "the lists that vendors page through have room",
}


@dataclass(frozen=True)
class Fact:
    """A fact of the health of the service, for people. `meaning`: None if it needs no explanation."""

    name: str
    value: str
    meaning: str | None


@dataclass(frozen=True)
class Light:
    """A part of the health of the service. `colour`: of its badge, whose `word` says the same; `meaning`: in words;
    `path`: where a person acts, below `/console`; None: outside the console."""

    name: str
    colour: Colour
    word: str
    meaning: str
    path: str | None = None


@dataclass(frozen=True)
class System:
    """The settings, those that differ from the default first, and the health. `channels`: over which the last nightly
    sync announces, None before the first; `withheld`: the fields that are withheld from vendors without a list of their
    own; `following`: the number of these vendors; `required`: whether a vendor needs an agreement, and `lacking`: the
    names of those without one; `published`: whether everybody can see the list of vendors, at `list_url`."""

    lights: Sequence[Light]
    facts: Sequence[Fact]
    withheld: Sequence[str]
    withholdable: Sequence[str]
    following: int
    required: bool
    lacking: Sequence[str]
    published: bool
    list_url: str
    channels: Sequence[str] | None
    settings: Sequence[ListedSetting]


def read_system(visit: Visit) -> System:
    """Reads the settings of this process and the state of the database."""
    connection, settings = visit.connection, visit.settings
    state = read_roster_state(connection)
    server, size = read_server(connection)
    orderings, channels = read_ordering_size(connection), read_sync_channels(connection)
    now = datetime.now(UTC)
    credentials = [item for item in list_credentials(connection) if item.enabled and not item.has_ended(now)]
    ending = [item.name for item in credentials if item.ends_within(ENDS_SOON, now)]
    lasting = sum(item.expires_at is None for item in credentials)
    return System(
        lights=_list_lights(visit, channels, orderings, ending),
        facts=[
            Fact("Version", __version__, None),
            Fact("PostgreSQL", server, None),
            Fact("Database", _to_megabytes(size), "on disk, all in all"),
            Fact("Credentials", f"{len(credentials):,}", f"secrets and keys, of which {lasting:,} never expire"),
            Fact(
                "Paging",
                f"{_to_megabytes(orderings)} of {settings.ordering_megabytes:,} MB",
                "lists of ids that vendors are paging through; the service removes the oldest",
            ),
            Fact("Revision of the roster", f"{state.revision:,}", "grows with each sync that changes the roster"),
            Fact(
                "Roster as of",
                describe_instant(state.as_of, settings.time_zone) if state.revision else "never loaded",
                "the last change that vendors see" if state.revision else None,
            ),
        ],
        withheld=read_withheld_default(connection),
        withholdable=[field.value for field in WithheldField],
        following=sum(vendor.own_withheld is None for vendor in list_vendors(connection)),
        required=is_required(connection),
        lacking=[vendor.name for vendor in list_lacking(connection)],
        published=is_published(connection),
        list_url=f"{visit.tools.service_url}/transparency",
        channels=channels,
        settings=sorted(list_settings(settings), key=lambda listed: listed.source == DEFAULT),
    )


def _list_lights(
    visit: Visit, channels: Sequence[str] | None, orderings: int, ending: Sequence[str]
) -> Sequence[Light]:
    """`ending`: the names of the credentials that end soon."""
    connection, settings = visit.connection, visit.settings
    feeds = [feed for feed in list_feeds(connection, settings.time_zone) if feed.state != FeedState.REMOVED]
    needing = [feed.name for feed in feeds if any(condition.needs for condition in list_conditions(feed, settings))]
    share = 100 * orderings / (settings.ordering_megabytes * 10**6)
    public = settings.public_url
    return (
        _light(
            "Feeds",
            not needing,
            f"{', '.join(needing[:5])} {'needs' if len(needing) == 1 else 'need'} a person"
            f" ({len(needing)} of {to_counted(len(feeds), 'feed')})",
            "/",
        )
        if feeds
        else Light("Feeds", Colour.QUIET, "none", "no feed is set up yet"),
        Light("Announcements", Colour.QUIET, "not known", "no nightly sync has run; loads by hand announce nothing")
        if channels is None
        else _light(
            "Announcements",
            bool(channels),
            "the last nightly sync announced nothing, to nobody",
            "/system#announcements",
        ),
        _light(
            "Credentials",
            not ending,
            f"{to_counted(len(ending), 'credential ends', 'credentials end')} within {ENDS_SOON} days: "
            f"{', '.join(ending[:5])}",
            "/vendors",
        ),
        _light(
            "Address",
            public is not None,
            f"vendors are given {visit.tools.service_url}, the address of this machine; whoever runs it sets "
            "ROSTER_PUBLIC_URL",
        ),
        _light("Paging", share < FULL, f"{share:.0f} % of the room for the lists that vendors page through is taken"),
    )


def _light(name: str, is_good: bool, trouble: str, path: str | None = None) -> Light:
    return Light(name, Colour.GOOD, "good", GOOD[name]) if is_good else Light(name, Colour.WARN, "look", trouble, path)


def _to_megabytes(size: int) -> str:
    return f"{size / 10**6:,.1f} MB"


def set_default(sent: Submission) -> Outcome:
    """Makes the fields that are withheld by default those of the form."""
    fields = [field for field in WithheldField if field.value in sent.lists("field")]
    with sent.change() as connection:
        change_withheld_default(connection, sent.actor, fields)
    return Moved("/system", f"Withheld by default: {', '.join(fields) or 'nothing'}.")


def set_required(sent: Submission) -> Outcome:
    """Requires an agreement of each vendor, or none."""
    required = sent.get("answer") == YES
    with sent.change() as connection:
        lacking = require_agreements(connection, sent.actor, required)
    without = to_counted(len(lacking), "vendor without one gets", "vendors without one get")
    words = f"required of each vendor: {without} nothing" if required else f"not required: {without} what is granted"
    return Moved("/system#agreements", f"An agreement is {words}.")


def set_list(sent: Submission) -> Outcome:
    """Shows everybody which vendors get what, or nobody."""
    published = sent.get("answer") == YES
    with sent.change() as connection:
        set_published(connection, sent.actor, published)
    return Moved("/system#agreements", f"{'Everybody' if published else 'Nobody'} can see which vendors get what.")


def send_test(sent: Submission) -> Outcome:
    """Sends a test announcement over every channel."""
    with sent.change() as connection:
        subject = Subject("service", "announcements")
        with recorded(connection, sent.actor, Verb.ANNOUNCE, subject, dict):
            done = run_script(connection, "announce")
        if done.returncode:
            raise CommandError(done.stderr.strip() or "the test announcement was not sent")
    return Moved("/system", f"The test announcement was {done.stdout.strip()}.")


def _name_answer(sent: Submission) -> str:
    return YES if sent.get("answer") == YES else NO


SCREENS = (Screen("system", "/system", "System", OperatorRole.OWNER, read_system, lambda it: it.settings, "System"),)
FORMS = (
    Form("system", "announce", Verb.ANNOUNCE, send_test, None),
    Form("system", "withheld", Verb.VENDOR_SET_WITHHELD_DEFAULT, set_default, None),
    Form("system", "require", Verb.AGREEMENT_REQUIRE, set_required, _name_answer),
    Form("system", "publish", Verb.AGREEMENT_PUBLISH, set_list, _name_answer),
)

"""A served roster of three feeds, eight vendors who see different parts of it, and all that may happen to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import sqlalchemy as sa
from flask import Flask

from roster_service.accounts import clients, vendor_rights, vendors
from roster_service.accounts.kept_people import list_kept
from roster_service.app import create_app
from roster_service.auth.credentials.signing_keys import ensure_signing_key
from roster_service.auth.scopes import Scope, ScopeName
from roster_service.auth.throttling.limits import ROSTERING_DEFAULTS
from roster_service.db import tables
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.feeds.feed_states import FeedState
from roster_service.feeds.roster_state import advance_restored_state
from roster_service.people import end_exclusion, exclude_person, keep_person, sweep
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.settings import Settings
from sync_scripts.engine.feed_removal import remove_feed
from sync_scripts.engine.load import Options, load
from sync_scripts.engine.run_record import Approval
from sync_scripts.purge import purge
from tests.actors import TESTER
from tests.conftest import close_app
from tests.rates import UNBOUNDED
from tests.sync.conftest import empty_roster
from tests.vendor.client import PLENTY

from .consumer import Rostering, Students
from .districts import CHANGES, FEEDS, District, move_school, rename_district, renumber_district

SECRET_KEY = "a secret key of the tests, long enough to be one"
VERSIONS = ("v1p1", "v1p2")
SCOPES = frozenset(ScopeName) - {ScopeName.CORE}
OPEN = SCOPES - {ScopeName.GUARDIANS, ScopeName.GUARDIANS_METADATA}
HIDDEN = frozenset({WithheldField.EMAIL, WithheldField.BIRTH_DATE, WithheldField.MIDDLE_NAME})

GRADES = Rules("grades~'06,07'", None, Staff.ALL, guardians=True)
SUBJECT = Rules(None, "subjects~'Math'", Staff.CLASSES, guardians=True)
BOTH = Rules("grades~'06'", "subjects~'Math,Art'", Staff.CLASSES, guardians=False)
NO_STAFF = Rules("givenName~'1' OR grades~'08'", "title~'1' OR subjects~'Art'", Staff.NONE, guardians=True)
RULES = (GRADES, SUBJECT, BOTH, NO_STAFF)


@dataclass
class Vendor:
    """What a vendor may see, by district: single schools, or None for the whole district; and its credentials."""

    grants: dict[str, list[str] | None]
    scopes: frozenset[ScopeName]
    withheld: frozenset[WithheldField] = frozenset()
    flags: frozenset[PermissionFlag] = frozenset(PermissionFlag)
    login: tuple[str, str] = ("", "")
    api_key: str = ""
    account: Mapping[str, str] = field(default_factory=dict)
    # The rules of its grants, by district and school; a school of "" is the whole district.
    rules: list[tuple[str, str, Rules]] = field(default_factory=list)

    @property
    def has_whole_districts(self) -> bool:
        """Whether it sees whole districts, and nothing else."""
        schools = [*self.grants.values(), *(school or None for _, school, _ in self.rules)]
        return bool(schools) and all(school is None for school in schools)


def list_vendors() -> dict[str, Vendor]:
    """The vendors as they are at first."""
    return {
        "one school": Vendor({"a-d": ["a-s1"]}, OPEN),
        "two schools": Vendor({"a-d": ["a-s1", "a-s2"]}, SCOPES),
        "a district": Vendor({"a-d": None}, OPEN),
        "two districts": Vendor({"a-d": None, "b-d": None}, SCOPES),
        "schools of two": Vendor({"a-d": ["a-s2"], "b-d": ["b-s1"]}, SCOPES, HIDDEN),
        "some grades": Vendor({}, SCOPES, rules=[("a-d", "", GRADES), ("b-d", "", GRADES)]),
        "some classes": Vendor({}, OPEN, rules=[("a-d", "", SUBJECT)]),
        "two rules, and a school": Vendor(
            {"b-d": ["b-s2"]}, SCOPES, rules=[("a-d", "a-s1", BOTH), ("a-d", "", GRADES), ("b-d", "", NO_STAFF)]
        ),
    }


class World:
    """The service, and what feeds it. `present`: the feeds that are not removed; `hidden`: people who are."""

    def __init__(self, engine: sa.Engine, folder: Path, number: int = 0) -> None:
        empty_roster(engine)
        self.engine, self.folder, self.exports = engine, folder, 0
        self.settings = Settings(secret_key=SECRET_KEY, home=folder / "home")
        self.districts = {feed: District(feed, Random(f"{feed}{number}")) for feed in FEEDS}
        self.present, self.hidden = set(FEEDS), dict[str, str]()
        self.vendors = dict[str, Vendor]()
        # Not by name, so that a collection ordered by feed is not ordered by id.
        for feed in reversed(FEEDS):
            self.load(feed)
        for name, vendor in list_vendors().items():
            self.add_vendor(name, vendor)
        with engine.begin() as connection:
            ensure_signing_key(connection, SECRET_KEY)
        self.app: Flask = create_app(self.settings, engine.url.render_as_string(hide_password=False), UNBOUNDED)
        self.http = self.app.test_client()

    def close(self) -> None:
        """Closes the application."""
        close_app(self.app)

    def read_rostering(self, name: str, version: str) -> Rostering:
        """A reader of a vendor on the rostering interface."""
        return Rostering(self.http, version, self.vendors[name].login)

    def read_students(self, name: str) -> Students:
        """A reader of a vendor on the vendor interface."""
        vendor = self.vendors[name]
        return Students(self.http, vendor.api_key, vendor.account)

    def list_leas(self) -> set[str]:
        """What names each district of the roster, also one that is going, on the vendor interface."""
        with self.engine.connect() as connection:
            found = sa.select(sa.func.coalesce(tables.orgs.c.identifier, tables.orgs.c.sourced_id))
            return set(connection.scalars(found.where(tables.orgs.c.type == "district")))

    # --- vendors ---

    def add_vendor(self, name: str, vendor: Vendor) -> None:
        """Adds a vendor with a client, and notes the credentials of both."""
        self.vendors[name], email = vendor, self.find_email(name)
        with self.engine.begin() as connection:
            added = vendors.add_vendor(connection, TESTER, email, name)
            vendors.change_allowance(connection, TESTER, email, PLENTY, ROSTERING_DEFAULTS)
            vendor_rights.set_flags(connection, TESTER, email, sorted(vendor.flags))
            vendor_rights.change_withheld(connection, TESTER, email, vendor.withheld)
            for district, schools in vendor.grants.items():
                vendor_rights.set_district_grant(connection, TESTER, email, district, schools)
            for district, school, rules in vendor.rules:
                vendor_rights.grant(
                    connection, TESTER, email, district, [school] if school else [], rules=rules, even_nothing=True
                )
            client = clients.add_client(connection, TESTER, email, "tests", list_scopes(vendor.scopes))
        vendor.login, vendor.api_key = (client.client_id, client.client_secret), added.api_key
        vendor.account = {"email": email, "password": str(added.password)}

    @staticmethod
    def find_email(name: str) -> str:
        """The address of a vendor."""
        return f"{name.replace(' ', '-')}@vendors.example"

    def grant(self, name: str, district: str, schools: list[str] | None) -> None:
        """Makes the grants of a district these; an empty list takes it."""
        with self.engine.begin() as connection:
            vendor_rights.set_district_grant(connection, TESTER, self.find_email(name), district, schools)
        self.vendors[name].grants[district] = schools
        if schools == []:
            del self.vendors[name].grants[district]

    def set_rules(self, name: str, district: str, rules: list[tuple[str, Rules]]) -> None:
        """Makes the rules of a district these (school, rules); the vendor then has no other grant of it."""
        vendor, email = self.vendors[name], self.find_email(name)
        with self.engine.begin() as connection:
            if district in vendor.grants or any(known == district for known, _, _ in vendor.rules):
                vendor_rights.revoke(connection, TESTER, email, district)
            for school, rule in rules:
                vendor_rights.grant(
                    connection, TESTER, email, district, [school] if school else [], rules=rule, even_nothing=True
                )
        vendor.grants.pop(district, None)
        vendor.rules = [item for item in vendor.rules if item[0] != district]
        vendor.rules += [(district, school, rule) for school, rule in rules]

    def set_scopes(self, name: str, scopes: frozenset[ScopeName]) -> None:
        """Makes the scopes of the vendor's client these, of both versions."""
        self.vendors[name].scopes = scopes
        with self.engine.begin() as connection:
            clients.change_scopes(connection, TESTER, self.vendors[name].login[0], list_scopes(scopes))

    def set_withheld(self, name: str, fields: frozenset[WithheldField]) -> None:
        """Makes the withheld fields of a vendor these."""
        self.vendors[name].withheld = fields
        with self.engine.begin() as connection:
            vendor_rights.change_withheld(connection, TESTER, self.find_email(name), fields)

    def set_flags(self, name: str, flags: frozenset[PermissionFlag]) -> None:
        """Makes the permission flags of a vendor these."""
        self.vendors[name].flags = flags
        with self.engine.begin() as connection:
            vendor_rights.set_flags(connection, TESTER, self.find_email(name), sorted(flags))

    # --- feeds and people ---

    def write(self, feed: str) -> Path:
        """Writes what a feed brings now."""
        self.exports += 1
        return self.districts[feed].write(self.folder / str(self.exports))

    def load(self, feed: str, bend: Callable[[Path], None] | None = None) -> None:
        """A sync; `bend`: changes the files first."""
        folder = self.write(feed)
        if bend is not None:
            bend(folder)
        load(self.engine, feed, folder, options=Options(self.settings, allow_mass_delete=True, keeps_copy=True))

    def undo(self, feed: str) -> None:
        """An operator takes the last run that changed the feed back."""
        with self.engine.connect() as connection:
            runs, own = tables.sync_runs.c, tables.feeds.c.name == feed
            changed = sa.select(runs.id, runs.kept_export).join(tables.feeds, tables.feeds.c.id == runs.feed_id)
            changed = changed.where(own, runs.stamp.is_not(None)).order_by(runs.id.desc()).limit(2)
            undone, before = connection.execute(changed).all()
        load(self.engine, feed, Path(before.kept_export), options=Options(self.settings, undoes=undone.id))

    def load_held(self, feed: str) -> bool:
        """A sync that is held, and approved; returns whether there was something to hold."""
        strict = replace(self.settings, hold_least_records=1)
        self._limit(feed, 0)
        held = load(self.engine, feed, self.write(feed), options=Options(strict))
        self._limit(feed, None)
        if held.outcome != "held":
            return False
        assert held.run is not None
        with self.engine.connect() as connection:
            kept = connection.scalar(sa.select(tables.sync_runs.c.kept_export).where(tables.sync_runs.c.id == held.run))
        load(self.engine, feed, Path(str(kept)), options=Options(strict, approval=Approval(held.run, TESTER)))
        return True

    def _limit(self, feed: str, percent: int | None) -> None:
        """An operator sets what a run may change; None: the default."""
        limits = {"hold_tombstones_percent": percent, "hold_changes_percent": percent}
        with self.engine.begin() as connection:
            connection.execute(sa.update(tables.feeds).where(tables.feeds.c.name == feed).values(limits))

    def remove_feed(self, feed: str, *, at_once: bool) -> None:
        """An operator removes a feed."""
        remove_feed(self.engine, TESTER, feed, self.settings, at_once=at_once)
        self.present.discard(feed)

    def return_feed(self, feed: str) -> None:
        """An operator adds it again, and it brings its export."""
        with self.engine.begin() as connection:
            connection.execute(sa.update(tables.feeds).where(tables.feeds.c.name == feed).values(state=FeedState.ADDED))
        self.present.add(feed)
        self.load(feed)

    def exclude(self, kind: ExclusionKind, sourced_id: str) -> None:
        """An operator erases or hides a person."""
        with self.engine.begin() as connection:
            removal = exclude_person(connection, TESTER, kind, sourced_id, self.settings)
        sweep(self.engine, removal, 10)

    def keep(self, name: str, sourced_id: str, *, shown: bool) -> None:
        """An operator keeps a person from a vendor, or no longer does."""
        with self.engine.begin() as connection:
            keep_person(connection, TESTER, self.find_email(name), sourced_id, self.settings, shown=shown)

    def end_exclusion(self, kind: ExclusionKind, sourced_id: str) -> None:
        """The next sync brings the person back."""
        with self.engine.begin() as connection:
            end_exclusion(connection, TESTER, kind, sourced_id, self.settings)

    def purge(self) -> None:
        """Removes every tombstone, and with it the grants of orgs that are gone."""
        purge(self.engine, 0)
        with self.engine.connect() as connection:
            known = set(connection.scalars(sa.select(tables.orgs.c.sourced_id)))
        for vendor in self.vendors.values():
            vendor.grants = {
                district: schools and [it for it in schools if it in known]
                for district, schools in vendor.grants.items()
                if district in known and (schools is None or known.intersection(schools))
            }
            vendor.rules = [item for item in vendor.rules if item[0] in known]

    def restore(self) -> None:
        """The database was restored from a backup."""
        with self.engine.begin() as connection:
            advance_restored_state(connection, TESTER)


def list_scopes(names: frozenset[ScopeName]) -> list[Scope]:
    """These scopes of both versions."""
    return [Scope(version, name) for version in VERSIONS for name in sorted(names)]


# --- steps: each takes the world and dice, and returns the vendor whose rights it changed, if any ---

Step = Callable[[World, Random], str | None]


def change(name: str) -> Step:
    """A night in which this happens, and at times something else."""

    def step(world: World, dice: Random) -> None:
        district = world.districts[dice.choice(sorted(world.present))]
        district.dice = dice
        CHANGES[name](district)
        for other in dice.sample(sorted(CHANGES), dice.choice([0, 0, 1, 2])):
            CHANGES[other](district)
        world.load(district.feed)

    return step


def hold(world: World, dice: Random) -> None:
    district = world.districts[dice.choice(sorted(world.present))]
    district.dice = dice
    for other in dice.sample(sorted(CHANGES), 4):
        CHANGES[other](district)
    world.load_held(district.feed)


def change_districts(change: Callable[[District], None]) -> Step:
    """A change of the feed that has two districts."""

    def step(world: World, dice: Random) -> None:
        if "a" in world.present:
            world.districts["a"].dice = dice
            change(world.districts["a"])
            world.load("a")

    return step


def grant_anew(world: World, dice: Random) -> str:
    """Districts of now, whatever their ids, are granted to a vendor."""
    name = dice.choice(sorted(world.vendors))
    for feed in dice.sample(FEEDS, 2):
        for row in world.districts[feed].find("orgs", type="district"):
            change_grant(world, name, row["sourcedId"], None)
    return name


def change_schools(world: World, dice: Random) -> str:
    """Single schools of a district are granted or revoked."""
    name = dice.choice(sorted(world.vendors))
    found = [row for row in world.districts[dice.choice(FEEDS)].find("orgs", type="school") if row["parentSourcedId"]]
    district = dice.choice(found)["parentSourcedId"]
    schools = [row["sourcedId"] for row in found if row["parentSourcedId"] == district]
    return change_grant(world, name, district, dice.sample(schools, dice.randint(0, len(schools))))


def change_district(world: World, dice: Random) -> str:
    """A whole district is granted or revoked."""
    name, district = dice.choice(sorted(world.vendors)), dice.choice(["a-d", "a-d", "a-e", "b-d", "c-d"])
    whole = world.vendors[name].grants.get(district, []) is None
    return change_grant(world, name, district, [] if whole else None)


def change_grant(world: World, name: str, district: str, schools: list[str] | None) -> str:
    """A grant as far as the roster has its orgs."""
    with world.engine.connect() as connection:
        active = tables.orgs.c.status == "active"
        known = set(connection.scalars(sa.select(tables.orgs.c.sourced_id).where(active)))
    if any(ruled == district for ruled, _, _ in world.vendors[name].rules):
        return name
    if known.issuperset([district, *(schools or ())]) if schools != [] else district in world.vendors[name].grants:
        world.grant(name, district, schools)
    return name


def change_rules(world: World, dice: Random) -> str:
    """The rules of a district are others now, or begin, or end."""
    name, district = dice.choice([it for it in sorted(world.vendors) if world.vendors[it].rules]), "a-d"
    schools = [row["sourcedId"] for row in world.districts["a"].find("orgs", parentSourcedId=district)]
    with world.engine.connect() as connection:
        active = tables.orgs.c.status == "active"
        known = set(connection.scalars(sa.select(tables.orgs.c.sourced_id).where(active)))
    places = ["", *(school for school in schools if school in known)]
    if district in known:
        chosen = {(dice.choice(places), dice.choice(RULES)) for _ in range(dice.choice([1, 1, 2]))}
        world.set_rules(name, district, sorted(chosen, key=str))
    return name


def change_scopes(world: World, dice: Random) -> str:
    name = dice.choice(sorted(world.vendors))
    kinds = [ScopeName.GUARDIANS, ScopeName.DEMOGRAPHICS, ScopeName.STUDENTS_METADATA]
    world.set_scopes(name, world.vendors[name].scopes ^ {dice.choice(kinds)})
    return name


def change_withheld(world: World, dice: Random) -> str:
    name = dice.choice(sorted(world.vendors))
    kinds = [WithheldField.EMAIL, WithheldField.BIRTH_DATE, WithheldField.AGENTS]
    world.set_withheld(name, world.vendors[name].withheld ^ {dice.choice(kinds)})
    return name


def change_flags(world: World, dice: Random) -> str:
    name = dice.choice(sorted(world.vendors))
    world.set_flags(name, world.vendors[name].flags ^ {dice.choice(list(PermissionFlag))})
    return name


def remove(*, at_once: bool) -> Step:
    """A feed is removed, where none is yet."""

    def step(world: World, dice: Random) -> None:
        if len(world.present) == len(FEEDS):
            world.remove_feed(dice.choice("abbc"), at_once=at_once)

    return step


def bring_back(world: World, _dice: Random) -> None:
    for feed in sorted(set(FEEDS) - world.present):
        world.return_feed(feed)


def exclude(kind: ExclusionKind) -> Step:
    """A person is erased or hidden; the feeds go on having them."""

    def step(world: World, dice: Random) -> None:
        feed = dice.choice(sorted(world.present))
        sourced_id = dice.choice(sorted(world.districts[feed].rows["users"]))
        if sourced_id not in world.hidden:
            world.exclude(kind, sourced_id)
            if kind is ExclusionKind.HIDDEN:
                world.hidden[sourced_id] = feed

    return step


def show(world: World, dice: Random) -> None:
    if world.hidden:
        sourced_id = dice.choice(sorted(world.hidden))
        world.end_exclusion(ExclusionKind.HIDDEN, sourced_id)
        feed = world.hidden.pop(sourced_id)
        if feed in world.present:
            world.load(feed)


def keep(world: World, dice: Random) -> str:
    """A person is kept from a vendor: at times one who is kept already, and then from another one, too."""
    name = dice.choice(sorted(world.vendors))
    with world.engine.connect() as connection:
        people = sorted(connection.scalars(sa.select(tables.users.c.sourced_id)))
        kept = {(it.sourced_id, it.vendor) for it in list_kept(connection)}
    chosen = min(kept)[0] if kept and dice.random() < 1 / 3 else dice.choice(people or [""])
    if chosen in people and (chosen, world.find_email(name)) not in kept:
        world.keep(name, chosen, shown=False)
    return name


def return_person(world: World, dice: Random) -> str | None:
    """A person who is kept from a vendor no longer is."""
    with world.engine.connect() as connection:
        found = list_kept(connection)
    if not found:
        return None
    kept = dice.choice(found)
    (name,) = (name for name in world.vendors if world.find_email(name) == kept.vendor)
    world.keep(name, kept.sourced_id, shown=True)
    return name


RIGHTS: dict[str, Step] = {
    "a person is kept from a vendor": keep,
    "a person returns to a vendor": return_person,
    "schools are granted or revoked": change_schools,
    "a district is granted or revoked": change_district,
    "rules change": change_rules,
    "scopes change": change_scopes,
    "withheld fields change": change_withheld,
    "flags change": change_flags,
}
# What may make every vendor pull whole.
RARE: dict[str, Step] = {
    "a school changes its district": change_districts(move_school),
    "a feed is removed": remove(at_once=False),
    "a feed is removed at once": remove(at_once=True),
    "a feed returns": bring_back,
    "a person is erased": exclude(ExclusionKind.ERASED),
    "a person is hidden": exclude(ExclusionKind.HIDDEN),
    "a person is shown": show,
    "the database is restored": lambda world, _dice: world.restore(),
}
# What changes the districts by which the vendor interface is asked.
NAMES: dict[str, Step] = {
    "a district has another id": change_districts(rename_district),
    "a district has another identifier": change_districts(renumber_district),
    "districts are granted anew": grant_anew,
}
DATA: dict[str, Step] = {
    **{name: change(name) for name in CHANGES},
    "a held run is approved": hold,
    "a purge": lambda world, _dice: world.purge(),
}
STEPS: dict[str, Step] = {**DATA, **RIGHTS, **RARE}

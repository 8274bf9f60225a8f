"""What may happen between two nights of a vendor: whether a delta is enough then, and whether a pull goes on.

The table of docs/vendors.md ("What a change does to a copy") has these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum

from roster_service.accounts import vendors
from roster_service.auth.scopes import ScopeName
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.roster.withheld import WithheldField
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from tests.actors import TESTER

from .copies import INTERFACES
from .fixed_district import edit
from .world import VERSIONS, Vendor, World


class Copy(StrEnum):
    """What brings a copy up to date."""

    DELTA = "delta"
    WHOLE = "whole pull"


class Running(StrEnum):
    """What the next page of a running pull is."""

    GOES_ON = "goes on"
    ENDS = "410"
    ENDS_THERE = "410 if it has one of them"
    NAMES_NOTHING = "410, `/v1` 403"
    IS_REFUSED = "410; `/v1` with that `include`: 403"


Take = Callable[[World, str], None]


def nothing(_world: World, _name: str) -> None:
    """Nothing happens."""


@dataclass(frozen=True)
class Event:
    """What happens to a vendor, who has `a-d`, `b-d` and all scopes and flags. `takes`: one after the other, each of
    which does the same to a copy and a pull of right before; `before`: what has happened already; `after`: makes the
    feeds as they were; `interfaces`: where it is seen."""

    takes: tuple[Take, ...]
    copy: Copy
    running: Running
    before: Take = nothing
    after: Take = nothing
    interfaces: Collection[str] = INTERFACES


def keep(person: str) -> tuple[Take, ...]:
    """A person is kept from the vendor, and no longer is."""

    def take(shown: bool) -> Take:
        return lambda world, name: world.keep(name, person, shown=shown)

    return take(shown=False), take(shown=True)


def exclude(kind: ExclusionKind, person: str) -> Take:
    """A person is erased or hidden."""
    return lambda world, _name: world.exclude(kind, person)


def remove(*, at_once: bool) -> Take:
    """A feed is removed."""
    return lambda world, _name: world.remove_feed("b", at_once=at_once)


def change(*edits: tuple[str, str, str]) -> Take:
    """A sync brings these edits."""
    return lambda world, _name: edit(world, edits)


def show(person: str) -> Take:
    """A hidden person is shown, and the next sync brings the person back."""

    def take(world: World, _name: str) -> None:
        world.end_exclusion(ExclusionKind.HIDDEN, person)
        world.load("a")

    return take


def bring_back(hidden: str, erased: str) -> Take:
    """Neither of two people is excluded any more, and the next sync brings both back."""

    def take(world: World, name: str) -> None:
        world.end_exclusion(ExclusionKind.ERASED, erased)
        show(hidden)(world, name)

    return take


def end_tokens(world: World, name: str) -> None:
    """The operator disables the vendor, and enables it again."""
    with world.engine.begin() as connection:
        for enabled in (False, True):
            vendors.set_vendor_enabled(connection, TESTER, world.find_email(name), enabled)


def give(district: str, *given: list[str] | None) -> tuple[Take, ...]:
    """The grants of a district are these, one after the other."""
    return tuple(lambda world, name, schools=schools: world.grant(name, district, schools) for schools in given)


def set_rules(*given: Rules) -> tuple[Take, ...]:
    """The rules of a district are these, one after the other."""
    return tuple(lambda world, name, rules=rules: world.set_rules(name, "a-d", [("", rules)]) for rules in given)


def set_scopes(*given: frozenset[ScopeName]) -> tuple[Take, ...]:
    """The scopes of the client are these, one after the other."""
    return tuple(lambda world, name, scopes=scopes: world.set_scopes(name, scopes) for scopes in given)


def set_withheld(*given: frozenset[WithheldField]) -> tuple[Take, ...]:
    """The withheld fields are these, one after the other."""
    return tuple(lambda world, name, fields=fields: world.set_withheld(name, fields) for fields in given)


def set_flags(*given: frozenset[PermissionFlag]) -> tuple[Take, ...]:
    """The permission flags are these, one after the other."""
    return tuple(lambda world, name, flags=flags: world.set_flags(name, flags) for flags in given)


ALL_SCOPES, ALL_FLAGS = frozenset(ScopeName) - {ScopeName.CORE}, frozenset(PermissionFlag)
LEAVE = (("roles", "a-r-p4", ""), ("enrollments", "a-n-p4", ""), ("users", "a-p4", ""))
PUPILS = Rules("givenName~'N'", None, Staff.ALL, guardians=True)
TAUGHT = Rules(None, "title~'K'", Staff.CLASSES, guardians=True)
EVENTS: dict[str, Event] = {
    "a sync adds, changes or removes records": Event(
        (change(("users", "a-p1", "email=new@example.org"), *LEAVE, ("users", "a-p9", "givenName=N")),),
        *(Copy.DELTA, Running.GOES_ON),
    ),
    "a person comes into what you may see, or leaves it": Event(
        (
            change(("roles", "a-r-p1", "orgSourcedId=a-s3"), ("enrollments", "a-n-p1", "")),
            change(("roles", "a-r-p1", "orgSourcedId=a-s1")),
        ),
        *(Copy.DELTA, Running.GOES_ON),
    ),
    "a school is added to a district": Event(
        (change(("orgs", "a-s4", "name=4 type=school parentSourcedId=a-d")),), Copy.DELTA, Running.ENDS
    ),
    "a school changes its district": Event(
        (change(("orgs", "a-s2", "parentSourcedId=a-e")),), Copy.WHOLE, Running.ENDS
    ),
    "a district gets another identifier": Event(
        (change(("orgs", "a-d", "identifier=a-x")),),
        *(Copy.WHOLE, Running.NAMES_NOTHING),
        after=change(("orgs", "a-d", "identifier=a-d")),
    ),
    "tombstones are deleted after 7 days": Event(
        (lambda world, _name: world.purge(),), Copy.DELTA, Running.ENDS_THERE, before=change(*LEAVE)
    ),
    "a feed is removed, and its records become tombstones": Event(
        (remove(at_once=False),), Copy.DELTA, Running.GOES_ON, after=lambda world, _name: world.return_feed("b")
    ),
    "a feed is removed at once": Event(
        (remove(at_once=True),), Copy.WHOLE, Running.ENDS, after=lambda world, _name: world.return_feed("b")
    ),
    "the database is restored from a backup": Event((lambda world, _name: world.restore(),), Copy.WHOLE, Running.ENDS),
    "a district or a school is granted, or a grant ends": Event(
        give("c-d", ["c-s1"], None, []), Copy.WHOLE, Running.ENDS
    ),
    "the rules of a grant change": Event(set_rules(PUPILS, TAUGHT), Copy.WHOLE, Running.ENDS),
    "your client gets or loses a scope": Event(
        set_scopes(ALL_SCOPES - {ScopeName.GUARDIANS}, ALL_SCOPES), Copy.WHOLE, Running.ENDS, interfaces=VERSIONS
    ),
    "a field is withheld, or no longer": Event(
        set_withheld(frozenset({WithheldField.EMAIL}), frozenset()), Copy.WHOLE, Running.ENDS
    ),
    "you lose a permission flag": Event(
        set_flags(ALL_FLAGS - {PermissionFlag.CONTACTS}), Copy.WHOLE, Running.IS_REFUSED
    ),
    "you get a permission flag": Event(
        set_flags(ALL_FLAGS),
        *(Copy.WHOLE, Running.ENDS),
        before=lambda world, name: world.set_flags(name, ALL_FLAGS - {PermissionFlag.CONTACTS}),
    ),
    "your tokens end, and your rights stay": Event((end_tokens,), Copy.DELTA, Running.GOES_ON),
    "a pupil or a guardian is kept from you, or no longer": Event(
        (*keep("a-p1"), *keep("a-g1")), Copy.DELTA, Running.ENDS
    ),
    "a teacher is kept from you, or no longer": Event(keep("a-t2"), Copy.WHOLE, Running.ENDS),
    "people are erased or hidden": Event(
        (exclude(ExclusionKind.HIDDEN, "a-p3"), exclude(ExclusionKind.ERASED, "a-p4")),
        *(Copy.WHOLE, Running.ENDS_THERE),
        after=bring_back("a-p3", "a-p4"),
    ),
    "a hidden person is shown": Event(
        (show("a-p3"),), Copy.DELTA, Running.GOES_ON, before=exclude(ExclusionKind.HIDDEN, "a-p3")
    ),
}


def make_vendor() -> Vendor:
    """The vendor of the events."""
    return Vendor({"a-d": None, "b-d": None}, ALL_SCOPES)

"""The ways by which something can leave for a vendor, in each state, and what really leaves by them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from roster_service.accounts import clients, secret_links, vendor_rights, vendors
from roster_service.accounts.agreements import set_agreement
from roster_service.auth.scopes import ScopeName, read_scopes
from roster_service.deliveries.accounts import add_delivery, approve_file, stop_delivery
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError
from roster_service.explore.person_words import PART_WORDS
from roster_service.roster.vocabulary import GUARDIAN_ROLES
from roster_service.schemas.file_presets import PRESETS
from roster_service.schemas.flags import PermissionFlag
from roster_service.schemas.sharing_rules import Rules, Staff
from roster_service.schemas.versions import VERSIONS
from roster_service.settings import Settings
from tests.accounts.agreed import WHOLE
from tests.accounts.test_parts import LEA, MEMBERS, ROOTS, ask_rostering, ask_vendor_interface
from tests.actors import TESTER
from tests.console.conftest import SECRET, Console
from tests.deliveries.conftest import Rows, read_zip
from tests.deliveries.dropbox import DropBox
from tests.deliveries.test_sending import HOST_KEY, PASSWORD
from tests.extent import pair
from tests.vendor.client import Account, VendorClient
from tests.vendor.test_disclosed_parts import find_parts, find_parts_of_student

VENDOR, DISTRICT = "app@ways.example", "shv-district"
PUPIL, GUARDIAN, TEACHER, SCHOOL = "shv-student-1", "shv-guardian-1", "shv-teacher-1", "shv-north"
EVERY = tuple(f"{version.prefix}/{name}" for version in VERSIONS for name in ScopeName)
CORE = tuple(f"{version.prefix}/{ScopeName.CORE}" for version in VERSIONS)
HOUR = timedelta(hours=1)
# The columns of files that show a part, where their headers are not those of the interface.
# Of a file, preferred names have the headers of OneRoster 1.2.
COLUMNS = MEMBERS | {"preferredNames": ("preferredGivenName", "preferredFamilyName")}


@dataclass(frozen=True)
class World:
    """A vendor that is granted a district, and what it holds. `number`: of one of many; None for the only one."""

    console: Console
    number: int | None = None
    client_id: str = ""
    secret: str | None = None
    link: str | None = None
    account: Account | None = None
    delivery: str | None = None

    @property
    def vendor(self) -> str:
        """The e-mail of the vendor."""
        return VENDOR if self.number is None else f"app-{self.number:02}@ways.example"

    @property
    def name(self) -> str:
        """The name of the vendor; no name of another begins with it."""
        return "App" if self.number is None else f"App {self.number:02}"

    @property
    def file_name(self) -> str:
        """That of its delivery, if it has one."""
        return "nightly" if self.number is None else f"nightly-{self.number:02}"

    def run(self, statement: str) -> None:
        """Runs a statement of SQL."""
        with self.console.engine.begin() as connection:
            connection.execute(sa.text(statement))

    def find_number(self) -> int:
        """The number of the vendor in the database."""
        with self.console.engine.connect() as connection:
            return vendors.find_vendor(connection, self.vendor).id


def begin(console: Console) -> None:
    """Leaves no vendor; everybody has metadata."""
    (console.home / "secret_key").write_text(SECRET)
    remove_vendors(console)
    with console.engine.begin() as connection:
        for table in ("users", "demographics"):
            connection.execute(sa.text(f"UPDATE {table} SET metadata = jsonb_build_object('locker', '7')"))


def remove_vendors(console: Console) -> None:
    """Removes all vendors."""
    with console.engine.begin() as connection:
        for vendor in vendors.list_vendors(connection):
            vendors.remove_vendor(connection, TESTER, vendor.email)


def add_world(console: Console, number: int | None = None) -> World:
    """Adds a vendor without any way."""
    made = World(console, number)
    with console.engine.begin() as connection:
        vendors.add_vendor(connection, TESTER, made.vendor, made.name)
        vendors.end_keys(connection, vendors.find_vendor(connection, made.vendor).id)
        vendor_rights.grant(connection, TESTER, made.vendor, DISTRICT, (), tuple(PermissionFlag))
    return made


def add_client(world: World, scopes: tuple[str, ...] = EVERY, expires_at: datetime | None = None) -> World:
    """With a client. Its secret has ended unless an end is given."""
    with world.console.engine.begin() as connection:
        given = (connection, TESTER, world.vendor, "reader", read_scopes(scopes))
        made = clients.add_client(*given, expires_at=expires_at or datetime.now(UTC) - HOUR)
    return replace(world, client_id=made.client_id, secret=made.client_secret)


def plant_secret(world: World) -> World:
    return add_client(world, expires_at=datetime.now(UTC) + HOUR)


def plant_earlier_secret(world: World) -> World:
    """The newest one has ended, and nobody has it; the one before it has a grace."""
    made = plant_secret(world)
    with world.console.engine.begin() as connection:
        clients.rotate_secret(connection, TESTER, made.client_id, HOUR, expires_at=datetime.now(UTC) - HOUR)
    return made


def plant_link(world: World) -> World:
    made = add_client(world)
    with world.console.engine.begin() as connection:
        return replace(made, link=secret_links.make_link(connection, TESTER, made.client_id))


def plant_key(world: World) -> World:
    with world.console.engine.begin() as connection:
        password = vendors.change_password(connection, TESTER, world.vendor, None)
        key = vendors.replace_key(connection, TESTER, world.vendor, timedelta(0)).api_key
        number = vendors.find_vendor(connection, world.vendor).id
    return replace(world, account=Account(number, world.vendor, key, str(password)))


def plant_delivery(preset: str, scopes: tuple[str, ...] = EVERY) -> Callable[[World], World]:
    def plant(world: World) -> World:
        made = add_client(world, scopes)
        row = {
            "client_id": made.client_id, "preset": preset, "host": "sftp.example.org", "port": 22, "username": "us",
            "folder": world.file_name, "host_key": HOST_KEY, "secret": PASSWORD, "has_private_key": False,
            "in_place": False,
        }  # fmt: skip
        with world.console.engine.begin() as connection:
            add_delivery(connection, TESTER, world.file_name, world.vendor, row, Settings(secret_key=SECRET))
        return replace(made, delivery=world.file_name)

    return plant


def stop(world: World) -> None:
    with world.console.engine.begin() as connection:
        stop_delivery(connection, TESTER, world.file_name, stopped=True)


def remove_client(world: World) -> None:
    with world.console.engine.begin() as connection:
        clients.remove_client(connection, TESTER, world.client_id)


def narrow(world: World) -> None:
    with world.console.engine.begin() as connection:
        clients.change_scopes(connection, TESTER, world.client_id, read_scopes(("v1p2/roster-core.readonly",)))


def disable_client(world: World) -> None:
    with world.console.engine.begin() as connection:
        clients.disable_client(connection, TESTER, world.client_id)


def disable_vendor(world: World) -> None:
    with world.console.engine.begin() as connection:
        vendors.set_vendor_enabled(connection, TESTER, world.vendor, enabled=False)


def revoke(world: World) -> None:
    with world.console.engine.begin() as connection:
        vendor_rights.revoke(connection, TESTER, world.vendor, DISTRICT)


def rule(rules: Rules) -> Callable[[World], None]:
    def change(world: World) -> None:
        with world.console.engine.begin() as connection:
            vendor_rights.grant(connection, TESTER, world.vendor, DISTRICT, (), rules=rules)

    return change


def agree(*elements: str) -> Callable[[World], None]:
    """An agreement of these elements of the whole district."""

    def change(world: World) -> None:
        agreement = replace(WHOLE, elements=elements, districts=(DISTRICT,))
        with world.console.engine.begin() as connection:
            set_agreement(connection, TESTER, world.vendor, agreement)

    return change


def end_agreement(world: World) -> None:
    agree("names", "classes")(world)
    say("agreements", "starts_at = 'epoch', ends_at = now()")(world)


def leave(_world: World) -> None:
    pass


def say(table: str, change: str) -> Callable[[World], None]:
    """Changes what the vendor has in a table."""
    return lambda world: world.run(
        f"UPDATE {table} SET {change} WHERE vendor_id = (SELECT id FROM vendors WHERE email = '{world.vendor}')"
    )


RULES = {
    "no guardians by rule": rule(Rules(None, None, Staff.ALL, guardians=False)),
    "no staff by rule": rule(Rules(None, None, Staff.NONE, guardians=True)),
    "a narrow agreement": agree("names", "classes", "email", "sex"),
    "a few by rule": rule(Rules("grades~'09,10'", None, Staff.CLASSES, guardians=False)),
}
OF_ALL = {
    "open": leave,
    "of a disabled vendor": disable_vendor,
    "without a grant": revoke,
    "of an ended agreement": end_agreement,
}
OF_CLIENTS = {**OF_ALL, "of a disabled client": disable_client, "of a removed client": remove_client}
END_DELIVERY = {**{name: end for name, end in OF_CLIENTS.items() if name != "open"}, "stopped": stop}
# No preset decides whether its files go: each end is tried with one of them.
ENDED_FILES = tuple(pair(tuple(END_DELIVERY), tuple(PRESETS)))
END_SECRET = say("oauth_clients", "secret_expires_at = now()")
WAYS: dict[str, tuple[Callable[[World], World], dict[str, Callable[[World], None]]]] = {
    "a secret": (plant_secret, {**OF_CLIENTS, **RULES, "ended": END_SECRET}),
    "an earlier secret": (
        plant_earlier_secret, {"open": leave, "ended": say("oauth_clients", "previous_secret_ends_at = now()")}
    ),
    "a link": (
        plant_link,
        {
            **OF_CLIENTS,
            "ended": say("oauth_clients", "link_ends_at = now()"),
            "used, and its secret ended": say("oauth_clients", "link_used_at = now()"),
        },
    ),
    "a key": (plant_key, {**OF_ALL, **RULES, "ended": say("api_keys", "expires_at = now()")}),
    **{
        f"a delivery of {preset}": (
            plant_delivery(preset),
            {
                "open": leave,
                **RULES,
                "of other scopes": narrow,
                **{state: END_DELIVERY[state] for it, state in ENDED_FILES if it == preset},
            },
        )
        for preset in PRESETS
    },
    "a delivery with few scopes": (plant_delivery("oneroster-1.2", CORE), {"open": leave}),
    "nothing": (add_client, {"open": leave}),
}  # fmt: skip
CASES = {
    f"{way}, {state}": (plant, change) for way, (plant, states) in WAYS.items() for state, change in states.items()
}
# Scopes, and the rules that leave out one kind of people, are asked of the files of one preset; the widest rule of all.
QUICK = [
    name
    for name in CASES
    if not name.endswith((", no guardians by rule", ", no staff by rule", ", of other scopes"))
    or not any(f"delivery of {preset}," in name for preset in PRESETS if preset != "oneroster-1.2")
]


def find_sent(files: Mapping[str, Rows]) -> set[str]:
    """The parts that the rows of files show."""
    people, demographics = files["users"], files.get("demographics", [])
    found = {
        name
        for name, headers in COLUMNS.items()
        for it in (*people, *demographics)
        if any(it.get(one) for one in headers)
    }
    roles = {(row["userSourcedId"], row["role"]) for row in files.get("roles", ())}
    roles |= {(row["sourcedId"], row["role"]) for row in people if "role" in row}
    guardians = {person for person, role in roles if role in GUARDIAN_ROLES}
    found |= {"guardians"} if guardians else set()
    found |= {"classes"} if files.get("classes") else set()
    for rows, of_guardians, of_others in (
        (people, "guardianMetadata", "studentMetadata"), (demographics, "", "demographicMetadata")
    ):  # fmt: skip
        for row in rows:
            if any(value for header, value in row.items() if header.startswith("metadata.")):
                found.add(of_guardians if row["sourcedId"] in guardians else of_others)
    return found


@dataclass(frozen=True)
class Held:
    """What a vendor has got. `secret`: that of its client, also if it is not valid; `files`: the rows of each file that
    was sent; `students`: those of the vendor interface, None if the vendor may not log in."""

    secret: str | None
    files: Sequence[Mapping[str, Rows]]
    students: Sequence[Mapping[str, Any]] | None


def get_all(world: World) -> Held:
    """Uses the link of a vendor and its key, and sends its files."""
    secret, students, console = world.secret, None, world.console
    if world.link is not None:
        with console.engine.begin() as connection:
            secret = secret_links.use_link(connection, world.link, None) or secret
    if world.account is not None:
        key = {"x-api-key": world.account.api_key}
        login = {"email": world.vendor, "password": world.account.password}
        answer = console.vendors.test_client().post("/v1/login", json=login, headers=key)
        if answer.status_code == 200:
            asked = VendorClient(console.vendors)
            sent = {"districtlea": LEA, "include": answer.json["flags"]}
            students = asked.students(world.account, asked.token(world.account), sent).json.get("students", [])
    return Held(secret, [] if world.delivery is None else send_files(world, world.delivery), students)


def send_files(world: World, delivery: str) -> list[dict[str, Rows]]:
    """The files that a delivery sends, once its first one is approved; none if it may not send."""
    box, console = DropBox(), world.console
    sender = Sender(console.engine, Settings(secret_key=SECRET, home=console.home), box.connect)
    try:
        made = sender.deliver(delivery)
        with console.engine.begin() as connection:
            approve_file(connection, TESTER, delivery, str(made.digest))
        sender.deliver(delivery)
    except CommandError:
        pass
    return [read_zip(content) for content in box.files.values()]


def find_all(world: World, held: Held) -> tuple[set[str], set[str], bool]:
    """The parts that a vendor gets of anybody, the ids of the people and schools that its students and files have, and
    whether a file names an agent of the pupil."""
    found, ids, names_agent = set[str](), set[str](), False
    app = world.console.vendors
    if held.secret is not None:
        for version, scopes in itertools.groupby(EVERY, lambda scope: scope.partition("/")[0]):
            with_token = (world.client_id, held.secret)
            form = {"grant_type": "client_credentials", "scope": " ".join(scopes)}
            answer = app.test_client().post("/oauth/token", data=form, auth=with_token)
            if answer.status_code == 200:
                found |= ask_rostering(app, with_token, version, form["scope"].split())
    if held.students is not None:
        assert world.account is not None
        flags = VendorClient(app).login(world.account).json["flags"]
        found |= ask_vendor_interface(app, world.account, tuple(flags))
        ids |= {*re.findall(r'"sourcedId": ?"([^"]+)"', json.dumps(held.students))}
    for files in held.files:
        found |= find_sent(files)
        ids |= {row["sourcedId"] for rows in files.values() for row in rows if "sourcedId" in row}
        of_pupil = [row for row in files["users"] if row["sourcedId"] == PUPIL]
        names_agent |= any(row.get("agentSourcedIds") for row in of_pupil)
    return found, ids, names_agent


def let_leave(world: World) -> tuple[set[str], set[str], bool]:
    """What `find_all` finds of all that the vendor gets now."""
    return find_all(world, get_all(world))


def ask_as_client(planted: World, secret: str, person: str) -> set[str]:
    """The parts in the client's answers about one person."""
    found, asked = set[str](), planted.console.vendors.test_client()
    with planted.console.engine.connect() as connection:
        roles = dict(map(tuple, connection.execute(sa.text("SELECT user_id, min(role) FROM user_roles GROUP BY 1"))))
        asked_for = {"id": planted.client_id}
        scopes = connection.scalar(sa.text("SELECT scopes FROM oauth_clients WHERE client_id = :id"), asked_for) or ()
    for version, root in ROOTS.items():
        own = " ".join(
            scope for scope in EVERY if scope.startswith(version) and any(it.endswith(scope) for it in scopes)
        )
        form = {"grant_type": "client_credentials", "scope": own}
        token = asked.post("/oauth/token", data=form, auth=(planted.client_id, secret))
        if token.status_code != 200:
            continue
        headers = {"Authorization": f"Bearer {token.json['access_token']}"}
        for path, key in ((f"/users/{person}", "user"), (f"/demographics/{person}", "demographics")):
            answer = asked.get(root + path, headers=headers)
            if answer.status_code == 200:
                found |= {*find_parts(key, answer.json[key], roles)}
        answer = asked.get(f"{root}/enrollments?filter=user.sourcedId%3D'{person}'", headers=headers)
        found |= {"classes"} if answer.status_code == 200 and answer.json["enrollments"] else set()
    return found


def find_of_person(world: World, held: Held, person: str) -> set[str]:
    """The parts that a vendor gets of one person."""
    found = set[str]()
    if held.secret is not None:
        found |= ask_as_client(world, held.secret, person)
    for student in held.students or ():
        found |= {*find_parts_of_student(student)} if student["sourcedId"] == person else set()
    for files in held.files:
        names = ("sourcedId", "userSourcedId")
        own = {
            file: [row for row in rows if person in (row.get(name) for name in names)] for file, rows in files.items()
        }
        found |= find_sent({**own, "classes": own.get("enrollments", [])}) if own["users"] else set()
        found |= {"guardians"} if any(GUARDIAN in row.get("agentSourcedIds", "") for row in own["users"]) else set()
    return found


# By what a parent reads, the names of the parts.
PARTS_SAID = {words: part.value for part, words in PART_WORDS.items()}


def list_open(company: Any) -> set[str]:
    """The parts that a company may get, of a parent's answer; `company`: None for one of those of a single sentence."""
    return {PARTS_SAID[words] for one in (company or {"may_get": ()})["may_get"] for words in one["parts"]}


def list_sent(company: Any) -> set[str]:
    """The parts that it was sent."""
    return {PARTS_SAID[words] for one in company["sent"] for words in one["parts"]}

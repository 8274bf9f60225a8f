"""What is sent, what waits, and what a receiver has whatever happens meanwhile."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from roster_service.access_log.entries import PersonHasher
from roster_service.access_log.reports import AccessLogFilter, read_access_log
from roster_service.accounts import clients, vendor_rights
from roster_service.accounts.agreements import set_agreement
from roster_service.auth.credentials.signing_keys import ensure_signing_key, rotate_signing_key
from roster_service.db.engine import make_engine
from roster_service.deliveries import sender
from roster_service.deliveries.accounts import (
    INTERRUPTED,
    Delivery,
    add_delivery,
    approve_file,
    change_delivery,
    find_delivery,
    list_deliveries,
    list_runs,
    read_secret,
    stop_delivery,
)
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError, SettingError
from roster_service.feeds.exclusions import ExclusionKind
from roster_service.people import exclude_person
from roster_service.roster.withheld import WithheldField
from roster_service.settings import Settings
from sync_scripts.engine.load import load
from tests.accounts.agreed import WHOLE
from tests.actors import TESTER
from tests.contract.conftest import SECRET_KEY, add_vendor
from tests.postgres.loaded import EXPORTS, load_first
from tests.sync.export_changes import cell_of

from .checker import check
from .dropbox import DropBox, Killed, Kind

EMAIL, NAME = "all@vendors.example", "nightly"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIv7Bm7pXkUq9W2fTgcXbqHqWb7gq7b2o3Ck0cJx1d5o"
PASSWORD = "the password of the receiver"


@dataclass
class World:
    """A vendor of a roster with a delivery, and its receiver."""

    engine: sa.Engine
    sender: Sender
    box: DropBox
    client_id: str

    def deliver(self) -> Delivery:
        """One try."""
        return self.sender.deliver(NAME)

    def approve(self) -> Delivery:
        """Approves the file that waits, and sends it."""
        with self.engine.begin() as connection:
            (found,) = list_deliveries(connection, name=NAME)
            approve_file(connection, TESTER, NAME, str(found.digest))
        return self.deliver()

    def change(self, **given: Any) -> Delivery:
        """Changes the delivery."""
        with self.engine.begin() as connection:
            return change_delivery(connection, TESTER, NAME, given, self.sender.settings)

    def stop(self, *, stopped: bool = True) -> None:
        """Stops the delivery, or starts it again."""
        with self.engine.begin() as connection:
            stop_delivery(connection, TESTER, NAME, stopped=stopped)

    def run(self, statement: str) -> None:
        """Changes the database."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement))

    def list_states(self) -> list[str]:
        """The states of the runs, the first one first."""
        with self.engine.connect() as connection:
            return [it["state"] for it in list_runs(connection, NAME, 100)][::-1]


def add(engine: sa.Engine, settings: Settings, name: str = NAME, **given: Any) -> None:
    """Adds a delivery."""
    row = {
        "client_id": None, "preset": "oneroster-1.1", "host": "sftp.example.org", "port": 22, "username": "us",
        "folder": "in", "host_key": HOST_KEY, "secret": PASSWORD, "has_private_key": False, "in_place": False, **given,
    }  # fmt: skip
    with engine.begin() as connection:
        add_delivery(connection, TESTER, name, EMAIL, row, settings)


@pytest.fixture
def world(make_database: Callable[[], str], tmp_path: Path) -> Iterator[World]:
    """Nothing was sent yet."""
    engine = make_engine(make_database())
    load_first(engine, "springfield-1.1", EXPORTS / "springfield-1.1")
    settings = Settings(secret_key=SECRET_KEY, home=tmp_path, hold_least_records=5)
    with engine.begin() as connection:
        ensure_signing_key(connection, SECRET_KEY)
        client_id, _ = add_vendor(connection, "all", [("spr-district", ())])
    add(engine, settings)
    box = DropBox()
    yield World(engine, Sender(engine, settings, connect=box.connect), box, client_id)
    engine.dispose()


def test_the_first_file_waits_and_the_approved_one_is_sent_whole(world: World) -> None:
    first = world.deliver()
    assert (first.state, first.message) == ("waiting", "it is the first file of this delivery")
    assert world.box.files == {}
    sent = world.approve()
    assert (sent.state, sent.digest) == ("sent", first.digest)
    ((name, content),) = world.box.files.items()
    assert re.fullmatch(r"oneroster-\d{4}-\d\d-\d\d\.zip", name)
    assert hashlib.sha256(content).hexdigest() == first.digest
    assert check(content) == []


def test_the_approval_names_the_digest_of_the_latest_file(world: World) -> None:
    world.deliver()
    with world.engine.begin() as connection, pytest.raises(CommandError, match="no file of nightly with this digest"):
        approve_file(connection, TESTER, NAME, "0" * 64)
    world.run("UPDATE users SET given_name = 'New' WHERE sourced_id = 'spr-student-1'")
    assert world.approve().state == "waiting"


def test_a_file_that_was_sent_is_not_approved_again(world: World) -> None:
    """Else it would leave a second time without a question."""
    world.deliver()
    digest = str(world.approve().digest)
    with world.engine.begin() as connection, pytest.raises(CommandError, match="was sent already; `roster delivery"):
        approve_file(connection, TESTER, NAME, digest)
    assert len(world.box.files) == 1


def test_a_file_that_never_had_a_row_is_no_loss(world: World) -> None:
    """A SIS without user profiles. A file that is absent for a night has its rows at the receiver still."""
    world.run("UPDATE deliveries SET preset = 'oneroster-1.2'; DELETE FROM user_profiles")
    first = world.deliver()
    assert first.message == "it is the first file of this delivery"
    world.approve()
    assert world.deliver().state == "sent"
    world.run("UPDATE delivery_runs SET rows = rows - 'userProfiles'")
    assert world.deliver().state == "sent"
    world.run(
        "UPDATE delivery_runs SET rows = rows || '{\"userProfiles\": 3}' WHERE id = (SELECT min(id) FROM"
        " delivery_runs WHERE state = 'sent')"
    )
    world.run("UPDATE delivery_runs SET rows = rows - 'userProfiles' WHERE (rows ->> 'userProfiles')::int = 0")
    assert world.deliver().message == "userProfiles.csv has no row, after which a receiver deletes all"


def test_a_private_host_is_refused_when_it_is_given(world: World) -> None:
    with pytest.raises(CommandError, match=r"10\.0\.0\.5 has a private address; ROSTER_DELIVERY_PRIVATE_HOSTS may"):
        world.change(host="10.0.0.5")
    world.sender = replace(world.sender, settings=replace(world.sender.settings, delivery_private_hosts="10.0.0.5"))
    assert world.change(host="10.0.0.5").host == "10.0.0.5"


def test_the_access_log_has_the_file_and_its_people_before_a_byte_leaves(world: World) -> None:
    world.deliver()
    world.box.kill_at = 2
    with pytest.raises(Killed):
        world.approve()
    hasher = PersonHasher(SECRET_KEY)
    with world.engine.connect() as connection:
        wanted = AccessLogFilter(person=hasher.hash_id("spr-student-1"))
        (row,) = read_access_log(connection, wanted)
        assert read_access_log(connection, AccessLogFilter(person=hasher.hash_id("nobody"))) == []
    assert (row.vendor, row.method, row.path, row.address) == (
        EMAIL,
        "SFTP",
        "/deliveries/oneroster-1.1",
        "sftp.example.org",
    )
    assert row.districts == ["spr-district"]


@pytest.mark.parametrize("withheld", [(), (WithheldField.EMAIL, WithheldField.BIRTH_DATE, WithheldField.AGENTS)])
def test_the_access_log_has_the_parts_that_are_in_the_file(world: World, withheld: Sequence[WithheldField]) -> None:
    world.run("UPDATE users SET middle_name = NULL, phone = NULL, sms = NULL")
    world.run("UPDATE demographics SET sex = NULL")
    with world.engine.begin() as connection:
        vendor_rights.change_withheld(connection, TESTER, EMAIL, withheld)
    world.deliver()
    world.approve()
    with zipfile.ZipFile(io.BytesIO(next(iter(world.box.files.values())))) as packed:
        users = list(csv.DictReader(io.TextIOWrapper(packed.open("users.csv"), encoding="utf-8")))
        demographics = list(csv.DictReader(io.TextIOWrapper(packed.open("demographics.csv"), encoding="utf-8")))
    headers = {header for row in (*users, *demographics) for header, cell in row.items() if cell}
    of_headers = {"email": "email", "phone": "phone", "sms": "phone", "identifier": "identifier", "userIds": "userIds"}
    of_headers |= {"middleName": "middleName", "birthDate": "birthDate", "sex": "sex", "cityOfBirth": "birthPlace"}
    of_headers |= {"white": "race", "asian": "race", "publicSchoolResidenceStatus": "residence", "grades": "names"}
    guardians = {"guardians"} if {row["role"] for row in users} & {"guardian", "parent", "relative"} else set()
    with world.engine.connect() as connection:
        (row,) = read_access_log(connection, AccessLogFilter(method="SFTP"))
    metadata = {"studentMetadata", "guardianMetadata", "demographicMetadata"}
    expected = {"classes"} | guardians | {of_headers[header] for header in headers if header in of_headers}
    assert set(row.parts or ()) - metadata == expected
    assert ("birthDate" in expected, "sex" in expected, "phone" in expected) == (not withheld, False, False)


def test_the_secret_is_sealed_and_in_no_log(world: World) -> None:
    world.deliver()
    with world.engine.connect() as connection:
        for table in ("deliveries", "delivery_runs", "changes"):
            rows = connection.execute(sa.text(f"SELECT to_jsonb(it) FROM {table} it")).scalars().all()
            assert rows
            assert PASSWORD not in json.dumps(rows)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("consumes", [False, True])
def test_a_kill_at_any_step_leaves_the_name_absent_or_whole_and_sends_nothing_twice(
    world: World, kind: Kind, consumes: bool
) -> None:
    world.deliver()
    world.box.kind, world.box.consumes = kind, consumes
    before = b"an older file"
    for step in range(1, 12):
        world.box.files, world.box.taken = {}, []
        world.box.steps, world.box.kill_at = 0, step
        world.run("DELETE FROM delivery_runs WHERE state <> 'waiting'")
        try:
            ended = world.approve()
        except Killed:
            ended = None
        named = {name: it for name, it in world.box.files.items() if name.endswith(".zip")}
        _require_whole(world, list(named.items()) + world.box.taken)
        world.box.kill_at = None
        again = world.deliver() if ended is None else ended
        _require_whole(world, [it for it in world.box.files.items() if it[0].endswith(".zip")] + world.box.taken)
        assert not any(it.endswith(".part") for it in world.box.files)
        if kind is Kind.NO_RENAME:
            assert (again.state, world.box.taken) == ("failed", [])
            assert "--in-place" in str(again.message)
        else:
            assert again.state == "sent"
            if consumes:
                # The interrupted run was sent, or the next one, or both on their own account: never one file twice.
                assert (
                    len({name for name, _ in world.box.taken})
                    == len(world.box.taken)
                    == world.list_states().count("sent")
                )
    assert before not in world.box.files.values()
    assert world.box.steps < 12


def _require_whole(world: World, files: list[tuple[str, bytes]]) -> None:
    with world.engine.connect() as connection:
        digests = {it["digest"] for it in list_runs(connection, NAME, 100)}
    assert {hashlib.sha256(it).hexdigest() for _, it in files} <= digests


def test_a_server_without_renames_gets_the_file_in_place_if_it_must(world: World) -> None:
    world.run("UPDATE deliveries SET in_place = true")
    world.box.kind = Kind.NO_RENAME
    world.deliver()
    assert world.approve().state == "sent"
    assert [name for name in world.box.files if name.endswith(".zip")]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE vendors SET enabled = false, grant_version = grant_version + 1", "no longer valid"),
        ("UPDATE oauth_clients SET enabled = false, version = version + 1", "no longer valid"),
        ("DELETE FROM vendor_grants; UPDATE vendors SET grant_version = grant_version + 1", "no longer valid"),
        ("UPDATE visible_feeds SET revision = revision + 1", "has changed since the file was made"),
        ("UPDATE deliveries SET folder = 'other'", "it was changed meanwhile"),
        ("UPDATE deliveries SET host_key = 'another'", "it was changed meanwhile"),
        ("UPDATE deliveries SET since = now()", "it was changed meanwhile"),
        ("UPDATE deliveries SET has_private_key = true", "it was changed meanwhile"),
    ],
)
@pytest.mark.parametrize("step", [1, 3])
def test_nothing_is_sent_after_a_change_of_rights_between_making_and_sending(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str, words: str, step: int
) -> None:
    """While the connection is made, and while the file is uploaded."""
    world.deliver()
    taken, take = 0, DropBox._step

    def change_rights(box: DropBox) -> None:
        nonlocal taken
        taken += 1
        if taken == step:
            world.run(change)
        take(box)

    monkeypatch.setattr(DropBox, "_step", change_rights)
    ended = world.approve()
    assert (ended.state, world.box.files) == ("failed", {})
    assert words in str(ended.message)


def test_a_file_that_the_end_of_an_agreement_stops_notes_the_end(world: World) -> None:
    """As a request does: the clock may go back."""
    agreed = replace(WHOLE, districts=("spr-district",))
    with world.engine.begin() as connection:
        set_agreement(connection, TESTER, EMAIL, agreed)
    world.deliver()
    world.run("UPDATE agreements SET starts_at = 'epoch', ends_at = now() - interval '1 day'")
    assert "ended on " in str(world.deliver().message)
    with world.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT ended_at FROM agreements")) is not None


def test_a_receiver_that_is_away_may_be_tried_again(world: World) -> None:
    world.deliver()
    world.box.fails = 1
    failed = world.approve()
    assert failed.state == "failed"
    assert world.deliver().state == "sent"
    assert world.list_states() == ["waiting", "failed", "sent"]


def test_a_rename_whose_answer_is_lost_is_known_as_sent_by_the_next_try(world: World) -> None:
    world.deliver()
    world.box.drops = world.box.consumes = True
    assert world.approve().state == "failed"
    (taken,) = world.box.taken
    world.deliver()
    assert world.list_states()[:2] == ["waiting", "sent"]
    assert [name for name, _ in world.box.taken].count(taken[0]) == 1


def test_a_rename_without_an_answer_leaves_the_new_file_alone(world: World) -> None:
    """The server may do it later than the client waits."""
    world.deliver()
    world.box.is_late = True
    assert world.approve().state == "failed"
    (name,) = world.box.files
    assert name.endswith(".zip")
    world.deliver()
    assert world.list_states()[:2] == ["waiting", "sent"]
    assert name in world.box.files


def test_a_part_of_a_failed_upload_is_removed_by_the_next_try(world: World) -> None:
    world.deliver()
    world.box.is_cut = True
    assert world.approve().state == "failed"
    assert [name for name in world.box.files if name.endswith(".part")] != []
    # The next file has another name, as that of the next day.
    world.run("UPDATE delivery_runs SET file_name = '2025-' || file_name WHERE state = 'failed'")
    world.box.files = {f"2025-{name}": content for name, content in world.box.files.items()}
    assert world.deliver().state == "sent"
    assert [name for name in world.box.files if name.endswith(".part")] == []


@pytest.mark.parametrize("answer", [OSError("Failure"), PermissionError(13, "Permission denied")])
def test_a_server_that_removes_nothing_gets_the_next_file(world: World, answer: Exception) -> None:
    world.deliver()
    world.box.fails, world.box.removes = 1, answer
    assert world.approve().state == "failed"
    assert world.deliver().state == "sent"


def test_a_file_whose_removal_has_no_answer_was_not_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put = DropBox.putfo

    def change_rights(box: DropBox, *given: Any, **named: Any) -> None:
        put(box, *given, **named)
        world.run("UPDATE visible_feeds SET revision = revision + 1")

    world.deliver()
    world.box.removes = TimeoutError()
    with monkeypatch.context() as patch:
        patch.setattr(DropBox, "putfo", change_rights)
        assert (world.approve().state, world.box.files) == ("failed", {})
    world.box.removes = None
    world.deliver()
    assert world.list_states()[1] == "failed"


def test_a_delivery_whose_process_was_killed_has_failed(world: World) -> None:
    world.deliver()
    world.box.kill_at = 2
    with pytest.raises(Killed):
        world.approve()
    with world.engine.connect() as connection:
        (found,) = list_deliveries(connection)
    assert (found.word, found.needs, found.message) == ("failed", True, INTERRUPTED)
    # It may have been sent.
    assert "not sent" not in found.sentence


def test_an_interrupted_upload_ends_once_its_receiver_is_back(world: World) -> None:
    world.deliver()
    world.box.kill_at = 2
    with pytest.raises(Killed):
        world.approve()
    world.box.kill_at, world.box.fails = None, 1
    away = world.deliver()
    assert away.state == "failed"
    assert world.deliver().state == "sent"
    assert [name for name in world.box.files if name.endswith(".part")] == []
    assert world.list_states() == ["waiting", "failed", "failed", "sent"]


def test_an_interrupted_file_does_not_get_its_name_after_a_change_of_rights(world: World) -> None:
    """The rights name fewer schools, at the same revision of the roster."""
    world.deliver()
    # Before the rename.
    world.box.kill_at = 4
    with pytest.raises(Killed):
        world.approve()
    assert [name.endswith(".zip.part") for name in world.box.files] == [True]
    world.box.kill_at = None
    with world.engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, EMAIL, "spr-district", ["spr-elementary"])
    assert world.deliver().state == "waiting"
    assert world.box.files == {}


def test_a_second_file_of_a_day_has_a_number(world: World) -> None:
    world.deliver()
    first, second = world.approve(), world.deliver()
    assert second.file_name == str(first.file_name).replace(".zip", "-2.zip")


@pytest.mark.parametrize(
    ("given", "is_free"),
    [
        ({}, False),
        ({"preset": "oneroster-1.2", "host": "SFTP.example.org", "folder": "./in/"}, False),
        ({"preset": "st-math"}, True),
        ({"folder": "other"}, True),
        ({"username": "them"}, True),
        ({"port": 2222}, True),
    ],
)
def test_no_two_deliveries_have_files_of_one_name(world: World, given: dict[str, Any], is_free: bool) -> None:
    """Each would overwrite those of the other, and both be called sent."""
    settings = world.sender.settings
    if is_free:
        add(world.engine, settings, "other", **given)
    else:
        with pytest.raises(CommandError, match="delivery nightly have the same names in this folder of "):
            add(world.engine, settings, "other", **given)
        add(world.engine, settings, "other", **given | {"folder": "other"})
        with world.engine.begin() as connection, pytest.raises(CommandError, match="have the same names"):
            change_delivery(connection, TESTER, "other", {"folder": "in"}, settings)


LOSSES = [
    (
        "UPDATE users SET status = 'tobedeleted' WHERE sourced_id IN ('spr-student-1', 'spr-student-2')",
        "users would vanish",
    ),
    ("UPDATE classes SET status = 'tobedeleted' WHERE sourced_id = 'spr-class-math3-a'", "classes would vanish"),
    (
        "UPDATE enrollments SET status = 'tobedeleted' WHERE class_id = 'spr-class-math3-a'",
        "enrollments at spr-elementary",
    ),
    ("DELETE FROM demographics", "demographics.csv has no row"),
]


@pytest.mark.parametrize(("change", "words"), LOSSES)
def test_a_file_that_would_lose_too_much_waits(world: World, change: str, words: str) -> None:
    world.deliver()
    world.approve()
    assert world.deliver().state == "sent"
    world.run(change)
    waiting = world.deliver()
    assert waiting.state == "waiting"
    assert words in str(waiting.message)
    assert world.approve().state == "sent"


def test_the_roles_at_a_school_are_its_people_in_1_2(world: World) -> None:
    world.run("UPDATE deliveries SET preset = 'oneroster-1.2'")
    world.deliver()
    assert world.approve().state == "sent"
    world.run("UPDATE users SET status = 'tobedeleted' WHERE sourced_id IN ('spr-student-1', 'spr-student-2')")
    assert "roles at spr-elementary would vanish" in str(world.deliver().message)


def test_an_operator_who_narrows_rights_makes_the_file_wait(world: World) -> None:
    world.deliver()
    world.approve()
    with world.engine.begin() as connection:
        vendor_rights.set_district_grant(connection, TESTER, EMAIL, "spr-district", ["spr-elementary"])
    waiting = world.deliver()
    assert waiting.state == "waiting"
    assert "schools would vanish" in str(waiting.message)


@pytest.mark.parametrize("changed", ["the roster", "the rights"])
def test_a_delivery_knows_whether_its_receiver_has_what_it_sends(world: World, tmp_path: Path, changed: str) -> None:
    assert [world.deliver().has_changed, world.approve().has_changed] == [True, False]
    if changed == "the roster":
        export = Path(shutil.copytree(EXPORTS / "springfield-1.1", tmp_path / "export"))
        cell_of("users", "spr-student-1", "givenName", "New")(export)
        load(world.engine, "springfield-1.1", export)
    else:
        with world.engine.begin() as connection:
            vendor_rights.set_district_grant(connection, TESTER, EMAIL, "spr-district", ["spr-elementary"])
    with world.engine.connect() as connection:
        assert find_delivery(connection, NAME).has_changed
    # A file that waits is not at the receiver.
    last = world.deliver()
    assert last.has_changed == (last.state == "waiting") == (changed == "the rights")


def test_an_erased_person_is_no_loss(world: World) -> None:
    world.deliver()
    world.approve()
    for sourced_id in ("spr-student-1", "spr-student-2"):
        with world.engine.begin() as connection:
            exclude_person(connection, TESTER, ExclusionKind.ERASED, sourced_id, world.sender.settings)
    assert world.deliver().state == "sent"


def test_many_small_losses_of_a_week_are_a_large_one(world: World) -> None:
    settings = replace(world.sender.settings, delivery_loss_percent=12, hold_least_records=12)
    world.sender = replace(world.sender, settings=settings)
    world.deliver()
    world.approve()
    states = []
    for number in (1, 2):
        world.run(f"UPDATE users SET status = 'tobedeleted' WHERE sourced_id = 'spr-student-{number}'")
        states.append(world.deliver().state)
    assert states == ["sent", "waiting"]


def test_a_feed_that_needs_a_person_makes_the_file_wait(world: World) -> None:
    world.deliver()
    world.approve()
    world.run("UPDATE sync_runs SET outcome = 'refused', message = 'the export is broken'")
    waiting = world.deliver()
    assert waiting.state == "waiting"
    assert "the feed springfield-1.1 is refused" in str(waiting.message)


def test_ids_of_other_people_make_the_file_wait(world: World) -> None:
    world.deliver()
    world.approve()
    world.run("UPDATE enrollments SET user_id = 'new-' || user_id; UPDATE user_roles SET user_id = 'new-' || user_id")
    world.run(
        "UPDATE users SET sourced_id = 'new-' || sourced_id; UPDATE demographics SET sourced_id = 'new-' || sourced_id"
    )
    waiting = world.deliver()
    assert waiting.state == "waiting"
    assert "of the users would vanish, and others come in their place" in str(waiting.message)


def test_a_delivery_of_a_removed_client_fails_and_says_so(world: World) -> None:
    with world.engine.begin() as connection:
        clients.remove_client(connection, TESTER, world.client_id)
    assert world.deliver().message == "there is no such client"


@pytest.mark.parametrize(
    "given", [{"host": "sftp.elsewhere.example"}, {"folder": "other"}, {"preset": "st-math"}, {"username": "them"}]
)
def test_a_file_to_another_place_waits_as_the_first_one_does(world: World, given: dict[str, str]) -> None:
    world.deliver()
    world.approve()
    assert world.change(hour=3, contact="data@receiver.example", secret="another").is_first is False
    assert world.deliver().state == "sent"
    assert world.change(**given).is_first
    waiting = world.deliver()
    assert (waiting.state, waiting.message) == ("waiting", "it is the first file of this delivery")
    assert waiting.sentence.startswith("The first file waits for an operator to look at it")
    sent = world.approve()
    assert (sent.state, sent.hour, sent.is_first) == ("sent", 3, False)


def test_an_approval_does_not_count_for_another_place(world: World) -> None:
    digest = world.deliver().digest
    with world.engine.begin() as connection:
        approve_file(connection, TESTER, NAME, str(digest))
    world.change(host="sftp.elsewhere.example")
    assert world.deliver().state == "waiting"


def test_an_interrupted_file_of_another_place_is_not_looked_for_at_this_one(world: World) -> None:
    world.deliver()
    # Before the rename: the receiver of this place has no temporary file, but nothing was sent.
    world.box.kill_at = 4
    with pytest.raises(Killed):
        world.approve()
    world.box.kill_at, world.box.files = None, {}
    world.change(host="sftp.elsewhere.example")
    assert world.deliver().state == "waiting"
    assert world.list_states() == ["waiting", "failed", "waiting"]


def test_a_change_is_logged_without_the_secret_and_a_wrong_one_is_refused(world: World) -> None:
    world.change(secret="another one", has_private_key=False, port=2222)
    with world.engine.connect() as connection:
        row = connection.execute(sa.text("SELECT verb, before, after FROM changes ORDER BY id DESC LIMIT 1")).one()
        assert find_delivery(connection, NAME).port == 2222
        assert read_secret(connection, NAME, world.sender.settings) == "another one"
    assert tuple(row) == ("delivery set", {"port": 22}, {"port": 2222})
    for wrong, words in (({"host_key": "no"}, "as `ssh-keyscan"), ({"preset": "none"}, "there is no preset")):
        with pytest.raises(CommandError, match=words):
            world.change(**wrong)


KEYSCAN = f"# sftp.example.org:22 SSH-2.0-OpenSSH\nsftp.example.org {HOST_KEY}\nsftp.example.org ssh-rsa AAAA\n"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (HOST_KEY, HOST_KEY),
        (KEYSCAN, HOST_KEY),
        (f"ssh-dss AAAAB3NzaC1kc3M= {HOST_KEY}", HOST_KEY),
        ("ssh-ed25519", None),
        (HOST_KEY.replace("ssh-ed25519", "ssh-rsa"), None),
        (HOST_KEY[:-8], None),
        ("ssh-dss AAAAB3NzaC1kc3M=", None),
        ("sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t", None),
    ],
    ids=["a key", "ssh-keyscan", "another type before", "a type", "of another type", "cut off", "DSA", "of a token"],
)
def test_a_host_key_is_whole_and_of_a_type_that_the_client_knows(world: World, given: str, kept: str | None) -> None:
    if kept is None:
        with pytest.raises(CommandError, match="as `ssh-keyscan HOST` prints them"):
            world.change(host_key=given)
    else:
        assert world.change(host_key=given).host_key == kept


def test_an_empty_host_key_is_that_of_a_server_that_did_not_answer(world: World) -> None:
    with pytest.raises(CommandError, match="the host key is empty: `ssh-keyscan` got no answer"):
        world.change(host_key=" \n")


def test_a_fault_ends_the_run_and_is_said_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the delivery would be under way for ever, and the files after it would not be sent."""
    world.deliver()
    with monkeypatch.context() as patch:
        patch.setattr(DropBox, "putfo", lambda *_given, **_named: 1 // 0)
        assert (world.approve().state, world.deliver().message) == ("failed", "ZeroDivisionError")
    assert "ZeroDivisionError" in caplog.text
    assert world.deliver().state == "sent"


def test_a_secret_that_a_lost_key_has_sealed_is_asked_for(world: World) -> None:
    other = replace(world.sender.settings, secret_key="another secret key, as after a loss of the first one")
    world.sender = replace(world.sender, settings=other)
    with pytest.raises(SettingError, match="sealed with another ROSTER_SECRET_KEY"):
        world.deliver()
    with world.engine.begin() as connection:
        rotate_signing_key(connection, TESTER, str(other.secret_key), timedelta(), is_lost=True)
    world.deliver()
    failed = world.approve()
    assert (failed.state, "`roster delivery set nightly`" in str(failed.message)) == ("failed", True)
    world.change(secret=PASSWORD, has_private_key=False)
    assert world.deliver().state == "sent"


def test_a_file_after_the_loss_of_the_key_waits_and_says_why(world: World) -> None:
    """The hashes of its ids are all others, and it loses nobody."""
    world.deliver()
    world.approve()
    other = replace(world.sender.settings, secret_key="another secret key, as after a loss of the first one")
    world.sender = replace(world.sender, settings=other)
    with world.engine.begin() as connection:
        rotate_signing_key(connection, TESTER, str(other.secret_key), timedelta(), is_lost=True)
    world.change(secret=PASSWORD, has_private_key=False)
    waits = world.deliver()
    assert waits.state == "waiting"
    assert re.fullmatch(r"the ids cannot be compared with .*: ROSTER_SECRET_KEY is another one", str(waits.message))
    # The next one is compared with this one, and with the counts of those before.
    assert [world.approve().state, world.deliver().state] == ["sent", "sent"]


def test_a_stopped_delivery_sends_nothing_until_it_is_started(world: World) -> None:
    world.deliver()
    world.stop()
    with pytest.raises(CommandError, match="`roster delivery start nightly` lets it go on"):
        world.approve()
    world.stop(stopped=False)
    assert world.deliver().state == "sent"


def test_a_stop_takes_the_file_back_that_is_on_its_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put = DropBox.putfo

    def stop(box: DropBox, *given: Any, **named: Any) -> None:
        put(box, *given, **named)
        world.stop()

    monkeypatch.setattr(DropBox, "putfo", stop)
    world.deliver()
    ended = world.approve()
    assert (ended.word, ended.message, world.box.files) == ("stopped", "it was stopped meanwhile", {})


def test_a_change_while_the_file_is_made_gives_no_server_the_secret_of_another_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, reached = sender.write_package, Mock(wraps=world.box.connect)

    def change(*given: Any) -> Any:
        world.change(host="sftp.elsewhere.example", secret="that of elsewhere", has_private_key=False)
        return make(*given)

    world.deliver()
    world.approve()
    world.sender = replace(world.sender, connect=reached)
    with monkeypatch.context() as patch:
        patch.setattr(sender, "write_package", change)
        ended = world.deliver()
    assert (ended.state, ended.message, reached.call_count) == ("failed", "it was changed meanwhile", 0)
    world.deliver()
    assert world.approve().state == "sent"
    ((to, secret, _),) = [call.args for call in reached.call_args_list]
    assert (to.host, secret) == ("sftp.elsewhere.example", "that of elsewhere")


def test_one_delivery_is_sent_by_one_process_at_a_time(world: World) -> None:
    world.deliver()
    inner: list[str] = []
    connect = world.box.connect

    def look(*to: Any) -> Any:
        with world.engine.connect() as connection:
            assert [one.word for one in list_deliveries(connection)] == ["under way"]
        with pytest.raises(CommandError, match="is under way"):
            world.sender.deliver(NAME)
        inner.append("refused")
        return connect(*to)

    world.sender = replace(world.sender, connect=look)
    assert world.approve().state == "sent"
    assert inner == ["refused"]


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Pacific/Kiritimati"])
def test_the_name_has_the_day_of_the_time_zone(world: World, zone: str) -> None:
    """One of the two has another day than the machine."""
    world.deliver()
    world.sender = replace(world.sender, settings=replace(world.sender.settings, time_zone=ZoneInfo(zone)))
    assert world.approve().file_name == f"oneroster-{datetime.now(ZoneInfo(zone)).date()}.zip"

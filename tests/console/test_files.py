"""The files of a vendor on its page, and what of them needs a person."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
import sqlalchemy as sa

from roster_service.accounts.kept_people import keep_from_vendor
from roster_service.accounts.vendors import set_vendor_enabled
from roster_service.accounts.ways import WayKind, list_ways
from roster_service.change_log.actors import OperatorRole
from roster_service.db.tables import delivery_runs
from roster_service.deliveries.accounts import FAILED, Delivery, approve_file, find_delivery, read_secret
from roster_service.deliveries.sender import Sender
from roster_service.errors import CommandError
from roster_service.settings import Settings
from tests.actors import TESTER
from tests.console.conftest import Browser, Console
from tests.console.test_statements import read
from tests.contract.conftest import SECRET_KEY, add_vendor
from tests.deliveries.checker import check
from tests.deliveries.dropbox import DropBox
from tests.deliveries.test_sending import HOST_KEY, NAME, PASSWORD, add

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def owner(console: Console) -> Browser:
    return console.log_in()


@pytest.fixture
def number(console: Console) -> int:
    """A vendor whose first file waits."""
    settings = Settings(secret_key=SECRET_KEY)
    with console.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM vendors WHERE email = 'all@vendors.example'"))
        add_vendor(connection, "all", [("spr-district", ())])
        found = connection.scalar(sa.text("SELECT id FROM vendors WHERE email = 'all@vendors.example'"))
    add(console.engine, settings, contact=HOSTILE)
    Sender(console.engine, settings, connect=DropBox().connect).deliver(NAME)
    return int(found or 0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The scripts that forms would have started, with their arguments."""
    found: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        "roster_service.console.views.files.start_script", lambda _c, _home, _folder, *words: found.append(words)
    )
    return found


def test_a_file_that_waits_is_a_task_and_approved_on_the_page_of_the_vendor(
    console: Console, owner: Browser, number: int, started: list[tuple[object, ...]]
) -> None:
    page = read(owner.get("").text)
    task = page.partition(f"all: {NAME} waiting ")[2]
    assert task.startswith("The first file waits for an operator to look at it and approve it. Look at the file, and ")
    assert task.partition("approve it. ")[2].startswith("Look at the file, and approve it. See it, and decide")
    assert f"1 file ({NAME}) waits for approval." in page
    assert "all has files that need you. " in read(owner.get("/vendors").text)
    shown = owner.get(f"/vendors/{number}/files").text
    assert "Approve this file and send it" in shown
    assert HOSTILE not in shown
    with console.engine.connect() as connection:
        found = find_delivery(connection, NAME)
    digest = str(found.digest)
    # What was so then need not be so now.
    assert replace(found, message="a feed is held").sentence.endswith(" approve it. When it was made: a feed is held")
    wrong = owner.send(f"/vendors/{number}/files/approve-file", delivery=NAME, digest="0" * 64)
    assert wrong.status_code == 422
    owner.send(f"/vendors/{number}/files/approve-file", delivery=NAME, digest=digest, reason="looked at it")
    assert started == [("deliver", NAME)]
    assert "approved The file is approved: it is being sent" in read(owner.get(f"/vendors/{number}/files").text)
    assert f"all: {NAME}" not in read(owner.get("").text), "no task any more"
    with console.engine.connect() as connection:
        approved = connection.scalar(sa.text("SELECT approved_digest FROM deliveries"))
        verb = connection.scalar(sa.text("SELECT verb FROM changes ORDER BY id DESC LIMIT 1"))
    assert (approved, verb) == (digest, "delivery approve")


def test_another_file_than_the_approved_one_is_neither_downloaded_nor_approved_and_says_why(
    console: Console, owner: Browser, number: int, started: list[tuple[object, ...]]
) -> None:
    path, settings = f"/vendors/{number}/files", Settings(secret_key=SECRET_KEY)

    def find() -> Delivery:
        with console.engine.connect() as connection:
            return find_delivery(connection, NAME)

    first = str(find().digest)
    form = {"preset": "oneroster-1.1", "digest": first}
    downloaded = owner.send(f"{path}/file", **form)
    downloaded.close()
    assert (downloaded.status_code, find().may_differ) == (200, False)
    with console.engine.begin() as connection:
        keep_from_vendor(connection, number, "spr-student-1")
    assert "has changed since this file was made" in owner.get(path).text
    for name, given in (("file", form), ("approve-file", {"delivery": NAME, "digest": first})):
        refused = owner.send(f"{path}/{name}", **given)
        assert (refused.status_code, "so the file of now is another one, SHA-256 " in refused.text) == (422, True), name
    assert (started, find().approved_digest) == ([], None)
    # The roster may also change between the approval and the attempt.
    with console.engine.begin() as connection:
        approve_file(connection, TESTER, NAME, first)
    Sender(console.engine, settings, connect=DropBox().connect).deliver(NAME)
    second = str(find().digest)
    assert second != first
    page = read(owner.get(path).text)
    assert f"The approved file, SHA-256 {first[:12]}…, was not sent, because the roster, or what the vendor may" in page
    assert f"Another file, {second[:12]}…, waits for an operator to look at it and approve it." in page
    assert "Make the file anew" not in page
    # What changed for nobody of the file makes no other one.
    with console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE delivery_runs SET revision = 0"))
    assert find().may_differ
    assert owner.send(f"{path}/approve-file", delivery=NAME, digest=second).status_code == 303
    assert started == [("deliver", NAME)]


def test_a_first_file_is_let_go_by_its_approval_until_another_one_waits(console: Console, number: int) -> None:
    def find_kinds() -> list[WayKind]:
        with console.engine.connect() as connection:
            return [way.kind for way in list_ways(connection)["all@vendors.example"] if way.delivery == NAME]

    kinds = [find_kinds()]
    with console.engine.begin() as connection:
        approve_file(connection, TESTER, NAME, str(find_delivery(connection, NAME).digest))
    kinds.append(find_kinds())
    # Its attempt failed, and the roster has changed.
    with console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE delivery_runs SET digest = 'of another file'"))
    kinds.append(find_kinds())
    assert kinds == [[WayKind.FIRST_FILE], [WayKind.DELIVERY], [WayKind.FIRST_FILE]]


def test_nobody_is_asked_to_approve_the_file_of_a_disabled_vendor(
    console: Console, owner: Browser, number: int
) -> None:
    with console.engine.begin() as connection:
        set_vendor_enabled(connection, TESTER, "all@vendors.example", enabled=False)
    said = "No file can be sent, because the client or the vendor is disabled or gone. Stop the delivery, or enable the"
    page = read(owner.get("").text)
    assert f"all: {NAME} closed {said} client and the vendor. See what to do" in page
    assert f"1 file ({NAME}) of a disabled vendor or client cannot be sent." in page
    shown = read(owner.get(f"/vendors/{number}/files").text)
    assert said in shown
    assert "Approve this file" not in shown


def test_the_file_that_a_vendor_would_get_is_downloaded(console: Console, owner: Browser, number: int) -> None:
    answer = owner.send(f"/vendors/{number}/files/file", preset="oneroster-1.2")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == "attachment; filename=oneroster-1.2.zip"
    assert check(answer.data) == []
    answer.close()
    refused = owner.send(f"/vendors/{number}/files/file", preset="apple")
    assert refused.status_code == 422
    said = (
        "One id in classes of the feed springfield has '/' '@'; the receiver takes ids of letters, digits and hyphens"
    )
    assert said in read(refused.text)


def read_inputs(form: str) -> dict[str, str]:
    """The values of the fields of a form, by name."""
    return {name: unescape(value) for name, value in re.findall(r'<input [^>]*name="(\w+)"[^>]* value="([^"]*)"', form)}


def test_a_delivery_is_added_and_removed_and_its_secret_is_shown_nowhere(
    console: Console, owner: Browser, number: int, started: list[tuple[object, ...]]
) -> None:
    given = {
        "name": HOSTILE, "preset": "st-math", "host": "sftp.example.org", "username": "us", "host_key": HOST_KEY,
        "secret": PASSWORD, "login": "password", "hour": "5",
    }  # fmt: skip
    for wrong in ({"secret": ""}, {"host_key": "ssh-ed25519 no"}, {"hour": "24"}, {"preset": "none"}):
        refused = owner.send(f"/vendors/{number}/files/delivery", **(given | wrong))
        assert (refused.status_code, PASSWORD in refused.text) == (422, False)
        typed = refused.text.partition("<details open><summary>Add a delivery by SFTP")[2].partition("</details>")[0]
        kept = {name: value for name, value in (given | wrong).items() if name not in ("secret", "preset", "login")}
        assert {name: value for name, value in read_inputs(typed).items() if name in kept} == kept
        assert f'<option value="{(given | wrong)["preset"]}" selected>' in typed or wrong == {"preset": "none"}
    owner.send(f"/vendors/{number}/files/delivery", **given)
    editor = console.log_in(OperatorRole.EDITOR)
    assert "Add a delivery" not in editor.get(f"/vendors/{number}/files").text
    assert editor.send(f"/vendors/{number}/files/delivery", **(given | {"name": "other"})).status_code == 403
    assert started == [("deliver", HOSTILE)]
    shown = owner.get(f"/vendors/{number}/files").text
    assert "us@sftp.example.org" in shown
    assert PASSWORD not in shown
    assert HOSTILE not in shown
    with console.engine.connect() as connection:
        assert find_delivery(connection, HOSTILE).hour == 5
        logged = connection.scalar(sa.text("SELECT to_jsonb(it)::text FROM changes it ORDER BY id DESC LIMIT 1"))
    assert "delivery add" in str(logged)
    assert PASSWORD not in str(logged)
    assert owner.send(f"/vendors/{number}/files/delivery-remove", delivery=HOSTILE, typed="x").status_code == 422
    owner.send(f"/vendors/{number}/files/delivery-remove", delivery=HOSTILE, typed=HOSTILE)
    with console.engine.connect() as connection, pytest.raises(CommandError):
        find_delivery(connection, HOSTILE)


def test_a_delivery_is_changed_stopped_and_started_on_the_page_of_the_vendor(
    console: Console, owner: Browser, number: int, started: list[tuple[object, ...]]
) -> None:
    shown = owner.get(f"/vendors/{number}/files").text
    given = {"preset": "oneroster-1.1", "host": "sftp.example.org", "username": "us", "host_key": HOST_KEY}
    for name in ("host", "username", "host_key"):
        assert f'<input name="{name}" value="{given[name]}"' in shown
    assert '<option value="oneroster-1.1" selected>' in shown
    with console.engine.begin() as connection:
        connection.execute(sa.text("UPDATE delivery_runs SET state = 'sent', message = NULL"))
    given |= {"delivery": NAME, "folder": "in", "hour": "4", "in_place": "yes", "login": "password", "secret": ""}
    assert owner.send(f"/vendors/{number}/files/delivery-set", **(given | {"host": ""})).status_code == 422
    wrong = {**given, "preset": "st-math", "hour": "99", "port": "23", "contact": "c@d.example", "login": "key"}
    refused = owner.send(f"/vendors/{number}/files/delivery-set", **wrong, reason="why")
    change = refused.text.partition("<details open><summary>Stop, change or remove")[2].partition("</details>")[0]
    change = change.partition("<h4>Change</h4>")[2].partition("</form>")[0]
    kept = {name: value for name, value in wrong.items() if name not in ("secret", "preset", "login")}
    assert (refused.status_code, read_inputs(change)) == (422, read_inputs(change) | kept | {"reason": "why"})
    assert '<option value="st-math" selected>' in change
    assert 'name="login" value="key" checked>' in change
    assert 'name="in_place" value="yes" checked>' in change
    owner.send(f"/vendors/{number}/files/delivery-set", **given)
    assert started == []
    with console.engine.connect() as connection:
        changed = find_delivery(connection, NAME)
        assert read_secret(connection, NAME, Settings(secret_key=SECRET_KEY)) == PASSWORD
    assert (changed.hour, changed.in_place, changed.state) == (4, True, "sent")
    owner.send(f"/vendors/{number}/files/delivery-set", **(given | {"folder": "elsewhere"}))
    assert started == [("deliver", NAME)]
    owner.send(f"/vendors/{number}/files/delivery-stop", delivery=NAME)
    assert "No file is sent until somebody starts it again" in owner.get(f"/vendors/{number}/files").text
    editor = console.log_in(OperatorRole.EDITOR)
    assert editor.send(f"/vendors/{number}/files/delivery-set", **given).status_code == 403
    editor.send(f"/vendors/{number}/files/delivery-start", delivery=NAME)
    with console.engine.connect() as connection:
        assert find_delivery(connection, NAME).word == "sent"


def test_a_file_that_failed_is_tried_again_at_once(
    console: Console, owner: Browser, number: int, started: list[tuple[object, ...]]
) -> None:
    path = f"/vendors/{number}/files"
    assert "Try again now" not in owner.get(path).text
    with console.engine.begin() as connection:
        last = sa.select(sa.func.max(delivery_runs.c.id)).scalar_subquery()
        failed = {"state": FAILED, "message": "Connection refused"}
        connection.execute(sa.update(delivery_runs).where(delivery_runs.c.id == last).values(failed))
    assert "Try again now" in owner.get(path).text
    assert "Try again now" not in console.log_in(OperatorRole.VIEWER).get(path).text
    assert owner.send(f"{path}/delivery-send", delivery="of nobody").status_code == 422
    assert started == []
    assert owner.send(f"{path}/delivery-send", delivery=NAME).status_code == 303
    assert started == [("deliver", NAME)]

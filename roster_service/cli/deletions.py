"""`roster deletion`: what vendors are asked to delete, and what they answer."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import click

from roster_service.accounts.deletion_requests import ANSWERED, answer_request, list_requests, write_letter
from roster_service.accounts.known_agreements import find_agreement
from roster_service.accounts.vendors import find_vendor
from roster_service.cli import terminal
from roster_service.cli.access_log import DAY
from roster_service.cli.people import confirm_person
from roster_service.db.instants import find_today
from roster_service.explore.person_answer import list_districts
from roster_service.people import ask_deletion


@click.group()
def deletion() -> None:
    """What vendors are asked to delete of people, by when, and what they answer."""


@deletion.command("ask")
@click.argument("sourced_id", metavar="SOURCEDID")
@click.option("--vendor", "email", required=True, metavar="EMAIL", help="The vendor that is asked.")
@click.option("--due", type=DAY, required=True, help="The day until which it has to answer.")
@terminal.yes_option
@terminal.change_options
def deletion_ask(sourced_id: str, email: str, due: datetime, yes: bool, as_json: bool) -> None:
    """Note that a vendor is asked to delete what it has of the person SOURCEDID, and print the letter to it.

    The service sends nothing, and the letter alone has the id. It names the person, and who else may be meant, and asks
    first.
    """
    settings = terminal.read_settings()
    confirm_person(f"this asks {email} to delete what it has of the person.", sourced_id, is_confirmed=yes)
    with terminal.open_change() as (connection, actor):
        terminal.require_key(connection)
        made = ask_deletion(connection, actor, email, sourced_id, due.date(), settings)
        known = find_agreement(connection, find_vendor(connection, email))
        letter = list(write_letter(made, sourced_id, known, list_districts(connection, sourced_id)))
    words = "\n\n".join(map(terminal.escape, letter))
    terminal.show({**asdict(made), "letter": letter}, as_json, lambda _: words)


@deletion.command("answer")
@click.argument("number", type=int)
@click.option("--words", default="", help="What the vendor has answered; do not name the person.")
@terminal.change_options
def deletion_answer(number: int, words: str, as_json: bool) -> None:
    """Note that the vendor has answered the request NUMBER."""
    today = find_today(terminal.read_settings().time_zone)
    with terminal.open_change() as (connection, actor):
        answered = answer_request(connection, actor, number, words, today)
    terminal.show(answered, as_json, lambda _: f"request {number}: {answered.vendor} has answered")


@deletion.command("list")
@click.option("--open", "is_open", is_flag=True, help="Only those without an answer.")
@terminal.as_json
def deletion_list(is_open: bool, as_json: bool) -> None:
    """List the requests to delete, the open ones first, each with the day until which it is due."""
    today = find_today(terminal.read_settings().time_zone)
    with terminal.open_connection() as connection:
        found = [one for one in list_requests(connection, today) if not (is_open and one.state == ANSWERED)]
    names = ("number", "vendor", "person", "asked", "due", "state", "words")
    rows = [{name: str(asdict(one)[name] or "-") for name in names} for one in found]
    terminal.show_table(found, as_json, rows, "no vendor is asked to delete anything")

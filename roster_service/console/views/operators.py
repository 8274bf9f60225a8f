"""The operators, as owners add and change them, and the own account of an operator with its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import segno

from roster_service.accounts import operator_sessions, operators
from roster_service.accounts.operator_sessions import (
    LINK_PATH,
    LINK_SECONDS,
    OpenSession,
    is_code_key,
    make_address,
    make_code_key,
)
from roster_service.accounts.operators import OperatorAccount
from roster_service.auth.throttling.throttles import LoginAttempt
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.filters import to_counted
from roster_service.console.screen import Form, Screen
from roster_service.console.visit import Moved, Outcome, Shown, Submission, Visit
from roster_service.errors import CommandError, WrongCodeError


@dataclass(frozen=True)
class OperatorList:
    """All operators, their open sessions, and the roles to choose from."""

    operators: Sequence[OperatorAccount]
    sessions: Sequence[OpenSession]
    roles: Sequence[str]


@dataclass(frozen=True)
class Account:
    """The own account: its open sessions, and which of them this is. `has_codes`: whether a login needs one-time codes
    too."""

    email: str
    has_codes: bool
    sessions: Sequence[OpenSession]
    own_session: int


@dataclass(frozen=True)
class Invitation:
    """The link with which an operator sets a password, once, within `hours`, while the operator is enabled."""

    email: str
    link: str
    hours: int
    enabled: bool


def read_operators(visit: Visit) -> OperatorList:
    """Reads all operators and their open sessions."""
    return OperatorList(
        operators.list_operators(visit.connection),
        operator_sessions.list_sessions(visit.connection, visit.tools.lifetime, None),
        [role.value for role in OperatorRole],
    )


def read_account(visit: Visit) -> Account:
    """Reads the own sessions of the operator."""
    own = visit.signed_in
    sessions = operator_sessions.list_sessions(visit.connection, visit.tools.lifetime, own.email)
    return Account(own.email, operators.find_operator(visit.connection, own.email).has_codes, sessions, own.session_id)


@dataclass(frozen=True)
class NewCodes:
    """A key for one-time codes that the operator's app must prove. `picture`: its QR code, as SVG; `problem`: why the
    code that was sent did not, None before one was."""

    key: str
    picture: str
    problem: str | None


def make_codes(sent: Submission) -> Outcome:
    """Shows a new key for one-time codes. It counts once a code has proved it."""
    return _show_key(sent, make_code_key(), None)


def _show_key(sent: Submission, key: str, problem: str | None) -> Shown:
    address = make_address(key, sent.signed_in.email)
    picture = segno.make(address).svg_inline(scale=5, light="#fff", border=2)
    return Shown("codes", "One-time codes", NewCodes(key, picture, problem), 200 if problem is None else 422)


def set_codes(sent: Submission) -> Outcome:
    """Turns one-time codes on, with the key that was shown, which a wrong code leaves on the page; or off."""
    key = sent.get("key")
    attempt = LoginAttempt.of_code(sent.signed_in.email, f"session {sent.signed_in.session_id}")
    attempt.require_room(sent.tools.counters)
    try:
        with sent.change() as connection:
            operators.set_codes(connection, sent.actor, key, sent.form.get("code", ""), sent.settings.read_secret_key())
    except CommandError as error:
        attempt.count_failure(sent.tools.counters)
        if isinstance(error, WrongCodeError) and key is not None and is_code_key(key):
            # The app has it already.
            return _show_key(sent, key, str(error))
        raise
    words = "A login needs a code of your app from now on." if key else "A login needs no code any more."
    return Moved("/account", words)


def add_operator(sent: Submission) -> Outcome:
    """Adds an operator, and shows the link."""
    email, name = sent.get("email"), sent.get("name")
    if email is None or name is None:
        raise CommandError("an operator needs an e-mail and a name")
    with sent.change() as connection:
        key = sent.settings.read_secret_key()
        token = operators.add_operator(connection, sent.actor, email, name, _read_role(sent), key)
        return _show_link(sent, operators.find_operator(connection, email), token)


def reset_password(sent: Submission) -> Outcome:
    """Ends the password of another operator, and shows a new link. The own one would end with the session that shows
    the link, and an owner who loses it is locked out."""
    email = sent.form.get("email", "")
    with sent.change() as connection:
        found = operators.find_operator(connection, email)
        if found.email == sent.signed_in.email:
            raise CommandError(
                "your password and this session would end at once; another owner can make a new link for you, and so "
                "can roster operator reset on the machine of the service"
            )
        token = operators.reset_password(connection, sent.actor, email, sent.settings.read_secret_key())
    return _show_link(sent, found, token)


def set_role(sent: Submission) -> Outcome:
    """Gives an operator another role."""
    with sent.change() as connection:
        changed = operators.set_role(connection, sent.actor, sent.form.get("email", ""), _read_role(sent))
    # The page is an owner's, and one may have given up the role.
    path = "/account" if changed.email == sent.signed_in.email else "/operators"
    return Moved(path, f"{changed.email} is {changed.role} now.")


def set_enabled(sent: Submission) -> Outcome:
    """Enables or disables an operator."""
    is_enabled = sent.form.get("enabled") == "yes"
    with sent.change() as connection:
        changed = operators.set_operator_enabled(connection, sent.actor, sent.form.get("email", ""), is_enabled)
    return Moved("/operators", f"{changed.email} is {'enabled' if changed.enabled else 'disabled'} now.")


def remove_operator(sent: Submission) -> Outcome:
    """Removes an operator."""
    email = sent.form.get("email", "")
    with sent.change() as connection:
        operators.remove_operator(connection, sent.actor, email)
    return Moved("/operators", f"{email} is removed.")


def end_own_session(sent: Submission) -> Outcome:
    """Ends a session of the operator's own, or all but this one."""
    own = sent.signed_in
    wanted = sent.form.get("session", "")
    with sent.change() as connection:
        listed = operator_sessions.list_sessions(connection, sent.tools.lifetime, own.email)
        chosen = [
            session.id for session in listed if (str(session.id) == wanted if wanted else session.id != own.session_id)
        ]
        ended = sum(operator_sessions.end_session(connection, number, own.email) for number in chosen)
    return Moved("/account", f"{to_counted(ended, 'session')} ended.")


def _read_role(sent: Submission) -> OperatorRole:
    try:
        return OperatorRole(sent.form.get("role", ""))
    except ValueError:
        raise CommandError("choose a role") from None


def _show_link(sent: Submission, found: OperatorAccount, token: str) -> Shown:
    link = f"{sent.tools.origin}{LINK_PATH}?link={token}"
    made = Invitation(found.email, link, LINK_SECONDS // 3600, found.enabled)
    return Shown("invitation", f"A link for {found.email}", made)


SCREENS = (
    Screen(
        "operators", "/operators", "Operators", OperatorRole.OWNER, read_operators, lambda it: it.operators, "Operators"
    ),
    Screen("account", "/account", "Your account", OperatorRole.OBSERVER, read_account, lambda it: it.sessions, None),
)
FORMS = (
    Form("operators", "add", Verb.OPERATOR_ADD, add_operator, None),
    Form("operators", "role", Verb.OPERATOR_SET_ROLE, set_role, None),
    Form("operators", "enable", Verb.OPERATOR_ENABLE, set_enabled, None),
    Form("operators", "reset", Verb.OPERATOR_RESET, reset_password, None),
    Form("operators", "remove", Verb.OPERATOR_REMOVE, remove_operator, lambda sent: sent.form.get("email", "")),
    Form("account", "new-codes", Verb.OPERATOR_SET_CODES, make_codes, None),
    Form("account", "codes", Verb.OPERATOR_SET_CODES, set_codes, None),
    Form("account", "sessions", Verb.OPERATOR_SET_PASSWORD, end_own_session, None),
)

"""The pages before a session: login, the link that sets a password, and the end of a session."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa
from flask import redirect, request, session
from werkzeug import Response
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, Forbidden

from roster_service.accounts import operator_sessions
from roster_service.accounts.operator_sessions import SignedIn, use_code
from roster_service.accounts.operators import find_linked, use_link, verify_password
from roster_service.auth.throttling.throttles import LoginAttempt
from roster_service.console.cookies import TOKEN, KnownBrowsers
from roster_service.console.frame import render_page
from roster_service.console.kept_forms import keep_form, read_kept
from roster_service.console.visit import Tools
from roster_service.errors import CommandError, TooManyTriesError
from roster_service.http.request_facts import get_request_facts
from roster_service.settings import CONSOLE_PATH

# The other members of the cookie, which Flask signs.
CSRF, NEXT, OPERATOR = "csrf", "next", "operator"
ROOT = CONSOLE_PATH
WRONG = "The e-mail, the password or the code is wrong, or the account is disabled."


@dataclass(frozen=True)
class Login:
    """The login of operators, and the pages around it."""

    tools: Tools
    browsers: KnownBrowsers

    def find(self) -> SignedIn | None:
        """Returns the session that the cookie of the request names; None if it names none that is open."""
        token = session.get(TOKEN)
        if token is None:
            return None
        with self.tools.owner.begin() as connection:
            found = operator_sessions.find_session(connection, token, self.tools.lifetime)
        get_request_facts().has_operator = found is not None
        return found

    def show_login(self) -> Response:
        """Shows the form, or takes it: an operator with the right password gets a session, with a new cookie."""
        if request.method == "GET":
            return self._show_form(200, "", None)
        require_csrf()
        email, password = request.form.get("email", ""), request.form.get("password", "")
        counters, browser = self.tools.counters, self.browsers.find(email)
        attempt = LoginAttempt.of_operator(email, request.remote_addr, browser)
        try:
            attempt.require_room(counters)
            with self.tools.owner.begin() as connection:
                operator = verify_password(connection, email, password)
                if operator is not None:
                    attempt = LoginAttempt.of_code(email, browser)
                    attempt.require_room(counters)
                    code, key = request.form.get("code", ""), self.tools.settings.read_secret_key()
                    if use_code(connection, operator.email, code, key):
                        return self.begin(connection, operator.email)
        except TooManyTriesError as error:
            response = self._show_form(429, email, str(error))
            response.headers["Retry-After"] = str(error.seconds)
            return response
        attempt.count_failure(counters)
        return self._show_form(401, email, WRONG)

    def ask_again(self) -> Response:
        """Shows the login in place of a form whose session has ended, with the fields of the form, sealed. Only a form
        of the cookie's own operator is kept, without files."""
        try:
            require_csrf()
            email = session[OPERATOR]
        except (Forbidden, KeyError):
            return redirect(f"{ROOT}/login", 303)
        session[NEXT] = request.path.rpartition("/")[0]
        given = request.form.items(multi=True)
        kept = None if request.files else keep_form(email, request.path, given, self.tools.settings.read_secret_key())
        if kept is None:
            return redirect(f"{ROOT}/login", 303)
        return self._show_form(401, email, None, kept)

    def _show_form(self, status: int, email: str, error: str | None, kept: str = "") -> Response:
        has_directory = self.tools.settings.oidc_url is not None
        values = {"csrf": ensure_csrf(), "email": email, "error": error, "has_directory": has_directory}
        return render_page("login", status, kept=kept or request.form.get("kept", ""), **values)

    def begin(self, connection: sa.Connection, email: str) -> Response:
        """Begins the session of an operator who has proved who they are, and leads to the page that was asked for, or
        shows the form that the login carries."""
        browser = request.user_agent.string or None
        address, lifetime = request.remote_addr, self.tools.lifetime
        token = operator_sessions.begin_session(connection, email, address, browser, lifetime)
        wanted = session.get(NEXT, ROOT)
        # Other tabs of an operator whose session has ended have forms of it.
        csrf = session.get(CSRF) if session.get(OPERATOR) == email else None
        # Nothing else of the cookie that came with the login stays.
        session.clear()
        session[TOKEN], session[CSRF], session[OPERATOR] = token, csrf or secrets.token_urlsafe(32), email
        kept = read_kept(request.form.get("kept", ""), email, self.tools.settings.read_secret_key())
        response = redirect(wanted, 303) if kept is None else render_page("kept", csrf=session[CSRF], kept=kept)
        self.browsers.remember(response, email)
        return response

    def show_password(self) -> Response:
        """Shows the form of a link that sets a password, or takes it; why not, for a link that does not count."""
        link, key = request.values.get("link", ""), self.tools.settings.read_secret_key()
        try:
            with self.tools.owner.connect() as connection:
                operator = find_linked(connection, link, key)
        except CommandError as error:
            return render_page("refusal", 422, title="This link does not set a password", text=str(error))
        show = partial(render_page, "password", csrf=ensure_csrf(), link=link, operator=operator)
        if request.method == "GET":
            return show(200, error=None)
        require_csrf()
        password, again = request.form.get("password", ""), request.form.get("again", "")
        try:
            if password != again:
                raise CommandError("the two passwords differ")
            with self.tools.owner.begin() as connection:
                return self.begin(connection, use_link(connection, link, password, key).email)
        except CommandError as error:
            return show(422, error=str(error))

    def end(self) -> Response:
        """Ends the session of the request."""
        require_csrf()
        found = self.find()
        if found is not None:
            with self.tools.owner.begin() as connection:
                operator_sessions.end_session(connection, found.session_id, found.email)
        session.clear()
        return redirect(f"{ROOT}/login", 303)


def ensure_csrf() -> str:
    """Returns the random text that the forms of this cookie carry."""
    return str(session.setdefault(CSRF, secrets.token_urlsafe(32)))


def require_csrf() -> None:
    """Raises Forbidden for a form that no page of this cookie had, and for one that another site sent; BadRequest as
    `require_text`."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("The form came from another site.")
    # The form of an upload has it in its address: the server asks for it before it reads the body.
    given = request.args.get(CSRF) or request.form.get(CSRF, "")
    if not hmac.compare_digest(given.encode(), str(session.get(CSRF, "")).encode()) or not given:
        raise Forbidden("The form is not of this session; open the page again.")
    require_text(request.form)


def require_text(given: MultiDict[str, str]) -> None:
    """Raises BadRequest for a value that no text in PostgreSQL can be, before any page asks for it."""
    if any("\x00" in value for values in given.listvalues() for value in values):
        raise BadRequest("A value has a NUL, which no text of the service has.")


def remember_wanted() -> None:
    """Keeps the address of a page that needs a login, for after the login."""
    session[NEXT] = request.full_path.rstrip("?")

"""The routes of the console: each screen as a page, as JSON and, if it has a list, as CSV; each form; the login.

One function answers every screen and one every form, so no screen can forget the session, the role or the token
against forged forms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, timedelta
from enum import Enum
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from flask import Blueprint, Flask, current_app, flash, get_flashed_messages, redirect, request, send_file
from sqlalchemy.exc import SQLAlchemyError
from werkzeug import Response
from werkzeug.exceptions import Forbidden, HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from roster_service.accounts.operator_sessions import Lifetime, SignedIn
from roster_service.auth.throttling.counters import Counters
from roster_service.change_log.actors import OperatorRole
from roster_service.change_log.changes import Verb
from roster_service.console.cookies import KnownBrowsers, set_up_cookies
from roster_service.console.directory_login import PATH, DirectoryLogin, find_directory
from roster_service.console.filters import FILTERS, to_instant
from roster_service.console.frame import add_headers, make_csv, make_json, render_page
from roster_service.console.login import ROOT, Login, ensure_csrf, remember_wanted, require_csrf, require_text
from roster_service.console.screen import Form, Screen
from roster_service.console.screens import FORMS, SCREENS, find_place, list_closed, list_menu
from roster_service.console.visit import (
    Again,
    Download,
    Moved,
    Outcome,
    Submission,
    Tools,
    Visit,
    address,
    make_once,
    name_doer,
    open_reading,
)
from roster_service.db.instants import find_now, format_instant, name_zone
from roster_service.errors import CommandError, SentBeforeError, TooManyTriesError
from roster_service.feeds.export_previews import Upload
from roster_service.http.request_facts import get_request_facts
from roster_service.settings import Settings
from roster_service.web.time_limit import BODY_BYTES, BODY_REFUSED, RequestHead

# An export that is uploaded. The worker reads the form while nobody else is answered, so a larger one comes by a path.
MAX_UPLOAD_BYTES = 512 * 2**20
# A session ends then, however busy it is: after a working day.
LONGEST_SESSION = timedelta(hours=12)
# Any other form: a grant of every school of a large district, a mapping of words.
MAX_FORM_BYTES = 2 * 2**20
TOO_LARGE = (
    "A form has at most 2 MB and an export at most 512 MB, and a worker takes one upload at a time. Try again in a "
    "moment, or put the export on the machine of the service and give its path."
)


class Shape(Enum):
    """The form in which a screen is answered; its value is the ending of the path."""

    PAGE = ""
    JSON = ".json"
    CSV = ".csv"


def register_console(app: Flask, settings: Settings, owner: sa.Engine, serving: sa.Engine, counters: Counters) -> None:
    """Registers the console at `/console`. `owner`: as the owner of the tables; `serving`: as the serving role."""
    set_up_cookies(app, settings.read_secret_key(), ROOT)
    lifetime = Lifetime(timedelta(minutes=settings.console_idle_minutes), LONGEST_SESSION)
    tools = Tools(settings, owner, serving, lifetime, settings.console_url, counters)
    login = Login(tools, KnownBrowsers(settings.read_secret_key(), ROOT))
    app.register_blueprint(make_blueprint(tools, login), url_prefix=ROOT)
    forms = {f"console.{form.screen}-{form.name}": form for form in FORMS}
    app.extensions[BODY_BYTES] = functools.partial(find_body_bytes, app, login, forms)


def find_body_bytes(app: Flask, login: Login, forms: Mapping[str, Form], head: RequestHead) -> int | None:
    """Returns the most bytes that the body of a request may have; None for the bound of the service. More than that is
    for the forms of an operator with an open session and the role for them; for an upload, the token against forged
    forms is in the query string, because the body is not read yet."""
    with app.test_request_context(head.path, method=head.method, query_string=head.query, headers=dict(head.headers)):
        form = forms.get(request.endpoint or "")
        try:
            signed_in = None if form is None else login.find()
            if form is None or signed_in is None or not signed_in.role.includes(_find_least(form)):
                return None
            if form.takes_export:
                require_csrf()
        except (HTTPException, SQLAlchemyError):
            # The request itself says what is wrong.
            return None
    return MAX_UPLOAD_BYTES if form.takes_export else MAX_FORM_BYTES


def _find_least(form: Form) -> OperatorRole:
    """The role for a form: that of its verb, and that of the screen, which shows it and why it failed."""
    screen = next(screen for screen in SCREENS if screen.name == form.screen)
    return screen.least if screen.least.includes(form.verb.least_role) else form.verb.least_role


def make_blueprint(tools: Tools, login: Login) -> Blueprint:
    """Returns the routes."""
    console = Blueprint("console", __name__, template_folder="templates")
    for name, filter_ in FILTERS.items():
        console.add_app_template_filter(filter_, name)
    console.add_app_template_filter(functools.partial(to_instant, tools.settings.time_zone), "instant")
    console.add_app_template_global(lambda: format_instant(find_now(UTC)), "read_now")
    console.add_app_template_global(functools.partial(name_zone, tools.settings.time_zone), "name_zone")
    console.add_app_template_global(make_once)
    answers = {screen.name: functools.partial(answer_screen, tools, login, screen) for screen in SCREENS}
    for screen in SCREENS:
        for shape in Shape:
            if shape is Shape.CSV and screen.rows is None:
                continue
            path = screen.path if shape is Shape.PAGE else (screen.path or "/index") + shape.value
            console.add_url_rule(
                path, f"{screen.name}{shape.name}", functools.partial(answers[screen.name], shape), methods=["GET"]
            )
    screens = {screen.name: screen for screen in SCREENS}
    for form in FORMS:
        console.add_url_rule(
            f"{screens[form.screen].path}/{form.name}",
            f"{form.screen}-{form.name}",
            functools.partial(answer_form, tools, login, screens[form.screen], form),
            methods=["POST"],
        )
    console.add_url_rule("/login", "login", login.show_login, methods=["GET", "POST"])
    console.add_url_rule("/password", "password", login.show_password, methods=["GET", "POST"])
    directory = find_directory(tools.settings)
    if directory is not None:
        way = DirectoryLogin(directory, tools, ROOT, login.begin)
        console.add_url_rule(PATH, "directory", way.start, methods=["GET"])
        console.add_url_rule(f"{PATH}/return", "directory_return", way.finish, methods=["GET"])
    console.add_url_rule("/logout", "logout", login.end, methods=["POST"])
    console.add_url_rule("/<path:elsewhere>", "elsewhere", answer_elsewhere, methods=["GET", "POST"])
    console.before_request(_prepare)
    # Flask runs the last one first.
    console.after_request(add_headers)
    console.after_request(show_failure)
    console.register_error_handler(HTTPException, _show_error)
    console.register_error_handler(CommandError, _show_refusal)
    return console


def _list_uploads(name: str) -> Sequence[Upload]:
    """The files of a form. A browser sends an empty one for a field without a choice."""
    return [Upload(upload.filename, upload.stream) for upload in request.files.getlist(name) if upload.filename]


def _prepare() -> None:
    require_text(request.args)
    if any("\x00" in str(value) for value in (request.view_args or {}).values()):
        raise NotFound("A NUL is in no address.")
    # The server has asked `find_body_bytes`.
    request.max_content_length = MAX_UPLOAD_BYTES
    request.max_form_memory_size = MAX_FORM_BYTES


def answer_screen(tools: Tools, login: Login, screen: Screen, shape: Shape, **place: Any) -> Response:
    """Answers a request for a screen: with the login if there is no session, with 403 if the role does not suffice."""
    signed_in = login.find()
    if signed_in is None:
        if shape is not Shape.PAGE:
            return render_page("refusal", 401, title="Log in first", text="The session has ended.")
        remember_wanted()
        return redirect(f"{ROOT}/login", 303)
    if not signed_in.role.includes(screen.least):
        raise Forbidden(f"This page needs the role {screen.least}; you are {signed_in.role}.")
    with open_reading(tools.owner) as connection:
        visit = Visit(tools, connection, signed_in, place, request.args, request.args.getlist, shape is Shape.CSV)
        if shape is Shape.PAGE:
            return _show_screen(screen, visit, 200, error=None)
        content = screen.read(visit)
    if shape is Shape.CSV and screen.rows is not None:
        rows = screen.rows(content)
        return make_csv(rows, screen.name if len(rows) < screen.most_rows else f"{screen.name}-first-{len(rows)}")
    return make_json(content)


def answer_form(tools: Tools, login: Login, screen: Screen, form: Form, **place: Any) -> Response:
    """Answers a form: makes the change and goes on, or shows the screen again with the reason why not."""
    signed_in = login.find()
    if signed_in is None:
        # A body that was not read has no form to keep.
        return redirect(f"{ROOT}/login", 303) if BODY_REFUSED in request.environ else login.ask_again()
    least = _find_least(form)
    if not signed_in.role.includes(least):
        raise Forbidden(f"This needs the role {least}; you are {signed_in.role}.")
    if BODY_REFUSED in request.environ:
        raise RequestEntityTooLarge(TOO_LARGE)
    require_csrf()
    submission = Submission(tools, signed_in, place, request.form, request.form.getlist, _list_uploads)
    try:
        typed = None if form.typed is None else form.typed(submission)
        if typed is not None and submission.get("typed") != typed:
            raise CommandError(f"this is not {typed}; nothing was changed")
        outcome = form.run(submission)
    except SentBeforeError as error:
        return _make_signed_in_page("made", signed_in, 200, title="This was made before", content=error)
    except CommandError as error:
        status = 429 if isinstance(error, TooManyTriesError) else 422
        response = _show_again(screen, submission, status, error=str(error))
        if isinstance(error, TooManyTriesError):
            response.headers["Retry-After"] = str(error.seconds)
        return response
    return _show_outcome(screen, submission, outcome)


def _show_outcome(screen: Screen, sent: Submission, outcome: Outcome) -> Response:
    if isinstance(outcome, Again):
        return _show_again(screen, sent, 200, error=None)
    if isinstance(outcome, Moved):
        if outcome.message is not None:
            flash(outcome.message)
        return redirect(ROOT + outcome.path, 303)
    if isinstance(outcome, Download):
        return send_file(outcome.file, "application/zip", as_attachment=True, download_name=outcome.name)
    values = {"title": outcome.title, "content": outcome.content}
    return _make_signed_in_page(outcome.template, sent.signed_in, outcome.status, **values)


def _show_again(screen: Screen, sent: Submission, status: int, error: str | None) -> Response:
    """Shows the screen of a form with the values that were sent."""
    with open_reading(sent.tools.owner) as connection:
        visit = Visit(sent.tools, connection, sent.signed_in, sent.place, sent.form, sent.lists, whole=False)
        return _show_screen(screen, visit, status, error)


def _show_screen(screen: Screen, visit: Visit, status: int, error: str | None) -> Response:
    return _make_signed_in_page(
        screen.name,
        visit.signed_in,
        status,
        title=screen.title,
        content=screen.read(visit),
        screen=screen,
        query=visit.query,
        error=error,
    )


def _make_signed_in_page(template: str, signed_in: SignedIn, status: int, **values: Any) -> Response:
    may: Callable[[str], bool] = lambda verb: signed_in.role.includes(Verb(verb).least_role)  # noqa: E731
    advise: Callable[[str, str], str] = lambda remedy, verb: address(signed_in.role, Verb(verb), remedy)  # noqa: E731
    who: Callable[[str], str] = lambda verb: name_doer(signed_in.role, Verb(verb))  # noqa: E731
    sees = {screen.name for screen in SCREENS if signed_in.role.includes(screen.least)}
    given = {"screen": None, "query": {}, "error": None, **values}
    # A slash at the end is answered as without it. The page of a form is that above the address of the form.
    here, query_string, sent_form = request.path.rstrip("/"), request.query_string.decode(errors="replace"), None
    if request.method == "POST":
        here, _, sent_form = here.rpartition("/")
        query_string = ""
    section, opened = find_place(given["screen"], request.path.removeprefix(ROOT))
    return render_page(
        template,
        status,
        signed_in=signed_in,
        menu=list_menu(signed_in.role),
        section=section,
        opened=opened,
        may=may,
        advise=advise,
        who=who,
        sees=sees,
        closed_to_viewers=list_closed(OperatorRole.VIEWER),
        csrf=ensure_csrf(),
        messages=get_flashed_messages(),
        here=here,
        sent_form=sent_form,
        query_string=query_string,
        root=ROOT,
        **given,
    )


def answer_elsewhere(elsewhere: str) -> Response:
    """Leads from the address of a form, which stays in the address bar beside a refusal, to the page that has the form.
    Raises MethodNotAllowed for a form to a page, and NotFound for any other address below the console."""
    page = _find_page_of_form()
    if page is not None:
        return redirect(quote(page), 303)
    if _takes("GET"):
        raise MethodNotAllowed(["GET"], "This page takes no form.")
    raise NotFound("There is no such page.")


def _find_page_of_form() -> str | None:
    """The path of the page that has the form of the request's address; None if a browser did not ask for a form's."""
    return request.path.rstrip("/").rpartition("/")[0] if request.method == "GET" and _takes("POST") else None


def _takes(method: str) -> bool:
    """Whether the address of the request is something else by another method."""
    adapter = current_app.create_url_adapter(request)
    # The first page takes no other method at all.
    if adapter is None or not adapter.test(method=method):
        return False
    return adapter.match(method=method)[0] not in ("console.elsewhere", request.endpoint)


def show_failure(response: Response) -> Response:
    """Returns a page in place of the JSON with which the service answers its own failures, unless a program asked."""
    if response.status_code < 500 or not response.is_json or request.path.endswith((".json", ".csv")):
        return response
    text = "The service is busy, or its database does not answer. Try again in a moment."
    if response.status_code == 500:
        text = (
            "The service failed. If you sent a form, look whether it was taken before you send it again. The log of "
            f"the service has the reason, under the number {get_request_facts().id}."
        )
    again = request.full_path.rstrip("?") if request.method == "GET" else None
    page = render_page("refusal", response.status_code, title="This did not work", text=text, again=again)
    page.headers.update({name: value for name, value in response.headers.items() if name == "Retry-After"})
    return page


def _show_error(error: HTTPException) -> Response | HTTPException:
    if error.code is None or error.code < 400:
        return error
    page = render_page("refusal", error.code, title=error.name, text=error.description)
    # `Allow` and the like.
    page.headers.update({name: value for name, value in error.get_headers() if name != "Content-Type"})
    return page


def _show_refusal(error: CommandError) -> Response:
    """Shows why a screen cannot be shown: what it is about is not there."""
    # `/feeds/upload` is the address of a form, and of the page of a feed with this name.
    page = _find_page_of_form()
    if page is not None:
        return redirect(quote(page), 303)
    return render_page("refusal", 404, title="Not found", text=str(error))

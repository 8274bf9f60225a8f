"""Does tasks of an operator in Chromium, and prints as JSON what came of each. An environment of its own runs it.

Reads its order as JSON from standard input. A task is a function of this module whose name begins with `do_`; it
returns a text for what went wrong, or None. `MOST_CLICKS` has the tasks that an operator does often, each with the
clicks that it may take after the login; keys that are pressed and texts that are typed are none.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

EMAIL = "owner@example.org"
# In the storage of the tab, which outlives its pages. A click that the Enter key makes has no detail.
COUNT_CLICKS = """
for (const kind of ["click", "submit"])
  addEventListener(kind, event => {
    if (kind === "submit" || event.isTrusted && event.detail) sessionStorage[kind] = +(sessionStorage[kind] || 0) + 1
  }, true)
"""
TOKEN_FORM = b"grant_type=client_credentials"
SCHOOLS = "/ims/oneroster/rostering/v1p2/schools"
# How long a load in the background may take, in milliseconds.
LOAD_TIME = 120_000


@dataclass(frozen=True)
class Order:
    """What the tasks need. `root`: of the console; `folder`: for pictures; `export`: a zip of what is loaded.

    What SQL says of the installation: `sentences` that the first page has; `vanishing`: a pupil whom the held run would
    delete; `run`: that run; `people`: how many its feed has (before the approval, after it); `shown`: a pupil whom the
    vendor `vendor` was shown; `email`: its own; `client`: of this vendor, with its secret; `url`: of the
    service; `twins`: two pupils with the same identifier."""

    root: str
    invitation: str
    password: str
    folder: str
    export: str
    sentences: list[str]
    vanishing: str
    run: int
    people: list[int]
    shown: str
    vendor: str
    email: str
    client: list[str]
    url: str
    twins: list[str]

    def ask_token(self, client: str, secret: str) -> str | None:
        """What the service gives a client for a secret: a token of all its scopes, or None."""
        login = base64.b64encode(f"{client}:{secret}".encode()).decode()
        asked = urllib.request.Request(f"{self.url}/oauth/token", TOKEN_FORM, {"Authorization": f"Basic {login}"})
        with contextlib.suppress(HTTPError), urllib.request.urlopen(asked) as answer:
            return json.load(answer)["access_token"]
        return None

    def log_in(self, browser: Browser, **context: object) -> Page:
        """A page of a new context, in which the owner has logged in."""
        page = browser.new_context(**context).new_page()
        page.add_init_script(COUNT_CLICKS)
        page.goto(f"{self.root}/login")
        page.fill("#email", EMAIL)
        page.fill("#password", self.password)
        page.click("main button")
        page.wait_for_url(self.root)
        page.evaluate("sessionStorage.clear()")
        return page


def do_first_login_by_link(browser: Browser, order: Order) -> None:
    """The link of the first start sets a password and logs in; it does so once."""
    page = browser.new_page()
    page.goto(order.invitation)
    page.fill("#password", order.password)
    page.fill("#again", order.password)
    page.click("main button")
    page.wait_for_url(order.root)
    expect(page.locator("h1")).to_have_text("Tonight")
    again = browser.new_page()
    again.goto(order.invitation)
    expect(again.locator("main")).to_contain_text("was used already")
    expect(again.locator("form")).to_have_count(0)


def look_for(page: Page, text: str) -> None:
    """Types a text into the search box: no click."""
    page.keyboard.press("/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def find(page: Page, text: str) -> None:
    """Looks for a text, and opens the first result: one click."""
    look_for(page, text)
    page.click("a.found >> nth=0")


def do_see_what_happened(browser: Browser, order: Order) -> str | None:
    """The first sentence of the first page says it."""
    page = order.log_in(browser)
    said = page.inner_text(".lead")
    return next((f"{sentence!r} is not in {said!r}" for sentence in order.sentences if sentence not in said), None)


def do_find_why_a_pupil_is_missing(browser: Browser, order: Order) -> None:
    """The page of the pupil names the grant that the vendor has not, and the run that waits."""
    page = order.log_in(browser)
    find(page, order.vanishing)
    expect(page.locator(f"#grid tr:has-text('{order.vendor}')")).to_contain_text("no grant")
    expect(page.locator("#missing")).to_contain_text("held")


def do_decide_a_held_run(browser: Browser, order: Order) -> None:
    """It is approved, with a reason; the feed then has fewer people, and the change log the reason."""
    page = order.log_in(browser)
    page.click(".feeds a:has-text('See it, and decide')")
    page.fill("#decide input[name=reason]", "the school has closed")
    page.click("#decide button:has-text('Approve')")
    expect(page.locator("main")).to_contain_text("applied it", timeout=LOAD_TIME)
    page.goto(order.root)
    row = page.locator("tr:has-text('springfield')")
    expect(row.locator("[data-label=People]")).to_have_text(f"{order.people[1]:,}")
    page.goto(f"{order.root}/changes")
    expect(page.locator("main")).to_contain_text("the school has closed")


def do_take_a_run_back(browser: Browser, order: Order) -> None:
    """The people come back."""
    page = order.log_in(browser)
    page.click("tr:has-text('springfield') [data-label='Last good run'] a")
    page.click("form[action$='/undo'] button")
    expect(page.locator("main")).to_contain_text("was taken back by", timeout=LOAD_TIME)
    page.goto(order.root)
    row = page.locator("tr:has-text('springfield')")
    expect(row.locator("[data-label=People]")).to_have_text(f"{order.people[0]:,}")


def do_add_a_vendor(browser: Browser, order: Order) -> str | None:
    """One form, one save; the link that it shows makes a secret, with which the first call gets two schools."""
    page = order.log_in(browser)
    page.click("nav a:has-text('Vendors')")
    page.click("a:has-text('Add a vendor')")
    page.fill("#name", "Reading tutor")
    page.fill("#email", "reading@vendors.example")
    for number in range(2):
        page.check(f"input[name=school] >> nth={number}")
    page.check("input[name=withhold][value=email]")
    page.click("button:has-text('Save, and show what to send')")
    link = page.inner_text("code.secret >> nth=0")
    page.goto(f"{order.root}/vendors")
    page.click("main a:has-text('Reading tutor')")
    expect(page.locator(".lead")).to_contain_text("2 schools")
    expect(page.locator(".lead")).to_contain_text("no e-mail")
    vendor = page.context.new_page()
    vendor.goto(link)
    vendor.click("form button")
    client, secret = vendor.locator("code.secret").all_inner_texts()[:2]
    token = order.ask_token(client, secret)
    asked = urllib.request.Request(f"{order.url}{SCHOOLS}", None, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked) as answer:
        schools = json.load(answer)["orgs"]
    return None if len(schools) == 2 else f"{len(schools)} schools"


def do_explain_a_401(browser: Browser, order: Order) -> None:
    """The page of the vendor says that its secret was wrong."""
    order.ask_token(order.client[0], "not-its-secret")
    page = order.log_in(browser)
    page.click("nav a:has-text('Vendors')")
    page.click(f"main a:has-text('{order.vendor}')")
    expect(page.locator("#refused")).to_contain_text("secret")


def do_answer_a_parent(browser: Browser, order: Order) -> None:
    """Who saw the child is a sentence; the child is then hidden, and no vendor gets anything."""
    page = order.log_in(browser)
    find(page, order.shown)
    expect(page.locator("#shown")).to_contain_text(order.email)
    page.click("#removal button:has-text('Hide')")
    expect(page.locator("main")).to_contain_text("Hidden:")
    page.click("tbody a >> nth=0")
    expect(page.locator(".lead")).to_contain_text("No vendor gets anything of this person now")


def do_end_a_leaked_secret(browser: Browser, order: Order) -> str | None:
    """The search for the id of its client leads to the form that ends the secret at once: it gets no token."""
    page = order.log_in(browser)
    look_for(page, order.client[0])
    page.click("a:has-text('End a leaked secret')")
    page.click("button:has-text('End the secret now')")
    expect(page.locator("main")).to_contain_text("secret")
    return None if order.ask_token(*order.client) is None else "the secret still gets a token"


def do_add_an_operator_who_sees_no_pupil(browser: Browser, order: Order) -> None:
    """The new operator's menu and addresses have no people."""
    page = order.log_in(browser)
    page.click("nav a:has-text('Settings')")
    page.click("a:has-text('Operators')")
    page.fill("#email", "second@example.org")
    page.fill("#name", "Second")
    page.select_option("#role", "observer")
    page.click("button:has-text('Add and show the link')")
    second = browser.new_context().new_page()
    second.goto(page.inner_text("pre.secret"))
    second.fill("#password", order.password)
    second.fill("#again", order.password)
    second.click("main button")
    expect(second.locator(".lead")).to_contain_text("feed")
    expect(second.locator("nav[aria-label=Console]")).not_to_contain_text("Roster")
    assert second.goto(f"{order.root}/roster?kind=users").status == 403


def do_send_duplicates_to_the_office(browser: Browser, order: Order) -> str | None:
    """The file has both pupils, and what to do."""
    page = order.log_in(browser)
    page.click("nav a:has-text('Roster')")
    page.click("a:has-text('Quality')")
    with page.expect_download() as found:
        page.click("tr:has-text('identifier') a:has-text('CSV')")
    text = Path(found.value.path()).read_text()
    return next((f"{name} is not in {text[:400]}" for name in order.twins if name not in text), None)


def add_vendor(page: Page, order: Order, name: str) -> None:
    """Adds a vendor of `/v1`, which may see nothing."""
    page.goto(f"{order.root}/vendors/new")
    page.fill("#name", name)
    page.fill("#email", f"{name}@vendors.example")
    page.check("input[value=students]")
    page.click("text=Save, and show what to send")
    page.click("a:has-text('To the vendor')")


def do_upload(browser: Browser, order: Order) -> None:
    """An upload is previewed and loaded: it is what is there already."""
    page = order.log_in(browser)
    page.goto(f"{order.root}/feeds")
    form = page.locator("form[action*='/upload']")
    form.locator("input[name=name]").fill("springfield")
    form.locator("input[name=export]").set_input_files(order.export)
    form.locator("button").click()
    page.click("form[action$='/load'] button", timeout=LOAD_TIME)
    page.wait_for_selector(".outcome, .state", timeout=LOAD_TIME)


def do_end_all_other_sessions(browser: Browser, order: Order) -> None:
    """The other browser of the operator has to log in again."""
    own, other = order.log_in(browser), order.log_in(browser)
    own.goto(f"{order.root}/account")
    own.click("text=End all others")
    other.goto(f"{order.root}/account")
    expect(other.locator("h1")).to_have_text("Log in")
    own.click("text=Log out")
    expect(own.locator("h1")).to_have_text("Log in")
    own.go_back()
    expect(own.locator("h1")).to_have_text("Log in")


def do_send_a_form_of_an_ended_session(browser: Browser, order: Order) -> None:
    """It comes back after the login as the form of its page, with what was typed, chosen and checked."""
    page, other = order.log_in(browser), order.log_in(browser)
    page.goto(f"{order.root}/vendors/new")
    page.fill("#name", "Kept tutor")
    page.fill("#email", "kept@vendors.example")
    page.check("input[name=school] >> nth=1")
    other.goto(f"{order.root}/account")
    other.click("text=End all others")
    page.click("button:has-text('Save, and show what to send')")
    page.fill("#password", order.password)
    page.click("main button")
    expect(page.get_by_label("E-mail of the vendor")).to_have_value("kept@vendors.example")
    expect(page.locator("input[name=school]:checked")).to_have_count(1)
    page.click("button:has-text('Save, and show what to send')")
    expect(page.locator("main")).to_contain_text("Kept tutor")


def do_narrow_while_another_looks(browser: Browser, order: Order) -> None:
    """A vendor's view of a school ends with its grant, in the browser of another operator's session."""
    looking, changing = order.log_in(browser), order.log_in(browser)
    looking.goto(f"{order.root}/roster")
    looking.click("td >> text=Schools")
    looking.click("tbody a >> nth=0")
    looking.select_option("#vendor", "demo@example.org")
    looking.click("button:has-text('Look')")
    expect(looking.locator("main")).to_contain_text("sourcedId")
    looking.go_back()
    changing.goto(f"{order.root}/vendors")
    changing.click("main a:has-text('Demo vendor')")
    changing.click("text=Choose districts and schools")
    changing.click("td a")
    changing.check("input[value=nothing]")
    changing.click("text=Set the access and end older tokens")
    looking.select_option("#vendor", "demo@example.org")
    looking.click("button:has-text('Look')")
    expect(looking.locator("main")).to_contain_text("no district or school is granted")
    looking.go_back()
    looking.reload()
    expect(looking.locator("tr:has-text('demo@example.org') >> nth=0")).to_contain_text("hidden")


def do_without_script(browser: Browser, order: Order) -> None:
    """A vendor is added and gets the district, without script; the effect is shown by a button."""
    page = order.log_in(browser, java_script_enabled=False)
    add_vendor(page, order, "plain")
    page.click("text=Choose districts and schools")
    page.click("td a")
    page.check("input[value=whole]")
    page.click("text=Show the effect")
    expect(page.locator("#effect")).to_contain_text("more")
    page.click("text=Set the access and end older tokens")
    expect(page.locator("main")).to_contain_text("all of ")


def press_until(page: Page, is_there: str, most: int = 60) -> bool:
    """Presses Tab until the focus is on an element that fits a selector."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", is_there):
            return True
    return False


def do_keyboard_alone(browser: Browser, order: Order) -> str | None:
    """Login, a page of the menu and a form, by the keys alone."""
    page = browser.new_page()
    page.goto(f"{order.root}/login")
    for selector, text in (("#email", EMAIL), ("#password", order.password)):
        if not press_until(page, selector):
            return f"the focus never reaches {selector}"
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_url(order.root)
    page.keyboard.press("Tab")
    if not page.evaluate("document.activeElement.matches('.skip')"):
        return "the first stop is not the link to the content"
    if not press_until(page, "nav a[href$='/vendors']"):
        return "the focus never reaches the menu"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{order.root}/vendors")
    if not press_until(page, "a[href$='/vendors/new']"):
        return "the focus never reaches the link to a new vendor"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{order.root}/vendors/new")
    for selector, text in (("#name", "Keys"), ("#email", "keys@vendors.example")):
        if not press_until(page, selector):
            return f"the focus never reaches {selector}"
        page.keyboard.type(text)
    if not press_until(page, "form[action$='/new/add'] button:not([formaction])"):
        return "the focus never reaches the button that saves"
    page.keyboard.press("Enter")
    page.wait_for_selector("code.secret")
    return None


TASKS: dict[str, Callable[[Browser, Order], str | None]] = {
    name: task for name, task in list(globals().items()) if name.startswith("do_")
}
# The tasks of every week, after the login; of the last one of adding a vendor, what its form has.
MOST_CLICKS = {
    do_see_what_happened: 0,
    do_find_why_a_pupil_is_missing: 2,
    do_decide_a_held_run: 3,
    do_take_a_run_back: 2,
    do_add_a_vendor: 7,
    do_explain_a_401: 2,
    do_answer_a_parent: 4,
    do_end_a_leaked_secret: 2,
    do_add_an_operator_who_sees_no_pupil: 3,
    do_send_duplicates_to_the_office: 3,
}


def run(task: Callable[[Browser, Order], str | None], browser: Browser, order: Order, name: str) -> dict[str, object]:
    """Does one task: what went wrong (with a picture of the last page), its clicks and saves, and the seconds."""
    before, began = list(browser.contexts), time.monotonic()
    done: dict[str, object] = {"problem": None, "most": MOST_CLICKS.get(task)}
    try:
        done["problem"] = task(browser, order)
    except Exception as error:  # noqa: BLE001  (whatever fails is the result)
        for number, context in enumerate(new(browser, before)):
            for page in context.pages:
                page.screenshot(path=Path(order.folder) / f"failed-{name}-{number}.png", full_page=True)
        done["problem"] = f"{type(error).__name__}: {str(error)[:600]}"
    finally:
        done["seconds"] = round(time.monotonic() - began, 1)
        if task in MOST_CLICKS:
            page = new(browser, before)[0].pages[0]
            done |= {kind: int(page.evaluate(f"sessionStorage.{kind} || 0")) for kind in ("click", "submit")}
        for context in new(browser, before):
            context.close()
    return done


def new(browser: Browser, before: list[BrowserContext]) -> list[BrowserContext]:
    """The contexts that were opened since."""
    return [context for context in browser.contexts if context not in before]


def main() -> None:
    """Does all tasks in the order of this module, and prints the result of each."""
    order = Order(**json.load(sys.stdin))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        print(json.dumps({name: run(task, browser, order, name) for name, task in TASKS.items()}, indent=1))
        browser.close()


if __name__ == "__main__":
    main()

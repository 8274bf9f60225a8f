"""Does tasks of an operator in Chromium, and prints as JSON what came of each. An environment of its own runs it.

Reads its order as JSON from standard input: root, invitation, password, folder, and the zips of two exports, of which
the second one lacks most people of the first. A task is a function of this module whose name begins with `do_`; it
returns a text for what went wrong, or None.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

EMAIL = "owner@example.org"


@dataclass(frozen=True)
class Order:
    """What the tasks need. `root`: of the console; `folder`: for pictures; `exports`: paths of zips."""

    root: str
    invitation: str
    password: str
    folder: str
    exports: list[str]

    def log_in(self, browser: Browser, **context: object) -> Page:
        """A page of a new context, in which the owner has logged in."""
        page = browser.new_context(**context).new_page()
        page.goto(f"{self.root}/login")
        page.fill("#email", EMAIL)
        page.fill("#password", self.password)
        page.click("main button")
        page.wait_for_url(self.root)
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


def add_vendor(page: Page, order: Order, name: str) -> None:
    """Adds a vendor with the form."""
    page.goto(f"{order.root}/vendors")
    page.fill("#name", name)
    page.fill("#email", f"{name}@vendors.example")
    page.click("text=Add and show the credentials")
    page.click("text=To the vendor")


def do_vendor_to_first_call(browser: Browser, order: Order) -> str | None:
    """A vendor is added, gets a school and a client; the call that the page shows gets the school."""
    page = order.log_in(browser)
    add_vendor(page, order, "reading")
    page.click("text=Choose districts and schools")
    page.click("td a")
    page.check("input[value=some]")
    with page.expect_response(lambda answer: "extent=some" in answer.url):
        page.check("input[name=school] >> nth=0")
    expect(page.locator("#effect")).to_contain_text("more")
    page.click("text=Set the access and end older tokens")
    page.click("summary:has-text('Add a client')")
    page.fill("#name", "program")
    page.click("text=Add and show the secret")
    shown = page.inner_text("#call")
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=False)
    schools = json.loads(done.stdout).get("orgs", [])
    return None if len(schools) == 1 else f"{done.stdout[:300]} {done.stderr[:300]}"


# How long a load in the background may take, in milliseconds.
LOAD_TIME = 120_000


def upload(page: Page, order: Order, export: str) -> None:
    """Uploads an export of the feed `springfield`, and waits for the preview."""
    page.goto(f"{order.root}/feeds")
    form = page.locator("form[action$='/upload']")
    form.locator("input[name=name]").fill("springfield")
    form.locator("input[name=export]").set_input_files(export)
    form.locator("button").click()
    page.wait_for_selector("form[action$='/load'] button", timeout=LOAD_TIME)


def do_upload_hold_and_approve(browser: Browser, order: Order) -> None:
    """An upload is previewed and loaded; the next one, without most people, is held; the first page leads to it; it is
    approved."""
    page = order.log_in(browser)
    upload(page, order, order.exports[0])
    page.click("form[action$='/load'] button")
    page.wait_for_selector("td:has-text('done')", timeout=LOAD_TIME)
    upload(page, order, order.exports[1])
    expect(page.locator("main")).to_contain_text("would be held")
    page.click("form[action$='/load'] button")
    page.wait_for_selector("td:has-text('held')", timeout=LOAD_TIME)
    page.goto(order.root)
    page.click("a:has-text('See it, and decide')")
    page.fill("form[action$='/approve'] input[name=reason]", "the school has closed")
    page.click("form[action$='/approve'] button:has-text('Approve')")
    expect(page.locator("main")).to_contain_text("approved", timeout=LOAD_TIME)
    page.goto(f"{order.root}/changes")
    expect(page.locator("main")).to_contain_text("the school has closed")


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
    changing.click("text=Demo vendor")
    changing.click("text=Choose districts and schools")
    changing.click("td a")
    changing.check("input[value=nothing]")
    changing.click("text=Set the access and end older tokens")
    looking.select_option("#vendor", "demo@example.org")
    looking.click("button:has-text('Look')")
    expect(looking.locator("main")).to_contain_text("no grant of the vendor opens it")
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
    for selector, text in (("#name", "Keys"), ("#email", "keys@vendors.example")):
        if not press_until(page, selector):
            return f"the focus never reaches {selector}"
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Keep these now")
    return None


TASKS: dict[str, Callable[[Browser, Order], str | None]] = {
    name: task for name, task in list(globals().items()) if name.startswith("do_")
}


def run(task: Callable[[Browser, Order], str | None], browser: Browser, order: Order, name: str) -> str | None:
    """Does one task; what it raises is what went wrong, with a picture of the last page."""
    before = list(browser.contexts)
    try:
        return task(browser, order)
    except Exception as error:  # noqa: BLE001  (whatever fails is the result)
        for number, context in enumerate(new(browser, before)):
            for page in context.pages:
                page.screenshot(path=Path(order.folder) / f"failed-{name}-{number}.png", full_page=True)
        return f"{type(error).__name__}: {str(error)[:600]}"
    finally:
        for context in new(browser, before):
            context.close()


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

"""Takes pictures of screens with Chromium; an environment of its own runs it. Reads its order as JSON from standard
input: root, invitation, password, screens (name -> path), pages (the names to take), lacks (names of pages that the
state has not), export (a zip), folder. Prints the rules of axe that a page breaks, and the pages without a picture."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, Page, sync_playwright

# Pictures are taken at the first two; axe looks at three, and no page may be wider than any.
WIDTHS = (1280, 390, 768, 1920)
PICTURED, EXAMINED = WIDTHS[:2], WIDTHS[:3]
SCHEMES = ("light", "dark")
# How many links the search for the screens of single subjects follows.
FOLLOWED = 150
# And how many of those of one screen.
FOLLOWED_EACH = 8
# How long the preview of an export may take, in milliseconds.
PREVIEW_TIME = 60_000


def log_in(page: Page, order: dict) -> None:
    """Sets the password by the link, which logs in."""
    page.goto(order["invitation"])
    page.fill("#password", order["password"])
    page.fill("#again", order["password"])
    page.click("main button")
    page.wait_for_url(order["root"])


def find_addresses(page: Page, order: dict, left_out: set[str]) -> dict[str, str]:
    """The address of each screen but those left out: its path, or the first link to such a path that others have."""
    patterns = {
        name: re.compile(
            re.escape(order["root"]) + re.sub(r"<[^>]+>", "[^/?#]+", re.sub(r"<int:[^>]+>", "[0-9]+", path)) + "$"
        )
        for name, path in order["screens"].items()
        if name not in left_out
    }
    lists = {name: order["root"] + path for name, path in order["screens"].items() if "<" not in path}
    found = {name: address for name, address in lists.items() if name in patterns}
    queue, seen = list(lists.values()), set()
    followed: dict[str, set[str]] = {name: set() for name in patterns}
    while queue and len(seen) < FOLLOWED and len(found) < len(patterns):
        address = queue.pop(0)
        if address in seen:
            continue
        seen.add(address)
        page.goto(address)
        for link in page.eval_on_selector_all("a[href]:not([href*='.csv'])", "all => all.map(one => one.href)"):
            # The same as a file, which the browser would keep.
            if link.endswith((".csv", ".json")):
                continue
            for name, pattern in patterns.items():
                if pattern.match(link.partition("?")[0]) and len(followed[name]) < FOLLOWED_EACH:
                    found.setdefault(name, link)
                    followed[name].add(link)
                    queue.append(link)
    return found


def show_export_preview(page: Page, order: dict) -> None:
    """Uploads an export, and waits for its preview."""
    page.goto(f"{order['root']}/feeds")
    form = page.locator("form[action*='/upload']")
    form.locator("input[name=name]").fill("springfield")
    form.locator("input[name=export]").set_input_files(order["export"])
    form.locator("button").click()
    page.wait_for_selector("form[action$='/drop'] button", timeout=PREVIEW_TIME)


def show_find(page: Page, order: dict) -> None:
    """Looks for a name, by the keys alone."""
    page.goto(order["root"])
    page.keyboard.press("/")
    page.keyboard.type("an")
    page.keyboard.press("Enter")
    page.wait_for_url("**/find?q=an")


def show_look(page: Page, order: dict) -> None:
    """Looks at a school as a vendor."""
    page.goto(f"{order['root']}/roster?kind=orgs&type=school")
    page.click("tbody a >> nth=0")
    page.click("form[action$='/look'] button")


def show_erasure(page: Page, order: dict) -> None:
    """Goes to the second step of an erasure, from the page of the first person of the list."""
    page.goto(f"{order['root']}/roster?kind=users")
    page.click("#found td a >> nth=0")
    page.click("#removal a")


def show_person_answer(page: Page, order: dict) -> None:
    """Goes to the answer to a parent, from the page of the first person of the list."""
    page.goto(f"{order['root']}/roster?kind=users")
    page.click("#found td a >> nth=0")
    page.click("#shown a[href$='/answer']")


def show_person_letter(page: Page, order: dict) -> None:
    """Makes the letter about that person, whom the form may ask for again."""
    show_person_answer(page, order)
    own = page.url.rstrip("/").split("/")[-2]
    for choice in page.query_selector_all("input[name=whose]"):
        if choice.get_attribute("value") == own:
            choice.check()
    page.click("form[action$='/letter'] button")


def show_deletion(page: Page, order: dict) -> None:
    """Asks a vendor, if there is one, to delete what it has of that person: the page is the letter then."""
    page.goto(f"{order['root']}/roster?kind=users")
    page.click("#found td a >> nth=0")
    page.click("#shown a[href$='/deletion']")
    if page.query_selector("form[action$='/ask']"):
        page.click("form[action$='/ask'] button")


def show_deletions(page: Page, order: dict) -> None:
    """The list, with that request."""
    page.goto(f"{order['root']}/deletions")


def show_agreement(page: Page, order: dict) -> None:
    """Shows what an agreement would change."""
    page.goto(f"{order['root']}/vendors")
    page.click("main tbody a >> nth=0")
    page.click(".tabs a[href$='/agreement']")
    for name in ("title", "purpose", "contact", "deletion"):
        page.fill(f"#{name}", f"The {name} of a paper, with more than a few words")
    page.check("input[name=district] >> nth=0")
    page.fill("#first_day", "2026-01-01")
    page.fill("#last_day", "2999-06-30")
    page.click("button:has-text('Show what it changes')")


def show_vendor_list(page: Page, order: dict) -> None:
    """Looks at the people as a client."""
    page.goto(f"{order['root']}/roster?kind=users")
    page.click("summary:has-text('eyes of a vendor')")
    page.click("form[action$='/look'] button")


def show_card(page: Page, order: dict) -> None:
    """Adds a vendor of the vendor interface."""
    page.goto(f"{order['root']}/vendors/new")
    page.fill("#name", "Reading tutor")
    page.fill("#email", "a.rather.long.name@vendors-of-reading.example")
    page.check("input[value=students]")
    page.click("button:has-text('Save, and show what to send')")


def show_letter(page: Page, order: dict) -> None:
    """Adds a vendor of OneRoster."""
    page.goto(f"{order['root']}/vendors/new")
    page.fill("#name", "Reading tutor")
    page.fill("#email", "letters@vendors-of-reading.example")
    page.click("button:has-text('Save, and show what to send')")


def show_made(page: Page, order: dict) -> None:
    """Reloads a page of credentials: the browser sends the form again."""
    page.goto(f"{order['root']}/vendors/new")
    page.fill("#name", "Twice")
    page.fill("#email", "twice@vendors-of-reading.example")
    page.click("text=Save, and show what to send")
    page.wait_for_load_state("networkidle")
    page.reload()


def show_invitation(page: Page, order: dict) -> None:
    """Adds an operator."""
    page.goto(f"{order['root']}/operators")
    page.fill("#email", "second@example.org")
    page.fill("#name", "Second owner")
    page.click("form[action$='/operators/add'] button")


def show_codes(page: Page, order: dict) -> None:
    """Begins to set one-time codes up."""
    page.goto(f"{order['root']}/account")
    page.click("form[action$='/new-codes'] button")


def show_kept(page: Page, order: dict) -> None:
    """Ends the session from another browser while a form is open, sends the form, and logs in again."""
    page.goto(f"{order['root']}/vendors/new")
    page.fill("#name", "Reading tutor")
    page.fill("#email", "kept@vendors-of-reading.example")
    page.fill("input[name=reason]", "The contract of the spring, with a reason of more than a few words")
    other = page.context.browser.new_context().new_page()
    for one in (other, page):
        if one is other:
            one.goto(f"{order['root']}/login")
        else:
            one.click("text=Save, and show what to send")
        one.fill("input[type=email]", order["email"])
        one.fill("input[type=password]", order["password"])
        one.click("button:has-text('Log in')")
        one.wait_for_load_state("networkidle")
        if one is other:
            one.goto(f"{order['root']}/account")
            one.click("button:has-text('End all others')")
    other.context.close()


def show_login(page: Page, order: dict) -> None:
    """Ends the session, and so comes last but for those that need none."""
    page.goto(order["root"])
    page.click("form.who button")
    page.goto(f"{order['root']}/login")


def show_password(page: Page, order: dict) -> None:
    """Opens the link again; it is refused only when the form is sent."""
    page.goto(order["invitation"])


def show_refusal(page: Page, order: dict) -> None:
    """Asks for a run that is not there."""
    page.goto(f"{order['root']}/runs/999999")


# By name of the template, in this order: the pages that no link leads to.
SHOWN: dict[str, Callable[[Page, dict], None]] = {
    name.removeprefix("show_"): show for name, show in list(globals().items()) if name.startswith("show_")
}


def take_pictures(page: Page, name: str, folder: str) -> Iterator[str]:
    """Takes the page that the browser shows, at each width and in each scheme, and on paper; yields what is wrong with
    it."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES if width in EXAMINED else ():
            page.emulate_media(color_scheme=scheme)
            if width in PICTURED:
                page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png", full_page=True)
            for one in Axe().run(page).response["violations"]:
                yield f"{name} {width} {scheme}: {one['id']}: {one['nodes'][0]['html'][:160]}"
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            yield f"{name} {width}: wider than the window"
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.emulate_media(media="print", color_scheme="light")
    page.screenshot(path=Path(folder) / f"{name}-print.png", full_page=True)
    page.emulate_media(media="screen")


def take_shown(page: Page, name: str, order: dict) -> Iterator[str]:
    """Does what shows a page, and takes it; yields what is wrong."""
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    SHOWN[name](page, order)
    page.wait_for_load_state("networkidle")
    yield from take_pictures(page, name, order["folder"])


def main() -> int:
    """Takes all pictures; 1 if a rule is broken, or a page has no picture."""
    order = json.load(sys.stdin)
    wanted = set(order["pages"]) - set(order["lacks"])
    problems, taken = [], set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": WIDTHS[0], "height": 900}).new_page()
        page.set_default_timeout(10_000)
        log_in(page, order)
        for name, address in find_addresses(page, order, {*SHOWN, *order["lacks"]}).items():
            if name not in wanted:
                continue
            page.set_viewport_size({"width": WIDTHS[0], "height": 900})
            page.goto(address, wait_until="networkidle")
            problems += take_pictures(page, name, order["folder"])
            taken.add(name)
        for name in filter(wanted.__contains__, SHOWN):
            try:
                problems += take_shown(page, name, order)
                taken.add(name)
            except Error as error:
                problems.append(f"{name}: {error.message[:300]}")
        browser.close()
    problems += [f"no picture of {name}" for name in sorted(wanted - taken)]
    print("\n".join(problems) or "no problem")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Visits the pages of a service with Chromium, and prints as JSON what it found. An environment of its own runs it.

`python browse.py URL ACCOUNT FOLDER`: the account of the demo as JSON; the folder gets a picture of each page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, sync_playwright

WIDTHS = (1280, 390)
# A page behind a slash, one of each kind, and none.
PAGES = ("", "docs/", "docs/guide", "docs/conformance", "docs/reference/v1p1", "nothing")
RESULT = ".live-responses-table .response .response-col_status"


def list_violations(page: Page) -> list[str]:
    """The rules of axe that the page breaks, each with the first element."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in found]


def watch(page: Page, url: str, seen: list[str]) -> None:
    """Notes what the page may not do: errors, refused sources, requests to other hosts than that of `url`."""

    def note_request(request: Request) -> None:
        if not request.url.startswith((url, "data:")):
            seen.append(request.url)

    page.on("request", note_request)
    page.on("console", lambda message: seen.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: seen.append(str(error)))


def look(browser: Browser, url: str, folder: Path, scheme: str) -> dict[str, list[str]]:
    """The violations, errors and foreign requests of each page at each width, and a picture."""
    found = {}
    for width in WIDTHS:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for path in PAGES:
            page = context.new_page()
            seen: list[str] = []
            watch(page, url, seen)
            page.goto(f"{url}/{path}", wait_until="networkidle")
            name = path.strip("/").replace("/", "-") or "start"
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
            if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                seen.append("wider than the window")
            # The page of an unknown address is a 404, which the console reports.
            seen = [text for text in seen if path != "nothing" or "404" not in text]
            found[f"{name} {width} {scheme}"] = seen + list_violations(page)
            page.close()
        context.close()
    return found


def authorize(page: Page, values: dict[str, str]) -> None:
    """Gives the reference the values, by the ids of its fields."""
    page.click("button.authorize")
    for field, value in values.items():
        page.fill(f"#{field}", value)
    for link in page.query_selector_all(".auth-container .scopes a:has-text('select all')"):
        link.click()
    for field in values:
        button = page.locator(f".auth-container:has(#{field}) button:has-text('Authorize')")
        if button.count():
            button.click()
            page.wait_for_selector(".auth-container button:has-text('Logout')")
    page.locator("button.btn-done").first.click()


def call(page: Page, operation: str, body: str | None = None) -> str:
    """The status of a call that the reference makes."""
    page.click(f"#operations-{operation} .opblock-summary-control")
    page.click(f"#operations-{operation} .try-out__btn")
    if body is not None:
        page.fill(f"#operations-{operation} textarea", body)
    page.click(f"#operations-{operation} .execute")
    return page.wait_for_selector(f"#operations-{operation} {RESULT}").inner_text().split()[0]


def main() -> None:
    """Prints the findings."""
    url, account, folder = sys.argv[1:]
    names = ("client_id", "client_secret", "api_key", "email", "password")
    client_id, secret, api_key, email, password = (json.loads(account)[name] for name in names)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found: dict[str, object] = {}
        for scheme in ("light", "dark"):
            found |= look(browser, url, Path(folder), scheme)
        for version, operation, scheme in (("v1p1", "getAllUsers", "light"), ("v1p2", "getAllOrgs", "dark")):
            page = browser.new_context(color_scheme=scheme).new_page()
            page.goto(f"{url}/docs/reference/{version}", wait_until="networkidle")
            authorize(page, {"client_id_clientCredentials": client_id, "client_secret_clientCredentials": secret})
            tag = operation.removeprefix("getAll") + "Management"
            found[f"call {version}"] = call(page, f"{tag}-{operation}")
            found[f"open operation of {version}"] = list_violations(page)
        page = browser.new_page()
        page.goto(f"{url}/docs/reference/vendor", wait_until="networkidle")
        login = json.dumps({"email": email, "password": password})
        authorize(page, {"api_key_value": api_key})
        found["call vendor"] = call(page, "Vendor-login", login)
        browser.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

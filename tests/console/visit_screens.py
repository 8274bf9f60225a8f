"""Takes pictures of screens with Chromium; an environment of its own runs it. Reads its order as JSON from standard
input: root, invitation, password, screens (name -> path), folder. Prints the rules of axe that a screen breaks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

WIDTHS = (1280, 390)
# How many links the search for the screens of single subjects follows.
FOLLOWED = 150


def log_in(page: Page, order: dict) -> None:
    """Sets the password by the link, which logs in."""
    page.goto(order["invitation"])
    page.fill("#password", order["password"])
    page.fill("#again", order["password"])
    page.click("main button")
    page.wait_for_url(order["root"])


def find_addresses(page: Page, order: dict) -> dict[str, str]:
    """The address of each screen: its path, or the first link to such a path that the other screens have."""
    patterns = {
        name: re.compile(re.escape(order["root"]) + re.sub(r"<[^>]+>", "[^/?#]+", path) + "$")
        for name, path in order["screens"].items()
    }
    found = {name: order["root"] + path for name, path in order["screens"].items() if "<" not in path}
    queue, seen = [order["root"], *found.values()], set()
    while queue and len(seen) < FOLLOWED and len(found) < len(patterns):
        address = queue.pop(0)
        if address in seen:
            continue
        seen.add(address)
        page.goto(address)
        for link in page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)"):
            for name, pattern in patterns.items():
                if name not in found and pattern.match(link.partition("?")[0]):
                    found[name] = link
                    queue.append(link)
    return found


def main() -> int:
    """Takes all pictures; 1 if a rule is broken or a screen was not found."""
    order = json.load(sys.stdin)
    problems = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": WIDTHS[0], "height": 900})
        page = context.new_page()
        log_in(page, order)
        addresses = find_addresses(page, order)
        missing = [name for name in order["screens"] if name not in addresses]
        for name, address in addresses.items():
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    page.set_viewport_size({"width": width, "height": 900})
                    page.emulate_media(color_scheme=scheme)
                    page.goto(address, wait_until="networkidle")
                    page.screenshot(path=Path(order["folder"]) / f"{name}-{width}-{scheme}.png", full_page=True)
                    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                        problems.append(f"{name} {width}: wider than the window")
                    problems += [
                        f"{name} {width} {scheme}: {one['id']}: {one['nodes'][0]['html'][:160]}"
                        for one in Axe().run(page).response["violations"]
                    ]
        browser.close()
    print("\n".join(problems) or "no problem", *(f"no link leads to {name}" for name in missing), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

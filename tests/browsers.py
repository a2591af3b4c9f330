"""How do tests look at pages as people do? With Debian's chromium, which they drive through Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip
SLOWEST_MS = 60_000  # a machine may be busy
expect.set_options(timeout=SLOWEST_MS)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")

PHONE = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


class Watched:
    """A tab of a browser; `leave` fails on what must not happen on any page."""

    def __init__(self, browser: Browser, base: str, **look: Any) -> None:
        self.base = base
        self.problems: list[str] = []
        self._context = browser.new_context(base_url=base, reduced_motion="reduce", **look)
        self._context.set_default_timeout(SLOWEST_MS)
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self._context.on("request", self._asked)

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).scheme != "data" and not request.url.startswith(f"{self.base}/"):
            self.problems.append(f"a request left the server: {request.url}")

    def go(self, path: str) -> Page:
        """The page, with its figures and its stream of events."""
        self.page.goto(path)
        self.page.locator("main h1").wait_for()
        expect(self.page.locator("#live")).to_have_attribute("data-live", "yes", timeout=30_000)
        return self.page

    def leave(self) -> None:
        """Close the tab; no error on its console, no request to anyone else."""
        self._context.close()
        assert self.problems == []


@contextmanager
def watched(browser: Browser, base: str, **look: Any) -> Iterator[Watched]:
    """A tab, left in order."""
    tab = Watched(browser, base, **look)
    yield tab
    tab.leave()

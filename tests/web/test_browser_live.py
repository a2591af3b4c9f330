"""Does a page in a real browser follow a lake that grows, goes away and comes back?"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import gpuledger
from browsers import PHONE, chromium, needs_chromium, watched
from dashboards import Server
from odd_fleet import odd_rows, write_odd

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory, fleet: Path) -> Iterator[tuple[Path, Path, str]]:
    """A server of a lake with the first day; the lake, the file of the next day, and the address.

    One test adds the next day, another takes the lake away and brings it back: in any order, one server will do.
    """
    first, second = sorted(fleet.glob("*.parquet"))
    lake = tmp_path_factory.mktemp("growing") / "lake"
    gpuledger.open(lake).ingest(first)
    server = Server(lake)
    server.wait_ready()
    yield lake, second, server.base
    server.stop()


@pytest.fixture
def odd_growing(tmp_path: Path, odd_lake: Path) -> Iterator[tuple[Path, str]]:
    """A server of a copy of the odd fleet; the lake and the address."""
    lake = tmp_path / "lake"
    shutil.copytree(odd_lake, lake)
    server = Server(lake)
    server.wait_ready()
    yield lake, server.base
    server.stop()


def test_new_samples_appear_and_the_reader_stays_where_they_are(
    browser: Browser, growing: tuple[Path, Path, str]
) -> None:
    lake, second, base = growing
    with watched(browser, base, viewport={"width": 900, "height": 500}) as tab:
        page = tab.go("/data")
        page.locator("#problem").wait_for(state="attached")
        page = tab.go("/owners")
        before = page.locator(".facts").inner_text()
        table = page.locator("table.sorts").first
        table.get_by_role("button").first.press("Enter")
        expect(table.locator("th[aria-sort]")).to_have_count(1)
        sorted_as = table.locator("th[aria-sort]").get_attribute("aria-sort")
        page.evaluate("window.scrollTo(0, 120)")
        edition = page.evaluate("document.body.dataset.edition")
        gpuledger.open(lake).ingest(second)
        expect(page.locator("body")).not_to_have_attribute("data-edition", edition, timeout=30_000)
        assert page.locator(".facts").inner_text() != before
        expect(table.locator("th[aria-sort]")).to_have_attribute("aria-sort", sorted_as or "")
        expect(table.get_by_role("button").first).to_be_focused()
        assert page.evaluate("window.scrollY") == 120
        table.get_by_role("button").nth(1).click()  # sorts as before
        expect(table.locator("th").nth(1)).to_have_attribute("aria-sort", "descending")
        expect(page.locator("#live")).to_have_text(re.compile("live, updated"))


def test_a_focused_gpu_stays_focused_where_rows_change_places(browser: Browser, odd_growing: tuple[Path, str]) -> None:
    lake, base = odd_growing
    with watched(browser, base) as tab:
        page = tab.go("/gpus?sort=name")
        link = page.get_by_role("link", name="n3/0")
        link.focus()
        gone = browser.new_page()
        gone.goto(f"{base}/?last=1h&namespace=odd")
        expect(gone.locator("h1")).not_to_contain_text("No data")
        # An hour later: a GPU in front of the others, and one namespace that stopped.
        rows = odd_rows(dt.datetime(2026, 11, 15, 9, tzinfo=dt.UTC), 120, leave_out="odd")
        front = [[row[0], "GPU-new", *row[2:3], "a0", *row[4:]] for row in rows if row[1] == "GPU-idle"]
        gpuledger.open(lake).ingest(write_odd(lake.parent / "next.csv", [*rows, *front]))
        expect(page.get_by_role("link", name="a0/3")).to_be_visible(timeout=30_000)
        expect(link).to_be_focused()
        expect(gone.locator("h1")).to_contain_text("No data for these filters", timeout=30_000)
        expect(gone.locator("#live")).to_have_text(re.compile(r"live, updated \d\d:\d\d:\d\d UTC"))
        expect(gone.locator("form.filters")).to_be_visible()
        gone.close()


def test_a_page_left_open_shows_that_its_samples_are_old(browser: Browser, odd_growing: tuple[Path, str]) -> None:
    lake, base = odd_growing
    with watched(browser, base, viewport=PHONE) as tab:
        page = tab.go("/")
        age = page.locator("#age")
        expect(age).to_have_text(re.compile(r"newest sample \d+ (min|h|days) old"))
        now = dt.datetime.now(dt.UTC)
        gpuledger.open(lake).ingest(write_odd(lake.parent / "now.csv", odd_rows(now - dt.timedelta(minutes=9), 10)))
        expect(age).to_be_hidden(timeout=30_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_lake_that_goes_away_keeps_its_last_figures(browser: Browser, growing: tuple[Path, Path, str]) -> None:
    lake, _second, base = growing
    with watched(browser, base) as tab:
        page = tab.go("/")
        shown = page.locator("h1").inner_text()
        shutil.move(lake, lake.with_name("moved"))
        expect(page.locator("#problem")).to_contain_text("not the latest")
        assert page.locator("h1").inner_text() == shown
        shutil.move(lake.with_name("moved"), lake)
        expect(page.locator("#problem")).to_be_hidden(timeout=60_000)


def test_an_empty_lake_fills_before_the_readers_eyes(browser: Browser, tmp_path: Path, fleet: Path) -> None:
    server = Server(tmp_path / "lake")
    try:
        tab = browser.new_page()
        tab.goto(server.base)
        expect(tab.locator("h1")).to_have_text("No data yet")
        expect(tab.locator("main")).to_contain_text("gpuledger import")
        gpuledger.open(tmp_path / "lake").ingest(min(fleet.glob("*.parquet")))
        expect(tab.locator("main .cards")).to_be_visible(timeout=60_000)
        tab.close()
    finally:
        server.stop()

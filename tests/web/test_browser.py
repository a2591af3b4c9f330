"""Does the dashboard work in a real browser: for eyes, fingers, keyboards and screen readers?"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import gpuledger
from browsers import chromium, needs_chromium, watched
from dashboards import Server
from gpuledger.web.shell import PAGES
from odd_fleet import odd_rows, write_odd

pytestmark = needs_chromium
PHONE = {"width": 390, "height": 844}
PATHS = [path for path, _ in PAGES]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def base(lake: Path) -> Iterator[str]:
    """A server of the fleet; its window is not the usual one."""
    server = Server(lake, "--last", "36h")
    server.wait_ready()
    yield server.base
    code, errors = server.stop()
    assert "Traceback" not in errors, errors
    assert code in (0, -15)


@pytest.fixture
def growing(tmp_path: Path, fleet: Path) -> Iterator[tuple[Path, Path, str]]:
    """A server of a lake with the first day; the lake, the file of the next day, and the address."""
    first, second = sorted(fleet.glob("*.parquet"))
    lake = tmp_path / "lake"
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


def serious(page: Page, **options: object) -> list[str]:
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['target']}" for v in found if v["impact"] in ("serious", "critical")]


def test_no_page_has_a_serious_finding_of_axe(browser: Browser, base: str) -> None:
    with watched(browser, base) as tab:
        tab.go("/gpus")
        device = tab.page.locator("a.device").first.get_attribute("href")
        assert device
        for path in (*PATHS, "/docs/api", device):
            page = tab.go(path)
            page.emulate_media(color_scheme="light")
            assert serious(page) == [], path
            page.emulate_media(color_scheme="dark")  # what differs is contrast
            assert serious(page, runOnly=["color-contrast"]) == [], f"{path} in dark"


def test_no_page_is_wider_than_a_phone(browser: Browser, base: str) -> None:
    with watched(browser, base, viewport=PHONE, has_touch=True) as tab:
        for path in PATHS:
            page = tab.go(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
            small = page.evaluate(
                "[...document.querySelectorAll('nav a, button, select')].filter(e => e.getClientRects().length)"
                ".map(e => [e.textContent, e.getBoundingClientRect().height]).filter(e => e[1] < 24)"
            )
            assert small == [], path


def test_a_filter_is_in_the_address_and_holds(browser: Browser, base: str) -> None:
    with watched(browser, base) as tab:
        page = tab.go("/gpus")
        expect(page.locator("select[name=last]")).to_have_value("36h")  # the server's own
        name = page.get_by_label("Namespace").locator("option").nth(1).inner_text()
        page.get_by_label("Namespace").select_option(name)
        page.get_by_role("button", name="Show").click()
        page.wait_for_url(f"**namespace={name}*")
        expect(page.get_by_label("Namespace")).to_have_value(name)
        owners = page.locator("td[data-h=Namespace]").all_inner_texts()
        assert set(owners) == {name}
        page.get_by_label("Find").fill("no such GPU")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("#table-gpus")).to_contain_text("No GPU matches")
        assert f"namespace={name}" in page.url
        page.get_by_role("link", name="Timeline").click()
        expect(page.get_by_label("Namespace")).to_have_value(name)  # filters stay from page to page
        page.locator("select[name=last]").select_option("all")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**last=all*")
        expect(page.locator("select[name=last]")).to_have_value("all")


def test_from_the_table_to_one_gpu_and_its_spells(browser: Browser, base: str) -> None:
    with watched(browser, base) as tab:
        page = tab.go("/gpus?sort=util")
        busy = [float(text.rstrip(" %")) for text in page.locator("td[data-h=Utilization]").all_inner_texts()]
        assert busy == sorted(busy, reverse=True)
        assert page.locator("svg.spark polyline").count() >= len(busy)
        name = page.locator("a.device").first.inner_text()
        page.locator("a.device").first.click()
        expect(page.locator("h1")).to_contain_text(name)
        expect(page.locator("#table-spells, section[aria-labelledby=spells] p").first).to_be_visible()
        page.get_by_text("Hours, the newest first").first.click()
        expect(page.locator("#table-hours")).to_be_visible()


def test_colors_follow_the_system_and_the_button_and_stay(browser: Browser, base: str) -> None:
    def ground(page: Page) -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor || ''") + page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor"
        )

    with watched(browser, base, color_scheme="dark") as tab:
        dark = ground(tab.go("/"))
        tab.page.get_by_role("button", name="Switch to light colours").click()
        light = ground(tab.page)
        assert light != dark
        assert ground(tab.go("/gpus")) == light
        expect(tab.page.get_by_role("button", name="Switch to dark colours")).to_be_visible()


def test_all_of_it_works_with_the_keyboard_alone(browser: Browser, base: str) -> None:
    with watched(browser, base) as tab:
        page = tab.go("/")
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the figures")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        tab.go("/")
        _tab_to(page, "Owners")
        page.keyboard.press("Enter")
        page.wait_for_url("**/owners*")
        tab.go("/owners?by=namespace")
        _tab_to(page, "Paid")
        page.keyboard.press("Enter")
        head = page.locator("th[aria-sort]")
        expect(head).to_have_attribute("aria-sort", "descending")
        page.keyboard.press("Space")
        expect(head).to_have_attribute("aria-sort", "ascending")
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none"  # one sees where one is


def test_arrow_keys_step_through_a_list_without_leaving_it(browser: Browser, base: str) -> None:
    with watched(browser, base) as tab:
        page = tab.go("/")
        window = page.locator("select[name=last]")
        before, address = window.input_value(), page.url
        window.focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        expect(window).to_be_focused()
        assert window.input_value() != before
        assert page.url == address
        _tab_to(page, "Show")
        page.keyboard.press("Enter")
        page.wait_for_url("**last=*")


def test_charts_can_be_read_on_a_phone(browser: Browser, base: str) -> None:
    with watched(browser, base, viewport=PHONE, has_touch=True) as tab:
        page = tab.go("/timeline")
        wide = page.evaluate("[...document.querySelectorAll('.drawn svg')].map(e => e.getBoundingClientRect().width)")
        assert wide
        assert min(wide) >= 600  # drawn for 760 px: its words keep four fifths of their size
        label = page.evaluate("getComputedStyle(document.querySelector('table.many tbody th.num'), '::before').content")
        assert "GPU-hours" in label


def _tab_to(page: Page, words: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == words:
            return
    raise AssertionError(f"{words!r} cannot be reached with Tab")


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

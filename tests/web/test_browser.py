"""Does the dashboard work in a real browser: for eyes, fingers, keyboards and screen readers?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from browsers import PHONE, chromium, needs_chromium, watched
from dashboards import Server
from gpuledger.web.shell import PAGES

pytestmark = needs_chromium
PATHS = [path for path, _ in PAGES]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def base(served: Server) -> str:
    """The address of the fleet's dashboard."""
    return served.base


def serious(page: Page, **options: object) -> list[str]:
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['target']}" for v in found if v["impact"] in ("serious", "critical")]


@pytest.mark.scale  # ten seconds
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
            past = page.evaluate(
                "(() => { document.querySelectorAll('.card .value').forEach(e => e.textContent = '$12,345,678.90');"
                " const end = document.querySelector('main').getBoundingClientRect().right;"
                " return [...document.querySelectorAll('.card')].filter(e => e.getBoundingClientRect().right > end + 1)"
                ".length })()"
            )
            assert past == 0, f"{path}: key figures of a large bill reach past the page"


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

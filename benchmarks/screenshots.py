"""How does the dashboard look? Pictures of its pages for the README and the guide, taken from the sample fleet.

    python benchmarks/screenshots.py [--out docs/images] [--all DIR]

`gpuledger serve` runs on a lake of the sample fleet; Debian's `chromium` draws the pages. `--all` also takes every
page, wide and at 390 px, in light and dark, to look through.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

CHROMIUM = "/usr/bin/chromium"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATHS = ("/", "/timeline", "/gpus", "/owners", "/savings", "/energy", "/plans", "/data", "/docs/api")
DAYS = 2  # whole ones, before today
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a dashboard of the sample fleet, whose newest sample is of this minute."""
    now = dt.datetime.now(dt.UTC)
    days = DAYS + (60 * now.hour + now.minute) / (24 * 60)
    spec = FleetSpec(gpus=24, days=days, start=f"{now - dt.timedelta(days=DAYS):%Y-%m-%d}")
    write_fleet(spec, folder / "fleet", files="day")
    lake = folder / "gpuledger-data"
    files = [str(file) for file in sorted((folder / "fleet").glob("*.parquet"))]
    run = [sys.executable, "-m", "gpuledger"]
    subprocess.run([*run, "import", *files, "--lake", str(lake), "--quiet"], check=True)
    serve = [*run, "serve", "--lake", str(lake), "--port", "0", "--cloud", "aws"]
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+:\d+", server.stdout.readline())
        assert found
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def ready(page: Page, address: str) -> None:
    """Wait until the page has its figures, and draws nothing more."""
    page.goto(address)
    page.wait_for_selector("form.filters, #table-api", timeout=120_000)
    page.wait_for_function("document.getElementById('live').dataset.live === 'yes'")


def take(browser: Browser, address: str, file: Path, size: dict[str, int], *, dark: bool, whole: bool) -> None:
    """One picture."""
    look = browser.new_context(
        viewport=size, color_scheme="dark" if dark else "light", device_scale_factor=1.5 if size is PHONE else 1,
        reduced_motion="reduce",
    )  # fmt: skip
    page = look.new_page()
    ready(page, address)
    page.screenshot(path=file, full_page=whole)
    look.close()


def main() -> None:
    """Take the pictures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "images")
    options.add_argument("--all", type=Path, help="a folder for every page in every look")
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as made,
        served(Path(made)) as base,
        sync_playwright() as tools,
        tools.chromium.launch(executable_path=CHROMIUM, args=ARGS) as browser,
    ):
        for name, path, size, dark in (
            ("dashboard", "/", WIDE, False), ("dashboard_dark", "/timeline", WIDE, True),
            ("dashboard_gpus", "/gpus", WIDE, False), ("dashboard_energy", "/energy", WIDE, False),
            ("dashboard_phone", "/", PHONE, False),
        ):  # fmt: skip
            take(browser, base + path, given.out / f"{name}.png", size, dark=dark, whole=False)
        if not given.all:
            return
        given.all.mkdir(parents=True, exist_ok=True)
        one = browser.new_page()
        ready(one, f"{base}/gpus")
        device = one.locator("a.device").first.get_attribute("href") or ""
        for path in (*PATHS, device):
            for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
                look = ("phone" if size is PHONE else "wide") + ("_dark" if dark else "")
                name = "gpu" if path == device else path.strip("/").replace("/", "_") or "overview"
                take(browser, base + path, given.all / f"{name}_{look}.png", size, dark=dark, whole=True)


if __name__ == "__main__":
    main()

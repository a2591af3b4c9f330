"""Does the Energy page show carbon where it is known where the GPUs are, as `ask energy` does?"""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest

from dashboards import Server
from gpuledger.cli.app import run

PLACE = ("--cloud", "aws", "--at", "aws:us-east-1")


@pytest.fixture
def carbon(tmp_path: Path) -> Path:
    """Intensities of two days, each hour the same."""
    hours = [f"2026-01-{day:02d}T{hour:02d}:00Z" for day in (20, 21) for hour in range(24)]
    rows = [f"{hour},{region},{grams}" for hour in hours for region, grams in (("US-VA", 100), ("aws:us-east-1", 100))]
    file = tmp_path / "carbon.csv"
    file.write_text("\n".join(["hour,region,g_per_kwh", *rows]) + "\n")
    return file


@pytest.mark.scale
def test_the_energy_page_has_the_carbon_that_ask_energy_has(
    lake: Path, carbon: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", "energy", "--lake", str(lake), "--json", *PLACE, "--carbon", str(carbon)]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert asked["carbon_kg"]["middle"] > 0
    server = Server(lake, *PLACE, "--carbon", str(carbon))
    try:
        server.wait_ready()
        shown = httpx.get(f"{server.base}/api/v1/energy", timeout=60).json()
        assert shown["carbon_kg"] == asked["carbon_kg"]
        assert shown["carbon_file"].endswith("carbon.csv")
        assert "kg CO2e" in httpx.get(f"{server.base}/energy", timeout=60).text
        # A file that grows or is replaced is read again.
        carbon.write_text(carbon.read_text().replace(",100", ",200"))
        until = time.monotonic() + 30
        again = shown
        while again["carbon_kg"] == shown["carbon_kg"] and time.monotonic() < until:
            time.sleep(0.1)
            again = httpx.get(f"{server.base}/api/v1/energy", timeout=60).json()
        assert again["carbon_kg"]["middle"] > asked["carbon_kg"]["middle"]
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--cloud", "nimbus"), "nimbus"),
        (("--at", "aws:atlantis-1"), "atlantis-1"),
        (("--carbon", "no-such.csv"), "no-such.csv"),
    ],
)
def test_wrong_places_and_files_fail_at_once_with_the_same_words(
    lake: Path, given: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for command in (["ask", "energy"], ["serve", "--port", "0"]):
        assert run([*command, "--lake", str(lake), *given]) == 2
        said.append(capsys.readouterr().err)
    assert words in said[0]
    asked, served = (" ".join(text.split()) for text in said)
    assert served.replace(str(Path.cwd()) + "/", "") == asked

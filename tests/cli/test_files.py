"""Do `analyze FILE` and `audit FILE` answer as a lake of the same file would, and leave nothing behind?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpuledger
from gpuledger.cli.app import run


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fleet") / "fleet.parquet"
    gpuledger.write_fleet(gpuledger.FleetSpec(gpus=5, days=2, step_s=300), file)
    return file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run([*words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return {name: value for name, value in found.items() if name not in ("files", "assumptions")}


@pytest.mark.parametrize("command", ["analyze", "audit"])
@pytest.mark.parametrize("more", [(), ("--since", "2026-01-20T10:30", "--until", "2026-01-21T04:00")])
def test_files_answer_as_a_lake_does(
    command: str, more: tuple[str, ...], fleet: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    straight = answer(capsys, command, str(fleet), *more)
    assert list(here.iterdir()) == []
    assert run(["import", str(fleet), "--lake", "lake", "--quiet"]) == 0
    assert straight == answer(capsys, command, "--lake", "lake", *more)


def test_a_file_and_a_command_are_not_taken_together(
    fleet: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", str(fleet), "--", "true"]) == 2
    assert "one of them" in capsys.readouterr().err


def test_rejected_rows_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "rows.csv"
    rows = "".join(f"2026-01-20T00:{m:02d}:00Z,GPU-1,50,300\n" for m in range(30))
    file.write_text(f"timestamp,UUID,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE\n{rows}never,GPU-1,50,300\n")
    assert run(["analyze", str(file)]) == 0
    assert "1 rows could not be used (1 x wrong_time)" in capsys.readouterr().err


def test_files_are_read_from_python(fleet: Path) -> None:
    files = gpuledger.read(fleet)
    assert files.analyze().samples == 5 * 2 * 288
    assert "2,880 samples" in repr(files)
    cost = files.audit(prices=2.0, last="1d").cost
    assert float(cost.dollars.paid_usd) == pytest.approx(2.0 * cost.times.paid_h)
    assert cost.times.paid_h == pytest.approx(5 * 24, rel=0.01)

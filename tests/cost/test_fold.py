"""Does folding hours into days leave every figure as it was?"""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import (
    CLOCK,
    DAY,
    DRAM,
    ENGINE,
    H100,
    MEMORY,
    POWER,
    TENSOR,
    UTIL,
    Row,
    analyze,
    audit,
    lake_of,
    random_fleet,
    samples,
)  # fmt: skip

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cli.app import run
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.tidying import Ages, tidy_lake
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR


def two_loads() -> list[Row]:
    """A day on one A100: half of the day it computes, half of it copies; vector pipes are not recorded."""
    return samples(range(720), **_load(0.8, 0.1)) + samples(range(720, 1440), **_load(0.05, 0.85))


def _load(tensor: float, dram: float) -> Row:
    return {"namespace": "a", UTIL: 95, POWER: 350, ENGINE: 0.95, TENSOR: tensor, DRAM: dram, CLOCK: 1410}


def office_hours(days: int = 9) -> list[Row]:
    """One H100 that works from 08:00 to 18:00 UTC and holds its memory at night, a sample every five minutes."""
    busy = {UTIL: 95, POWER: 500, ENGINE: 0.95, TENSOR: 0.5, DRAM: 0.3, CLOCK: 1980}
    still = {UTIL: 0, POWER: 70, ENGINE: 0.0, TENSOR: 0.0, DRAM: 0.0, CLOCK: 345}
    rows: list[Row] = []
    for minute in range(0, days * 1440, 5):
        load = busy if 8 <= minute // 60 % 24 < 18 else still
        rows += samples([minute], model=H100, namespace="office", pod="notebook-0", **load, **{MEMORY: 40_000})
    return rows


def fold(lake: Lake) -> None:
    days = len(lake.manifest().days())
    done = tidy_lake(lake, load_thresholds(), Ages(DAY + 30 * MS_PER_DAY, MS_PER_DAY))
    assert len(done.days_folded) == days
    assert done.lines_after < done.lines_before


# What needs the hours of a day, by its name in the JSON: the hourly series, the cells of utilization against power
# (an hour each), trends over hours and a namespace's daily pattern.
HOURLY = ("hours", "util_power", "trends")
# The sentence about the trend goes with the trends.
FINDINGS = "findings"


def without_hours(found: Row) -> Row:
    """An efficiency statement less what only hours can tell."""
    kept = {name: value for name, value in found.items() if name not in (*HOURLY, FINDINGS)}
    kept["by_namespace"] = [{k: v for k, v in row.items() if k != "pattern"} for row in found["by_namespace"]]
    kept["not_known"] = [n for n in found["not_known"] if n["figure"].partition("[")[0] not in HOURLY]
    return kept


def same_means(folded: Row, hourly: Row) -> None:
    """The one thing to be added is the sentence that names the folded days."""
    (note,) = (words for words in folded["assumptions"] if words not in hourly["assumptions"])
    assert "are folded into days" in note
    rest = [words for words in folded["assumptions"] if words != note]
    assert without_hours(folded | {"assumptions": rest}) == without_hours(hourly)
    said = hourly[FINDINGS]
    assert folded[FINDINGS] in (said, *([*said[:i], *said[i + 1 :]] for i in range(len(said))))


@pytest.mark.parametrize("seed", range(8))
def test_a_folded_fleet_has_the_same_bill_advice_and_means(tmp_path: Path, seed: int) -> None:
    lake = lake_of(tmp_path, random_fleet(seed))
    bill, means = audit(lake, usd_per_kwh="0.1"), analyze(lake)
    fold(lake)
    assert audit(lake, usd_per_kwh="0.1") == bill
    same_means(analyze(lake), means)


@pytest.mark.parametrize("seed", range(10, 14))
def test_a_window_within_folded_days_is_cut_from_the_samples_as_before(tmp_path: Path, seed: int) -> None:
    lake, window = lake_of(tmp_path, random_fleet(seed)), Scope(DAY + 7 * MS_PER_HOUR, DAY + 31 * MS_PER_HOUR + 1234)
    bill = audit(lake, scope=window)
    fold(lake)
    assert audit(lake, scope=window) == bill


def test_two_loads_that_take_turns_are_not_mixed_by_folding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of(tmp_path, two_loads())
    before, means = audit(lake), analyze(lake)
    assert run(["tidy", "--lake", str(lake.root), "--fold-older-than", "1d", "--keep-samples", "--quiet"]) == 0
    assert all(day.folded for day in Ledger(lake).manifest().days)
    assert audit(lake) == before
    same_means(analyze(lake), means)
    # 12 h at 0.95 busy: of the copies 0.85 are seen to use the memory, of the products a share of the peak; what
    # vector pipes may do beyond that was not recorded.
    assert before["bucket_h"]["stalled"] == 0
    assert before["bucket_h"]["underused"] == pytest.approx(24 * 0.05)
    assert before["bucket_h"]["productive"] > 12 * 0.85


def test_hours_of_the_day_are_known_after_folding(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, office_hours())
    before = audit(lake)
    fold(lake)
    assert audit(lake) == before
    night = next(r for r in before["recommendations"] if r["id"] == "schedule-off-hours")
    # 14 of 24 hours.
    assert "idle 14 hours of the day, 18:00 to 08:00 UTC above all: 58 % of its time" in night["why"]


def test_hours_of_the_day_within_a_window_are_known_after_folding(tmp_path: Path) -> None:
    lake, window = lake_of(tmp_path, office_hours()), Scope(DAY + 7 * MS_PER_HOUR, DAY + 8 * MS_PER_DAY + 1234)
    before = audit(lake, scope=window)
    fold(lake)
    assert audit(lake, scope=window) == before
    assert "schedule-off-hours" in {r["id"] for r in before["recommendations"]}

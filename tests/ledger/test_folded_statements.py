"""Do statements report what they lack where hours were folded into days, or the ledger of closed days was lost?"""

from __future__ import annotations

import shutil

import pytest

import gpuledger
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.errors import NothingFound
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.doubts import doubts
from gpuledger.ledger.read.window import scope_of
from gpuledger.ledger.tidying import Ages, tidy_lake
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import MS_PER_DAY, Unknown, day_start_ms

LIMITS = load_thresholds()
NOW_MS = day_start_ms("2026-01-24")  # after four days


@pytest.fixture
def lake(tmp_path):
    file, lake = tmp_path / "fleet.parquet", Lake(tmp_path / "lake")
    write_fleet(FleetSpec(gpus=4, days=4, step_s=900), file)
    import_files(lake, [file])
    post_lake(lake, LIMITS)
    return lake


def fold(lake, days, *, drop=False):
    """Fold all but the last `days` days."""
    tidy_lake(lake, LIMITS, Ages(NOW_MS, fold_ms=days * MS_PER_DAY, drop_ms=days * MS_PER_DAY if drop else None))


def test_folded_days_are_counted_where_hours_are_left_out(lake):
    before = efficiency_statement(lake)
    assert not any("folded" in words for words in (*before.assumptions, *(row.pattern for row in before.by_namespace)))
    fold(lake, 1)
    after = efficiency_statement(lake)
    assert after.fleet == before.fleet
    assert any("hours of 3 of 4 days (2026-01-20 to 2026-01-22)" in words for words in after.assumptions)
    for row in after.by_namespace:
        assert "the hours of" in row.pattern
        assert "folded" in row.pattern
    recent = efficiency_statement(lake, scope_of(lake, since="2026-01-23"))
    assert not any("folded" in words for words in (*recent.assumptions, *(row.pattern for row in recent.by_namespace)))


def test_without_any_hour_the_reason_is_the_folding(lake):
    fold(lake, 0)
    after = efficiency_statement(lake)
    assert {row.pattern.partition(";")[0] for row in after.by_namespace if row.name != "unallocated"} == {
        "pattern unknown: the hours of 4 days are folded"
    }
    for trend in after.trends:
        assert isinstance(trend.slope_per_day, Unknown)
        assert trend.slope_per_day.why.startswith("4 folded days are too few")


def test_a_capacity_plan_of_folded_days_is_refused_with_the_reason(lake):
    fold(lake, 0)
    with pytest.raises(NothingFound, match="the hours of all 4 days in the window are folded") as found:
        gpuledger.plan.capacity(lake=lake.root)
    assert "--fold-older-than" in found.value.hint


def test_closed_days_without_a_ledger_are_named(lake):
    fold(lake, 2, drop=True)
    assert doubts(lake) == ()
    shutil.rmtree(lake.ledger_dir)
    post_lake(lake, LIMITS)
    (words,) = doubts(lake)
    assert "days before 2026-01-22 are missing" in words
    assert words in gpuledger.open(lake.root).audit(price=2).assumptions
    assert doubts(lake, scope_of(lake, since="2026-01-23T12:00")) == ()

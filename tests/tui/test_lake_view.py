"""Does the view of a lake show its newest hour, and follow it when it grows?"""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost.fleets import B300, H100, POWER, UTIL, lake_of, mig, samples
from gpuledger.advice.asking import paying
from gpuledger.errors import InputError, LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.tui.drawing import charts, head, nothing
from gpuledger.tui.fleet import totals
from gpuledger.tui.lake_view import LakeView
from gpuledger.units import Unknown

DAY = dt.datetime(2026, 1, 20, tzinfo=dt.UTC)


def write(file: Path, minutes: range, util: int = 60, host: str = "n1") -> Path:
    """One A100 at work, a row each minute."""
    head = "timestamp,UUID,Hostname,modelName,namespace,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE"
    rows = [
        f"{(DAY + dt.timedelta(minutes=m)).isoformat()},GPU-{host},{host},NVIDIA A100-SXM4-40GB,serving,{util},150"
        for m in minutes
    ]
    file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def lake(tmp_path):
    made = Lake(tmp_path / "lake")
    import_files(made, [write(tmp_path / "a.csv", range(120))])
    return made


def view(lake: Lake, **more) -> LakeView:
    return LakeView(lake.root, paying(lake.root, price=Decimal(2)), **more)


def test_the_newest_hour(lake):
    fleet = view(lake).look()
    (gpu,) = fleet.gpus
    assert gpu.util_pct == pytest.approx(60)
    assert gpu.owners == ("serving",)
    assert gpu.usd_per_h == 2
    assert fleet.window_s == 3600
    assert gpu.recent[-2:] == pytest.approx((60, 60))
    assert isinstance(gpu.realized_pct, Unknown)
    assert isinstance(gpu.processes, Unknown)


def test_the_power_of_a_board_counts_once_whatever_slices_it_has(tmp_path):
    use = {UTIL: 90, POWER: 300}
    rows = [row for s in "123" for row in samples(range(60), "GPU-m", **mig(s, "2g.20gb"), **use)]
    lake = lake_of(tmp_path, rows + samples(range(60), "GPU-w", **use))
    fleet = view(lake).look()
    assert [gpu.power_w for gpu in fleet.gpus if gpu.state != "no data"] == pytest.approx([300] * 4)
    total = totals(fleet.gpus)
    assert total.power_w == pytest.approx(600)
    assert (total.gpus, total.rows, total.priced) == (2, 5, 2)
    assert "2 GPUs (5 rows)" in head(fleet, fleet.gpus).plain
    assert "1 of 2 GPUs (3 rows)" in head(fleet, fleet.gpus[:3]).plain
    assert "none of 2 GPUs" in nothing(fleet, "zebra")


@given(sizes=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=7).filter(lambda s: sum(s) <= 7))
@settings(max_examples=8, deadline=None)
def test_the_rows_of_a_board_come_to_its_price_however_it_is_sliced(sizes):
    """What no slice has is a row of its own: its dollars are known, what it does is not."""
    with tempfile.TemporaryDirectory() as folder:
        cut = [mig(str(i), f"{size}g.{10 * size}gb") for i, size in enumerate(sizes, 1)]
        rows = [row for one in cut for row in samples(range(60), "GPU-m", H100, **one, **{UTIL: 90, POWER: 300})]
        fleet = view(lake_of(Path(folder), rows)).look()
    last = fleet.gpus[-1]
    assert len(fleet.gpus) == len(sizes) + (sum(sizes) < 7)
    assert float(totals(fleet.gpus).usd_per_h) == pytest.approx(2, abs=1e-4)
    if sum(sizes) < 7:
        assert (last.name, last.state) == ("GPU-m rest", "no data")
        assert float(last.usd_per_h) == pytest.approx(2 * (1 - sum(sizes) / 7), abs=1e-4)
        assert all(isinstance(figure, Unknown) for figure in (last.util_pct, last.power_w, last.waste))
        assert "in none of its" in last.util_pct.why


def test_the_rest_of_a_board_without_a_price_is_unknown(tmp_path):
    lake = lake_of(tmp_path, samples(range(60), "GPU-m", "Model X", **mig("1", "2g.20gb"), **{UTIL: 90}))
    assert all(isinstance(gpu.usd_per_h, Unknown) for gpu in LakeView(lake.root, paying(lake.root)).look().gpus)


def test_the_waste_of_time_that_cannot_be_rated_is_unknown_with_its_reason(tmp_path):
    lake = lake_of(tmp_path, samples(range(60), "GPU-d", B300, **{UTIL: 100, POWER: 900}))
    fleet = view(lake).look()
    (gpu,) = fleet.gpus
    assert isinstance(gpu.waste, Unknown)
    assert "unrated" in gpu.waste.why
    assert totals(fleet.gpus).waste == gpu.waste
    assert "waste unknown" in head(fleet, fleet.gpus).plain


def test_it_follows_the_lake(lake, tmp_path):
    watched = view(lake)
    assert watched.changed()
    watched.look()
    assert not watched.changed()
    import_files(
        lake, [write(tmp_path / "b.csv", range(120, 240), util=90), write(tmp_path / "c.csv", range(230), host="n2")]
    )
    assert watched.changed()
    fleet = watched.look()
    assert [gpu.util_pct for gpu in fleet.gpus] == pytest.approx([90, 60])


def test_a_gpu_that_stopped_reporting_is_lost_and_still_costs(lake, tmp_path):
    import_files(lake, [write(tmp_path / "c.csv", range(600, 700), host="n2")])
    first, second = view(lake).look().gpus
    assert (first.host, first.state, second.host) == ("n1", "lost", "n2")
    assert isinstance(first.util_pct, Unknown)
    assert "2026-01-20 02:00" in first.util_pct.why
    assert (first.usd_per_h, first.owners) == (2, ("serving",))
    assert totals([first, second]).waste.unrated_usd_per_h >= 2
    assert [gpu.state for gpu in view(lake, window_ms=86_400_000).look().gpus if gpu.state == "lost"] == []


def test_a_gpu_that_was_not_seen_for_a_day_is_not_shown(lake, tmp_path):
    import_files(lake, [write(tmp_path / "c.csv", range(3000, 3060), host="n2")])
    assert [gpu.host for gpu in view(lake).look().gpus] == ["n2"]


def test_hours_without_samples_are_holes_in_the_history(lake, tmp_path):
    import_files(lake, [write(tmp_path / "b.csv", range(300, 360), util=90)])
    watched = view(lake)
    history = watched.history(watched.look().gpus[0].device)
    assert [p.util_pct for p in history.points] == pytest.approx([60, 60, 60, None, None, 90])
    assert list(charts(history, Unknown("not recorded"), 40))[3].endswith("███  █")


def test_no_lake_and_an_empty_one_say_what_to_do(tmp_path):
    with pytest.raises(LakeError, match="no lake") as caught:
        view(Lake(tmp_path / "none")).start()
    assert "gpuledger import" in caught.value.hint
    empty = Lake(tmp_path / "empty")
    with empty.locked():
        empty.commit([])
    with pytest.raises(InputError, match="no samples") as caught_too:
        view(empty).look()
    assert "gpuledger import" in caught_too.value.hint

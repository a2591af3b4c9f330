"""Do samples go only when asked, whole days at a time, and do their days stay shut?"""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import InputError, LakeError
from gpuledger.lake.importing import Import, import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.taking import Reading
from gpuledger.ledger import lines
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.tidying import Ages, drop_samples, ended_before, measure, plan_tidying, tidy_lake
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms, utc_day

DAYS = ("2026-01-20", "2026-01-21", "2026-01-22", "2026-01-23")
NOW_MS = day_start_ms("2026-01-24")
LIMITS = load_thresholds()
DAY = MS_PER_DAY


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two GPUs, four days, a sample each quarter of an hour."""
    file = tmp_path_factory.mktemp("fleet") / "fleet.parquet"
    write_fleet(FleetSpec(gpus=2, days=4, step_s=900), file)
    return file


@pytest.fixture
def lake(fleet, tmp_path):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [fleet])
    return lake


def all_lines(lake: Lake) -> pa.Table:
    ledger = Ledger(lake)
    return pa.concat_tables([ledger.read("lines", d.day) for d in ledger.manifest().days])


def samples_on_disk(lake: Lake) -> dict[str, str]:
    files = sorted((lake.root / "samples").rglob("*.parquet"))
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


@given(st.integers(day_start_ms("2026-01-19"), day_start_ms("2026-01-26")))
def test_a_day_has_ended_only_when_its_last_instant_has(now_ms):
    for day in DAYS:
        assert (day in ended_before(DAYS, now_ms)) == (now_ms >= day_start_ms(day) + DAY)


def test_folding_keeps_every_sum_and_all_samples(lake):
    post_lake(lake, LIMITS)
    before, samples = all_lines(lake), samples_on_disk(lake)
    done = tidy_lake(lake, LIMITS, Ages(NOW_MS, fold_ms=2 * DAY))
    assert done.days_folded == DAYS[:2]
    assert done.lines_after < done.lines_before
    after = all_lines(lake)
    for name in lines.names("sum"):
        assert sum(after[name].to_pylist()) == sum(before[name].to_pylist()), name
    grains = {(utc_day(h), g) for h, g in zip(after["hour_ms"].to_pylist(), after["grain_ms"].to_pylist(), strict=True)}
    assert grains == {(d, MS_PER_DAY if d in DAYS[:2] else MS_PER_HOUR) for d in DAYS}
    assert samples_on_disk(lake) == samples
    assert lake.manifest().closed_before == ""


def test_tidying_again_does_nothing(lake):
    ages = Ages(NOW_MS, fold_ms=DAY, drop_ms=2 * DAY)
    tidy_lake(lake, LIMITS, ages)
    books = [(d.day, d.generation, d.folded, d.samples_kept) for d in Ledger(lake).manifest().days]
    manifest = lake.manifest()
    again = tidy_lake(lake, LIMITS, ages)
    assert (again.days_folded, again.drop.days) == ((), ())
    assert [(d.day, d.generation, d.folded, d.samples_kept) for d in Ledger(lake).manifest().days] == books
    assert lake.manifest() == manifest


def test_dropping_closes_the_days_and_keeps_their_lines(lake, fleet):
    post_lake(lake, LIMITS)
    before = all_lines(lake)
    plan = plan_tidying(lake, Ages(NOW_MS, fold_ms=DAY, drop_ms=2 * DAY))
    done = tidy_lake(lake, LIMITS, Ages(NOW_MS, fold_ms=DAY, drop_ms=2 * DAY))
    assert plan.drop == done.drop
    assert done.drop.days == DAYS[:2]
    assert done.drop.rows == 2 * 2 * 96
    assert lake.manifest().days() == list(DAYS[2:])
    assert lake.manifest().closed_before == DAYS[2]
    assert sorted(p.name for p in (lake.root / "samples").iterdir()) == [f"day={d}" for d in DAYS[2:]]
    assert sum(all_lines(lake)["observed_ms"].to_pylist()) == sum(before["observed_ms"].to_pylist())
    kept = {d.day: d.samples_kept for d in Ledger(lake).manifest().days}
    assert kept == {d: d in DAYS[2:] for d in DAYS}
    again = import_files(lake, [fleet])
    assert again.rejects == {"day_is_closed": done.drop.rows}
    assert (again.rows_added, again.rows_duplicate) == (0, 2 * 2 * 96)
    assert "2026-01-20T00:00Z" in again.examples["day_is_closed"]


def test_closed_days_survive_new_rules(lake):
    """A changed limit posts again the days that have samples; the others keep the lines they have."""
    tidy_lake(lake, LIMITS, Ages(NOW_MS, fold_ms=DAY, drop_ms=2 * DAY))
    frozen = {d: Ledger(lake).read("lines", d) for d in DAYS[:2]}
    own = lake.root / "limits.toml"
    own.write_text("[classes]\nefficient_pif_from_ratio = 0.8\n")
    result = post_lake(lake, load_thresholds(own))
    assert result.days_posted == list(DAYS[2:])
    for day, table in frozen.items():
        assert Ledger(lake).read("lines", day).equals(table)


def test_late_rows_for_a_folded_day_are_posted_and_folded_again(lake, fleet, tmp_path):
    late = Lake(tmp_path / "late")
    import pyarrow.parquet as pq

    table = pq.read_table(fleet)
    first, rest = tmp_path / "first.parquet", tmp_path / "rest.parquet"
    pq.write_table(table.slice(0, 100), first)
    pq.write_table(table.slice(100), rest)
    import_files(late, [rest])
    tidy_lake(late, LIMITS, Ages(NOW_MS, fold_ms=DAY))
    import_files(late, [first])
    tidy_lake(late, LIMITS, Ages(NOW_MS, fold_ms=DAY))
    tidy_lake(lake, LIMITS, Ages(NOW_MS, fold_ms=DAY))
    assert all_lines(late).equals(all_lines(lake))


def test_stopped_between_the_books_and_the_samples(lake, monkeypatch):
    """The books say first that the samples go; stopped there, nothing is lost and the next run finishes."""
    ages = Ages(NOW_MS, fold_ms=DAY, drop_ms=2 * DAY)
    post_lake(lake, LIMITS)
    samples = samples_on_disk(lake)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gpuledger.ledger.tidying.drop_samples", stop)
        with pytest.raises(KeyboardInterrupt):
            tidy_lake(lake, LIMITS, ages)
    assert samples_on_disk(lake) == samples
    assert lake.manifest().closed_before == ""
    assert tidy_lake(lake, LIMITS, ages).drop.days == DAYS[:2]


def test_stopped_before_the_files_are_deleted(lake, monkeypatch):
    with lake.locked():
        with monkeypatch.context() as patched:
            patched.setattr(Lake, "sweep", lambda _self: (_ for _ in ()).throw(OSError(5, "Input/output error")))
            with pytest.raises(LakeError, match="delete old samples"):
                drop_samples(lake, DAYS[:1])
        assert lake.manifest().days() == list(DAYS[1:])
        assert lake.manifest().closed_before == DAYS[1]


def test_an_import_under_way_when_days_close_is_refused(lake, fleet):
    before = lake.manifest()
    with lake.staging() as folder:
        job = Import(lake, folder, Reading(), lambda _stage, _rows: None)
        job.take([fleet])
        tidy_lake(lake, LIMITS, Ages(NOW_MS, fold_ms=DAY, drop_ms=2 * DAY))
        with lake.locked(), pytest.raises(LakeError, match="closed while this import ran"):
            job.finish()
    assert lake.manifest().days() == list(DAYS[2:])
    assert before.closed_before == ""


def test_unposted_days_keep_their_samples(lake):
    """Without posting there is nothing to stand for the samples."""
    assert plan_tidying(lake, Ages(NOW_MS, fold_ms=DAY)).drop.days == ()
    assert measure(lake, ()).rows == 0
    assert samples_on_disk(lake)


def test_dropping_before_folding_is_refused():
    with pytest.raises(InputError, match="before their hour lines are folded"):
        Ages(NOW_MS, fold_ms=2 * DAY, drop_ms=DAY)


def test_no_lake(tmp_path):
    with pytest.raises(LakeError, match="no lake"):
        plan_tidying(Lake(tmp_path / "none"), Ages(NOW_MS, DAY))

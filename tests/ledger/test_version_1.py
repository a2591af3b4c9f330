"""Are ledgers of version 1 read where their samples are gone, and posted again where they are kept?"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import samples as make
from written import make_version_1, posted

from gpuledger.advice.build import audit_statement
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.cost.build import cost_statement
from gpuledger.cost.statement import BUCKETS
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.rollup import read_accounts
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import LEDGER_VERSION, Ledger
from gpuledger.ledger.tidying import drop_samples
from gpuledger.units import GIB, MS_PER_HOUR, Unknown

MIN = 60_000
H100 = make.MODELS[0]
DAY = "2026-01-20"


def two_hours() -> list[dict]:
    """Read every minute: 60 minutes of work at 90 % and 600 W, then 60 minutes idle at 70 W with memory held."""
    work = {"gpu_util_ratio": 0.9, "engine_ratio": 0.9, "tensor_ratio": 0.5, "fp32_ratio": 0.01, "dram_ratio": 0.2,
            "sm_clock_mhz": 1500.0, "power_w": 600.0}  # fmt: skip
    rest = dict.fromkeys(work, 0.0) | {"sm_clock_mhz": 345.0, "power_w": 70.0}
    given = {"gpu_uuid": "G", "gpu_model": H100, "namespace": "n", "workload": "train", "fb_used_bytes": 40 * GIB,
             "fb_free_bytes": 40 * GIB}  # fmt: skip
    return [given | (work if i < 60 else rest) | {"at_ms": make.DAY + i * MIN} for i in range(120)]


@pytest.fixture
def old(tmp_path: Path) -> Lake:
    """Folded by version 1, its samples deleted."""
    lake = posted(tmp_path, two_hours())
    make_version_1(lake, folded=True, samples_kept=False)
    with lake.locked():
        drop_samples(lake, [DAY])
    return lake


def test_the_fixture_is_what_version_1_wrote(old: Lake) -> None:
    (file,) = Ledger(old).files("lines")
    names = pq.read_schema(file).names
    assert {"board_mw", "engine_known_ms", "util_min_ppm", "pif_h00"} <= set(names)
    assert {"state", "limit_mw", "idle_unknown_ms", "waits", "throttle_ms"}.isdisjoint(names)
    assert Ledger(old).manifest().version == 1 < LEDGER_VERSION


def test_accounts_have_no_state_and_keep_the_boards_power(old: Lake) -> None:
    found = read_accounts(Books(old, Scope()))
    assert (found.labels["state"], found.sums["state"].tolist()) == ([None], [-1])
    assert found.limit_mw.tolist() == [700_000]
    assert found.sums["samples"].tolist() == [120]
    assert found.sums["idle_held_ms"].tolist() == [60 * MIN]


def test_the_efficiency_statement_reads_them(old: Lake, tmp_path: Path) -> None:
    """Every mean that needs no state is the one of the same samples posted today."""
    (tmp_path / "new").mkdir()
    new = posted(tmp_path / "new", two_hours())
    was, now = (efficiency_statement(lake) for lake in (old, new))
    assert (was.samples, was.gpus, was.start_ms, was.end_ms) == (now.samples, now.gpus, now.start_ms, now.end_ms)
    for name in ("gpu_util_pct", "pif", "rfu_power_pct", "power_w", "energy_kwh", "observed_h", "memory_pct"):
        assert getattr(was.fleet, name) == pytest.approx(getattr(now.fleet, name)), name
    assert was.fleet.gpu_util_pct == pytest.approx(45)
    before, after = was.fleet.rfu_counters_pct, now.fleet.rfu_counters_pct
    assert not isinstance(before, Unknown)
    assert not isinstance(after, Unknown)
    # The mean of work and rest cannot be taken apart again: the range differs, the middle hardly.
    assert before.low <= after.middle <= before.high


def test_the_audit_reads_them_and_its_buckets_add_up(old: Lake) -> None:
    """120 paid minutes: 60 idle with memory held; of the 60 at 90 % the 6 without work are underused."""
    cost = cost_statement(old, price=2)
    times = cost.times.each()
    assert sum(times.values()) == cost.times.paid_ms == 2 * MS_PER_HOUR
    assert set(times) == set(BUCKETS)
    assert (times["idle_held"], times["idle"], times["underused"]) == (60 * MIN, 0, 6 * MIN)
    assert 0 < times["productive"] < 54 * MIN
    assert times["productive"] + times["stalled"] + times["unrated"] == 54 * MIN
    audit = audit_statement(old, price=2)
    assert audit.cost.times == cost.times
    assert audit.cases


def test_the_audit_says_what_such_lines_cannot_tell(old: Lake, tmp_path: Path) -> None:
    said = "2.0 h were posted by version 1 of the ledger, by hour averages, and their samples are gone"
    assert any(text.startswith(said) for text in cost_statement(old, price=2).assumptions)
    (tmp_path / "new").mkdir()
    new = posted(tmp_path / "new", two_hours())
    assert not any("version 1" in text for text in cost_statement(new, price=2).assumptions)


def test_a_window_over_them_is_cut_in_proportion(old: Lake) -> None:
    """Half of two hours: half of the idle time, wherever it was."""
    books = Books(old, Scope(until_ms=make.DAY + 60 * MIN))
    found = read_accounts(books)
    assert books.cut_by_share
    assert found.sums["observed_ms"].tolist() == [60 * MIN]
    assert found.sums["idle_held_ms"].tolist() == [30 * MIN]


def test_as_a_table_they_have_todays_columns(old: Lake) -> None:
    (line,) = Ledger(old).read("lines", DAY).to_pylist()
    assert (line["state"], line["limit_mw"], line["waits"], line["samples"]) == (None, 700_000, 0, 120)


def test_with_samples_kept_they_are_posted_again(tmp_path: Path, limits: Thresholds) -> None:
    lake = posted(tmp_path, two_hours())
    now = Ledger(lake).read("lines", DAY)
    make_version_1(lake)
    assert "state" not in pq.read_schema(Ledger(lake).files("lines")[0]).names
    assert post_lake(lake, limits).days_posted == [DAY]
    assert Ledger(lake).manifest().version == LEDGER_VERSION
    assert Ledger(lake).read("lines", DAY).equals(now)
    assert set(now["state"].to_pylist()) == {"matrix", "idle"}

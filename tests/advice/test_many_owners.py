"""Is what is worked out for many owners at once the same as for each alone, and are limits read once for all?"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuledger
from gpuledger import settings as own_settings
from gpuledger.advice.cases import add_up
from gpuledger.advice.limits import load_limits
from gpuledger.advice.stretches import read_stretches
from gpuledger.advice.totals import added
from gpuledger.catalog.gpus import get_gpu
from gpuledger.cost.money import usd, usd_of
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.behavior import classify, classify_all
from gpuledger.physics.signals import from_sums, signals_of

START_MS = 1_768_867_200_000  # 2026-01-20
amounts = st.decimals(-(10**9), 10**9, places=12)


def books(folder, owners, samples=12):
    """One GPU that many owners share one after the other, each with a level of work of its own."""
    rows = range(owners * samples)
    table = {
        "at_ms": [START_MS + 10_000 * i for i in rows],
        "gpu_uuid": ["GPU-1" for _ in rows],
        "gpu_model": ["NVIDIA A100-SXM4-80GB" for _ in rows],
        "namespace": [f"ns-{i // samples:03d}" for i in rows],
        "gpu_util_ratio": [(i // samples * 37 % 101) / 100 for i in rows],
        "power_w": [60.0 + i // samples * 53 % 340 for i in rows],
    }
    pq.write_table(pa.table(table), folder / "a.parquet")
    import_files(Lake(folder / "lake"), [folder / "a.parquet"])
    return folder / "lake"


def test_limits_are_read_as_often_for_many_owners_as_for_few(tmp_path_factory, monkeypatch):
    find, looked = own_settings._find, []
    monkeypatch.setattr(own_settings, "_find", lambda: looked.append(1) or find())
    counts = []
    for owners in (3, 60):
        lake = gpuledger.open(books(tmp_path_factory.mktemp("books"), owners))
        lake.analyze()
        looked.clear()
        assert len(lake.audit(price=2).statement.cost.by_namespace) == owners
        counts.append(len(looked))
    assert counts[0] == counts[1]


def test_many_stretches_at_once_are_judged_as_each_alone(tmp_path):
    lake = books(tmp_path, 101)
    gpuledger.open(lake).analyze()
    sums = [add_up([s.sums]) for s in read_stretches(Lake(lake), Scope(), load_limits())]
    gpus = [get_gpu("a100-sxm4-80gb") if i % 3 else None for i in range(len(sums))]
    together, alone = signals_of(sums, gpus), [from_sums(*one) for one in zip(sums, gpus, strict=True)]
    assert len(together) >= 101
    assert together == alone
    assert classify_all(together) == [classify(one) for one in alone]
    assert len({one.klass for one in classify_all(together)}) > 1


@given(st.lists(st.tuples(amounts, amounts.map(Fraction)), max_size=20))
@settings(max_examples=50)
def test_products_add_up_exactly(parts):
    assert added(parts) == sum((Fraction(share) * of for share, of in parts), Fraction(0))


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**20), st.integers(1, 1000))
def test_dollars_are_rounded_to_the_nearest_unit_and_ties_to_even(top, bottom, times):
    expected = Decimal(round(Fraction(top, bottom) * 10**12)).scaleb(-12)
    assert usd(Fraction(top, bottom)) == usd_of(top * times, bottom * times) == expected
    half = Fraction(2 * (top % 1000) + 1, 2 * 10**12)
    assert usd(half) == Decimal(round(half * 10**12)).scaleb(-12)

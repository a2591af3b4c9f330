"""Do lines add up to the same accounts, whatever order, pieces and days they come in?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.rollup import read_accounts
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.states import State
from gpuledger.units import MS_PER_HOUR

Make = Callable[..., Any]


def test_a_devices_latest_host_and_its_slow_days(books: Callable[..., Lake], line: Make) -> None:
    slow = {"util": 0.9, "pif": 0.3, "bottleneck_ms": MS_PER_HOUR}
    fast = {"util": 0.9, "pif": 0.9, "bottleneck_ms": MS_PER_HOUR // 2}
    given = [(0, "old", slow), (25, "new", slow), (26, None, slow), (50, None, fast)]
    lake = books(*(line(hour, host=host, **how) for hour, host, how in given))
    days = read_accounts(Books(lake, Scope())).days
    assert (days.host, days.active, days.bottlenecked) == (["new"], [3], [2])


def test_accounts_do_not_depend_on_the_order_of_lines(books: Callable[..., Lake], line: Make) -> None:
    given = [
        line(h, g, util=0.5, pif=0.4, namespace=n) for h in (0, 30) for g in ("GPU-b", "GPU-a") for n in ("n", None)
    ]
    first, last = (read_accounts(Books(books(*rows), Scope())) for rows in (given, given[::-1]))
    assert first.labels == last.labels
    assert first.labels["gpu_uuid"] == ["GPU-a", "GPU-a", "GPU-b", "GPU-b"]
    assert first.labels["namespace"] == [None, "n", None, "n"]
    assert first.device.tolist() == first.board.tolist() == [0, 0, 1, 1]
    assert all((first.sums[c] == last.sums[c]).all() for c in first.sums)
    assert first.sums["samples"].tolist() == [120, 120, 120, 120]


def test_hours_of_a_day_are_made_one(books: Callable[..., Lake], line: Make) -> None:
    lake = books(
        *(line(h, g, util=0.5, slice_ppm=s) for h in range(4) for g, s in (("GPU-a", None), ("GPU-b", 500_000)))
    )
    reading = Books(lake, Scope(since_ms=line(1)["hour_ms"]))  # not at midnight: from hours
    found = read_accounts(reading)
    assert found.sums["samples"].tolist() == [180, 180]
    assert np.isnan(found.slice_ppm[0])
    assert found.slice_ppm[1] == 500_000
    assert (found.last_ms - found.first_ms).tolist() == [3 * MS_PER_HOUR] * 2


def test_a_board_and_its_instances_are_devices_of_their_own(
    state: Callable[..., EfficiencyStatement], line: Make
) -> None:
    parts = [line(0, "GPU-a", util=u, gpu_instance_id=i, slice_ppm=142_857) for i, u in (("2", 0.2), ("1", 0.1))]
    found = state(*parts, line(0, "GPU-b", util=0.3))
    assert [(g.gpu_uuid, g.gpu_instance_id, g.means.gpu_util_pct) for g in found.per_gpu] == [
        ("GPU-a", "1", pytest.approx(10)), ("GPU-a", "2", pytest.approx(20)), ("GPU-b", None, pytest.approx(30)),
    ]  # fmt: skip
    assert found.gpus == 2


@pytest.mark.parametrize("owner", ["w/1", "n/w/1", "r"])
def test_an_owner_is_a_workload_a_run_or_both_with_a_namespace(
    books: Callable[..., Lake], line: Make, owner: str
) -> None:
    mine = line(0, "GPU-a", util=0.5, namespace="n", workload="w/1", run_id="r")
    other = line(1, "GPU-a", util=0.5, namespace="n/w", workload="2", run_id=None)
    found = read_accounts(Books(books(mine, other), Scope(owners=(owner,))))
    assert found.sums["samples"].tolist() == [60]


def test_time_without_an_owner_can_be_asked_for(state: Callable[..., EfficiencyStatement], line: Make) -> None:
    found = state(line(0, util=0.5, namespace=None), line(1, util=0.5), scope=Scope(namespaces=("unallocated",)))
    assert found.samples == 60
    # The other owner's hour was observed, only not asked for.
    assert to_json(found)["per_gpu"][0]["unobserved_h"] == 0


def test_more_than_a_whole_number_holds_is_added_exactly(books: Callable[..., Lake], line: Make) -> None:
    most = (1 << 62) + 1
    lake = books(*(line(24 * d, util=0.5, tensor_ms=1, tensor_ppm_mhz_ms=most) for d in range(5)))
    assert read_accounts(Books(lake, Scope())).sums["matrix"].tolist() == [float(5 * most)]


def test_states_power_limits_and_slices_are_accounts_of_their_own(books: Callable[..., Lake], line: Make) -> None:
    rows = [line(0, util=0.5), line(1, util=0.5, state="matrix"), line(2, util=0.5, limit_mw=400_000)]
    rows += [line(24, util=0.5), line(25, util=0.5, slice_ppm=500_000)]
    found = read_accounts(Books(books(*rows), Scope()))
    assert found.labels["state"] == ["matrix", *["plain"] * 3]
    assert found.sums["state"].tolist() == [State.MATRIX, *[State.PLAIN] * 3]
    assert found.limit_mw.tolist() == [700_000, 400_000, 700_000, 700_000]
    assert found.sums["samples"].tolist() == [60, 60, 120, 60]
    assert set(found.device.tolist()) == {0}


def test_time_between_a_devices_samples_is_unobserved_whoever_is_asked_for(
    books: Callable[..., Lake], line: Make
) -> None:
    """Three hours seen of six; half an hour of the last of them."""
    half = {"observed_ms": MS_PER_HOUR // 2, "last_ms": line(5)["hour_ms"] + MS_PER_HOUR // 2}
    lake = books(line(0, util=0.5), line(2, util=0.5, namespace="n2"), line(5, util=0.5, **half))
    for scope in (Scope(), Scope(namespaces=("n2",))):
        assert read_accounts(Books(lake, scope)).unobserved_ms == [3 * MS_PER_HOUR]

"""Does a window hold its own time: exactly where samples are kept, in proportion where they are gone?"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import samples as make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written import HOUR, line, posted, write_books, write_samples

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.errors import InputError, LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.posting import post
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.spans import Clip
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.tidying import Ages, tidy_lake
from gpuledger.units import GIB

DAY_MS = make.DAY_MS
MIN = 60_000
SUMS = lines.names("sum")
LABELS = ("gpu_uuid", "gpu_instance_id", "namespace", "workload", "state")
Sums = dict[tuple[str | None, ...], dict[str, int]]


def read(lake: Lake, **scope: Any) -> tuple[Sums, bool]:
    """Every sum in the window by device, owner and state, and whether some of it was cut by share."""
    books = Books(lake, Scope(**scope))
    out: Sums = defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for _, rows in books.blocks(LABELS, SUMS):
        keys = [books.names[name].text(rows[name]) for name in LABELS]
        for i, key in enumerate(zip(*keys, strict=True)):
            for name in SUMS:
                out[key][name] += int(rows[name][i])
    return {k: v for k, v in out.items() if any(v.values())}, books.cut_by_share


def added(table: pa.Table) -> Sums:
    out: Sums = defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for row in table.to_pylist():
        for name in SUMS:
            out[tuple(row[n] for n in LABELS)][name] += row[name]
    return {k: v for k, v in out.items() if any(v.values())}


def total(found: Sums) -> dict[str, int]:
    return {name: sum(v[name] for v in found.values()) for name in SUMS}


def tidied(lake: Lake, limits: Thresholds, *, drop: bool) -> None:
    """Fold all days there are, and drop their samples if asked to."""
    ages = Ages(make.DAY + 30 * DAY_MS, DAY_MS, DAY_MS if drop else None)
    done = tidy_lake(lake, limits, ages)
    assert done.days_folded


def twenty_minutes() -> list[dict]:
    """An H100 read every 20 minutes from 00:20 on: 100, 200, 300, 400 and 500 W at 20, 40, 60, 80 and 100 %."""
    return [
        {"at_ms": make.DAY + (20 + 20 * i) * MIN, "gpu_uuid": "G", "gpu_model": make.MODELS[0], "namespace": "n",
         "gpu_util_ratio": (i + 1) / 5, "power_w": 100.0 * (i + 1), "fb_used_bytes": GIB}
        for i in range(5)
    ]  # fmt: skip


WINDOW = {"since_ms": make.DAY + 30 * MIN, "until_ms": make.DAY + 90 * MIN}


@pytest.mark.parametrize("folded", [False, True])
def test_half_past_to_half_past_by_pencil(tmp_path: Path, limits: Thresholds, folded: bool) -> None:
    """10 min of the first sample, 20 of the second and third, 10 of the fourth; three of them begin in the window."""
    lake = posted(tmp_path, twenty_minutes())
    if folded:
        tidied(lake, limits, drop=False)
    found, by_share = read(lake, **WINDOW)
    ((key, sums),) = found.items()
    assert key == ("G", None, "n", None, "plain")
    assert not by_share
    assert (sums["observed_ms"], sums["samples"]) == (60 * MIN, 3)
    assert sums["util_ppm_ms"] == (200_000 * 10 + 400_000 * 20 + 600_000 * 20 + 800_000 * 10) * MIN
    assert sums["power_uj"] == (100_000 * 10 + 200_000 * 20 + 300_000 * 20 + 400_000 * 10) * MIN
    assert sums["energy_mj"] == sums["power_uj"] // 1000
    assert sums["phase_underutilized_ms"] == 50 * MIN
    assert sums["phase_productive_ms"] == 10 * MIN


def test_without_samples_a_day_is_cut_in_proportion_and_says_so(tmp_path: Path, limits: Thresholds) -> None:
    """100 minutes from 00:20 to 02:00 in one line: the hour from 00:30 on is 60 % of every sum."""
    lake = posted(tmp_path, twenty_minutes())
    tidied(lake, limits, drop=True)
    whole, by_share = read(lake)
    assert not by_share
    found, by_share = read(lake, **WINDOW)
    assert by_share
    for name, value in total(whole).items():
        # From the 10th to the 70th of 100 minutes.
        assert total(found)[name] == value * 70 // 100 - value * 10 // 100, name
    assert total(found)["observed_ms"] == 60 * MIN


@given(series=make.series(max_devices=2, max_samples=8, shared=True), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_window_is_what_its_samples_make(
    tmp_path_factory: pytest.TempPathFactory, limits: Thresholds, series: list[dict], data: st.DataObject
) -> None:
    """Of hour lines, of folded days, and of days with hours among them after a late import: the same digits."""
    folder = tmp_path_factory.mktemp("window")
    lake = posted(folder, series)
    at = sorted({s["at_ms"] for s in series})
    instant = st.sampled_from(at) | st.integers(at[0], at[-1] + 3 * HOUR)
    since, until = sorted(data.draw(st.tuples(instant, instant)))
    scope = {"since_ms": since, "until_ms": until}
    clip = Clip(since, until)
    expected = added(post(make.table(series), limits, clip=clip).lines)
    assert read(lake, **scope) == (expected, False)
    tidied(lake, limits, drop=False)
    assert read(lake, **scope) == (expected, False)
    late = [s | {"gpu_uuid": "GPU-late"} for s in series[:4]]
    import_files(lake, [write_samples(folder, "late", late)])
    post_lake(lake, limits)
    both = added(post(make.table(series + late), limits, clip=clip).lines)
    assert read(lake, **scope) == (both, False)


@given(series=make.series(max_devices=2, max_samples=8, shared=True), data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_adjoining_windows_add_up_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, limits: Thresholds, series: list[dict], data: st.DataObject
) -> None:
    lake = posted(tmp_path_factory.mktemp("adjoining"), series)
    at = sorted({s["at_ms"] for s in series})
    cut = data.draw(st.sampled_from(at) | st.integers(at[0], at[-1] + HOUR))
    rows = len(series)  # energy from power rounds once for each sample that is cut
    for dropped in (False, True):
        if dropped:
            tidied(lake, limits, drop=True)
        whole = total(read(lake)[0])
        parts = [total(read(lake, **scope)[0]) for scope in ({"until_ms": cut}, {"since_ms": cut})]
        both = {name: parts[0][name] + parts[1][name] for name in SUMS}
        assert abs(both.pop("energy_mj") - whole.pop("energy_mj")) <= (0 if dropped else rows)
        assert both == whole


def test_parts_of_a_sum_that_a_float_cannot_hold_add_up(tmp_path: Path) -> None:
    most = (1 << 62) + 12_345
    lake = write_books(tmp_path, [line(0, util=0.5, tensor_ms=HOUR, tensor_ppm_mhz_ms=most)])
    cut = line(0)["hour_ms"] + 1_234_567
    parts = [read(lake, **scope) for scope in ({"until_ms": cut}, {"since_ms": cut})]
    assert all(by_share for _, by_share in parts)
    assert sum(total(found)["tensor_ppm_mhz_ms"] for found, _ in parts) == most
    assert total(parts[0][0])["tensor_ppm_mhz_ms"] == most * 1_234_567 // HOUR


def test_only_the_owners_asked_for(tmp_path: Path) -> None:
    rows = [
        {"at_ms": make.DAY + i * MIN, "gpu_uuid": "G", "gpu_util_ratio": 0.5, "namespace": n, "workload": w}
        for i, (n, w) in enumerate([("a", "x"), ("b", "x"), ("b", "y"), (None, None)])
    ]
    lake = posted(tmp_path, rows)

    def owners(**scope: Any) -> set[tuple[str | None, str | None]]:
        return {key[2:4] for key in read(lake, **scope)[0]}

    assert len(owners()) == 4
    assert owners(namespaces=("b",)) == {("b", "x"), ("b", "y")}
    assert owners(owners=("x",)) == {("a", "x"), ("b", "x")}
    assert owners(owners=("b/x",)) == {("b", "x")}
    assert owners(namespaces=("unallocated",)) == {(None, None)}
    assert owners(namespaces=("b",), since_ms=make.DAY + 2 * MIN) == {("b", "y")}
    with pytest.raises(InputError, match="no data"):
        raise Books(lake, Scope(namespaces=("c",))).nothing_found()


def test_others_stay_where_all_are_wanted_and_are_marked(tmp_path: Path) -> None:
    lake = write_books(tmp_path, [line(0, util=0.5), line(1, util=0.5, namespace="n2")])
    books = Books(lake, Scope(namespaces=("n2",)))
    rows = [r for _, r in books.blocks(("namespace",), ("samples",), owners=False)]
    assert np.concatenate([r["wanted"] for r in rows]).sum() == 1
    assert sum(len(r["wanted"]) for r in rows) == 2


def test_a_window_without_a_day_says_what_there_is(tmp_path: Path) -> None:
    lake = write_books(tmp_path, [line(0, util=0.5)])
    with pytest.raises(InputError, match="no data matches") as caught:
        Books(lake, Scope(since_ms=make.DAY + 10 * DAY_MS))
    assert "2026-01-20" in str(caught.value.hint)


def test_a_file_that_is_gone_gives_a_way_out(tmp_path: Path, limits: Thresholds) -> None:
    """Where samples were deleted the ledger is the only copy: it must never be advised away."""
    lake = posted(tmp_path, twenty_minutes())
    kept = Ledger(lake).files("days")[0]
    Path(kept).rename(f"{kept}.away")
    with pytest.raises(LakeError) as caught:
        read(lake)
    assert "delete the ledger folder" in str(caught.value.hint)
    Path(f"{kept}.away").rename(kept)
    tidied(lake, limits, drop=True)
    Path(Ledger(lake).files("days")[0]).unlink()
    with pytest.raises(LakeError) as caught:
        read(lake)
    assert "backup" in str(caught.value.hint)
    assert "delete the ledger folder" not in str(caught.value.hint)

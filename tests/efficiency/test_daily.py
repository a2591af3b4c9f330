"""Is a statement the same to the last digit, read from days or from hours?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import to_json
from gpuledger.lake.layout import Lake
from gpuledger.ledger import fleet_hours, gpu_hours, lines, spells
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.owners import By
from gpuledger.ledger.read.scope import NO_NAMESPACE, UNALLOCATED, Scope
from gpuledger.ledger.store import GPU_HOURS, HOURS, DayWriter, Ledger, PostedDay
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms, utc_day

START = day_start_ms("2026-01-20")


def forget_days(lake: Lake) -> None:
    """Make the books look like those of an older version."""
    ledger = Ledger(lake)
    with lake.locked():
        for day in ledger.manifest().days:
            ledger.commit(msgspec.structs.replace(day, daily=False, hourly=False, by_gpu=False))


@pytest.fixture
def lake(books: Callable[..., Lake], line: Callable[..., Any]) -> Lake:
    rows = []
    for hour in range(30):
        for gpu in ("GPU-a", "GPU-b"):
            owner = {"namespace": "n1" if hour % 3 else "n2", "host": "h1" if hour < 5 else "h2"}
            counted = {"tensor_ms": MS_PER_HOUR, "tensor_ppm_ms": hour * 10**9, "tensor_ppm_mhz_ms": hour * 10**12}
            apart = {"hmma_ms": MS_PER_HOUR, "hmma_ppm_mhz_ms": 7 * 10**12} if hour % 2 else {}
            rows.append(line(hour, gpu, util=hour / 30, pif=0.5, **owner, **counted, **apart))
    return books(*rows)


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"since_ms": START + MS_PER_DAY},
        {"until_ms": START + MS_PER_DAY},
        {"since_ms": START + 5 * MS_PER_HOUR, "until_ms": START + 26 * MS_PER_HOUR},
        {"since_ms": START + MS_PER_DAY + MS_PER_HOUR // 2},
        {"namespaces": ("n2",)},
    ],
    ids=str,
)
def test_days_and_hours_give_the_same_statement(lake: Lake, window: dict[str, Any]) -> None:
    by_day = to_json(efficiency_statement(lake, Scope(**window)))
    forget_days(lake)
    assert to_json(efficiency_statement(lake, Scope(**window))) == by_day


@pytest.mark.parametrize("by", list(By))
@pytest.mark.parametrize(
    "scope",
    [
        {},
        {"namespaces": ("n1",)},
        {"namespaces": (NO_NAMESPACE,)},
        {"namespaces": (UNALLOCATED, "n1")},
        {"owners": ("7",)},
    ],
    ids=str,
)
def test_owners_are_the_same_read_from_days_or_from_hours(
    books: Callable[..., Lake], line: Callable[..., Any], by: By, scope: dict[str, Any]
) -> None:
    """The hours of the fleet do not have every label, so a scope that asks for more is read from lines."""
    owners = [
        {"namespace": "n1", "team": "red", "pod": "p1"},
        {"namespace": "n1", "user": "ann"},
        {"namespace": None, "user": "ann", "account": "bio", "run_id": "7"},
        {"namespace": None},
    ]
    lake = books(*(line(h, g, util=0.1 * h, pif=0.5, **owners[h % 4]) for h in range(9) for g in ("GPU-a", "GPU-b")))
    by_day = efficiency_statement(lake, Scope(**scope), by=by)
    samples = {"n1": 5, NO_NAMESPACE: 2, UNALLOCATED: 2}
    wanted = 2 if "owners" in scope else sum(samples[n] for n in scope.get("namespaces", samples))
    assert sum(h.samples for h in by_day.hours) == 2 * 60 * wanted
    assert sum(row.means.observed_h for row in by_day.by_owner) == pytest.approx(2 * wanted)
    forget_days(lake)
    assert to_json(efficiency_statement(lake, Scope(**scope), by=by)) == to_json(by_day)


def test_the_hours_of_the_fleet_are_read_from_their_own_table(lake: Lake) -> None:
    """And add up to the lines: to see that it is they that are read, one is changed."""
    before = efficiency_statement(lake).hours
    assert [h.samples for h in before] == [h.samples for h in efficiency_statement(lake, Scope(clusters=("c1",))).hours]
    file = Ledger(lake).files_of(Ledger(lake).manifest().days[0], HOURS)[0]
    table = pq.read_table(file)
    assert table.num_rows == 24
    doubled = table.set_column(table.column_names.index("samples"), "samples", pc.multiply(table["samples"], 2))
    pq.write_table(doubled, file)
    assert [h.samples for h in efficiency_statement(lake).hours][:24] == [2 * h.samples for h in before[:24]]


def test_the_hours_of_gpus_are_read_from_their_own_table(lake: Lake) -> None:
    """Unless owners are asked for: the table does not tell them apart."""
    whole, of_cluster = efficiency_statement(lake), efficiency_statement(lake, Scope(clusters=("c1",)))
    assert whole.util_power == of_cluster.util_power
    file = Ledger(lake).files_of(Ledger(lake).manifest().days[0], GPU_HOURS)[0]
    table = pq.read_table(file)
    assert table.num_rows == 48
    halved = table.set_column(table.column_names.index("pif_uj"), "pif_uj", pc.divide(table["pif_uj"], 2))
    pq.write_table(halved, file)
    assert efficiency_statement(lake).util_power != whole.util_power
    assert efficiency_statement(lake, Scope(clusters=("c1",))).util_power == whole.util_power


ONE_LINE = st.tuples(
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, "1"]),
    st.integers(0, 3),
    st.sampled_from([None, 300_000, 700_000]),
    st.integers(0, 2**40),
)


@given(st.lists(ONE_LINE, max_size=30))
def test_hours_of_gpus_hold_the_sums_of_their_lines_and_the_highest_limit(rows: list[Any]) -> None:
    made = [
        {"gpu_uuid": uuid, "gpu_instance_id": slice_, "hour_ms": h * MS_PER_HOUR, "grain_ms": MS_PER_HOUR}
        | {"limit_mw": limit, "observed_ms": x}
        for uuid, slice_, h, limit, x in rows
    ]
    zero = {f.name: 0 for f in lines.coded_schema() if not f.nullable}
    table = lines.coded(pa.Table.from_pylist([zero | row for row in made], schema=lines.arrow_schema()))
    wanted: dict[tuple[Any, ...], tuple[int | None, int]] = {}
    for uuid, slice_, h, limit, x in rows:
        before, total = wanted.get((uuid, slice_, h), (None, 0))
        limits = [one for one in (before, limit) if one is not None]
        wanted[uuid, slice_, h] = (max(limits, default=None), total + x)
    found = gpu_hours.of_lines(table).to_pylist()
    keys = [(r["gpu_uuid"], r["gpu_instance_id"], r["hour_ms"] // MS_PER_HOUR) for r in found]
    assert len(keys) == len(wanted)
    assert dict(zip(keys, ((r["limit_mw"], r["observed_ms"]) for r in found), strict=True)) == wanted


def test_sums_that_pass_two_to_the_63_stay_apart() -> None:
    row = lines.coded_schema().empty_table()
    one = fleet_hours.of_lines(row)
    big = {name: [2**62, 2**62] if name == "matrix" else [1, 1] for name in fleet_hours.SUMS}
    keys = {name: [0, 0] for name in fleet_hours.TIMES}
    labels = {name: pa.array(["a", "a"]).dictionary_encode() for name in fleet_hours.LABELS}
    table = pa.table(keys | labels | big).select(one.column_names)
    assert fleet_hours.together(table)["matrix"].to_pylist() == [2**62, 2**62]
    small = table.set_column(table.column_names.index("matrix"), "matrix", pa.array([2**60, 2**60]))
    assert fleet_hours.together(small)["matrix"].to_pylist() == [2**61]


def periods(lake: Lake, scope: Scope) -> dict[int, int]:
    """How many hours the rows of each day tell apart, as accounts read them."""
    return {day: len(set(rows["hour_ms"].tolist())) for day, rows in Books(lake, scope).blocks((), ())}


def test_a_window_inside_a_day_is_read_from_hours(lake: Lake) -> None:
    inside = efficiency_statement(lake, Scope(START + 2 * MS_PER_HOUR, START + 4 * MS_PER_HOUR))
    assert inside.samples == 4 * 60
    assert periods(lake, Scope(START + MS_PER_HOUR)) == {START: 23, START + MS_PER_DAY: 1}
    assert periods(lake, Scope(START)) == {START: 1, START + MS_PER_DAY: 1}


@pytest.mark.parametrize("mig", [False, True])
def test_a_day_in_several_files_is_the_same_day(line: Callable[..., Any], tmp_path: Path, mig: bool) -> None:
    """Several processes post a large day, each its own devices."""
    rows = [line(h, g, util=h / 30, pif=0.5) for g in ("GPU-a", "GPU-b", "GPU-c") for h in range(30)]
    if mig:  # instances of one board in two files: it is one GPU
        rows = [line(h, "GPU-a", util=0.1 * h, pif=0.5, gpu_instance_id=i) for i in "123" for h in range(9)]
    rows[3]["pif_ms"] = rows[3]["pif_uj"] = 0  # the gap stands on hours with both
    found = []
    for cuts in ([rows], [rows[: len(rows) // 3], rows[len(rows) // 3 :]]):
        books = Lake(tmp_path / str(len(cuts)))
        with books.locked():
            books.commit([])
            for day in sorted({utc_day(r["hour_ms"]) for r in rows}):
                for piece, part in enumerate(cuts):
                    with DayWriter(Ledger(books), day, 1, piece) as writer:
                        mine = [r for r in part if utc_day(r["hour_ms"]) == day]
                        writer.add("lines", pa.Table.from_pylist(mine, lines.arrow_schema()))
                        writer.add("spells", spells.SCHEMA.empty_table())
                posted = PostedDay(day, 1, (1,), (), 0, 0, pieces=len(cuts), daily=True)
                Ledger(books).commit(posted)
        found.append(to_json(efficiency_statement(books)))
    assert found[0]["hours"][0]["gpus"] == (1 if mig else 3)
    assert found[1] == found[0]

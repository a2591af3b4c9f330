"""Do files whose row groups tell their times give the same books, however they are shared out?"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import to_json
from gpuledger.errors import FileFault
from gpuledger.lake import by_day, importing, pieces
from gpuledger.lake.by_day import all_days, days_of, finishable, grouped, next_to_others
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.taking import Piece, Reading
from gpuledger.ledger import straight
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.straight import post_files
from gpuledger.telemetry.fleet import FleetSpec
from gpuledger.telemetry.formats import open_source
from gpuledger.telemetry.synthetic import write_fleet

spans = st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(1, 1000))


@given(st.lists(spans, min_size=1, max_size=12), st.integers(1, 5))
def test_groups_have_every_piece_once_and_finish_only_what_they_know(
    found: list[tuple[int, int, int]], several: int
) -> None:
    given_pieces = [Piece("f", n, days=(day, day + more), rows=rows) for n, (day, more, rows) in enumerate(found)]
    groups = grouped(given_pieces, several)
    assert groups is not None
    assert len(groups) <= several
    assert sorted(p.number for g in groups for p in g.pieces) == list(range(len(given_pieces)))
    everything = days_of(given_pieces)
    for group in groups:
        others = days_of([p for other in groups if other is not group for p in other.pieces])
        ends = [piece.days[1] for piece in group.pieces if piece.days]
        assert ends == sorted(ends, reverse=True)
        assert set(group.whole) == days_of(group.pieces) - others
        for day in finishable(group, all_days(groups)):
            assert day not in others or day in group.gets
            assert day + 1 in group.whole or day + 1 not in everything
    for before, after in pairwise(groups):
        assert before.gets == after.gives
        assert len(before.gets) <= 1
        assert set(before.gets) <= days_of(before.pieces) & days_of(after.pieces)
    assert not groups[0].gives
    assert not groups[-1].gets
    if several == 1:
        assert set(finishable(groups[0], all_days(groups))) == everything


def test_a_piece_of_any_time_is_not_taken_by_day() -> None:
    assert grouped([Piece("f", 0, days=(1, 2)), Piece("f", 1)], 2) is None
    assert grouped([], 2) is None


def odd_fleet(folder: Path, rows: int, order: str) -> list[Path]:
    """Four days of nine GPUs in small row groups: rows by time, by device, or in any order; some twice, some apart.

    "plain": rows by time, none twice or apart; "late": and one GPU is silent until the evening, so that its first
    sample of a day is not where the others' are.
    """
    whole = folder / "whole.parquet"
    write_fleet(FleetSpec(gpus=9, days=4, step_s=900), whole)
    table = pq.read_table(whole)
    keys = {"time": [("SCRAPETIME", "ascending")], "device": [("UUID", "ascending"), ("SCRAPETIME", "ascending")]}
    if order in ("plain", "late"):
        early = pc.less(pc.hour(table["SCRAPETIME"]), 18)
        one = pc.equal(table["UUID"].cast(pa.string()), table["UUID"][0].as_py())
        table = table.filter(pc.invert(pc.and_(early, one))) if order == "late" else table
        pq.write_table(table, whole, row_group_size=rows)
        return [whole]
    if order in keys:
        plain = table.set_column(table.column_names.index("UUID"), "UUID", table["UUID"].cast(pa.string()))
        names = plain.select(["UUID", "SCRAPETIME"])
        table = table.take(pc.sort_indices(names, keys[order]))
    else:
        table = table.take(np.random.default_rng(7).permutation(table.num_rows))
    gone = np.ones(table.num_rows, dtype=bool)
    gone[900:1700:3] = False
    table = pa.concat_tables([table.filter(pa.array(gone)), table.slice(100, 40)])
    cut = table.num_rows // 2
    files = [folder / "a.parquet", folder / "b.parquet"]
    pq.write_table(table.slice(0, cut), files[0], row_group_size=rows)
    pq.write_table(table.slice(cut), files[1], row_group_size=rows)
    return files


def figures(lake: Lake) -> dict[str, Any]:
    """A statement, but for the codes of XID errors, which are read from samples."""
    found: dict[str, Any] = to_json(efficiency_statement(lake, Scope()))
    return {name: figure for name, figure in found.items() if name not in ("health", "not_known", "findings")}


@pytest.mark.parametrize("order", ["time", "plain", "late", "device", "any"])
@pytest.mark.parametrize("memory", [1 << 30, 1 << 12])
def test_books_are_those_of_a_lake_whoever_posts_which_day(
    tmp_path: Path, order: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 400)
    monkeypatch.setattr(straight, "MEMORY_BYTES", memory)
    files, limits = odd_fleet(tmp_path, 170, order), load_thresholds()
    lake = Lake(tmp_path / "lake")
    wanted = import_files(lake, files, processes=1)
    post_lake(lake, limits)
    expected = figures(lake)
    for several in (1, 2, 3):
        other = Lake(tmp_path / f"straight-{several}")
        done = post_files(other, files, limits, processes=several)
        assert figures(other) == expected
        assert (done.rows_read, done.rows_added, done.rows_duplicate) == (
            wanted.rows_read, wanted.rows_added, wanted.rows_duplicate
        )  # fmt: skip
        assert done.days == wanted.days


def test_days_are_posted_on_the_way_where_files_tell_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several processes each posts days of its own; what is left is little."""
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 400)
    files = odd_fleet(tmp_path, 170, "plain")
    groups = grouped(pieces.pieces_of(files, Reading()), 2)
    assert groups is not None
    assert len(groups) == 2
    ready = [[*finishable(group, all_days(groups)), *next_to_others(group, groups)] for group in groups]
    assert sorted(day for days in ready for day in days) == sorted(all_days(groups))
    assert groups[0].gets == groups[1].gives
    assert len(groups[0].gets) == 1


def test_rows_that_were_not_handed_on_in_time_are_posted_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 400)
    files, limits = odd_fleet(tmp_path, 170, "plain"), load_thresholds()
    tried = list[int]()
    monkeypatch.setattr(by_day.Handing, "get", lambda _handing, _sorter, day: bool(tried.append(day)))
    one, two = Lake(tmp_path / "one"), Lake(tmp_path / "two")
    post_files(one, files, limits, processes=1)
    assert not tried
    post_files(two, files, limits, processes=2)
    assert figures(one) == figures(two)
    monkeypatch.undo()
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 400)
    three = Lake(tmp_path / "three")
    first, second = (import_files(lake, files, processes=n) for lake, n in ((Lake(tmp_path / "four"), 1), (three, 2)))
    assert (first.rows_added, first.rows_duplicate, first.days) == (
        second.rows_added, second.rows_duplicate, second.days
    )  # fmt: skip
    post_lake(three, limits)
    assert figures(three) == figures(one)


def test_rows_of_other_times_than_a_file_notes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f.parquet"
    write_fleet(FleetSpec(gpus=2, days=2, step_s=3600), file)
    real = pieces.pieces_of
    monkeypatch.setattr(
        importing,
        "pieces_of",
        lambda files, reading: [Piece(p.path, p.number, groups=p.groups, days=(1, 1)) for p in real(files, reading)],
    )
    with pytest.raises(FileFault, match="other times than its own notes say"):
        post_files(Lake(tmp_path / "lake"), [file], load_thresholds())


@given(unit=st.sampled_from(["s", "ms", "us", "ns"]), zone=st.sampled_from([None, "UTC", "Europe/Berlin"]))
@settings(max_examples=12, deadline=None)
def test_the_times_a_file_notes_are_those_of_its_rows(
    tmp_path_factory: pytest.TempPathFactory, unit: str, zone: str | None
) -> None:
    folder = tmp_path_factory.mktemp("units")
    at_s = np.array([0, 86_399, 86_400, 200_000]) + 1_768_867_200
    table = pa.table({
        "timestamp": pa.array(at_s, pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone)),
        "UUID": ["GPU-1"] * 4,
        "modelName": ["NVIDIA H100 80GB HBM3"] * 4,
        "DCGM_FI_DEV_GPU_UTIL": [10, 20, 30, 40],
    })  # fmt: skip
    pq.write_table(table, folder / "f.parquet", row_group_size=2)
    groups = open_source(folder / "f.parquet").groups
    assert groups is not None
    assert groups.ends_ms("timestamp") == [(at_s[0] * 1000, at_s[1] * 1000), (at_s[2] * 1000, at_s[3] * 1000)]
    assert groups.ends_ms("UUID") is None
    (piece,) = pieces.pieces_of([folder / "f.parquet"], Reading())
    day = int(at_s[0]) // 86_400
    assert piece.days == (day, day + 2)

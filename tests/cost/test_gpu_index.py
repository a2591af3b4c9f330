"""Does the index of a GPU on its host reach every statement, and do lakes from before it read as they did?"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fleets import ENERGY, H100, POWER, UTIL, Row, analyze, audit, bill, lake_of, mig, samples, write

from gpuledger.advice.build import audit_statement
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.report.documents.audit_rows import devices_named, files
from gpuledger.report.outline import load_outline

INDEX = "minor_number"


def fleet(minutes: range, *, index: bool = True) -> list[Row]:
    """Two hosts, each with GPU 0 whole and GPU 1 cut in two."""
    rows: list[Row] = []
    for host in ("node-a", "node-b"):
        for number, parts in (("0", [{}]), ("1", [mig("1", "3g.40gb"), mig("2", "4g.40gb")])):
            named: dict[str, Any] = {"Hostname": host} | ({INDEX: number} if index else {})
            for part in parts:
                figures = {UTIL: 90 if number == "0" else 20, POWER: 300, ENERGY: ""}
                rows += samples(minutes, f"GPU-{host}-{number}-0000-1111", H100, **named, **part, **figures)
    return rows


def without_index(lake: Lake) -> None:
    """Make a lake what it was before the index was read: no file has the column."""
    for file in [*lake.root.glob("samples/*/*.parquet"), *lake.root.glob("ledger/*/*.parquet")]:
        table = pq.read_table(file, partitioning=None)
        if "gpu_index" in table.column_names:
            pq.write_table(table.drop_columns(["gpu_index"]), file)


def bare(found: Any) -> Any:
    """A statement without the index."""
    if isinstance(found, dict):
        return {name: bare(value) for name, value in found.items() if name != "gpu_index"}
    return [bare(value) for value in found] if isinstance(found, list) else found


def places(rows: list[Row]) -> set[tuple[str, str | None, str | None]]:
    return {(r["gpu_uuid"], r["host"], r["gpu_index"]) for r in rows}


EVERY = {(f"GPU-{h}-{n}-0000-1111", h, n) for h in ("node-a", "node-b") for n in "01"}


def test_two_hosts_each_with_a_gpu_0(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, fleet(range(90)))
    assert places(analyze(lake)["per_gpu"]) == places(audit(lake)["by_gpu"]) == EVERY
    table = load_outline("efficiency").table("per_gpu", efficiency_statement(lake))
    names = sorted((row[0].text, row[0].full) for row in table.rows)
    assert names == sorted([(f"{h}/{n}", uuid) for uuid, h, n in EVERY for _ in range(2 if n == "1" else 1)])


def test_the_figures_are_the_same_without_it(tmp_path: Path) -> None:
    with_it, without = lake_of(tmp_path / "a", fleet(range(90))), lake_of(tmp_path / "b", fleet(range(90), index=False))
    assert {r["gpu_index"] for r in analyze(without)["per_gpu"]} == {None}
    assert bare(analyze(with_it)) == bare(analyze(without))
    assert bare(audit(with_it)) == bare(audit(without))


def test_a_lake_from_before_reads_and_posts_as_it_did(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, fleet(range(90)))
    before = analyze(lake), audit(lake)
    without_index(lake)
    assert (bare(analyze(lake)), bare(audit(lake))) == (bare(before[0]), bare(before[1]))
    assert {r["gpu_index"] for r in analyze(lake)["per_gpu"]} == {None}
    # The same file again brings nothing new and contradicts nothing; later samples bring the index.
    again = import_files(lake, [tmp_path / "fleet.csv"])
    assert (again.rows_added, again.rows_duplicate, again.rows_rejected) == (0, 540, 0)
    import_files(lake, [write(tmp_path / "more.csv", fleet(range(90, 150)))])
    post_lake(lake, load_thresholds())
    assert analyze(lake)["conflicts"] == 0
    assert places(analyze(lake)["per_gpu"]) == places(audit(lake)["by_gpu"]) == EVERY
    whole = lake_of(tmp_path / "whole", fleet(range(150)))
    assert analyze(lake) == analyze(whole)


@pytest.mark.parametrize(
    ("moves", "place"),
    [
        ([("a", "3"), ("a", "")], ("a", "3")),
        ([("a", "3"), ("b", "")], ("b", None)),
        ([("b", "1"), ("a", "3"), ("b", "")], ("b", "1")),
        ([("", "1")], (None, "1")),
    ],
)
def test_a_bill_has_the_index_on_the_latest_host(tmp_path: Path, moves: list[tuple[str, str]], place: Any) -> None:
    rows: list[Row] = []
    for i, (host, index) in enumerate(moves):
        minutes = range(i * 1440, i * 1440 + 60)
        rows += samples(minutes, "GPU-a", H100, Hostname=host, minor_number=index, **{UTIL: 50, POWER: 300})
    (row,) = bill(lake_of(tmp_path, rows)).by_gpu
    assert (row.host, row.gpu_index) == place


def test_advice_names_gpus_by_host_and_index(tmp_path: Path) -> None:
    made = audit_statement(lake_of(tmp_path, fleet(range(90))), price=1)
    named = next(r for r in made.recommendations if any("node-b-1" in d for t in r.targets for d in t.devices))
    only = dataclasses.replace(
        named.targets[0], devices=("GPU-node-b-0-0000-1111", "GPU-node-b-1-0000-1111/2", "GPU-x")
    )
    said = devices_named(dataclasses.replace(named, targets=(only,)), made)
    assert said.startswith("GPUs: ")
    assert set(said.removeprefix("GPUs: ").split(", ")) == {"node-b/0", "node-b/1 MIG 2", "GPU-x"}
    head, first, *_ = files(made)["cost_by_gpu.csv"]().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=False))
    assert (cells["gpu_uuid"], cells["host"], cells["gpu_index"]) in EVERY

"""Do lines added up by day lose nothing that a statement tells apart?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import samples as make
from hypothesis import given, settings

from gpuledger.ledger import lines
from gpuledger.ledger.daily import fold_days, fold_old
from gpuledger.ledger.posting import post
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY

LABELS = tuple(n for n, c in lines.columns().items() if c.type == "string")


def kind(row: dict) -> tuple:
    by_kind = row["hmma_ms"] and min(row[f"{pipe}_ms"] for pipe in ("hmma", "imma", "dfma")) >= row["tensor_ms"]
    tensor = 0 if by_kind else 1 if row["tensor_ms"] else 2
    day = row["hour_ms"] // MS_PER_DAY * MS_PER_DAY
    return (*(row[n] for n in LABELS), row["limit_mw"], row["slice_ppm"], day, row["grain_ms"], tensor)


def added_up(rows: Iterable[dict]) -> dict[tuple, dict]:
    """The slow and obvious way."""
    groups = defaultdict(list)
    for row in rows:
        groups[kind(row)].append(row)
    out = {}
    for key, mine in groups.items():
        made = {}
        for name, column in lines.columns().items():
            known = [r[name] for r in mine if r[name] is not None]
            if column.merge == "sum":
                made[name] = sum(known)
            elif column.merge in ("min", "max"):
                made[name] = {"min": min, "max": max}[column.merge](known, default=None)
        out[key] = made
    return out


@given(make.series(shared=True))
@settings(max_examples=30, deadline=None)
def test_days_are_the_sums_of_their_lines(limits, samples):
    table = post(make.table(samples), limits).lines
    found = fold_days(table).to_pylist()
    expected = added_up(table.to_pylist())
    assert {kind(r) for r in found} == set(expected)
    assert len(found) == len(expected), "lines that are alike were left apart"
    for row in found:
        for name, value in expected[kind(row)].items():
            assert row[name] == value, name


def test_two_owners_in_turns_become_two_rows(limits):
    rows = [
        {"at_ms": i * 1_800_000, "gpu_uuid": "GPU-a", "namespace": "ab"[i % 2], "gpu_util_ratio": 0.5} for i in range(8)
    ]
    folded = fold_days(post(make.table(rows), limits).lines).to_pylist()
    assert sorted((r["namespace"], r["samples"]) for r in folded) == [("a", 4), ("b", 4)]
    assert {r["hour_ms"] for r in folded} == {0}


def test_no_lines_make_no_days():
    empty = lines.coded_schema().empty_table()
    assert fold_days(empty).equals(empty)
    assert isinstance(fold_days(lines.arrow_schema().empty_table()), pa.Table)


@given(make.series(shared=True))
@settings(max_examples=30, deadline=None)
def test_folding_what_is_old_keeps_every_sum_and_what_is_told_apart(limits, samples):
    made = post(make.table(samples), limits).lines
    folded = fold_old(made, make.DAY + 86_400_000)
    assert set(folded["grain_ms"].to_pylist()) == {86_400_000}
    assert {kind(r) for r in folded.to_pylist()} == {kind(r | {"grain_ms": 86_400_000}) for r in made.to_pylist()}
    for name in lines.names("sum"):
        assert sum(folded[name].to_pylist()) == sum(made[name].to_pylist()), name
    assert fold_old(made, make.DAY).equals(lines.coded(made))
    assert fold_old(folded, make.DAY + 86_400_000).equals(folded)


@given(make.series(shared=True))
@settings(max_examples=30, deadline=None)
def test_folding_never_changes_a_sum_by_device_owner_state_and_day(limits, samples):
    """Whichever way hours become days: the day's own file, tidying, and both one after the other."""
    made = post(make.table(samples), limits).lines
    expected = by_state(made)
    old = fold_old(made, make.DAY + 2 * 86_400_000)
    for folded in (fold_days(made), old, fold_days(old)):
        assert by_state(folded) == expected


def by_state(table: pa.Table) -> dict[tuple, dict[str, int]]:
    keys = ("gpu_uuid", "gpu_instance_id", *schema.OWNER, "state")
    out: dict[tuple, dict[str, int]] = defaultdict(lambda: dict.fromkeys(lines.names("sum"), 0))
    for row in table.to_pylist():
        for name in lines.names("sum"):
            out[*(row[k] for k in keys), row["hour_ms"] // MS_PER_DAY][name] += row[name]
    return dict(out)


def test_what_is_not_over_stays_in_hours(limits):
    rows = [{"at_ms": i * 6 * 3_600_000, "gpu_uuid": u, "gpu_util_ratio": 0.5} for u in "ab" for i in range(8)]
    folded = fold_old(post(make.table(rows), limits).lines, 86_400_000).to_pylist()
    assert [(r["gpu_uuid"], r["grain_ms"] == 86_400_000) for r in folded[:5]] == [("a", True), *[("a", False)] * 4]
    assert sum(r["samples"] for r in folded) == 16

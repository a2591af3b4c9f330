"""Do the books come out the same whatever way the samples arrived?"""

from __future__ import annotations

import gc
import itertools
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import samples as make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from merging import merge
from written import write_samples

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.errors import LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import merge_day
from gpuledger.ledger import lines
from gpuledger.ledger.day_writer import TABLES
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger


def books(lake: Lake) -> dict[str, list[dict]]:
    """Everything the ledger says, merged and in order."""
    ledger = Ledger(lake)
    days = [d.day for d in ledger.manifest().days]
    out = {"lines": merge([ledger.read("lines", d) for d in days])}
    for name in TABLES[1:]:
        rows = [r for d in days for r in ledger.read(name, d).to_pylist()]
        out[name] = sorted(rows, key=lambda r: [str(v) for v in r.values()])
    return out


def minutes(device: str, start_ms: int, n: int, **more: object) -> list[dict]:
    return [
        {"at_ms": start_ms + i * 60_000, "gpu_uuid": device, "gpu_model": "NVIDIA A10G",
         "gpu_util_ratio": (i % 10) / 10, "power_w": 40.0 + i, "energy_mj": i * 1000, "namespace": "n"} | more
        for i in range(n)
    ]  # fmt: skip


@given(data=st.data())
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_order_repetition_and_lateness_never_change_a_digit(tmp_path_factory, limits, data):
    rows = data.draw(make.series(max_devices=2, max_samples=8, shared=True))
    pieces = data.draw(st.integers(1, 4))
    cut = [[r for i, r in enumerate(rows) if i % pieces == p] for p in range(pieces)]
    cut = [c for c in cut if c]
    folder = tmp_path_factory.mktemp("arrival")
    files = [write_samples(folder, f"f{i}", c) for i, c in enumerate(cut)]
    whole = Lake(folder / "whole")
    import_files(whole, files)
    post_lake(whole, limits)
    arrival = data.draw(st.permutations(files)) + data.draw(st.lists(st.sampled_from(files), max_size=2))
    late = Lake(folder / "late")
    for file in arrival:
        import_files(late, [file])
        if data.draw(st.booleans()):
            post_lake(late, limits)
    post_lake(late, limits)
    assert books(late) == books(whole)


def test_late_samples_repost_only_their_devices_and_the_day_before(tmp_path, limits):
    day = 86_400_000
    lake = Lake(tmp_path / "lake")
    early = [r for d in ("A", "B") for r in minutes(d, make.DAY + 82_000_000, 20) + minutes(d, make.DAY + day, 20)]
    import_files(lake, [write_samples(tmp_path, "early", early)])
    assert post_lake(lake, limits).days_posted == ["2026-01-20", "2026-01-21"]
    assert post_lake(lake, limits).days_posted == []
    before = books(lake)
    import_files(lake, [write_samples(tmp_path, "late", minutes("B", make.DAY + day - 120_000, 1))])
    result = post_lake(lake, limits)
    assert result.days_posted == ["2026-01-20"]
    assert result.samples == 21, "device A was posted again"
    after = books(lake)
    assert [r for r in after["lines"] if r["gpu_uuid"] == "A"] == [r for r in before["lines"] if r["gpu_uuid"] == "A"]
    assert after != before
    # A new first sample on the second day changes the last span of the first.
    import_files(
        lake,
        [
            write_samples(
                tmp_path, "first", minutes("B", make.DAY + day - 60_000, 1) + minutes("A", make.DAY + day + 30_000, 1)
            )
        ],
    )
    assert post_lake(lake, limits).days_posted == ["2026-01-20", "2026-01-21"]
    fresh = Lake(tmp_path / "fresh")
    import_files(fresh, [tmp_path / f"{n}.parquet" for n in ("early", "late", "first")])
    post_lake(fresh, limits)
    assert books(lake) == books(fresh)


def test_a_span_over_midnight_is_cut_there(tmp_path, limits):
    start = make.DAY + 86_400_000 - 150_000
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "f", minutes("A", start, 5))])
    post_lake(lake, limits)
    by_hour: dict[int, Counter[str]] = {23: Counter(), 24: Counter()}
    for row in books(lake)["lines"]:  # one line for each state of the hour
        by_hour[(row["hour_ms"] - make.DAY) // 3_600_000].update({c: row[c] for c in lines.names("sum")})
    assert by_hour[23]["observed_ms"] == by_hour[24]["observed_ms"] == 150_000
    assert by_hour[23]["samples"] + by_hour[24]["samples"] == 5
    assert by_hour[23]["energy_mj"] == 2500


def test_processes_give_the_same_digits_and_two_runs_the_same_bytes(tmp_path, limits):
    rows = [r for d, day in itertools.product("ABC", range(3)) for r in minutes(d, make.DAY + day * 86_400_000, 30)]
    file = write_samples(tmp_path, "f", rows)
    one, many, again = (Lake(tmp_path / n) for n in ("one", "many", "again"))
    for lake, processes in ((one, 1), (many, 2), (again, 2)):
        import_files(lake, [file])
        assert post_lake(lake, limits, processes=processes).samples == len(rows)
    assert books(one) == books(many)
    assert [d.pieces for d in Ledger(many).manifest().days] == [1, 1, 2]
    for table in TABLES:
        first, second = (Ledger(lake).files(table) for lake in (many, again))
        assert [Path(f).read_bytes() for f in first] == [Path(f).read_bytes() for f in second]


def test_a_changed_threshold_posts_again(tmp_path, limits):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "f", minutes("A", make.DAY, 30))])
    post_lake(lake, limits)
    own = tmp_path / "own.toml"
    own.write_text("[classes]\nidle_util_below_ratio = 0.35\n")
    assert post_lake(lake, load_thresholds(own)).days_posted == ["2026-01-20"]
    assert sum(line["class_idle_ms"] for line in books(lake)["lines"]) == 12 * 60_000
    assert post_lake(lake, load_thresholds(own)).days_posted == []


def test_lines_of_an_older_format_are_read_and_added_to(tmp_path, limits):
    """With a column that is gone since, without two that came later, and no samples to make it anew from."""
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "f", minutes("A", make.DAY, 30))])
    post_lake(lake, limits)
    ledger, day = Ledger(lake), "2026-01-20"
    now = books(lake)["lines"]
    for table in ("lines", "days"):
        (file,) = ledger.files(table)
        old = pq.read_table(file, partitioning=None).drop_columns(["shared_ms", "gpu_temp_max_c"])
        pq.write_table(old.append_column("gone_h00", pa.array([7] * len(old))), file)
    ledger.put(msgspec.structs.replace(ledger.manifest().get(day), samples_kept=False, rules="old"), {})
    assert books(lake)["lines"] == now
    assert efficiency_statement(lake).fleet.samples == 30
    import_files(lake, [write_samples(tmp_path, "g", minutes("B", make.DAY, 5))])
    assert post_lake(lake, limits).samples == 5
    after = books(lake)["lines"]
    assert {r["gpu_uuid"] for r in after} == {"A", "B"}
    assert [r for r in after if r["gpu_uuid"] == "A"] == now


def test_conflicting_samples_are_left_out_of_the_books(tmp_path, limits):
    rows = minutes("A", make.DAY, 5)
    clash = [rows[2] | {"power_w": 99.0}]
    straight, reverse = Lake(tmp_path / "s"), Lake(tmp_path / "r")
    files = [write_samples(tmp_path, "rows", rows), write_samples(tmp_path, "clash", clash)]
    for lake, order in ((straight, files), (reverse, files[::-1])):
        for file in order:
            result = import_files(lake, [file])
        assert result.rejects == {"conflicts_with_another_row": 1}
        assert post_lake(lake, limits).conflicts == 2
    assert books(straight) == books(reverse)
    assert sum(r["samples"] for r in books(straight)["lines"]) == 4


def test_no_lake_says_what_to_do(tmp_path, limits):
    with pytest.raises(Exception, match="no lake was found here") as caught:
        post_lake(Lake(tmp_path / "none"), limits)
    assert "gpuledger import" in str(caught.value)


def test_a_full_disk_names_the_ledger_and_leaves_it_as_it_was(tmp_path, limits, monkeypatch, capsys):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "a", minutes("A", make.DAY, 30))])

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.ParquetWriter.close", full)
        with pytest.raises(LakeError, match=r"ledger: cannot write the ledger: the disk is full"):
            post_lake(lake, limits)
        gc.collect()
    assert "Traceback" not in capsys.readouterr().err
    assert not Ledger(lake).manifest().days
    assert post_lake(lake, limits).samples == 30


def test_posting_deletes_parts_that_a_killed_posting_had_merged(tmp_path, limits, monkeypatch):
    lake = Lake(tmp_path / "lake")
    for name, first in (("a", 0), ("b", 40)):
        import_files(lake, [write_samples(tmp_path, name, minutes("A", make.DAY + first * 60_000, 30))])
    with monkeypatch.context() as patch, lake.locked():
        patch.setattr(Lake, "sweep", lambda _lake: None)
        merge_day(lake, "2026-01-20")
    assert len(list(lake.root.glob("samples/*/*"))) == 3
    post_lake(lake, limits)
    assert len(list(lake.root.glob("samples/*/*"))) == 1

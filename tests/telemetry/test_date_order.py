"""Are dates such as 03/09/2026 never read as days of another month without a word?"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault
from gpuledger.telemetry.date_order import Dates, Order, order_of, turned
from gpuledger.telemetry.stamps import StampReader

HEAD = "timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL\n"
MARCH = [dt.datetime(2026, 3, day, hour) for day in (9, 10, 11) for hour in range(0, 24, 6)]
LATER = [*MARCH, dt.datetime(2026, 3, 13)]


def write(folder: Path, times: list[dt.datetime], layout: str) -> Path:
    file = folder / "gpus.csv"
    file.write_text(HEAD + "".join(f"{t.strftime(layout)},GPU-1,NVIDIA L4,50\n" for t in times))
    return file


def instants(lake: Path) -> list[int]:
    return sorted(gpuledger.open(lake).samples().df()["at_ms"])


def ms(times: list[dt.datetime]) -> list[int]:
    return [round(t.replace(tzinfo=dt.UTC).timestamp() * 1000) for t in times]


def test_dates_with_the_day_first_are_refused_and_read_with_the_map_that_explain_writes(tmp_path):
    file = write(tmp_path, LATER, "%d/%m/%Y %H:%M:%S")
    with pytest.raises(FileFault, match=r"day first \('13/03/2026") as raised:
        gpuledger.open(tmp_path / "lake").ingest(file)
    assert "--write-map" in raised.value.hint
    assert run(["import", "--explain", str(file), "--write-map", str(tmp_path / "m.toml")]) == 0
    assert run(["import", str(file), "--map", str(tmp_path / "m.toml"), "--lake", str(tmp_path / "lake")]) == 0
    assert instants(tmp_path / "lake") == ms(LATER)


def test_a_map_that_reads_the_other_order_is_refused(tmp_path):
    file = write(tmp_path, LATER, "%m/%d/%Y %H:%M:%S")
    rules = tmp_path / "m.toml"
    layout = '[time]\nsources = ["timestamp"]\nformats = ["%d/%m/%Y %H:%M:%S"]\n[labels]\ngpu_uuid = ["UUID"]\n'
    rules.write_text('includes = "dcgm"\n' + layout)
    with pytest.raises(FileFault, match="month first") as raised:
        gpuledger.open(tmp_path / "lake").ingest(file, mapping=rules)
    assert '"%m/%d/%Y %H:%M:%S"' in raised.value.hint


def test_dates_that_fit_both_are_read_month_first_with_a_note(tmp_path):
    file = write(tmp_path, MARCH, "%m/%d/%Y %H:%M:%S")
    result = gpuledger.open(tmp_path / "lake").ingest(file)
    assert instants(tmp_path / "lake") == ms(MARCH)
    assert sum("read month first ('03/09/2026" in note for note in result.notes) == 1
    sure = gpuledger.open(tmp_path / "sure").ingest(write(tmp_path, LATER, "%m/%d/%Y %H:%M:%S"))
    assert not any("month first" in note for note in sure.notes)


def test_a_single_wrong_date_costs_its_row_only(tmp_path):
    file = write(tmp_path, LATER, "%m/%d/%Y %H:%M:%S")
    file.write_text(file.read_text() + "14/03/2026 00:00:00,GPU-1,NVIDIA L4,50\n")
    result = gpuledger.open(tmp_path / "lake").ingest(file)
    assert result.rejects == {"wrong_time": 1}
    assert instants(tmp_path / "lake") == ms(LATER)


@given(st.datetimes(dt.datetime(2001, 1, 1), dt.datetime(2030, 1, 1)), st.booleans())
@settings(max_examples=200)
def test_an_order_that_shows_is_the_one_it_was_written_in(when, month_first):
    written = Order.MONTH_FIRST if month_first else Order.DAY_FIRST
    (layout,) = turned(["%m/%d/%Y %H:%M"], written)
    assert order_of(when.strftime(layout)) in {written, Order.EITHER, None}
    found = Dates((layout,), "", {shown: "" for shown in [order_of(when.strftime(layout))] if shown})
    assert found.other_order is None


@pytest.mark.parametrize(
    "text", ["2026-03-09 01:02:03 UTC", "2026-03-09 01:02:03.0 +0000 UTC", "2026-03-09T01:02:03 GMT"]
)
def test_times_in_utc_as_bigquery_and_go_write_them(text):
    reader = StampReader((), "Asia/Tokyo")
    at_ms, faults = reader.read(pa.array([text]))
    assert at_ms.tolist() == ms([dt.datetime(2026, 3, 9, 1, 2, 3)])
    assert not faults.any()
    assert not reader.zoneless
    _, faults = reader.read(pa.array([text.replace("UTC", "EST").replace("GMT", "EST")]))
    assert faults.all()


def test_times_that_cannot_be_read_name_the_next_step(tmp_path):
    file = write(tmp_path, MARCH, "%b %d %Y @ %H:%M:%S")
    with pytest.raises(FileFault, match="not one usable row") as raised:
        gpuledger.open(tmp_path / "lake").ingest(file)
    assert "--write-map" in raised.value.hint

"""Are files of jobs and pools read as people write them, and refused in words where they are wrong?"""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuledger.errors import GpuledgerError, InputError
from gpuledger.plan.batching.jobs import read_jobs
from gpuledger.plan.batching.pools import Terms, read_pools
from gpuledger.plan.batching.price_windows import PriceWindow, usd_by_step
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN

START_MS = 1_794_787_200_000  # a Monday, midnight UTC
DAY_MS = 24 * MS_PER_HOUR


def jobs_of(tmp_path, text, name="jobs.csv", **more):
    path = tmp_path / name
    path.write_text(text)
    return read_jobs(path, **{"start_ms": START_MS, "now_ms": START_MS, "wait_ms": DAY_MS, **more})


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("id,gpus,hours", "a,2,1.5"),
        ("job_id,num_gpus,duration_s", "a,2,5400"),
        ("Name;GPU Count;Duration Min", "a;2;90"),
        ("job,gpus,runtime", "a,2,1h30m"),
        ("job,gpus,elapsed", "a,2,01:30:00"),
        ("job,gpus,duration", "a,2,5400"),
    ],
)
def test_names_and_units_of_columns(tmp_path, header, cells):
    found = jobs_of(tmp_path, f"{header}\n{cells}\n")
    assert [(j.id, j.gpus, j.work_ms) for j in found.jobs] == [("a", 2, 90 * MS_PER_MIN)]


@pytest.mark.parametrize(
    "written", ["2026-11-16T06:00Z", "2026-11-16 06:00:00", "6", "6h", "+6h", str(START_MS + 6 * MS_PER_HOUR),
                str((START_MS + 6 * MS_PER_HOUR) // 1000), "11/16/2026 06:00"],
)  # fmt: skip
def test_spellings_of_a_deadline(tmp_path, written):
    found = jobs_of(tmp_path, f"id,gpus,hours,deadline\na,1,1,{written}\n")
    assert found.jobs[0].deadline_ms == START_MS + 6 * MS_PER_HOUR


def test_a_trace_in_seconds_from_its_start(tmp_path):
    found = jobs_of(tmp_path, "job_id,num_gpus,duration,submit_time\n1,2,5400,0\n2,1,600,90000\n")
    assert [j.earliest_ms - START_MS for j in found.jobs] == [0, 25 * MS_PER_HOUR]
    assert any("seconds after the start" in words for words in found.read_as)


def test_json_and_parquet_read_as_csv(tmp_path):
    rows = [{"id": "a", "gpus": 2, "hours": 1.5, "types": "h100-sxm;a100-sxm4-80gb", "preemptible": True}]
    (tmp_path / "jobs.json").write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "jobs.parquet")
    made = [
        read_jobs(tmp_path / name, start_ms=START_MS, now_ms=START_MS, wait_ms=DAY_MS).jobs
        for name in ("jobs.json", "jobs.parquet")
    ]
    assert made[0] == made[1]
    assert (made[0][0].types, made[0][0].preemptible) == (("h100-sxm", "a100-sxm4-80gb"), True)


def test_a_job_without_a_deadline_may_wait_as_long_as_said(tmp_path):
    one = jobs_of(tmp_path, "id,gpus,hours\na,1,2\n").jobs[0]
    assert (one.deadline_ms, one.due) == (START_MS + 26 * MS_PER_HOUR, False)


def test_the_plan_starts_with_the_first_submission(tmp_path):
    text = "id,gpus,hours,submit\na,1,2,2026-11-17T03:00Z\nb,1,2,2026-11-16T03:00Z\n"
    assert jobs_of(tmp_path, text, start_ms=None).start_ms == START_MS + 3 * MS_PER_HOUR


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("id,gpus,hours\n", "no rows"),
        ("id,gpus,hours\na,1,-2\n", "row 2, hours.*-2"),
        ("id,gpus,hours\na,1,nan\n", "row 2, hours.*nan"),
        ("id,gpus,hours\na,1,inf\n", "row 2, hours.*inf"),
        ("id,gpus,hours\na,0,2\n", "row 2, gpus.*0"),
        ("id,gpus,hours\na,1.5,2\n", "row 2, gpus.*1.5"),
        ("id,gpus,hours\na,,2\n", "job a has no value here"),
        ("id,gpus,hours\na,1,2\na,1,2\n", "1 job id is there more than once: a"),
        ("id,gpus\na,1\n", "no column 'hours'"),
        ("id,gpus,duration\na,1,2\n", "unit of these numbers is not known"),
        ("id,gpus,hours,deadline\na,1,2,soon\n", "row 2, deadline.*soon"),
        ("id,gpus,hours,deadline\na,1,2,2026-11-15T00:00Z\n", "deadline of job a .* is already past"),
        ("id,gpus,hours,submit,deadline\na,1,2,2026-11-17,2026-11-16T12:00\n", "before it may start"),
        ("id,gpus,hours,preemptible\na,1,2,maybe\n", "row 2, preemptible.*maybe"),
        ("id,gpus,hours,weight\na,1,2,-1\n", "row 2, weight"),
    ],
)
def test_bad_jobs_are_refused_in_words(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        jobs_of(tmp_path, text)
    assert caught.value.hint


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(GpuledgerError, match="no such file"):
        read_jobs(tmp_path / "gone.csv", start_ms=None, now_ms=START_MS, wait_ms=DAY_MS)


POOLS_TOML = """
[[pool]]
name = "own"
gpu = "h100-sxm"
gpus = 8
usd_per_gpu_h = 1.9
kind = "reserved"
[[pool]]
name = "cloud"
gpu = "h100-sxm"
gpus = 32
price = 3.9
dated = "2026-08-22"
[[pool.window]]
hours = "20-06"
days = ["mon", "tue"]
price = 2.6
"""
POOLS_CSV = """name,gpu,gpus,usd_per_gpu_h,kind,hours,days,dated
own,h100-sxm,8,1.9,reserved,,,
cloud,h100-sxm,32,$3.9,,,,2026-08-22
cloud,,,2.6,,20-06,"mon,tue",
"""


def test_pools_of_toml_and_csv_are_the_same(tmp_path):
    found = []
    for name, text in (("p.toml", POOLS_TOML), ("p.csv", POOLS_CSV)):
        (tmp_path / name).write_text(text)
        found.append(read_pools(tmp_path / name, 10.0).pools)
    assert found[0] == found[1]
    own, cloud = found[0]
    assert (own.terms, own.usd_per_gpu_h) == (Terms.RESERVED, Decimal("1.9"))
    assert cloud.windows == (PriceWindow(Decimal("2.6"), 1200, 360, (0, 1)),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,gpus,price\na,8,-1\n", "row 2, price"),
        ("name,gpus,price\na,8,nan\n", "no value here|row 2, price"),
        ("name,gpus,price\na,0,1\n", "row 2, gpus"),
        ("name,gpus,price\na,8,1\na,8,2\n", "pool a is there more than once"),
        ("name,gpus,price,kind\na,8,1,rented\n", "row 2, kind"),
        ("name,gpus,price,speed\na,8,1,0\n", "row 2, speed"),
        ("name,gpus,price,hours\na,8,1,\na,8,2,25-30\n", "row 3.*not hours of the day"),
        ("name,gpus,price,days\na,8,1,\na,8,2,funday\n", "row 3.*not days of the week"),
        ("name,gpus,price,tz\na,8,1,Mars/Base\n", "no time zone is called"),
        ("name,price\na,1\n", "no column 'gpus'"),
        ("name,gpus,price,hours\na,8,1,08-20\n", "pool a has a price in some windows only"),
    ],
)
def test_bad_pools_are_refused_in_words(tmp_path, text, words):
    path = tmp_path / "pools.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_pools(path, 10.0)


def test_windows_that_cover_the_week_need_no_other_price(tmp_path):
    path = tmp_path / "pools.csv"
    path.write_text("name,gpus,price,hours\na,8,3,06-20\na,,1,20-06\n")
    found = read_pools(path, 10.0).pools[0]
    usd = usd_by_step(found.usd_per_gpu_h, found.windows, "UTC", START_MS, MS_PER_HOUR, 24)
    assert usd.tolist() == [1.0] * 6 + [3.0] * 14 + [1.0] * 4


def test_prices_by_step():
    night, sale = PriceWindow(Decimal(1), 20 * 60, 6 * 60, (0,)), PriceWindow(Decimal("0.5"), from_ms=START_MS + DAY_MS)
    usd = usd_by_step(Decimal(2), (night, sale), "UTC", START_MS, MS_PER_HOUR, 31)
    # Monday from 20:00 to Tuesday 06:00 at night's price, which the sale of Tuesday replaces; before Monday 06:00 it
    # would be Sunday's night.
    assert usd.tolist() == [2.0] * 20 + [1.0] * 4 + [0.5] * 7
    half = PriceWindow(Decimal(1), 30, 60)
    assert usd_by_step(Decimal(2), (half,), "UTC", START_MS, MS_PER_HOUR, 2).tolist() == [1.5, 2.0]


def test_prices_follow_the_clock_of_their_zone():
    evening = PriceWindow(Decimal(1), 20 * 60, 24 * 60)
    usd = usd_by_step(Decimal(2), (evening,), "America/New_York", START_MS, MS_PER_HOUR, 24)
    assert np.flatnonzero(usd == 1.0).tolist() == [1, 2, 3, 4]

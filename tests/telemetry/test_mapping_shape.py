"""Do wide rows become one row per GPU, and a date and a time one instant, through a whole import?"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.errors import FileFault
from gpuledger.telemetry.mapping import load_mapping
from gpuledger.telemetry.mapping import shape as shaping
from gpuledger.telemetry.mapping.shape import open_shaped

WIDE = """
[wide]
pattern = "gpu{gpu_index}_{reading}"
[time]
join = ["day", "clock"]
[labels]
host = "box"
[[values]]
column = "power_w"
sources = "power [W]"
[[values]]
column = "gpu_util_ratio"
sources = "util"
unit = "%"
"""


@pytest.fixture
def own(tmp_path):
    """Write a map, give its path."""

    def made(text: str) -> str:
        (tmp_path / "own.toml").write_text(text)
        return str(tmp_path / "own.toml")

    return made


def wide_table(rows: int = 40, seed: int = 3) -> pd.DataFrame:
    """Three GPUs in a row; host b has only two of them."""
    rng = np.random.default_rng(seed)
    stamps = pd.date_range("2026-01-20 10:00", periods=rows // 2, freq="min").repeat(2)
    table = pd.DataFrame({"day": stamps.strftime("%Y-%m-%d"), "clock": stamps.strftime("%H:%M:%S")})
    table["box"] = np.tile(["a", "b"], rows // 2)
    for gpu in range(3):
        table[f"gpu{gpu}_power [W]"] = rng.uniform(50, 250, len(table)).round(2)
        table[f"gpu{gpu}_util"] = rng.integers(0, 101, len(table))
    table.loc[table["box"] == "b", ["gpu2_power [W]", "gpu2_util"]] = np.nan
    return table


def expected(table: pd.DataFrame) -> pd.DataFrame:
    """The long table, by pandas alone."""
    parts = []
    for gpu in range(3):
        part = pd.DataFrame({"gpu_uuid": table["box"] + f":gpu{gpu}"})
        stamps = pd.to_datetime(table["day"] + " " + table["clock"], utc=True)
        part["at_ms"] = stamps.dt.as_unit("ms").astype("int64")
        part["power_w"], part["gpu_util_ratio"] = table[f"gpu{gpu}_power [W]"], table[f"gpu{gpu}_util"] / 100
        parts.append(part.dropna())
    return pd.concat(parts).sort_values(["gpu_uuid", "at_ms"]).reset_index(drop=True)


def samples(lake) -> pd.DataFrame:
    got = lake.samples().df()[["gpu_uuid", "at_ms", "power_w", "gpu_util_ratio"]]
    got["at_ms"] = got["at_ms"].astype("int64")
    return got.astype({"gpu_uuid": "object"}).sort_values(["gpu_uuid", "at_ms"]).reset_index(drop=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_wide_rows_equal_the_long_table_of_pandas(own, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(shaping, "LONG_ROWS", 7)  # many small batches
    table = wide_table()
    file = tmp_path / f"f.{kind}"
    if kind == "csv":
        table.to_csv(file, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(table), file)
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest(file, mapping=own(WIDE))
    wanted = expected(table)
    assert (result.rows_added, result.rows_rejected) == (len(wanted), 0)
    left, right = samples(lake), wanted[["gpu_uuid", "at_ms", "power_w", "gpu_util_ratio"]]
    assert left["gpu_uuid"].tolist() == right["gpu_uuid"].tolist()
    assert left["at_ms"].tolist() == right["at_ms"].tolist()
    np.testing.assert_allclose(left[["power_w", "gpu_util_ratio"]], right[["power_w", "gpu_util_ratio"]], rtol=1e-6)
    assert lake.analyze().to_dict()["gpus"] == 5


def test_a_wrong_cell_costs_one_gpu_of_its_row_and_names_the_row(own, tmp_path):
    table = wide_table(8).astype(object)
    table.loc[5, "gpu1_power [W]"] = "lots"
    table.loc[6, "clock"] = "noon"
    table.to_csv(tmp_path / "f.csv", index=False)
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest(tmp_path / "f.csv", mapping=own(WIDE))
    assert result.rejects == {"not_a_number": 1, "wrong_time": 3}
    assert "row 6: power [W] = 'lots'" in result.examples["not_a_number"]
    assert "row 7: day + clock = '2026-01-20 noon'" in result.examples["wrong_time"]


def test_gpus_may_have_different_columns_and_types(own, tmp_path):
    rules = '[[values]]\ncolumn = "power_w"\nsources = "w"\n[[values]]\ncolumn = "xid"\nsources = "xid"\n'
    own_map = own('[wide]\npattern = "{host}/{gpu_index}/{reading}"\n[time]\nsources = "t"\n' + rules)
    table = pa.table({"t": [1_768_867_260], "n1/0/w": [5], "n1/1/w": [7.5], "n2/0/w": ["9 W"], "n2/0/xid": [63]})
    pq.write_table(table, tmp_path / "f.parquet")
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(tmp_path / "f.parquet", mapping=own_map)
    rows = lake.samples().df().sort_values("gpu_uuid")
    assert rows["gpu_uuid"].tolist() == ["n1:gpu0", "n1:gpu1", "n2:gpu0"]
    assert rows["power_w"].tolist() == [5, 7.5, 9]
    assert rows["xid"].fillna(-1).tolist() == [-1, -1, 63]


@pytest.mark.parametrize(
    ("header", "pattern", "words"),
    [
        ("t,a,b", "gpu{gpu_index}_{reading}", ["no column fits", "gpu{gpu_index}_{reading}"]),
        ("t,gpu0_w,w", "gpu{gpu_index}_{reading}", ["makes a column 'w'"]),
        ("t,gpu0_gpu_index,x", "gpu{gpu_index}_{reading}", ["both as a label and as a reading"]),
    ],
)
def test_a_pattern_that_does_not_fit(own, tmp_path, header, pattern, words):
    (tmp_path / "f.csv").write_text(f"{header}\n1768867260,1,2\n")
    mapping = load_mapping(own(f'[wide]\npattern = "{pattern}"\n[time]\nsources = "t"\n'))
    with pytest.raises(FileFault) as caught:
        open_shaped(tmp_path / "f.csv", mapping)
    assert all(w in str(caught.value) for w in words)


TIMES = '[labels]\ngpu_uuid = "g"\n[[values]]\ncolumn = "power_w"\nsources = "w"\n[time]\n'


def instants(own, tmp_path, rule: str, text: str, **more) -> list[int]:
    (tmp_path / "f.csv").write_text(text)
    number = next(n for n in itertools.count() if not (tmp_path / f"lake{n}").exists())
    lake = gpuledger.open(tmp_path / f"lake{number}")
    lake.ingest(tmp_path / "f.csv", mapping=own(TIMES + rule), **more)
    return lake.samples().df()["at_ms"].astype("int64").tolist()


def test_a_date_and_a_time_are_joined(own, tmp_path):
    text = "d,c,g,w\n20.01.2026,00:01,G,5\n"
    rule = 'join = ["d", "c"]\nformats = "%d.%m.%Y %H:%M"\n'
    assert instants(own, tmp_path, rule, text) == [1_768_867_260_000]
    assert instants(own, tmp_path, rule, text, tz="Europe/Berlin") == [1_768_867_260_000 - 3_600_000]
    zoned = "d,c,z,g,w\n2026-01-20,01:01:00,+01:00,G,5\n"
    layout = 'join = ["d", "c", "z"]\nformats = "%Y-%m-%d %H:%M:%S %z"\n'
    assert instants(own, tmp_path, layout, zoned) == [1_768_867_260_000]


def test_a_joined_local_time_of_a_repeated_hour_is_placed_by_the_order_of_the_rows(own, tmp_path):
    clocks = ["02:00", "02:30", "02:00", "02:30"]  # 2026-10-25, clocks go back from 3:00 to 2:00
    text = "d,c,g,w\n" + "".join(f"2026-10-25,{c},G,{n}\n" for n, c in enumerate(clocks))
    first = 1_792_886_400_000
    assert instants(own, tmp_path, 'join = ["d", "c"]\n', text, tz="Europe/Berlin") == [
        first + n * 1_800_000 for n in range(4)
    ]


def test_a_missing_part_of_the_time_is_named(own, tmp_path):
    rule = 'join = ["dat", "c"]\n'
    with pytest.raises(FileFault, match=r"lacks 'dat' \(nearest in the file: 'date'\)"):
        instants(own, tmp_path, rule, "date,c,g,w\n2026-01-20,00:01,G,5\n")
    # Another column with the whole time will do.
    assert instants(own, tmp_path, rule + 'sources = "t"\n', "t,g,w\n1768867260,G,5\n") == [1_768_867_260_000]


@pytest.mark.parametrize(("unit", "per_s"), [("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
def test_epoch_numbers_have_the_unit_of_the_map(own, tmp_path, unit, per_s):
    rule = f'sources = "t"\nunit = "{unit}"\n'
    assert instants(own, tmp_path, rule, f"t,g,w\n{1768867260 * per_s},G,5\n") == [1_768_867_260_000]
    # A number that is an instant in another unit only is wrong.
    with pytest.raises(FileFault, match="wrong_time"):
        instants(own, tmp_path, rule, f"t,g,w\n{1768867260 * per_s * 1000},G,5\n")

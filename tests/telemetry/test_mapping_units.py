"""Are readings read in the unit their cells, their header or the map give, cell by cell?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpuledger.errors import FileFault
from gpuledger.telemetry.convert import convert
from gpuledger.telemetry.mapping import Mapping, TimeRule, ValueRule, bind
from gpuledger.telemetry.measures import factor_of, header_unit
from gpuledger.telemetry.stamps import StampReader


def read(column: str, cells: list, source: str = "x", **rule):
    """One reading of as many rows as there are cells; gives what is kept and the faults."""
    named = rule.pop("sources", (source,))
    rules = (ValueRule(column, named, **rule),)
    mapping = Mapping(
        name="own",
        title="own",
        time=TimeRule(("t",)),
        labels={"gpu_uuid": ("g",)},
        values=rules,
        blank_text=("", "N/A"),
    )
    columns = {"t": [1_768_867_260] * len(cells), "g": ["G"] * len(cells), source: cells}
    bound = bind("f.csv", list(columns), mapping)
    made = convert(pa.RecordBatch.from_pydict(columns), bound, StampReader(()))
    return made.table[column].to_pylist(), [(f.row, f.reason, f.value) for f in made.faults]


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        ("power_w", "300.12 W", 300.12),
        ("power_w", "300120 mW", 300.12),
        ("power_w", "0.3kW", 300),
        ("gpu_util_ratio", "45 %", 0.45),
        ("gpu_util_ratio", "45%", 0.45),
        ("gpu_util_ratio", "45\u00a0%", 0.45),
        ("fb_used_bytes", "40536 MiB", 40536 * 2**20),
        ("fb_used_bytes", "40536 mib", 40536 * 2**20),
        ("fb_used_bytes", "42 GB", 42 * 10**9),
        ("sm_clock_mhz", "1.5 GHz", 1500),
        ("sm_clock_mhz", "1410 MHz", 1410),
        ("pcie_tx_bytes_per_s", "12 GB/s", 12e9),
        ("nvlink_bytes_per_s", "8 Gbit/s", 1e9),
        ("pcie_rx_bytes_per_s", "13000 KB/s", 13e6),
        ("energy_mj", "1.5 J", 1500),
        ("energy_mj", "2 kWh", 7_200_000_000),
        ("gpu_temp_c", "61 C", 61),
        ("gpu_temp_c", "61°C", 61),
        ("gpu_temp_c", "212 F", 100),
        ("gpu_temp_c", "300.15 K", 27),
        ("power_w", "1e2 W", 100),
        ("power_w", "+5 W", 5),
    ],
)
def test_a_cell_with_a_unit(column, cell, value):
    (got,), faults = read(column, [cell])
    assert got == pytest.approx(value, rel=1e-6)
    assert faults == []


def test_mixed_units_in_one_column_are_read_cell_by_cell():
    cells = ["300 W", "0.25 kW", "150000 mW", "120", "N/A", ""]
    assert read("power_w", cells) == ([300, 250, 150, 120, None, None], [])
    # The factor of the map is for bare numbers only.
    assert read("power_w", cells, divide=1000)[0] == [300, 250, 150, 0.12, None, None]
    assert read("power_w", cells, unit="kW")[0][:3] == [300, 250, 150]
    assert [r[1] for r in read("power_w", cells, unit="kW")[1]] == ["out_of_range"]


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("power_w", "300 horsepower", "wrong_unit"),
        ("power_w", "300 MiB", "wrong_unit"),
        ("power_w", "300MiB", "wrong_unit"),
        ("power_w", "5 mw", "wrong_unit"),  # mW or MW?
        ("energy_mj", "5 mj", "wrong_unit"),
        ("xid", "63 W", "wrong_unit"),
        ("power_w", "5O", "not_a_number"),
        ("power_w", "W", "not_a_number"),
        ("power_w", "3 4 W", "not_a_number"),
        ("gpu_util_ratio", "450 %", "out_of_range"),
        ("power_w", "-3 W", "out_of_range"),
        ("power_w", "1e308 MW", "out_of_range"),
    ],
)
def test_a_unit_that_cannot_be_costs_its_row(column, cell, reason):
    kept, faults = read(column, ["1" if column == "gpu_util_ratio" else "50", cell, "0"])
    assert len(kept) == 2
    assert faults == [(1, reason, cell)]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("power.draw [W]", ("power.draw", "W")),
        ("GPU use (%)", ("GPU use", "%")),
        ("memory.used [MiB]", ("memory.used", "MiB")),
        ("clock (current)", None),
        ("power", None),
        ("[W]", None),
    ],
)
def test_the_unit_of_a_header(name, unit):
    found = header_unit(name)
    assert (found and (found.name, found.unit)) == unit


def test_a_header_gives_the_unit_of_bare_numbers():
    assert read("power_w", ["300120"], "power.draw [mW]") == ([300.12], [])
    assert read("power_w", ["300120", "12 W"], "power.draw [mW]", sources=("power.draw",)) == ([300.12, 12], [])
    # What the map says about the numbers counts.
    assert read("gpu_util_ratio", ["50"], "util [%]", divide=200)[0] == [0.25]
    with pytest.raises(FileFault, match="is in mW, and the map reads it in W"):
        read("power_w", ["1"], "power.draw [mW]", unit="W")
    with pytest.raises(FileFault, match="is in MiB, which power_w"):
        read("power_w", ["1"], "power [MiB]")


def test_whole_numbers_stay_whole_and_never_wrap():
    assert read("fb_used_bytes", [2**40 // 2**20], unit="MiB")[0] == [2**40]
    assert read("fb_used_bytes", [2**62, -(2**62), 3], multiply=1048576)[1][:2] == [
        (0, "out_of_range", str(2**62)),
        (1, "out_of_range", str(-(2**62))),
    ]
    assert read("power_w", [3, 5], multiply=0.5)[0] == [1.5, 2.5]  # not 0
    assert read("power_w", [0, 0], multiply=1e300)[0] == [0, 0]


def test_many_cells_with_a_few_units_equal_a_plain_loop():
    rng = np.random.default_rng(5)
    factors = {"W": 1, "mW": 1 / 1000, "kW": 1000, "": 1}
    units = rng.choice(list(factors), 20_000)
    numbers = rng.integers(0, 15, 20_000)
    cells = [f"{n} {u}".strip() for n, u in zip(numbers.tolist(), units.tolist(), strict=True)]
    wanted = [n * factors[u] for n, u in zip(numbers.tolist(), units.tolist(), strict=True)]
    assert read("power_w", cells)[0] == pytest.approx(wanted)


def test_letter_case_counts_where_it_matters():
    assert factor_of("MW", "power_w").of(1) == 1e6
    assert factor_of("mW", "power_w").of(1) == 1e-3
    assert factor_of("mw", "power_w") is None
    assert factor_of("MHZ", "sm_clock_mhz").of(1) == 1
    assert factor_of("Mb/s", "pcie_tx_bytes_per_s").of(8) == 1e6
    assert factor_of("mb/s", "pcie_tx_bytes_per_s") is None

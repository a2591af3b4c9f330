import csv
import hashlib
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.gpus import get_gpu
from gpuledger.errors import FileFault, GpuledgerError, InputError
from gpuledger.native.number_types import numpy_type
from gpuledger.telemetry.fleet import demo_fleet, largest_remainder, makeup, plan_fleet
from gpuledger.telemetry.fleet_values import BLOCK_ROWS, block_scrapes
from gpuledger.telemetry.synthetic import FleetSpec, batches, export_schema, write_fleet
from gpuledger.units import MIB

DEV, PROF = "DCGM_FI_DEV_", "DCGM_FI_PROF_"
PUBLISHED = """
ACTIVITYDATE ACTIVITYHOUR HOSTNAME SCRAPETIME CLOUDREGION CLUSTERNAME MODELNAME UUID NAMESPACE
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_DEC_UTIL DCGM_FI_DEV_ENC_UTIL DCGM_FI_DEV_FB_FREE
DCGM_FI_DEV_FB_USED DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_MEM_CLOCK
DCGM_FI_DEV_MEM_COPY_UTIL DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_POWER_USAGE
DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION
DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_VGPU_LICENSE_STATUS DCGM_FI_DEV_XID_ERRORS
DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_PCIE_RX_BYTES DCGM_FI_PROF_PCIE_TX_BYTES
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE NODEGROUP POD CONTAINER
"""
SMALL = FleetSpec(gpus=7, days=0.05)


def table_of(spec: FleetSpec) -> pa.Table:
    return pa.Table.from_batches(list(batches(spec)))


def figures(table: pa.Table, name: str, gpus: int) -> np.ndarray:
    """One column as scrapes x GPUs."""
    return table.column(name).to_numpy().reshape(-1, gpus)


@pytest.fixture(scope="module")
def demo() -> pa.Table:
    return table_of(FleetSpec())


@pytest.fixture(scope="module")
def by_scenario(demo: pa.Table) -> dict[str, dict[str, np.ndarray]]:
    """The demo's columns by the primary scenario of the GPU."""
    names = np.array([a.scenario for a in demo_fleet()])
    columns = [PROF + "PIPE_TENSOR_ACTIVE", PROF + "DRAM_ACTIVE", PROF + "GR_ENGINE_ACTIVE", DEV + "POWER_USAGE"]
    columns += [PROF + "PCIE_RX_BYTES", DEV + "SM_CLOCK", DEV + "GPU_UTIL"]
    return {
        s: {c.removeprefix(DEV).removeprefix(PROF): figures(demo, c, 50)[:, names == s] for c in columns}
        for s in set(names)
    }


# The plan


def test_the_demo_has_the_published_make_up():
    fleet = plan_fleet(FleetSpec())
    assert Counter(a.cluster for a in fleet).most_common() == [
        ("prod-us-east-1", 20),
        ("prod-us-west-2", 20),
        ("research-eu-west-1", 10),
    ]
    counts = Counter(a.scenario for a in fleet)
    assert [counts[s.name] for s in makeup().scenarios] == [15, 10, 7, 10, 5, 3]
    assert {a.namespace for a in fleet} == {"ml-training", "ml-inference", "research", "fraud-detection"}
    for cluster in {a.cluster for a in fleet}:
        assert {"NVIDIA A100-SXM4-40GB", "NVIDIA A10G"} <= {a.model for a in fleet if a.cluster == cluster}
    assert {a.model for a in fleet} == {m.name for m in makeup().models}
    training = [a for a in fleet if a.scenario in ("efficient_training", "data_starved", "network_bottleneck")]
    assert {a.namespace for a in training} <= {"ml-training", "research"}
    assert {a.namespace for a in fleet if a.scenario == "inference"} <= {"ml-inference", "fraud-detection"}


@pytest.mark.parametrize("gpus", [1, 7, 50, 500, 1003])
def test_a_fleet_of_any_size_keeps_the_shares(gpus):
    fleet = plan_fleet(FleetSpec(gpus=gpus))
    assert len(fleet) == len({a.uuid for a in fleet}) == gpus
    assert all(re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", a.uuid) for a in fleet)
    for field, things in (("scenario", makeup().scenarios), ("cluster", makeup().clusters)):
        counts = Counter(getattr(a, field) for a in fleet)
        assert all(abs(counts[t.name] - t.share * gpus) < 1 for t in things)
    models = {m.name: m for m in makeup().models}
    assert all(a.node_group == models[a.model].node_group for a in fleet)
    for (_, model), count in Counter((a.host, a.model) for a in fleet).items():
        assert count <= models[model].gpus_per_host
    assert len({a.host for a in fleet}) == len({(a.host, a.cluster, a.model) for a in fleet})


def test_another_seed_shuffles_the_plan():
    one, two = (plan_fleet(FleetSpec(gpus=40, seed=s)) for s in (1, 2))
    assert [a.scenario for a in one] != [a.scenario for a in two]
    assert one == plan_fleet(FleetSpec(gpus=40, seed=1))


def test_largest_remainder_by_hand():
    # 4.5 and 1.5 of 6 + 3.0: the two halves compete for one GPU; the smaller share gets it.
    assert largest_remainder([0.5, 0.5 / 3, 1 / 3], 9) == [4, 2, 3]
    assert largest_remainder([0.3, 0.2, 0.15, 0.2, 0.1, 0.05], 50) == [15, 10, 7, 10, 5, 3]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 1000))
def test_largest_remainder_adds_up_and_is_off_by_less_than_one(weights, total):
    shares = [w / sum(weights) for w in weights]
    counts = largest_remainder(shares, total)
    assert sum(counts) == total
    assert all(abs(c - s * total) < 1 + 1e-6 for c, s in zip(counts, shares, strict=True))


# The rows


def test_columns_and_types():
    schema = export_schema()
    assert len(schema) == 36
    assert schema.names == PUBLISHED.split()
    assert schema.field("SCRAPETIME").type == pa.timestamp("ms", "UTC")
    assert schema.field("UUID").type == pa.dictionary(pa.int32(), pa.string())


def test_the_demo_is_504000_rows_scrape_by_scrape(demo):
    assert demo.num_rows == FleetSpec().rows == 504_000
    assert all(column.null_count == 0 for column in demo.columns)
    at_ms = demo.column("SCRAPETIME").cast(pa.int64()).to_numpy()
    assert at_ms[0] == 1_768_867_200_000  # 2026-01-20T00:00Z
    assert (np.diff(at_ms[::50]) == 60_000).all()
    assert (at_ms.reshape(-1, 50) == at_ms[::50, None]).all()
    uuids = [a.uuid for a in demo_fleet()]
    assert demo.column("UUID").slice(0, 50).to_pylist() == uuids
    assert demo.column("UUID").slice(503_950).to_pylist() == uuids
    assert demo.column("ACTIVITYDATE").unique().to_pylist() == [f"01/{d}/26" for d in range(20, 27)]
    hours = figures(demo, "ACTIVITYHOUR", 50)[:, 0]
    assert hours.tolist() == [h for _ in range(7) for h in range(24) for _ in range(60)]


def test_the_published_findings_are_near(demo):
    util = demo.column(DEV + "GPU_UTIL").to_numpy()
    board_w = np.array([get_gpu(a.model).board_power_w.value for a in demo_fleet()])
    pif = (figures(demo, DEV + "POWER_USAGE", 50) / board_w).ravel()
    active = util > 1
    assert util.mean() == pytest.approx(70.4, abs=2)
    assert pif.mean() == pytest.approx(0.655, abs=0.02)
    assert util.mean() - 100 * pif.mean() == pytest.approx(4.9, abs=2.5)
    assert 100 * (active & (util > 70) & (pif < 0.6)).sum() / active.sum() == pytest.approx(26.8, abs=5)


def test_five_percent_of_samples_come_from_another_scenario(by_scenario):
    # An idle GPU reads 0 to 5, every other scenario at least 30.
    util = by_scenario["idle"]["GPU_UTIL"]
    assert (util > 5).mean() == pytest.approx(0.05, abs=0.003)
    spec = FleetSpec(gpus=10, days=0.2, mix_ratio=0)
    idle = [i for i, a in enumerate(plan_fleet(spec)) if a.scenario == "idle"]
    assert figures(table_of(spec), DEV + "GPU_UTIL", 10)[:, idle].max() <= 5


def test_the_counters_agree_with_the_power_of_the_recorded_h200(by_scenario):
    """The relation written in scenarios.toml, fitted to a recording of real workloads."""
    tensor_at = {}
    for name, c in by_scenario.items():
        idle_w, board_w, top_mhz = (np.array(x) for x in zip(*_facts(name), strict=True))
        power = ((c["POWER_USAGE"] - idle_w) / (board_w - idle_w)).mean()
        demand = 1.10 * c["PIPE_TENSOR_ACTIVE"] + 0.393 * c["DRAM_ACTIVE"] + 0.409 * c["GR_ENGINE_ACTIVE"]
        assert (0.072 + demand * (c["SM_CLOCK"] / top_mhz) ** 1.4).mean() == pytest.approx(power, abs=0.1), name
        tensor_at[name] = c["PIPE_TENSOR_ACTIVE"].mean()
    assert tensor_at["data_starved"] < 0.2 < 0.45 < tensor_at["efficient_training"]
    assert tensor_at["network_bottleneck"] < 0.2
    starved, network = by_scenario["data_starved"], by_scenario["network_bottleneck"]
    assert starved["GR_ENGINE_ACTIVE"].mean() < 0.5 * starved["GPU_UTIL"].mean() / 100
    assert network["GR_ENGINE_ACTIVE"].mean() > 0.8 * network["GPU_UTIL"].mean() / 100
    assert network["PCIE_RX_BYTES"].mean() > 4 * by_scenario["efficient_training"]["PCIE_RX_BYTES"].mean()
    assert by_scenario["inference"]["DRAM_ACTIVE"].mean() > 2 * tensor_at["inference"]
    quiet = by_scenario["idle"]["GPU_UTIL"] <= 5
    assert by_scenario["idle"]["PIPE_TENSOR_ACTIVE"][quiet].max() == 0
    assert by_scenario["idle"]["GR_ENGINE_ACTIVE"][quiet].max() < 0.01


def _facts(scenario: str) -> list[tuple[float, float, float]]:
    gpus = [get_gpu(a.model) for a in demo_fleet() if a.scenario == scenario]
    return [
        (g.idle_power_w.value, g.board_power_w.value, max(g.fp32_rated_mhz.value, g.tensor_rated_mhz.value))
        for g in gpus
    ]


@pytest.mark.parametrize("scenario", ["efficient_training", "data_starved", "network_bottleneck", "moderate_load"])
def test_counters_move_with_the_power_of_their_own_sample(scenario):
    spec = FleetSpec(gpus=50, days=1, mix_ratio=0, noise_ratio=0)
    table = table_of(spec)
    gpu = next(i for i, a in enumerate(demo_fleet()) if a.scenario == scenario)
    power, tensor, clock = (
        figures(table, name, 50)[:, gpu]
        for name in (DEV + "POWER_USAGE", PROF + "PIPE_TENSOR_ACTIVE", DEV + "SM_CLOCK")
    )
    assert np.corrcoef(power, tensor)[0, 1] > 0.9
    if scenario == "efficient_training":
        assert np.corrcoef(power, clock)[0, 1] < -0.9


def test_rare_events_happen_and_their_counters_never_fall(demo):
    xid = demo.column(DEV + "XID_ERRORS").to_numpy()
    assert 0 < (xid != 0).sum() < 50
    assert set(xid[xid != 0].tolist()) <= set(makeup().events.xid_codes)
    replays = figures(demo, DEV + "PCIE_REPLAY_COUNTER", 50)
    assert 10 < replays[-1].sum() < 200
    for name in ("PCIE_REPLAY_COUNTER", "CORRECTABLE_REMAPPED_ROWS", "UNCORRECTABLE_REMAPPED_ROWS"):
        assert (np.diff(figures(demo, DEV + name, 50), axis=0) >= 0).all()


def test_energy_by_hand_and_across_blocks(demo):
    """E(next) - E(now) = P(now) x 60 s, in mJ; the demo spans three blocks."""
    energy, power = figures(demo, DEV + "TOTAL_ENERGY_CONSUMPTION", 50), figures(demo, DEV + "POWER_USAGE", 50)
    assert energy.dtype == np.int64
    assert (np.diff(energy, axis=0) == np.rint(power[:-1] * 60_000).astype(np.int64)).all()
    assert len(demo.column("UUID").chunks) == 3


def test_noise_never_takes_power_below_zero_or_above_the_board():
    table = table_of(FleetSpec(gpus=50, days=0.1, noise_ratio=0.5))
    board_w = np.array([get_gpu(a.model).board_power_w.value for a in demo_fleet()])
    power = figures(table, DEV + "POWER_USAGE", 50)
    assert power.min() == 0
    assert (power <= board_w).all()
    assert (power.max(axis=0) == board_w).any()


specs = st.builds(
    FleetSpec,
    gpus=st.integers(1, 60),
    days=st.floats(0.001, 0.03),
    step_s=st.sampled_from([0.1, 1, 10, 45.5, 60, 3600]),
    seed=st.integers(0, 2**64 - 1),
    mix_ratio=st.sampled_from([0.0, 0.05, 1.0]),
)


@settings(max_examples=20, deadline=None)
@given(specs)
def test_laws_of_every_fleet(spec):
    table = table_of(spec)
    rows = -(-round(spec.days * 86_400_000) // round(spec.step_s * 1000)) * spec.gpus
    assert table.num_rows == spec.rows == rows
    assert table.schema == export_schema()
    table.validate(full=True)
    fleet = plan_fleet(spec)
    memory_mib = np.array([int(get_gpu(a.model).memory_bytes.value) // MIB for a in fleet])
    used, free = (figures(table, DEV + n, spec.gpus) for n in ("FB_USED", "FB_FREE"))
    assert (used + free == memory_mib).all()
    assert used.min() > 0
    assert free.min() > 0
    energy, power = (figures(table, DEV + n, spec.gpus) for n in ("TOTAL_ENERGY_CONSUMPTION", "POWER_USAGE"))
    assert (np.diff(energy, axis=0) >= 0).all()
    spent_mj = np.rint(power[:-1] * 1000) * spec.step_ms / 1000
    assert np.abs(energy[1:] - energy[0] - np.cumsum(spent_mj, axis=0)).max(initial=0) < 1.001
    util, engine = table.column(DEV + "GPU_UTIL").to_numpy(), table.column(PROF + "GR_ENGINE_ACTIVE").to_numpy()
    tensor, dram = table.column(PROF + "PIPE_TENSOR_ACTIVE").to_numpy(), table.column(PROF + "DRAM_ACTIVE").to_numpy()
    assert util.min() >= 0
    assert util.max() <= 100
    assert (engine <= util / 100 + 5e-5).all()
    for ratio in (tensor, dram):
        assert ratio.min() >= 0
        assert (ratio <= engine + 5e-5).all()
    nvlink = figures(table, DEV + "NVLINK_BANDWIDTH_TOTAL", spec.gpus)
    assert (nvlink[:, [a.model == "NVIDIA A10G" for a in fleet]] == 0).all()
    clock = table.column(DEV + "SM_CLOCK").to_numpy()
    assert (clock % 15 == 0).all()
    assert 200 < clock.min() <= clock.max() <= 1980


# Determinism and memory


def test_the_same_seed_gives_the_same_figures_and_another_does_not():
    assert table_of(SMALL).equals(table_of(SMALL))
    other = table_of(FleetSpec(gpus=7, days=0.05, seed=8))
    assert not other.column(DEV + "POWER_USAGE").equals(table_of(SMALL).column(DEV + "POWER_USAGE"))


def test_the_figures_are_those_of_every_machine():
    """A change here changes everybody's demo: mean it, and say so in the changelog."""
    digest = hashlib.sha256(repr(table_of(SMALL).to_pydict()).encode()).hexdigest()
    assert digest[:16] == "3691c6bc443cde1a"


def test_a_longer_run_begins_like_a_shorter_one():
    short, longer = table_of(FleetSpec(gpus=7, days=0.05)), table_of(FleetSpec(gpus=7, days=0.1))
    for name in short.schema.names:
        assert longer.column(name).slice(0, short.num_rows).to_pylist() == short.column(name).to_pylist()


def test_blocks_are_bounded_whatever_the_days_and_step():
    assert [block_scrapes(g) for g in (1, 50, 5000, 900_000)] == [250_000, 5000, 50, 1]
    for spec in (FleetSpec(gpus=5000, days=0.1), FleetSpec(gpus=5000, days=0.001, step_s=1)):
        sizes = [b.num_rows for b in batches(spec)]
        assert set(sizes[:-1]) <= {BLOCK_ROWS}
        assert sizes[-1] <= BLOCK_ROWS


# The files


def test_parquet_reads_back_as_it_was_made(tmp_path):
    told: list[int] = []
    path = tmp_path / "new" / "fleet.parquet"
    assert write_fleet(SMALL, path, progress=told.append) == SMALL.rows == sum(told)
    assert pq.read_table(path).equals(table_of(SMALL))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    assert [f.name for f in path.parent.iterdir()] == ["fleet.parquet"]


@pytest.mark.parametrize(
    ("step_s", "first", "last"),
    [(60, "01/20/26 00:00", "01/20/26 11:59"), (10, "01/20/26 00:00:00", "01/20/26 11:59:50")],
)
def test_csv_text(tmp_path, step_s, first, last):
    spec = FleetSpec(gpus=7, days=0.5, step_s=step_s)
    assert write_fleet(spec, tmp_path / "fleet.csv", "csv") == spec.rows
    text = (tmp_path / "fleet.csv").read_text()
    assert text.startswith("ACTIVITYDATE,ACTIVITYHOUR,HOSTNAME,SCRAPETIME,")
    assert '"' not in text
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == spec.rows
    assert list(rows[0]) == export_schema().names
    assert (rows[0]["SCRAPETIME"], rows[-1]["SCRAPETIME"]) == (first, last)
    assert (rows[0]["ACTIVITYDATE"], rows[-1]["ACTIVITYHOUR"]) == ("01/20/26", "11")
    table = table_of(spec)
    for name in export_schema().names:
        made = table.column(name)
        if pa.types.is_dictionary(made.type):
            assert [r[name] for r in rows] == made.to_pylist()
        elif name != "SCRAPETIME":
            assert (np.array([float(r[name]) for r in rows], numpy_type(made.type)) == made.to_numpy()).all()
    assert all(re.fullmatch(r"\d+(\.\d{1,3})?", r[DEV + "POWER_USAGE"]) for r in rows)


@pytest.mark.parametrize("fmt", ["parquet", "csv"])
def test_a_file_a_day(tmp_path, fmt):
    spec = FleetSpec(gpus=3, days=2.5, step_s=1000)  # 86.4 scrapes a day: days do not end on a scrape
    for _ in range(2):  # again over its own files
        assert write_fleet(spec, tmp_path / "days", fmt, files="day") == spec.rows
    names = sorted(f.name for f in (tmp_path / "days").iterdir())
    assert names == [f"2026-01-{d}.{fmt}" for d in (20, 21, 22)]
    if fmt == "parquet":
        tables = [pq.read_table(tmp_path / "days" / n) for n in names]
        assert [t.num_rows for t in tables] == [3 * 87, 3 * 86, 3 * 43]
        assert [t.column("ACTIVITYDATE").unique().to_pylist() for t in tables] == [
            ["01/20/26"],
            ["01/21/26"],
            ["01/22/26"],
        ]
        assert pa.concat_tables(tables).to_pydict() == table_of(spec).to_pydict()


@pytest.mark.parametrize("fmt", ["parquet", "csv"])
def test_a_stop_on_the_way_leaves_the_old_file_and_nothing_else(tmp_path, fmt):
    path = tmp_path / f"fleet.{fmt}"
    path.write_text("before")

    def stop(_: int) -> None:
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_fleet(SMALL, path, fmt, stop)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


# Bad input


@pytest.mark.parametrize(
    "bad",
    [
        {"gpus": 0},
        {"gpus": -3},
        {"gpus": 10**7},
        {"days": 0},
        {"days": -1},
        {"days": float("nan")},
        {"days": float("inf")},
        {"days": 40_000},
        {"step_s": 0},
        {"step_s": -60},
        {"step_s": float("nan")},
        {"start": "20.01.2026"},
        {"start": "1999-12-31"},
        {"seed": -1},
        {"seed": 2**64},
        {"mix_ratio": 1.5},
        {"noise_ratio": -0.1},
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_with_a_hint(bad):
    with pytest.raises(InputError) as caught:
        FleetSpec(**bad)
    assert caught.value.hint


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "other.parquet").write_text("")
    cases: list[tuple[str, dict[str, object], type[GpuledgerError]]] = [
        ("x", {"format": "xlsx"}, InputError),
        ("x", {"files": "hour"}, InputError),
        ("days", {}, FileFault),
        ("file", {"files": "day"}, FileFault),
        ("days", {"files": "day"}, FileFault),
        ("file/x.parquet", {}, GpuledgerError),
    ]
    before = sorted(tmp_path.rglob("*"))
    for name, options, error in cases:
        with pytest.raises(error) as caught:
            write_fleet(SMALL, tmp_path / name, **options)
        assert caught.value.hint
    with pytest.raises(InputError, match="whole seconds"):
        write_fleet(FleetSpec(gpus=1, days=0.001, step_s=0.5), tmp_path / "x.csv", "csv")
    assert sorted(tmp_path.rglob("*")) == before

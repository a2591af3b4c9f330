"""Do utilization, energy, memory and RFU of a run come from the samples beside it, and only of GPUs that served it?"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from statistics import median_low

import pyarrow.parquet as pq
import pytest

from gpuledger.bench.load import Load
from gpuledger.bench.plan import Bench, Station
from gpuledger.bench.results import read_run
from gpuledger.bench.runner import run_bench
from gpuledger.encode import encode
from gpuledger.lake.layout import Lake
from gpuledger.recording.runs import read_runs
from gpuledger.scaling.analysis.telemetry import telemetry_of
from gpuledger.scaling.build import gather, scaling_statement
from gpuledger.testing.openai_script import ServerScript
from gpuledger.testing.openai_server import OpenAiServer
from gpuledger.units import MIB, Unknown

POWER_W, UTIL_PCT, USED_MIB, TENSOR_RATIO = 500.0, 80, 15_000, 0.4
COLUMNS = (
    "at_ms", "gpu_uuid", "gpu_model", "gpu_util_ratio", "power_w", "sm_clock_mhz", "energy_mj", "fb_used_bytes",
    "fb_free_bytes", "throttle_bits", "engine_ratio", "sm_ratio", "tensor_ratio",
)  # fmt: skip


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A real run against a real server, beside it a GPU that holds 500 W, 80 % and 15,000 MiB all the time."""
    folder = tmp_path_factory.mktemp("busy")
    rows = [",".join(COLUMNS)]
    for tick in range(600):
        held = (1_800_000_000_000 + 100 * tick, "GPU-1", "NVIDIA H200", UTIL_PCT / 100, POWER_W, 1980, 50_000 * tick)
        rows.append(",".join(map(str, (*held, USED_MIB * MIB, 100_000 * MIB, 0, 0.8, 0.8, TENSOR_RATIO))))
    (folder / "busy.csv").write_text("\n".join(rows) + "\n")
    begun = time.monotonic()
    with OpenAiServer(ServerScript(ttft_s=0.1, tokens=10)) as server:
        load = Load(requests=12, concurrency=1, output_tokens=10)
        made = Bench("openai_http", (Station("a", {"url": server.url}),), load, folder / "r.jsonl",
                     device=f"replay:{folder / 'busy.csv'}", hz=20.0)  # fmt: skip
        return run_bench(made), time.monotonic() - begun


@pytest.fixture(scope="module")
def busy_run(busy):
    return busy[0]


def observed_s(run):
    """How long the samples beside a run stand for: each to the next, but no longer than 2.5 usual steps."""
    lake = Lake(run.telemetry_dir)
    files = [lake.path(part) for part in lake.manifest().parts]
    at = sorted(stamp for file in files for stamp in pq.read_table(file, columns=["at_ms"])["at_ms"].to_pylist())
    steps = [b - a for a, b in pairwise(at)]
    usual = median_low(steps)
    return (sum(min(step, 2.5 * usual) for step in steps) + usual) / 1000


def test_what_the_gpu_did_is_said_with_the_run(busy):
    busy_run, lasted_s = busy
    found = encode("scaling", scaling_statement(gather([busy_run.file])))
    assert found["telemetry"]["gpu_util_pct"] == pytest.approx(UTIL_PCT, abs=0.5)
    assert found["telemetry"]["rfu_power_pct"] == pytest.approx(100 * POWER_W / 700, rel=0.01)  # an H200 may draw 700 W
    spread = found["telemetry"]["rfu_counters_pct"]
    assert spread["low"] <= 100 * TENSOR_RATIO <= spread["high"] + 1e-9
    # 500 W for as long as the samples reach; where the machine held up the sampler, some of it is not known.
    seconds = found["telemetry"]["energy_j"] / POWER_W
    assert 0 < seconds < lasted_s + 0.15
    (notes,) = read_runs(Lake(busy_run.telemetry_dir))
    if not notes.skipped_ticks:
        assert seconds == pytest.approx(observed_s(busy_run), abs=0.15)
    joules = found["telemetry"]["energy_j"] / 120 * 1e6  # 12 answers of 10 tokens
    assert found["cost"]["joules_per_million_tokens"] == pytest.approx(joules)
    assert found["grades"]["utilization"]["grade"] is not None


def test_memory_is_that_of_the_real_card_node_by_node(busy_run):
    found = encode("scaling", scaling_statement(gather([busy_run.file])))
    (node,) = found["nodes"]
    assert node["memory_used_bytes"] == USED_MIB * MIB
    assert node["memory_pct"] == pytest.approx(100 * USED_MIB * MIB / 141e9)
    assert found["memory_pct"] == pytest.approx(node["memory_pct"])
    assert [g["memory_bytes"] for g in found["telemetry"]["gpus"]] == [USED_MIB * MIB]


def test_the_clients_own_gpu_says_nothing_of_servers_elsewhere(busy_run, tmp_path):
    lines = [json.loads(line) for line in Path(busy_run.file).read_text(encoding="utf-8").splitlines()]
    lines[0]["nodes"]["a"]["url"] = lines[0]["found"]["a"]["url"] = "http://10.1.2.3:8000"
    lines[0]["telemetry"] = str(busy_run.telemetry_dir)
    away = tmp_path / "away.jsonl"
    away.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = telemetry_of(read_run(away))
    assert "a answered elsewhere" in made.energy_j.why
    assert isinstance(made.memory_peak_bytes, Unknown)
    assert made.gpus == ()

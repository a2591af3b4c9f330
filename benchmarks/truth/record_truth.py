"""What do the counters say while a known number of FLOPs runs? Records SAMPLES and TRUTH for benchmarks/truth/score.py.

    python benchmarks/truth/record_truth.py OUT_DIR [--seconds 8] [--only NAME...] [--workloads FILE.toml]

Needs a GPU with activity counters (Hopper or later), torch and nvidia-ml-py. Writes OUT_DIR/samples.csv.gz and
OUT_DIR/truth.json. A second process samples at 10 Hz, so that the workload's own Python does not delay it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import multiprocessing as mp
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STEP_S = 0.1
GPM = {
    "gr_engine_active": "GRAPHICS_UTIL",
    "sm_active": "SM_UTIL",
    "sm_occupancy": "SM_OCCUPANCY",
    "integer_active": "INTEGER_UTIL",
    "tensor_active": "ANY_TENSOR_UTIL",
    "dfma_tensor_active": "DFMA_TENSOR_UTIL",
    "hmma_tensor_active": "HMMA_TENSOR_UTIL",
    "imma_tensor_active": "IMMA_TENSOR_UTIL",
    "dram_active": "DRAM_BW_UTIL",
    "fp64_active": "FP64_UTIL",
    "fp32_active": "FP32_UTIL",
    "fp16_active": "FP16_UTIL",
    "pcie_tx_mib_s": "PCIE_TX_PER_SEC",
    "pcie_rx_mib_s": "PCIE_RX_PER_SEC",
}


class Board:
    """One GPU through NVML: a row of readings each time it is asked."""

    def __init__(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        self.api: Any = pynvml
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._gpm = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]
        pynvml.nvmlGpmSampleGet(self.handle, self._gpm[0])

    def row(self) -> dict[str, float]:
        api, handle = self.api, self.handle
        rates, memory = api.nvmlDeviceGetUtilizationRates(handle), api.nvmlDeviceGetMemoryInfo(handle)
        return {
            "t": time.time(),
            "gpu_util": rates.gpu,
            "mem_copy_util": rates.memory,
            "power_w": api.nvmlDeviceGetPowerUsage(handle) / 1e3,
            "sm_clock_mhz": api.nvmlDeviceGetClockInfo(handle, api.NVML_CLOCK_SM),
            "mem_clock_mhz": api.nvmlDeviceGetClockInfo(handle, api.NVML_CLOCK_MEM),
            "energy_j": api.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3,
            "fb_used_mib": memory.used / (1 << 20),
            "fb_free_mib": memory.free / (1 << 20),
            "throttle": api.nvmlDeviceGetCurrentClocksEventReasons(handle),
            **dict(self._activity()),
        }

    def _activity(self) -> Iterator[tuple[str, float]]:
        api, (before, after) = self.api, self._gpm
        api.nvmlGpmSampleGet(self.handle, after)
        self._gpm = [after, before]
        request = api.c_nvmlGpmMetricsGet_t()
        request.version, request.numMetrics = api.NVML_GPM_METRICS_GET_VERSION, len(GPM)
        request.sample1, request.sample2 = before, after
        for i, name in enumerate(GPM.values()):
            request.metrics[i].metricId = getattr(api, f"NVML_GPM_METRIC_{name}")
        api.nvmlGpmMetricsGet(request)
        for i, column in enumerate(GPM):
            if request.metrics[i].nvmlReturn == api.NVML_SUCCESS:
                yield column, round(request.metrics[i].value, 4)


def sample(path: str, stop: Any) -> None:
    """Write a row each 0.1 s until told to stop."""
    board = Board()
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        due = time.monotonic() + STEP_S
        writer: Any = None
        while not stop.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due + STEP_S, time.monotonic())
            row = board.row()
            writer = writer or csv.DictWriter(file, list(row), restval="")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow({k: v for k, v in row.items() if k in writer.fieldnames})


def label(raw: Path, out: Path, windows: dict[str, dict[str, Any]]) -> None:
    """Give each row the workload it fell into, `gap` where none ran."""
    with raw.open(encoding="utf-8") as source, gzip.open(out, "wt", encoding="utf-8", newline="") as target:
        rows = list(csv.DictReader(source))
        writer = csv.DictWriter(target, ["t", "workload", *(k for k in rows[0] if k != "t")])
        writer.writeheader()
        for row in rows:
            at = float(row["t"])
            name = next((n for n, w in windows.items() if w["start_at"] <= at < w["end_at"]), "gap")
            writer.writerow({**row, "workload": name})


def info() -> dict[str, Any]:
    board = Board()
    api, handle = board.api, board.handle
    import torch

    return {
        "gpu": api.nvmlDeviceGetName(handle),
        "driver": api.nvmlSystemGetDriverVersion(),
        "power_limit_w": api.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
        "sm_count": torch.cuda.get_device_properties(0).multi_processor_count,
        "max_sm_clock_mhz": api.nvmlDeviceGetMaxClockInfo(handle, api.NVML_CLOCK_SM),
        "torch": torch.__version__,
        "sample_hz": round(1 / STEP_S),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workloads", type=Path, default=Path(__file__).with_name("truth_workloads.toml"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    raw = args.out / "samples.csv"
    context = mp.get_context("spawn")
    stop = context.Event()
    sampler = context.Process(target=sample, args=(str(raw), stop))
    sampler.start()
    time.sleep(1.0)
    from truth_workloads import measure_all

    windows: dict[str, dict[str, Any]] = {}
    try:
        for name, found in measure_all(args.seconds, args.only, args.workloads):
            windows[name] = found
            print(f"{name:28s} {found['tflop_per_s']:9.2f} TFLOP/s", flush=True)
    finally:
        stop.set()
        sampler.join()
        facts = info()
        gemm = windows.get("bf16_gemm_8192", {}).get("tflop_per_s")
        facts["measured_bf16_gemm_tflops"] = round(gemm) if gemm else None
        label(raw, args.out / "samples.csv.gz", windows)
        raw.unlink()
        (args.out / "truth.json").write_text(json.dumps({"info": facts, "workloads": windows}, indent=1))


if __name__ == "__main__":
    main()

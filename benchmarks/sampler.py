"""What does recording cost in CPU time, and where does it go?

    python benchmarks/sampler.py [--device nvml|replay:FILE] [--seconds 30] [--gpus N] [--json]

Rows: the sampler alone, then with the lake. Figures are CPU time (user + system) of the threads that sample and write,
over the wall time, per device. With nvml the calls are real; with a replay the calls are Python and cost more than
NVML's own, so that the figure is an upper bound for everything but the driver.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from gpuledger.devices.device import Source
from gpuledger.devices.sampler import Sampler
from gpuledger.recording.record import Recording, open_device

RECORDING = Path(__file__).parents[1] / "tests" / "data" / "h200_replay.csv.gz"


def process_cpu_s() -> float:
    """CPU time of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def open_source(device: str, gpus: int) -> Source:
    """The device named, or a replay on several GPUs."""
    if not device.startswith("replay:") or gpus == 1:
        return open_device(device)
    from dataclasses import replace

    from gpuledger.devices.nvml import NvmlSource
    from gpuledger.devices.replay.doors import boards_from_csv
    from gpuledger.devices.replay.fake_nvml import FakeNvml

    (board,) = boards_from_csv(device.partition(":")[2])
    return NvmlSource(FakeNvml([replace(board, uuid=f"GPU-replay-{i}") for i in range(gpus)]))


def alone(device: str, gpus: int, seconds: float, hz: float) -> dict[str, float | str]:
    """The sampler into the void."""
    source = open_source(device, gpus)
    before = process_cpu_s()
    report = Sampler(source.devices, lambda *_: None, hz=hz).run(seconds)
    cpu = process_cpu_s() - before
    source.close()
    return {"what": f"sampler alone, {hz:g} Hz", **share(cpu, report.cpu_s, 0.0, seconds, len(report.devices))}


def with_lake(device: str, gpus: int, seconds: float, hz: float) -> dict[str, float | str]:
    """The whole recorder."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(folder, device=open_source(device, gpus), hz=hz)
        before = process_cpu_s()
        with recording:
            time.sleep(seconds)
        cpu = process_cpu_s() - before
        notes = recording.notes()
        found = share(cpu, notes.sampler_cpu_s, notes.writer_cpu_s, seconds, len(notes.devices))
        return {"what": f"with the lake, {hz:g} Hz", **found, "rows": notes.rows, "skipped_ticks": notes.skipped_ticks}


def share(cpu_s: float, sampler_s: float, writer_s: float, seconds: float, devices: int) -> dict[str, float]:
    """CPU times as percent of one core, per device."""
    per = 100 / seconds / max(1, devices)
    return {
        "process_pct": round(cpu_s * per, 3),
        "sampler_pct": round(sampler_s * per, 3),
        "writer_pct": round(writer_s * per, 3),
        "devices": devices,
        "seconds": seconds,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=f"replay:{RECORDING}")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        alone(options.device, options.gpus, options.seconds, 10.0),
        alone(options.device, options.gpus, options.seconds, 1.0),
        with_lake(options.device, options.gpus, options.seconds, 10.0),
    ]
    if options.json:
        print(json.dumps({"device": options.device.partition(":")[0], "rows": rows}, indent=1))
        return
    print(f"{'what':<26}{'devices':>8}{'process %':>11}{'sampler %':>11}{'writer %':>10}   of one core, per device")
    for row in rows:
        print(
            f"{row['what']:<26}{row['devices']:>8}{row['process_pct']:>11}{row['sampler_pct']:>11}{row['writer_pct']:>10}"
        )


if __name__ == "__main__":
    main()

"""What are the four lakes of the goldens made of? Writes their telemetry into inputs/.

    python tests/golden/make_inputs.py

The files are committed; run this again only to add something, and list what moves in changes.csv. Whole numbers and
fixed seeds: the same rows everywhere. Job tables, bills and what planners read are small and were written once.

workstation   two GPUs in one nvidia-smi log, no owners: training by day, a process that holds memory, a pause, a gap
kubernetes    two clusters with hosts of one name: training, a starved loader, a service, MIG slices, time slicing
slurm         eight GPUs known by host and index only; who held them stands in job tables; a bill pays for the hosts
scrapers      two scrapers, faults, heat, a counter that starts again, a GPU seen for an hour, rows that come late
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

HERE = Path(__file__).parent / "inputs"
START = dt.datetime(2026, 11, 9, 6, tzinfo=dt.UTC)  # a Monday
A100, H100, L4 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA L4"
BOARDS = {A100: (400, 55, 81920, 1410), H100: (700, 70, 81559, 1980), L4: (72, 14, 23034, 2040)}  # W, idle W, MiB, MHz
# utilization, engine, SMs, tensor, fp32, memory traffic, power between idle and limit, memory held, clock; in percent
LOADS = {
    "train": (98, 96, 91, 47, 6, 38, 88, 86, 96),
    "busy": (100, 99, 74, 2, 41, 22, 55, 40, 97),
    "serve": (34, 33, 21, 6, 3, 30, 24, 90, 90),
    "sparse": (3, 3, 2, 1, 0, 2, 8, 90, 85),
    "held": (0, 0, 0, 0, 0, 0, 2, 47, 40),
    "idle": (0, 0, 0, 0, 0, 0, 0, 0, 15),
    "hot": (97, 95, 90, 45, 6, 36, 52, 86, 58),
}
LABELS = (
    "timestamp", "CLUSTERNAME", "Hostname", "gpu", "UUID", "modelName", "GPU_I_ID", "GPU_I_PROFILE", "namespace", "pod",
    "container",
)  # fmt: skip
READINGS = (
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_PROF_PCIE_RX_BYTES",
)  # fmt: skip
Row = dict[str, object]


class Board:
    """One GPU: what it answers while a load runs, with a little noise and a counter of energy."""

    def __init__(self, model: str, random: Random) -> None:
        self.limit, self.idle, self.memory, self.clock = BOARDS[model]
        self.random, self.energy_mj = random, 10_000_000 * random.randint(1, 99)

    def reads(self, load: str, step_s: int) -> Row:
        util, engine, sm, tensor, fp32, dram, power, held, clock = LOADS[load]
        shake = self.random.randint(-20, 20) if util else 0  # thousandths
        watts = self.idle + (self.limit - self.idle) * power * (1000 + shake) // 100_000
        self.energy_mj += watts * 1000 * step_s
        used = self.memory * held // 100
        shares = [
            f"{min(1000, share * (1000 + shake) // 100) / 1000:.3f}" if share else "0"
            for share in (engine, sm, tensor, fp32, dram)
        ]
        reasons, copied = 0x40 if load == "hot" else 0 if util else 0x1, 180_000_000 if util else 2_000
        values = (
            min(100, util + shake // 10), *shares, watts, used, self.memory - used, self.clock * clock // 100,
            30 + 50 * power // 100, self.energy_mj, reasons, 0, copied,
        )  # fmt: skip
        return dict(zip(READINGS, values, strict=True))


def at(seconds: float) -> str:
    return f"{START + dt.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def write(name: str, rows: Iterable[Row]) -> None:
    """Rows as CSV, packed without a time or a name in it."""
    kept = list(rows)
    heads = list(dict.fromkeys(head for row in kept for head in row))
    text = io.StringIO()
    out = csv.DictWriter(text, heads, restval="", lineterminator="\n")
    out.writeheader()
    out.writerows(kept)
    (HERE / name).write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def workstation() -> Iterator[Row]:
    """26 hours of nvidia-smi, a line per GPU each minute, on the clock of Berlin."""
    random, local = Random(1), START + dt.timedelta(hours=2)
    boards = [Board(A100, random), Board(A100, random)]
    for minute in range(26 * 60):
        hour = minute // 60
        if 9 * 60 + 20 <= minute < 11 * 60:  # the machine was off
            continue
        first = "train" if hour < 5 else "idle" if minute % 300 < 45 else "busy"
        second = "held" if hour < 20 else "idle"
        for index, load in enumerate((first, second)):
            got = boards[index].reads(load, 60)
            yield {
                "timestamp": f"{local + dt.timedelta(minutes=minute):%Y/%m/%d %H:%M:%S.000}",
                "name": A100, "index": index, "uuid": f"GPU-0000000{index}-1111-2222-3333-444444444444",
                "utilization.gpu [%]": f"{got['DCGM_FI_DEV_GPU_UTIL']} %",
                "memory.used [MiB]": f"{got['DCGM_FI_DEV_FB_USED']} MiB", "memory.total [MiB]": "81920 MiB",
                "power.draw [W]": f"{got['DCGM_FI_DEV_POWER_USAGE']}.00 W", "enforced.power.limit [W]": "400.00 W",
                "temperature.gpu": got["DCGM_FI_DEV_GPU_TEMP"],
                "clocks.current.sm [MHz]": f"{got['DCGM_FI_DEV_SM_CLOCK']} MHz",
            }  # fmt: skip


def kubernetes() -> Iterator[Row]:
    """30 hours of two clusters, each with a host gpu-01, a sample each two minutes."""
    random = Random(2)
    fleet = [  # cluster, host, index, uuid, model, slice, profile, holders (namespace, pod)
        ("east", "gpu-01", 0, "GPU-e0", H100, "", "", [("vision", "resnet-train-0")]),
        ("east", "gpu-01", 1, "GPU-e1", H100, "", "", [("vision", "resnet-train-1")]),
        ("east", "gpu-02", 0, "GPU-e2", A100, 1, "3g.40gb", [("notebooks", "jupyter-ann-0")]),
        ("east", "gpu-02", 0, "GPU-e2", A100, 2, "4g.40gb", [("speech", "asr-train-0")]),
        ("west", "gpu-01", 0, "GPU-w0", L4, "", "", [("inference", "ranker-0"), ("inference", "search-0")]),
        ("west", "gpu-01", 1, "GPU-w1", L4, "", "", [("inference", "chat-0")]),
        ("west", "gpu-03", 0, "GPU-w2", A100, "", "", [("", "")]),
    ]
    boards = {gpu[3] + str(gpu[5]): Board(gpu[4], random) for gpu in fleet}
    for step in range(30 * 30):
        hour = step // 30
        loads = (
            "train", ("busy", "busy", "idle")[step % 3], "busy" if hour % 24 in (3, 4, 9) else "held",
            "train" if hour < 22 else "idle", "serve", "sparse", "idle",
        )  # fmt: skip
        for (cluster, host, index, uuid, model, slice_id, profile, holders), load in zip(fleet, loads, strict=True):
            got = boards[uuid + str(slice_id)].reads(load, 120)
            if slice_id:  # a slice has memory and activity of its own; utilization is not reported with MIG
                got |= {"DCGM_FI_DEV_GPU_UTIL": "", "DCGM_FI_DEV_FB_USED": 18000, "DCGM_FI_DEV_FB_FREE": 22000}
            for namespace, pod in holders:
                held = (namespace, pod) if load != "idle" or step % 3 else ("", "")
                labels = (
                    at(120 * step),
                    cluster,
                    host,
                    index,
                    uuid,
                    model,
                    slice_id,
                    profile,
                    *held,
                    "main" if held[0] else "",
                )
                yield dict(zip(LABELS, labels, strict=True)) | got


def slurm() -> Iterator[Row]:
    """50 hours of four hosts of two GPUs, five minutes apart, without a UUID or an owner."""
    random = Random(3)
    boards = [Board(A100, random) for _ in range(8)]
    for step in range(50 * 12):
        hour = step // 12
        for number, board in enumerate(boards):
            host, index = divmod(number, 2)
            tune = "train" if 10 <= hour < 40 else "idle"
            load = (
                "train" if hour < 30 else "idle", "train" if hour < 30 else "held", "busy", "idle", tune, tune, "held",
                "serve",
            )[number]  # fmt: skip
            labels = {"timestamp": at(300 * step), "Hostname": f"node-{host + 1:02d}", "gpu": index, "modelName": A100}
            got = board.reads(load, 300)
            del got["DCGM_FI_PROF_SM_ACTIVE"], got["DCGM_FI_PROF_PIPE_FP32_ACTIVE"]
            yield labels | got


def scrapers() -> Iterator[Row]:
    """30 hours seen by two scrapers seven seconds apart; the second one knows no owners."""
    random = Random(4)
    gpus = (("GPU-s0", H100), ("GPU-s1", H100), ("GPU-s2", A100), ("GPU-s3", A100))
    boards = {uuid: Board(model, random) for uuid, model in gpus}
    for step in range(30 * 30):
        hour = step // 30
        if step == 500:
            boards["GPU-s1"].energy_mj = 0  # the host was started again
        for number, (uuid, model) in enumerate(gpus):
            if uuid == "GPU-s3" and not 300 <= step < 330:
                continue
            if 610 <= step < 640 and number < 2:  # an outage of an hour
                continue
            load = {
                0: "train",
                1: "hot" if 12 <= hour < 20 else "train",
                2: "busy" if hour < 16 else "idle",
                3: "train",
            }[number]
            got = boards[uuid].reads(load, 120)
            if uuid == "GPU-s2" and 480 <= step < 486:
                got["DCGM_FI_DEV_XID_ERRORS"] = 79
            owner = ("pretrain", f"llm-{number}", "main") if number < 2 else ("eval", f"bench-{number}", "main")
            labels = ("", f"dgx-{number // 2 + 1}", number % 2, uuid, model, "", "")
            yield dict(zip(LABELS, (at(120 * step), *labels, *owner), strict=True)) | got
            if number < 2:
                yield dict(zip(LABELS, (at(120 * step + 7), *labels, "", "", ""), strict=True)) | got


def main() -> None:
    HERE.mkdir(exist_ok=True)
    write("workstation.csv.gz", workstation())
    write("kubernetes.csv.gz", kubernetes())
    write("slurm.csv.gz", slurm())
    rows = list(scrapers())
    late = [row for row in rows if row["UUID"] == "GPU-s2" and at(20 * 3600) <= str(row["timestamp"]) < at(22 * 3600)]
    write("scrapers.csv.gz", (row for row in rows if row not in late))
    write("scrapers_late.csv.gz", late)


if __name__ == "__main__":
    main()

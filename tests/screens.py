"""GPUs that play a script, a /proc of their own, and screens as text, for tests of the terminal view.

Snapshots are in tui/snapshots/NAME.txt. GPULEDGER_SNAPSHOTS=write writes them anew: look at the difference first.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gpuledger.devices.replay.script import Board, Scenario, Segment
from gpuledger.tui.live_devices import LiveDevices

SNAPSHOTS = Path(__file__).parent / "tui" / "snapshots"
GIB = 1 << 30
_SAME = {
    "sm_clock_mhz": 1755.0, "mem_clock_mhz": 3201.0, "gpu_temp_c": 61.0, "mem_temp_c": 58.0, "throttle_bits": 0.0,
    "power_limit_w": 700.0, "imma_ratio": 0.0, "dfma_ratio": 0.0, "integer_ratio": 0.1, "fp64_ratio": 0.0,
    "fp16_ratio": 0.0,
}  # fmt: skip


def load(util: float, watts: float, used: float, engine: float, tensor: float, dram: float) -> dict[str, float]:
    """The readings of a GPU that does one thing."""
    return _SAME | {
        "gpu_util_ratio": util, "mem_copy_util_ratio": dram, "power_w": watts, "fb_used_bytes": used * GIB,
        "fb_free_bytes": (140 - used) * GIB, "engine_ratio": engine, "sm_ratio": 0.95 * engine,
        "occupancy_ratio": 0.3 * engine, "tensor_ratio": tensor, "hmma_ratio": tensor, "dram_ratio": dram,
        "fp32_ratio": 0.02 * engine,
    }  # fmt: skip


LOADS = {
    "matrix": load(1.0, 640, 120, 0.99, 0.72, 0.35),
    "memory": load(0.98, 420, 131, 0.97, 0.11, 0.78),
    "light": load(0.95, 210, 40, 0.9, 0.01, 0.02),
    "held": load(0.0, 118, 64, 0.0, 0.0, 0.0),
    "idle": load(0.0, 78, 0.5, 0.0, 0.0, 0.0),
}


def boards(*names: str) -> list[Board]:
    """One GPU for each load, called GPU-0..., GPU-1..."""
    return [
        Board(Scenario([Segment(600, **LOADS[name])]), uuid=f"GPU-{i}{'0' * 7}-1111-2222-3333-444444444444")
        for i, name in enumerate(names)
    ]


def node_boards() -> list[Board]:
    """A GPU for every load, three of them with processes."""
    found = boards(*LOADS)
    pids = {0: {4001: 118 * GIB}, 1: {4002: 130 * GIB}, 2: {4001: 20 * GIB, 4002: 19 * GIB}}
    return [replace(board, pids=pids.get(i, ())) for i, board in enumerate(found)]


def put_process(proc: Path, pid: int, command: str, environ: str = "") -> None:
    """A process in a /proc that is not the machine's."""
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (x) S 1 {pid} {pid} {' '.join(['0'] * 15)} 77 0")
    (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
    (folder / "environ").write_bytes(environ.encode() + b"\0")
    (folder / "fd").mkdir()
    (folder / "fd" / "3").symlink_to("/dev/nvidia0")


def play_on(devices: LiveDevices, seconds: float) -> None:
    """Let more time pass."""
    devices.sampler = devices._new_sampler()
    devices.sampler.run(seconds)


def shown(app) -> str:
    """What the terminal shows, without colors."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip() + "\n"


async def settle(pilot) -> None:
    """Wait for threads and for the drawing that follows."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


def compare(name: str, text: str) -> None:
    """Compare with the stored snapshot."""
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("GPULEDGER_SNAPSHOTS") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file.name}: see GPULEDGER_SNAPSHOTS in screens.py"

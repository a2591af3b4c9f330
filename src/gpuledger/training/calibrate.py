"""What does this very GPU reach: TFLOPS by precision, memory bandwidth, power at rest and at work?

The loops here do not use torch: a bench (torch_bench) provides jobs that can be run and timed, and others can too.
Clocks and power limit stay as they are: the figures are what a job would get.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from gpuledger.catalog.files import data_dir
from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.efficiency.calibration_files import BoardCalibration, Product, Spread
from gpuledger.errors import InputError
from gpuledger.settings import convert, read_toml
from gpuledger.units import Unknown, known

if TYPE_CHECKING:
    from gpuledger.training.torch_bench import TorchBench

REPEATS = 10
# The part of the time that is run first and not counted: clocks and power settle.
WARM_PART = 0.2
POWER_STEP_S = 0.1
TERA = 1e12
Say = Callable[[str], None]


class Precision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One matrix product to time."""

    name: str
    dtype: str
    how: str
    n: int
    peaks: tuple[str, ...]


@cache
def precisions() -> tuple[Precision, ...]:
    """The products that are timed, in order."""
    file = data_dir("gpuledger.training", "data", "precisions.toml")
    return convert(read_toml(file)["precisions"], tuple[Precision, ...], str(file))


@dataclass(frozen=True)
class Job:
    """Work that can be repeated; `amount` is one run's FLOP or bytes.

    `run(times, meanwhile)` returns the seconds the device took, and calls `meanwhile` now and then until it is done.
    """

    amount: float
    n: int
    run: Callable[[int, Callable[[], None]], float]
    release: Callable[[], None] = lambda: None


def calibrate(bench: TorchBench, seconds: float, as_of: str, say: Say = lambda _: None) -> BoardCalibration:
    """All figures of one board, each measured for `seconds`. `as_of` is the instant it is dated with."""
    if seconds <= 0:
        raise InputError(f"cannot measure for {seconds:g} s", hint="give a number of seconds above 0; 5 is usual")
    gpu, why = known(find_gpu(bench.gpu_model)), dict[str, str]()

    def measured(figure: str, value: Spread | Unknown) -> Spread | None:
        if isinstance(value, Unknown):
            why[figure] = value.why
        return known(value)

    say("power at rest")
    idle = measured("idle_power_w", rest_power(bench, seconds))
    bench.hold()
    held = measured("idle_held_power_w", rest_power(bench, seconds))
    products = _products(bench, seconds, gpu, why, say)
    say("memory bandwidth")
    wide = measured("bandwidth_bytes_per_s", _bandwidth(bench, seconds))
    peak = known(gpu.figure("memory_bandwidth_bytes_per_s")) if gpu else None
    powers = [p.power_w for p in products.values() if p.power_w]
    if not powers:
        why["busy_power_w"] = why.get("idle_power_w", "no matrix product could be run")
    return BoardCalibration(
        gpu_uuid=bench.gpu_uuid, gpu_model=bench.gpu_model, as_of=as_of, made_with=bench.made_with, seconds=seconds,
        tflops=products, bandwidth_bytes_per_s=wide, bandwidth_peak_bytes_per_s=peak,
        bandwidth_of_peak_pct=100 * wide.median / peak if wide and peak else None, idle_power_w=idle,
        idle_held_power_w=held, busy_power_w=max(powers, key=lambda p: p.median) if powers else None, not_measured=why,
    )  # fmt: skip


def _products(bench: TorchBench, seconds: float, gpu: Gpu | None, why: dict[str, str], say: Say) -> dict[str, Product]:
    out: dict[str, Product] = {}
    for kind in precisions():
        say(f"{kind.name} matrix products")
        job = bench.product(kind)
        if isinstance(job, Unknown):
            why[f"tflops.{kind.name}"] = job.why
            continue
        rates, watts = measure(job, seconds, bench.power_w)
        peaks = (gpu.peak(name) for name in kind.peaks) if gpu else ()
        peak = next((p for p in peaks if not isinstance(p, Unknown)), None)
        made = spread([r / TERA for r in rates])
        out[kind.name] = Product(
            tflops=made,
            n=job.n,
            power_w=spread(watts) if watts else None,
            peak_tflops=peak,
            of_peak_pct=100 * made.median / peak if peak else None,
        )
    return out


def _bandwidth(bench: TorchBench, seconds: float) -> Spread | Unknown:
    job = bench.copy()
    if isinstance(job, Unknown):
        return job
    rates, _ = measure(job, seconds, bench.power_w)
    return spread(rates)


def measure(
    job: Job, seconds: float, power_w: Callable[[], float | Unknown], repeats: int = REPEATS
) -> tuple[list[float], list[float]]:
    """Amount per second in each of some repeats that fill `seconds`, and the watts read while they ran."""

    # The first run loads and chooses kernels, so the second shows how long one takes.
    once = max(min(job.run(1, lambda: None) for _ in range(2)), 1e-9)
    job.run(max(1, round(WARM_PART * seconds / once)), lambda: None)
    times = max(1, round(seconds / repeats / once))
    watts: list[float | Unknown] = []
    rates = [times * job.amount / max(job.run(times, lambda: watts.append(power_w())), 1e-12) for _ in range(repeats)]
    job.release()
    read = [w for w in watts if not isinstance(w, Unknown)]
    # The driver's power is a mean over up to a second: the first half still includes the time before.
    return rates, read[len(read) // 2 :]


def rest_power(bench: TorchBench, seconds: float) -> Spread | Unknown:
    """The board's power while it is not used."""
    readings: list[float] = []
    for _ in range(max(2, round(seconds / POWER_STEP_S))):
        if others := bench.strangers():
            return Unknown(f"the GPU is not at rest: {others}")
        now = bench.power_w()
        if isinstance(now, Unknown):
            return now
        readings.append(now)
        bench.wait(POWER_STEP_S)
    return spread(readings)


def spread(values: Sequence[float]) -> Spread:
    """Median, lowest, highest and how many."""
    return Spread(median(values), min(values), max(values), len(values))

"""What did tuning make of a job, rung by rung, in figures a reader can check?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from operator import mul

from gpuledger.catalog.gpus import find_gpu
from gpuledger.cost.pricing import Price
from gpuledger.training.job import TrainingJob
from gpuledger.training.mfu import REFERENCE, Denominator, reference_peak, utilization
from gpuledger.training.tune.choices import Plan, load_plan
from gpuledger.training.tune.duel import Gain
from gpuledger.training.tune.ladder import Ladder
from gpuledger.training.tune.machine import TorchMachine
from gpuledger.training.tune.statement import Climb, Payback, Step, epoch_s, payback, usd
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Rung:
    """One step that stayed. MFU over the bf16 dense peak, and beside it over that of the precision in use.

    `speedup` is the product of the gains so far: each was measured side by side, the speeds at different times.
    """

    step: Step
    samples_per_s: float
    tokens_per_s: float | Unknown
    speedup: float
    utilization_pct: float | Unknown
    mfu_pct: float | Unknown
    mfu_in_use_pct: float | Unknown
    peak_bytes: int | Unknown
    epoch_s: float


@dataclass(frozen=True)
class Tuning:
    """The whole outcome."""

    job: TrainingJob
    device: str
    climb: Climb
    rungs: tuple[Rung, ...]
    total: Gain | Unknown
    flop_per_sample: float | Unknown
    peak_tflops: float | Unknown
    denominator: str
    samples_per_epoch: int
    price: Price | Unknown
    cost_usd: Decimal | Unknown
    payback: Payback | Unknown

    def mfu_side_by_side(self) -> tuple[float | Unknown, float | Unknown] | Unknown:
        """MFU of start and winner, from the speeds measured in turns at the end."""
        rates = self.climb.side_by_side
        if rates is None:
            return Unknown("start and winner were not measured side by side")
        first, last = (_shares(rate, self.flop_per_sample, self.device, REFERENCE)[0] for rate in rates)
        return first, last


def tune(
    job: TrainingJob,
    plan: Plan | None = None,
    *,
    budget_s: float = float("inf"),
    price: Callable[[str], Price | Unknown] = lambda _: Unknown("no price was given"),
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
    watch: Callable[[Tuning], None] | None = None,
) -> Tuning:
    """Climb with this job on this machine. `watch` gets the outcome so far after each step."""
    plan = plan or load_plan()
    machine = TorchMachine(job, plan.parity_updates, device)
    counted, asked = list[float | Unknown](), price(machine.name)

    def told(climb: Climb) -> Tuning:
        if not counted or isinstance(counted[-1], Unknown):  # again: there may have been no room beside a trial
            counted.append(machine.flop_per_sample(climb.start))
        return state(job, climb, machine.name, counted[-1], machine.samples_per_epoch(), asked)

    def seen(climb: Climb) -> None:
        if watch is not None:
            watch(told(climb))

    return told(Ladder(machine, plan, clock, budget_s, say, seen).climb(job.settings))


def state(
    job: TrainingJob, climb: Climb, device: str, flop: float | Unknown, samples_per_epoch: int,
    price: Price | Unknown,
) -> Tuning:  # fmt: skip
    """The outcome of a climb in figures."""
    gpu = find_gpu(device)
    gains = list(accumulate((s.gain.ratio if s.gain else 1.0 for s in climb.kept), mul))
    rungs = tuple(
        _rung(step, speedup, job, flop, device, samples_per_epoch)
        for step, speedup in zip(climb.kept, gains, strict=True)
    )
    total = climb.total or Unknown("nothing was changed" if not climb.gained else "the start was not measured again")
    back: Payback | Unknown = Unknown("nothing is saved, so the tuning is not paid back")
    if climb.side_by_side:
        back = payback(climb.spent_s, *climb.side_by_side, samples_per_epoch)
    over = Denominator(gpu, str(gpu)) if isinstance(gpu, Unknown) else reference_peak(gpu)
    return Tuning(
        job, device, climb, rungs, total, flop, over.tflops, over.words, samples_per_epoch, price,
        price if isinstance(price, Unknown) else usd(climb.spent_s, price.usd_per_h), back,
    )  # fmt: skip


def _rung(
    step: Step, speedup: float, job: TrainingJob, flop: float | Unknown, device: str, samples_per_epoch: int
) -> Rung:
    assert step.reading is not None
    rate, tokens = step.reading.samples_per_s, job.tokens_per_sample
    mfu, in_use = _shares(rate, flop, device, step.settings.precision)
    return Rung(
        step=step,
        samples_per_s=rate,
        tokens_per_s=rate * tokens if tokens else Unknown("the job does not say how many tokens a sample has"),
        speedup=speedup,
        utilization_pct=step.reading.utilization_pct,
        mfu_pct=mfu,
        mfu_in_use_pct=in_use,
        peak_bytes=step.reading.peak_bytes,
        epoch_s=epoch_s(rate, samples_per_epoch),
    )


def _shares(rate: float, flop: float | Unknown, device: str, precision: str) -> tuple[float | Unknown, float | Unknown]:
    """Counted FLOP a second over the bf16 peak and over that of the precision in use."""
    gpu = find_gpu(device)
    if isinstance(flop, Unknown):
        return flop, flop
    if isinstance(gpu, Unknown):
        why = Unknown(f"no MFU without a peak: {gpu.why}")
        return why, why
    in_use = gpu.peak(precision)
    found = utilization(rate * flop, gpu, REFERENCE if isinstance(in_use, Unknown) else precision)
    if isinstance(found, Unknown):
        return found, found
    return found.mfu_pct, in_use if isinstance(in_use, Unknown) else found.mfu_in_use_pct

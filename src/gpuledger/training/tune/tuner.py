"""What did tuning achieve, rung by rung; what did it cost, and when has it paid for itself?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from operator import mul
from typing import Any

from gpuledger.catalog.gpus import find_gpu
from gpuledger.cost.pricing import Price
from gpuledger.encode import encode
from gpuledger.training.job import TrainingJob
from gpuledger.training.mfu import REFERENCE, Denominator, reference_peak, utilization
from gpuledger.training.tune.choices import Plan, load_plan
from gpuledger.training.tune.duel import Gain, in_words
from gpuledger.training.tune.ladder import Ladder
from gpuledger.training.tune.machine import TorchMachine
from gpuledger.training.tune.settings import write
from gpuledger.training.tune.trials import Climb, Step
from gpuledger.units import Unknown

SECONDS_PER_HOUR = 3600
Figure = float | Unknown
NOTHING_SAVED = Unknown("nothing is saved, so the tuning is not paid back")


@dataclass(frozen=True)
class Payback:
    """After how much training the tuning has paid for itself."""

    epoch_before_s: float
    epoch_after_s: float
    saved_per_epoch_s: float
    epochs: float
    hours: float


@dataclass(frozen=True)
class Tuning:
    """The whole outcome: the climb, and what its figures rest on."""

    job: TrainingJob
    climb: Climb
    device: str
    flop_per_sample: Figure
    samples_per_epoch: int
    price: Price | Unknown

    @property
    def total(self) -> Gain | Unknown:
        """Winner over start, measured alternating at the end."""
        why = "the start was not measured again" if self.climb.gained else "nothing was changed"
        return self.climb.total or Unknown(why)

    def snippet(self) -> str:
        """The winning settings as Python."""
        missing = "not measured end to end" if self.climb.gained else "nothing faster was found"
        found = missing if isinstance(self.total, Unknown) else in_words(self.total)
        return write(f"{self.job.name} on {self.device}: {found}", self.climb.winner)


def figures(tuning: Tuning) -> dict[str, Any]:
    """The outcome as JSON."""
    climb, price, gpu, samples = tuning.climb, tuning.price, find_gpu(tuning.device), tuning.samples_per_epoch
    over = Denominator(gpu, str(gpu)) if isinstance(gpu, Unknown) else reference_peak(gpu)
    gains = accumulate((s.gain.ratio if s.gain else 1.0 for s in climb.kept), mul)
    return encode(
        "train_tune",
        {
            "job": tuning.job.name,
            "device": tuning.device,
            "total": tuning.total,
            "side_by_side": _side_by_side(tuning),
            "ladder": [_rung(tuning, *kept) for kept in zip(climb.kept, gains, strict=True)],
            "gained": climb.gained,
            **{name: getattr(climb, name) for name in ("min_gain_ratio", "steps", "start", "winner", "notes")},
            "effective_batch": climb.start.effective_batch,
            "samples_per_epoch": samples,
            "flop_per_sample": tuning.flop_per_sample,
            "peak_tflops": over.tflops,
            "denominator": over.words,
            "payback": payback(climb.spent_s, *climb.side_by_side, samples) if climb.side_by_side else NOTHING_SAVED,
            "tuning_s": climb.spent_s,
            "usd_per_h": price if isinstance(price, Unknown) else price.usd_per_h,
            "price_words": "" if isinstance(price, Unknown) else price.words,
            "tuning_usd": price if isinstance(price, Unknown) else usd(climb.spent_s, price.usd_per_h),
            "snippet": tuning.snippet(),
        },
    )


def _rung(tuning: Tuning, step: Step, speedup: float) -> dict[str, Any]:
    """One step that stayed. MFU over the bf16 dense peak, and over that of the precision in use.

    `speedup` is the product of the gains so far: gains are measured side by side, speeds at different times.
    """
    assert step.reading is not None
    rate, tokens = step.reading.samples_per_s, tuning.job.tokens_per_sample
    mfu, in_use = _shares(rate, tuning, step.settings.precision)
    return {
        **{name: getattr(step, name) for name in ("name", "axis", "gain", "parity", "settings")},
        **vars(step.reading),
        "tokens_per_s": rate * tokens if tokens else Unknown("the job does not give tokens_per_sample"),
        "speedup": speedup,
        "mfu_pct": mfu,
        "mfu_in_use_pct": in_use,
        "epoch_s": tuning.samples_per_epoch / rate,
    }


def _side_by_side(tuning: Tuning) -> dict[str, Any] | None:
    """Start and winner as measured alternating at the end: speeds and MFU."""
    if (rates := tuning.climb.side_by_side) is None:
        return None
    (start, _), (winner, _) = (_shares(rate, tuning, REFERENCE) for rate in rates)
    speeds = {"start_samples_per_s": rates[0], "winner_samples_per_s": rates[1]}
    return speeds | {"start_mfu_pct": start, "winner_mfu_pct": winner}


def tune(
    job: TrainingJob,
    plan: Plan | None = None,
    *,
    budget_s: float = float("inf"),
    price: Callable[[str], Price | Unknown] = lambda _: Unknown("no price was given"),
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    watch: Callable[[Tuning], None] | None = None,
) -> Tuning:
    """Climb with this job on this machine. `watch` gets the outcome so far after each step."""
    plan = plan or load_plan()
    machine = TorchMachine(job, plan.parity_updates, device)
    counted, asked = list[Figure](), price(machine.name)

    def outcome(climb: Climb) -> Tuning:
        if not counted or isinstance(counted[-1], Unknown):  # again: there may have been no room next to a trial
            counted.append(machine.flop_per_sample(climb.start))
        return Tuning(job, climb, machine.name, counted[-1], machine.samples_per_epoch(), asked)

    def seen(climb: Climb) -> None:
        if watch is not None:
            watch(outcome(climb))

    return outcome(Ladder(machine, plan, time.perf_counter, budget_s, say, seen).climb(job.settings))


def _shares(rate: float, tuning: Tuning, precision: str) -> tuple[Figure, Figure]:
    """Counted FLOP per second over the bf16 peak and over that of the precision in use."""
    flop, gpu = tuning.flop_per_sample, find_gpu(tuning.device)
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


def payback(spent_s: float, before_per_s: float, after_per_s: float, samples_per_epoch: int) -> Payback | Unknown:
    """Epochs, and hours of tuned training, until the seconds spent on tuning have come back."""
    before, after = samples_per_epoch / before_per_s, samples_per_epoch / after_per_s
    saved = before - after
    if saved <= 0:
        return NOTHING_SAVED
    epochs = spent_s / saved
    return Payback(before, after, saved, epochs, epochs * after / SECONDS_PER_HOUR)


def usd(seconds: float, usd_per_h: Decimal) -> Decimal:
    """What the device costs for this time."""
    return Decimal(str(round(seconds, 3))) * usd_per_h / SECONDS_PER_HOUR

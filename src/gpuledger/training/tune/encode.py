"""How is the outcome of tuning written as JSON? Every figure on a screen is here under the same name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from gpuledger.training.tune.duel import Gain
from gpuledger.training.tune.parity import Parity
from gpuledger.training.tune.snippet import write
from gpuledger.training.tune.statement import Payback, Step
from gpuledger.training.tune.tuner import Rung, Tuning
from gpuledger.units import Unknown


def figures(tuning: Tuning) -> dict[str, Any]:
    """The whole outcome; what is not known is null and named in `not_known`."""
    climb, missing = tuning.climb, dict[str, str]()

    def known(name: str, value: Any) -> Any:
        if isinstance(value, Unknown):
            missing[name] = value.why
            return None
        return str(value) if isinstance(value, Decimal) else value

    total, price = tuning.total, tuning.price
    return {
        "job": tuning.job.name,
        "device": tuning.device,
        "gained": climb.gained,
        "min_gain_ratio": climb.min_gain_ratio,
        "total": gain(known("total", total)),
        "side_by_side": _both(tuning, known),
        "ladder": [_rung(rung, known) for rung in tuning.rungs],
        "steps": [_step(step) for step in climb.steps],
        "start": msgspec.to_builtins(climb.start),
        "winner": msgspec.to_builtins(climb.winner),
        "effective_batch": climb.start.effective_batch,
        "samples_per_epoch": tuning.samples_per_epoch,
        "flop_per_sample": known("flop_per_sample", tuning.flop_per_sample),
        "peak_tflops": known("peak_tflops", tuning.peak_tflops),
        "denominator": tuning.denominator,
        "tuning_s": climb.spent_s,
        "usd_per_h": known("usd_per_h", price if isinstance(price, Unknown) else price.usd_per_h),
        "price_words": "" if isinstance(price, Unknown) else price.words,
        "tuning_usd": known("tuning_usd", tuning.cost_usd),
        "payback": _payback(known("payback", tuning.payback)),
        "notes": list(climb.notes),
        "snippet": write(tuning),
        "not_known": missing,
    }


def _both(tuning: Tuning, known: Any) -> dict[str, Any] | None:
    """Start and winner as measured in turns at the end."""
    rates, shares = tuning.climb.side_by_side, tuning.mfu_side_by_side()
    if rates is None or isinstance(shares, Unknown):
        return None
    return {
        "start_samples_per_s": rates[0],
        "winner_samples_per_s": rates[1],
        "start_mfu_pct": known("mfu_pct", shares[0]),
        "winner_mfu_pct": known("mfu_pct", shares[1]),
    }


def gain(found: Gain | None) -> dict[str, Any] | None:
    """A gain with its interval."""
    if found is None:
        return None
    return {"ratio": found.ratio, "low": found.low, "high": found.high, "pairs": found.pairs}


def _rung(rung: Rung, known: Any) -> dict[str, Any]:
    return {
        "name": rung.step.name,
        "axis": rung.step.axis,
        "samples_per_s": rung.samples_per_s,
        "tokens_per_s": known("tokens_per_s", rung.tokens_per_s),
        "gain": gain(rung.step.gain),
        "speedup": rung.speedup,
        "utilization_pct": known("utilization_pct", rung.utilization_pct),
        "mfu_pct": known("mfu_pct", rung.mfu_pct),
        "mfu_in_use_pct": known("mfu_in_use_pct", rung.mfu_in_use_pct),
        "peak_bytes": known("peak_bytes", rung.peak_bytes),
        "epoch_s": rung.epoch_s,
        "parity": _parity(rung.step.parity),
        "settings": msgspec.to_builtins(rung.step.settings),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "axis": step.axis,
        "name": step.name,
        "outcome": step.outcome,
        "why": step.why,
        "round": step.round,
        "gain": gain(step.gain),
        "samples_per_s": step.reading.samples_per_s if step.reading else None,
        "opened_s": step.opened_s,
        "parity": _parity(step.parity),
    }


def _parity(parity: Parity | None) -> dict[str, Any] | None:
    if parity is None:
        return None
    return {
        "deviation_ratio": parity.deviation_ratio,
        "tolerance_ratio": parity.tolerance_ratio,
        "updates": parity.updates,
        "kept": parity.kept,
    }


def _payback(back: Payback | None) -> dict[str, Any] | None:
    return None if back is None else {name: getattr(back, name) for name in Payback.__dataclass_fields__}

"""How many tokens came out a second, by wall clock?"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.bench.records import Request, Run
from gpuledger.scaling.analysis.counting import ok_requests
from gpuledger.scaling.figures import Figure, Ranged, Tokens
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown


def tokens_of(run: Run, wall_s: Figure, rate: Ranged, gpus: int | Unknown) -> Tokens:
    """Tokens of the answered requests. The interval is that of the throughput, scaled by tokens an answer."""
    answered = ok_requests(run.measured)
    made, taken = _known(answered, "output_tokens"), _known(answered, "input_tokens")
    total = _total(answered, made, "output_tokens")
    per_s = _per_s(total, len(answered), wall_s, rate)
    per_gpu: Figure = per_s if isinstance(per_s, Unknown) else gpus if isinstance(gpus, Unknown) else 0.0
    if not isinstance(per_s, Unknown) and not isinstance(gpus, Unknown):
        per_gpu = per_s.value / gpus if gpus else Unknown("the run has no GPU")
    return Tokens(
        input_tokens=_total(answered, taken, "input_tokens"),
        output_tokens=total,
        per_s=per_s,
        per_gpu_per_s=per_gpu,
        single_stream_per_s=_single(answered),
        input_range=_range(taken),
        output_range=_range(made),
    )


def _known(answered: Sequence[Request], field: str) -> list[int]:
    found = (getattr(r, field) for r in answered)
    return [v for v in found if not isinstance(v, Unknown)]


def _total(answered: Sequence[Request], known: Sequence[int], field: str) -> int | Unknown:
    if len(known) < len(answered) or not answered:
        return Unknown(f"{len(answered) - len(known)} of {len(answered)} answers do not say their {field}")
    return sum(known)


def _per_s(total: int | Unknown, answers: int, wall_s: Figure, rate: Ranged) -> Ranged:
    if isinstance(total, Unknown):
        return total
    if isinstance(wall_s, Unknown) or isinstance(rate, Unknown):
        return wall_s if isinstance(wall_s, Unknown) else Unknown("throughput is not known")
    each = total / answers
    return Interval(total / wall_s, each * rate.low, each * rate.high)


def _single(answered: Sequence[Request]) -> Figure:
    alone = [r for r in answered if isinstance(r.batch, Unknown) or r.batch == 1]
    if answered and not alone:
        return Unknown("every request ran in a batch with others")
    rates = [
        r.output_tokens / r.latency_s
        for r in alone
        if not isinstance(r.output_tokens, Unknown) and not isinstance(r.latency_s, Unknown) and r.latency_s > 0
    ]
    return sum(rates) / len(rates) if rates else Unknown("no answer has both tokens and latency")


def _range(values: Sequence[int]) -> tuple[int, int] | Unknown:
    return (min(values), max(values)) if values else Unknown("no answer says it")

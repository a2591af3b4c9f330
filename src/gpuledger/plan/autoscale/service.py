"""What can one replica serve: how many requests at a time, and how long does one take?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuledger.errors import InputError

# A request takes a day at most; rates are those of one replica.
MOST = {"service_s": 86_400.0, "requests_per_s": 1e6, "tokens_per_s": 1e9}


@dataclass(frozen=True)
class Service:
    """One replica: it works on `slots` requests at a time, each for `service_s` on average.

    `basis`: what these figures rest on.
    """

    slots: int
    service_s: float
    gpus: int
    basis: str

    @property
    def requests_per_s(self) -> float:
        """What one replica serves with all slots busy."""
        return self.slots / self.service_s

    @property
    def words(self) -> str:
        """One replica in one line."""
        at_a_time = "1 request" if self.slots == 1 else f"{self.slots:,} requests"
        return f"{at_a_time} at a time, {rounded(self.service_s)} s each: {per_second(self.requests_per_s)}"


def rounded(value: float) -> str:
    """Three digits where it is small, whole from a thousand on; never as a power of ten."""
    if value >= 1000 or not value:
        return f"{value:,.0f}"
    return (
        f"{value:.3g}"
        if value >= 0.001
        else f"{value:.6f}".rstrip("0").rstrip(".")
        if value >= 1e-6
        else "under 0.000001"
    )


def per_second(rate: float) -> str:
    """A rate of requests: 1 request/s, 2.5 requests/s."""
    text = rounded(rate)
    return f"{text} request{'' if text == '1' else 's'}/s"


def positive(name: str, value: float, most: float) -> None:
    """Refuse what is not a number above 0, up to `most`."""
    if not math.isfinite(value) or value <= 0 or value > most:
        raise InputError(
            f"{name}={value:g} is not above 0 and at most {most:,.0f}",
            hint=f"give {name}={min(most, 10.0):g}, or another number above 0, at most {most:,.0f}",
        )


def service_of(
    *,
    requests_per_s: float | None,
    service_s: float | None,
    tokens_per_s: float | None,
    concurrency: int | None,
    gpus: int,
    mean_tokens: float | None,
    fallback_s: float | None = None,
) -> Service:
    """One replica from what is known about it; exactly one of the three rates, or service time and rate together.

    `mean_tokens`: generated tokens per request in the trace. `fallback_s`: the service time where none is needed to be
    known, as for hours of busy GPUs.
    """
    _check(gpus, concurrency, requests_per_s=requests_per_s, service_s=service_s, tokens_per_s=tokens_per_s)
    slots = concurrency or 1
    if tokens_per_s is not None:
        if requests_per_s is not None or service_s is not None:
            raise InputError("tokens_per_s is given with another rate", hint="give one of them")
        return _of_tokens(tokens_per_s, slots, gpus, mean_tokens)
    if requests_per_s is not None and service_s is not None:
        if concurrency is not None:
            hint = f"leave one of the three out, such as concurrency={concurrency}: the other two give it"
            given = f"requests_per_s={requests_per_s:g}, service_s={service_s:g} and concurrency={concurrency}"
            raise InputError(f"{given} are all given", hint=hint)
        slots = max(1, round(requests_per_s * service_s))
        basis = f"{requests_per_s:g} requests/s of {service_s:g} s each keep {slots} slots busy"
        return Service(slots, slots / requests_per_s, gpus, basis)
    if requests_per_s is not None:
        alone = "" if concurrency else "; one request at a time, since concurrency is not given (more slots wait less)"
        return Service(slots, slots / requests_per_s, gpus, f"{requests_per_s:g} requests/s per replica{alone}")
    if service_s is not None:
        return Service(slots, service_s, gpus, f"{service_s:g} s per request, {slots} at a time")
    if fallback_s is not None:
        basis = (
            f"a busy GPU is one request of {fallback_s:g} s: the ledger has no requests, give the service time of yours"
        )
        return Service(concurrency or gpus, fallback_s, gpus, basis)
    raise InputError(
        "what one replica can serve is not given",
        hint="give requests_per_s=10, or service_s=2 with concurrency=16, or tokens_per_s=1500 with concurrency=16 "
        "(gpuledger plan throughput estimates tokens per second)",
    )


def _check(gpus: int, concurrency: int | None, **rates: float | None) -> None:
    for name, value in rates.items():
        if value is not None:
            positive(name, value, MOST[name])
    if gpus < 1:
        raise InputError(f"gpus_per_replica={gpus} is below 1", hint="give gpus_per_replica=1 or more")
    if concurrency is not None and not 1 <= concurrency <= 100_000:
        raise InputError(f"concurrency={concurrency} is not between 1 and 100000", hint="give concurrency=1 or more")


def _of_tokens(tokens_per_s: float, slots: int, gpus: int, mean_tokens: float | None) -> Service:
    if not mean_tokens:
        hint = "give service_s=2 or requests_per_s=10, or a trace with a column of generated tokens"
        problem = f"tokens_per_s={tokens_per_s:g} needs the tokens of each request, and the trace has none"
        raise InputError(problem, hint=hint)
    basis = (
        f"{tokens_per_s:g} generated tokens/s per replica over {slots} slots, "
        f"{mean_tokens:,.0f} generated tokens per request in the trace"
    )
    return Service(slots, mean_tokens * slots / tokens_per_s, gpus, basis)

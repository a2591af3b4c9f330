"""What can one replica serve: how many requests at a time, and how long does one take?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuledger.errors import InputError


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
        return f"{at_a_time} at a time, {self.service_s:,.3g} s each: {self.requests_per_s:,.3g} requests/s"


def positive(name: str, value: float, most: float = 1e9) -> float:
    """The value where it is a number above 0."""
    if not math.isfinite(value) or value <= 0 or value > most:
        raise InputError(
            f"{name}={value:g} is not a number between 0 and {most:g}", hint=f"give {name} a value above 0"
        )
    return value


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
            hint = "leave one of the three out: concurrency is requests_per_s x service_s"
            raise InputError("requests_per_s, service_s and concurrency are all given", hint=hint)
        slots = max(1, round(requests_per_s * service_s))
        basis = f"{requests_per_s:g} requests/s of {service_s:g} s each keep {slots} slots busy"
        return Service(slots, slots / requests_per_s, gpus, basis)
    if requests_per_s is not None:
        alone = "" if concurrency else "; one request at a time, since concurrency is not given (more slots wait less)"
        return Service(slots, slots / requests_per_s, gpus, f"{requests_per_s:g} requests/s per replica{alone}")
    if service_s is not None:
        return Service(slots, service_s, gpus, f"{service_s:g} s per request, {slots} at a time")
    if fallback_s is not None:
        basis = f"a busy GPU is one request of {fallback_s:g} s: the ledger has no requests, give service_s for yours"
        return Service(concurrency or gpus, fallback_s, gpus, basis)
    raise InputError(
        "what one replica can serve is not given",
        hint="give requests_per_s, or service_s and concurrency, or tokens_per_s and concurrency "
        "(gpuledger plan throughput estimates tokens per second)",
    )


def _check(gpus: int, concurrency: int | None, **rates: float | None) -> None:
    for name, value in rates.items():
        if value is not None:
            positive(name, value)
    if gpus < 1:
        raise InputError(f"gpus_per_replica={gpus} is below 1", hint="give gpus_per_replica=1 or more")
    if concurrency is not None and not 1 <= concurrency <= 100_000:
        raise InputError(f"concurrency={concurrency} is not between 1 and 100000", hint="give concurrency=1 or more")


def _of_tokens(tokens_per_s: float, slots: int, gpus: int, mean_tokens: float | None) -> Service:
    if not mean_tokens:
        hint = "give service_s or requests_per_s, or a trace with a column of generated tokens"
        raise InputError("tokens_per_s needs the tokens of each request, and the trace has none", hint=hint)
    basis = (
        f"{tokens_per_s:g} generated tokens/s per replica over {slots} slots, "
        f"{mean_tokens:,.0f} generated tokens per request in the trace"
    )
    return Service(slots, mean_tokens * slots / tokens_per_s, gpus, basis)

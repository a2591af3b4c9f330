"""How do N GPUs do as one?

build        the entry point: `gather` files into runs, `scaling_statement` makes the report
statement    the report as data and JSON, and in short; figures: what is measured before it is judged
analysis/    what one run shows, figure by figure; statistics: intervals and exact tests
grades       limits as data (data/thresholds.toml), grades, readiness for production
claims/      claims compared with the measurement; one rule file per subject
causes, gains      why; what to change, and what others published
trend        against an earlier run; over stored runs

    gpuledger.scaling.judge("results.jsonl", claims="claims.json")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.arguments import one_of, takes

if TYPE_CHECKING:
    from gpuledger.answers import Answer
    from gpuledger.scaling.statement import ScalingStatement

File = str | Path


@takes()
def judge(
    *results: File,
    baseline: File | None = None,
    claims: File | None = None,
    before: File | None = None,
    price: float | str | None = None,
    prices: float | str | None = None,
    predict: Sequence[int] = (4, 8),
    thresholds: File | None = None,
    seed: int = 1,
) -> Answer[ScalingStatement]:
    """Throughput, scaling, latency and claims of a benchmark; the largest of several runs is judged.

    `price`, or `prices`: dollars per GPU-hour.
    """
    from decimal import Decimal

    from gpuledger.answers import Answer
    from gpuledger.cost.pricing import PriceChoice
    from gpuledger.scaling.build import gather, scaling_statement
    from gpuledger.scaling.grades import load_scaling_thresholds

    per_hour = one_of(price=price, prices=prices)
    choice = PriceChoice(None if per_hour is None else Decimal(str(per_hour)))
    given = gather(results, baseline=baseline, claims=claims, before=before, price=choice, predict=predict)
    limits = load_scaling_thresholds(None if thresholds is None else Path(thresholds))
    return Answer(scaling_statement(given, limits, seed=seed))

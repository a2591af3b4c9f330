"""How many FLOPs does a step of a known model take, by its closed formula?"""

from __future__ import annotations

from collections.abc import Callable

from gpuledger.catalog.models import find_model
from gpuledger.training.flops import forward_flop, training_flop, unit_of
from gpuledger.training.meter.observed import Work
from gpuledger.training.meter.totals import Totals
from gpuledger.units import Unknown

Formula = Callable[[Totals], Work | Unknown]


def by_formula(name: str) -> tuple[Formula | None, str]:
    """The formula of a model of the catalog, or why there is none: then a step is counted instead."""
    model = find_model(name)
    if isinstance(model, Unknown):
        return None, model.why
    shape, per = model.shape, unit_of(model.shape)
    if isinstance(tried := forward_flop(shape, 1, 1), Unknown):
        return None, tried.why

    def work(totals: Totals) -> Work | Unknown:
        samples = totals.samples_per_step
        if isinstance(samples, Unknown):
            return samples
        if per == "token" and totals.sequence is None:
            return Unknown("the batches do not show a sequence length, which the formula needs")
        # One sample, then in proportion: batches of a fraction do not exist, mean batches do.
        once = training_flop(shape, 1, totals.sequence)
        forward = forward_flop(shape, 1, totals.sequence)
        if isinstance(once, Unknown) or isinstance(forward, Unknown):
            return once if isinstance(once, Unknown) else Unknown("there is no formula")
        said = f"by formula of {model.name}" + (f" at {totals.sequence} tokens a sequence" if totals.sequence else "")
        hidden = "; recomputation is not seen by a formula"
        return Work(once, once, forward, said + hidden, samples=1, tokens=totals.sequence)

    return work, ""

"""How far does each input move the difference between owning and renting, and between which ends does a cost lie?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from gpuledger.plan.outcome import UsdRange
from gpuledger.plan.tco.inputs import MOST, Input
from gpuledger.plan.tco.model import ONE, PERCENT, Values
from gpuledger.plan.tco.statement import Swing

Cost = Callable[[Values], Decimal]


def middles(inputs: Mapping[str, Input]) -> dict[str, Decimal]:
    """Every input at its middle."""
    return {name: one.middle for name, one in inputs.items()}


def swings(inputs: Mapping[str, Input], difference: Cost, vary_pct: Decimal) -> list[Swing]:
    """The difference with each input at its low and its high end, the others at their middle; the widest first.

    An input without a range is moved by `vary_pct` to both sides.
    """
    base, found = middles(inputs), []
    for name, one in inputs.items():
        low, high = ends(one, vary_pct)
        if low == high:
            continue
        at_low, at_high = difference({**base, name: low}), difference({**base, name: high})
        if at_low != at_high:
            found.append(Swing(name, one.words, one.unit, low, high, at_low, at_high, one.basis, varied=not one.ranged))
    return sorted(found, key=lambda s: (-abs(s.high_usd - s.low_usd), s.name))


def turning(found: Iterable[Swing], base_usd: Decimal) -> list[str]:
    """The inputs that at one of their ends turn the answer; `base_usd`: the difference with all at their middle."""
    return [s.name for s in found if any((end < 0) != (base_usd < 0) for end in (s.low_usd, s.high_usd))]


def ends(one: Input, vary_pct: Decimal) -> tuple[Decimal, Decimal]:
    """The low and high end of an input."""
    if one.ranged:
        return one.low, one.high
    step = vary_pct / PERCENT
    low, high = one.middle * (ONE - step), one.middle * (ONE + step)
    if one.name == "pue":
        low = max(low, ONE)
    return low, min(high, Decimal(MOST[one.name])) if one.name in MOST else high


def span(inputs: Mapping[str, Input], cost: Cost, names: Iterable[str]) -> UsdRange:
    """A cost with every one of these inputs at the end that lowers it, as they are, and at the end that raises it."""
    base = middles(inputs)
    low, high = dict(base), dict(base)
    for name in names:
        one = inputs[name]
        pair = sorted((one.low, one.high), key=lambda end: cost({**base, name: end}))
        low[name], high[name] = pair
    return UsdRange(cost(low), cost(base), cost(high))

"""Which ways keep deadline and budget surely enough, and which of them is taken?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from gpuledger.errors import InputError
from gpuledger.plan.outcome import Refused
from gpuledger.plan.spot.checkpoints import without_checkpoints_h
from gpuledger.plan.spot.options import Rated, at_least_pct
from gpuledger.plan.spot.pools import OWN_RATE, Candidate, Choice
from gpuledger.plan.spot.replay import Terms

MOST_BLOW_UP = 2.0
NEARLY = Decimal("1.01")  # a way that costs this much more is as cheap, and better if it is done earlier


def judged(
    ways: Sequence[Rated], confidence_pct: float, budget_usd: Decimal | None, draws: int
) -> tuple[list[Rated], list[Refused]]:
    """The ways that keep deadline and budget surely enough, the one to take first; the others with what is wrong."""
    good: list[Rated] = []
    refused: list[Refused] = []
    for way in sorted(ways, key=lambda w: (w.cost.middle_usd, w.zones)):
        if at_least_pct(way.on_time_pct, draws) < confidence_pct:
            why = f"on time in {_share(way.on_time_pct, confidence_pct, draws)}"
            more = ", or more simulated runs" if way.on_time_pct >= confidence_pct else ""
            refused.append(Refused(way.name, why, f"a later deadline or a lower confidence{more}"))
        elif at_least_pct(way.in_budget_pct, draws) < confidence_pct:
            why = f"within ${budget_usd:,.2f} in {_share(way.in_budget_pct, confidence_pct, draws)}"
            refused.append(Refused(way.name, why, f"a budget of ${way.safe_budget_usd:,.2f}"))
        else:
            good.append(way)
    if not good:
        on_time = [w for w in ways if at_least_pct(w.on_time_pct, draws) >= confidence_pct]
        least = min(on_time, key=lambda w: w.safe_budget_usd)
        cost = least.cost
        raise InputError(
            f"nothing keeps the deadline within budget_usd={budget_usd:,.2f} surely enough; the nearest is "
            f"{least.name} for ${cost.middle_usd:,.2f} (${cost.low_usd:,.2f} to ${cost.high_usd:,.2f})",
            hint=f"raise the budget to ${least.safe_budget_usd:,.2f}, or give a later deadline",
        )
    return _earliest_first(good), refused


def _earliest_first(good: Sequence[Rated]) -> list[Rated]:
    """Of the ways that cost nearly the same as the cheapest, one with a fallback, done first; the others by cost."""
    most = good[0].cost.middle_usd * NEARLY
    near = (w for w in good if w.cost.middle_usd <= most)
    chosen = min(near, key=lambda w: (w.way == "spot only", round(w.finish_h.middle, 1)))
    return [chosen, *(w for w in good if w is not chosen)]


def _share(pct: float, asked_pct: float, draws: int) -> str:
    """A share of runs, with what it proves where the share alone would seem to be enough."""
    found = f"{pct:.0f} % of {draws} simulated runs"
    if pct < asked_pct:
        return f"{found}, {asked_pct:g} % are asked for"
    return f"{found}, which shows {at_least_pct(pct, draws):.0f} % or more; {asked_pct:g} % are asked for"


def short_enough(found: Choice, terms: Terms) -> tuple[Choice, list[Refused]]:
    """Without checkpoints only pools in which the job is likely to get through."""
    if terms.checkpoint_h is not None:
        return found, []
    kept: list[Candidate] = []
    refused: dict[str, Refused] = {}
    for c in found.candidates:
        rate = c.reclaims_per_h
        worst = without_checkpoints_h(terms.work_h, rate.high, terms.restart_h)
        if worst <= MOST_BLOW_UP * (terms.work_h + terms.restart_h):
            kept.append(c)
            continue
        usual = without_checkpoints_h(terms.work_h, rate.middle, terms.restart_h)
        through = 100 * math.exp(-rate.high * terms.work_h)
        why = (
            f"no checkpoints: every reclaim starts {terms.work_h:g} h over. At up to {24 * rate.high:.1f} reclaims per "
            f"day ({rate.note}), {through:.2g} % of the runs get through and the job takes {_hours(worst)} on average "
            f"({_hours(usual)} at the expected {24 * rate.middle:.2g} per day)"
        )
        own = rate.evidence == OWN_RATE
        where = "spot at the reclaim rate given" if own else f"spot in zones with {rate.note} reclaimed per month"
        refused.setdefault(rate.note, Refused(where, why, "checkpoints, or a shorter job"))
    return found.with_only(kept), list(refused.values())


def _hours(value: float) -> str:
    return f"{value:,.0f} h" if value < 1e5 else "more than ten years"

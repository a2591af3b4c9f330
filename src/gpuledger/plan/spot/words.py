"""What does a spot plan say in words?"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from gpuledger.catalog.prices.history import PriceHistory
from gpuledger.catalog.prices.reclaim import facts
from gpuledger.plan.spot.options import Rated
from gpuledger.plan.spot.statement import Job


def headline(job: Job, chosen: Rated, on_demand_usd: Decimal, day: dt.date) -> str:
    """Where, for how much, done when, and how that compares with on-demand."""
    cost, finish = chosen.cost, chosen.finish_h
    spread = f" (${cost.low_usd:,.2f} to ${cost.high_usd:,.2f})" if cost.low_usd != cost.high_usd else ""
    only = "spot without fallback" if chosen.way == "spot only" else "spot"
    if chosen.way == "on-demand":
        return (
            f"Run {job.gpus} x {chosen.gpu} on demand, {chosen.where}: ${cost.middle_usd:,.2f}, done in "
            f"{finish.middle:,.1f} h. No spot option is cheaper and sure enough at prices of {day}."
        )
    less = 100 * (1 - cost.middle_usd / on_demand_usd) if on_demand_usd else Decimal(0)
    return (
        f"Run {job.gpus} x {chosen.gpu} on {only}, {chosen.where}: ${cost.middle_usd:,.2f}{spread}, {less:.0f} % below on-demand (${on_demand_usd:,.2f}); done in "
        f"{finish.middle:,.1f} h ({finish.low:,.1f} to {finish.high:,.1f}), on time in {chosen.on_time_pct:.0f} % "
        f"of the worlds. Prices of {day}."
    )


def assumptions(
    job: Job, history: PriceHistory, day: dt.date, moves: bool, own_rate: float | None, draws: int
) -> tuple[str, ...]:
    """What the plan rests on."""
    spot = facts()
    out = [
        f"Prices of {day} ({history.source}); expected cost and ranges are the mean and the 10th to 90th percentile of "
        f"{draws} drawn worlds.",
        "Prices move as they moved in a stretch of the past before that day, drawn at random."
        if moves
        else "Prices stay where they are: the history before that day is too short to draw from.",
        f"The reclaim rate is yours: {own_rate:g} per day and instance."
        if own_rate is not None
        else f"Reclaim rates come from bands ({spot.bands_source}, {spot.bands_dated}): low end -ln(1 - p) / 720 per "
        f"hour, high end p / ((1 - p) x {spot.mean_run.value:g} h); {spot.mean_run.source}. The open band is taken to "
        f"end at {100 * spot.open_band_high_ratio:.0f} %. In the worlds a rate is drawn from that range.",
        f"A zone without capacity has it again after {spot.outage_hours.middle:g} h on average "
        f"({spot.outage_hours.low:g} to {spot.outage_hours.high:g} h; {spot.outage_hours.source}); half of the outages "
        "hit all zones of a region at once.",
        "On-demand capacity is always there, at the cheapest on-demand price of the allowed regions.",
        "Moving a checkpoint between regions is not priced, and takes no longer than the restart time given.",
    ]
    if job.checkpoint_s is not None:
        out.append(
            f"A checkpoint takes {job.checkpoint_s:g} s and a restart {job.restart_s:g} s. On-demand takes over while "
            "it can still finish in time even if the spot instance is reclaimed at once."
        )
    if not job.deadline_given:
        out.append(f"No deadline was given: {job.deadline_h:,.1f} h, twice the work, is assumed.")
    if job.gpus > 1:
        out.append("All instances of the job are needed: a reclaim of any one interrupts it.")
    return tuple(out)

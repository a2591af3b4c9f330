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
        why = f"No spot option is cheaper and sure enough at prices of {day}."
        if job.checkpoint_s is None:
            why = "Without checkpoints every reclaim would start the job over, so spot is refused or costs more."
        return (
            f"Run {job.gpus} x {chosen.gpu} on demand, {chosen.where}: ${cost.middle_usd:,.2f}, done in "
            f"{finish.middle:,.1f} h. {why}"
        )
    less = 100 * (1 - cost.middle_usd / on_demand_usd) if on_demand_usd else Decimal(0)
    done = f"{finish.middle:,.1f} h ({finish.low:,.1f} to {finish.high:,.1f})"
    return (
        f"Run {job.gpus} x {chosen.gpu} on {only}, {chosen.where}: ${cost.middle_usd:,.2f}{spread}, {less:.0f} % below "
        f"on-demand (${on_demand_usd:,.2f}); done in {done}, on time in {chosen.on_time_pct:.0f} % of simulated runs. "
        f"Prices of {day}."
    )


def assumptions(
    job: Job, history: PriceHistory, day: dt.date, moves: bool, own_rate: float | None, draws: int
) -> tuple[str, ...]:
    """What the plan rests on."""
    spot = facts()
    drawn = "mean and the 10th to 90th percentile"
    rates = (
        f"Reclaim rates come from bands ({spot.bands_source}, {spot.bands_dated}): low end -ln(1 - p) / 720 per hour, "
        f"high end p / ((1 - p) x {spot.mean_run.value:g} h); {spot.mean_run.source}. The open band is taken to end at "
        f"{100 * spot.open_band_high_ratio:.0f} %. Each simulated run draws its rates from that range."
    )
    outage = spot.outage_hours
    again = (
        f"A zone without capacity has it again after {outage.middle:g} h on average ({outage.low:g} to {outage.high:g} "
        f"h; {outage.source}); half of the outages hit all zones of a region at once."
    )
    out = [
        f"Prices of {day} ({history.source}); expected cost and ranges are the {drawn} of {draws} simulated runs.",
        "Prices move as they moved in a stretch of the past before that day, drawn at random."
        if moves
        else "Prices stay where they are: the history before that day is too short to draw from.",
        rates if own_rate is None else f"The reclaim rate is yours: {own_rate:g} per day and instance.",
        again,
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

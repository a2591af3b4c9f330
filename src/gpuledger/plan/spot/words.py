"""What does a spot plan say in words?"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.catalog.prices.reclaim import facts
from gpuledger.plan.spot.options import Rated
from gpuledger.plan.spot.statement import Job

SHORT_DAYS = 14
AUDIT = (
    "The audit's advice to use spot counts the same saving for work that was measured; this plan is one job, planned "
    "from prices. Do not add the two."
)


@dataclass(frozen=True)
class Known:
    """What the plan was made from: prices of a day, in a history of a number of days before it, from a start on.

    `moves`: the history is long enough to draw from. `used_h`: the hours the plan uses of a deadline that is further.
    """

    source: str
    day: dt.date
    start_s: int
    past_days: float
    moves: bool
    used_h: float | None


def headline(job: Job, chosen: Rated, on_demand_usd: Decimal, day: dt.date, unrated: bool) -> str:
    """Where, for how much, done when, and how that compares with on-demand."""
    cost, finish = chosen.cost, chosen.finish_h
    spread = f" (${cost.low_usd:,.2f} to ${cost.high_usd:,.2f})" if cost.low_usd != cost.high_usd else ""
    only = "spot without fallback" if chosen.way == "spot only" else "spot"
    if chosen.way == "on-demand":
        why = f"No spot option is cheaper and sure enough at prices of {day}."
        if unrated:
            why = (
                "Spot was not rated: how often it is reclaimed there is unknown. Give --reclaims-per-day "
                "(reclaims_per_day in Python) to have it rated."
            )
        elif job.checkpoint_s is None:
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


def notes(job: Job, known: Known, one_length: bool) -> tuple[str, ...]:
    """What a reader should know before the figures."""
    out = []
    if known.past_days < SHORT_DAYS:
        span = f"{known.past_days:.0f} days" if known.past_days >= 1.5 else "no more than a day"
        out.append(f"The price history spans {span} before the plan: how prices move is not in it, nor in the ranges.")
    if one_length:
        names = " and ".join(name for name, _ in job.gpu_hours)
        out.append(f"{names} are taken to be equally fast; NAME:HOURS gives each its own hours.")
    return tuple(out)


def assumptions(job: Job, known: Known, own_rate: float | None, draws: int) -> tuple[str, ...]:
    """What the plan rests on."""
    spot, day = facts(), known.day
    start = dt.datetime.fromtimestamp(known.start_s, dt.UTC)
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
        f"The job starts at {start:%Y-%m-%d %H:%M} UTC, with the last prices known before, of {day} ({known.source}).",
        f"Expected cost and ranges are the {drawn} of {draws} simulated runs.",
        "Prices move as they moved in a stretch of the past before that day, drawn at random."
        if known.moves
        else "Prices stay where they are: the history before that day is too short to draw from.",
        rates if own_rate is None else f"The reclaim rate is yours: {own_rate:g} per day and instance.",
        again,
        "On-demand capacity is always there, at the cheapest on-demand price of the allowed regions.",
        "Moving a checkpoint between regions is not priced, and takes no longer than the restart time given.",
    ]
    if job.checkpoint_s is not None:
        out.append(
            f"A checkpoint takes {job.checkpoint_s:g} s and a restart {job.restart_s:g} s. On-demand takes over while "
            "it can still finish in time even if the spot instance is reclaimed just before a checkpoint."
        )
    if not job.deadline_given:
        out.append(f"No deadline was given: {job.deadline_h:,.1f} h, twice the work, is assumed.")
    if known.used_h is not None:
        out.append(
            f"The deadline is further off than the job can use: it is planned to end within {known.used_h:,.0f} h."
        )
    if job.gpus > 1:
        out.append("All instances of the job are needed: a reclaim of any one interrupts it.")
    out.append(AUDIT)
    return tuple(out)

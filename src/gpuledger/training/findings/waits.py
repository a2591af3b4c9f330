"""Does the device wait: for batches, for their copies, or at lines where the host waits for it?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings import NO_TIME, TOPICS, Facts, Saved, finding, share_of
from gpuledger.training.meter.observed import LoaderFacts, Observed, Site
from gpuledger.units import Unknown

SHOWN_SITES = 5
MOST_WORKERS = 16


@TOPICS.register("loader")
def starved(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """The share of the step in which the device has nothing to do because the batch is not there."""
    share = seen.share("data_wait")
    if share < known["wait_from_ratio"]:
        return None
    wait_ms, host_ms = 1000 * seen.phases_s["data_wait"], 1000 * seen.host_s.get("data_wait", 0.0)
    now, change = _loader(seen.loader, seen.cpus, known)
    why = f"the device waits {wait_ms:.1f} ms of each step ({100 * share:.0f} %) for its batch; {now}"
    figures = {"data_wait_ms": wait_ms, "data_wait_ratio": share, "host_wait_ms": host_ms, "cpus": seen.cpus}
    return finding(known, why, share_of(share, known), figures, change=change)


def _loader(loader: LoaderFacts | Unknown, cpus: int, known: Facts) -> tuple[str, str]:
    """How batches are made now, and the change."""
    workers = max(1, min(MOST_WORKERS, cpus))
    if isinstance(loader, Unknown) or loader.workers is None:
        kind = "the source of the batches" if isinstance(loader, Unknown) else loader.kind
        return f"{kind} makes them in the training process", known["change_other"].format(workers=workers)
    if loader.workers >= workers:
        workers = 2 * loader.workers
    now = f"num_workers={loader.workers}, pin_memory={loader.pinned}, prefetch_factor={loader.prefetch}"
    return f"{now}, {cpus} processors", known["change"].format(workers=workers, now=loader.workers)


@TOPICS.register("h2d")
def copies(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """Time between the batch's arrival and the first layer, on a GPU; unknown where the first layer was not seen."""
    share = seen.share("h2d")
    if seen.place.kind != "cuda" or share < known["copy_from_ratio"] or not seen.phases_s["forward"]:
        return None
    ms, megabytes = 1000 * seen.phases_s["h2d"], seen.batch_bytes / 1e6
    pinned = isinstance(seen.loader, LoaderFacts) and bool(seen.loader.pinned)
    why = (
        f"{ms:.2f} ms of each step ({100 * share:.0f} %) pass before the first layer, with {megabytes:.1f} MB to copy; "
        f"the loader's batches are {'' if pinned else 'not '}in pinned memory"
    )
    figures = {"h2d_ms": ms, "h2d_ratio": share, "batch_mb": megabytes}
    return finding(known, why, share_of(share, known), figures, rule=known["rule_pinned" if pinned else "rule"])


@TOPICS.register("sync_points")
def sync_points(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """Lines that make the host wait, with file and number."""
    steps = max(seen.watched_steps or seen.steps, 1)
    often = [s for s in seen.sites if s.times / steps >= known["waits_from_per_step"]]
    if not often:
        return None
    step_s, idle = sum(seen.phases_s.values()), seen.share("sync")
    held = min(sum(s.host_s for s in often) / steps / step_s, 1.0) if step_s else 0.0
    lines = "; ".join(_site(s, steps) for s in often[:SHOWN_SITES])
    if len(often) > SHOWN_SITES:
        lines += f"; and {len(often) - SHOWN_SITES} more"
    cost = "on a GPU the host would wait there for all work queued so far"
    saved: Saved = NO_TIME
    if seen.place.kind == "cuda":
        idle_ms = 1000 * seen.phases_s.get("sync", 0.0)
        cost = f"there the device idles {idle_ms:.2f} ms per step and the host is held for {100 * held:.0f} % of it"
        if held >= known["least_ratio"]:
            high = max(idle, known["host_share_ratio"] * (1 - seen.share("forward", "backward", "optimizer")), 0.0)
            saved = (known["saves_low_ratio"] * idle, known["saves_middle_ratio"] * idle, min(high, held))
    waits = sum(s.times for s in often) / steps
    figures = {"waits_per_step": waits, "sync_ratio": idle, "host_held_ratio": held}
    why = f"{waits:.1f} waits per step: {lines}; {cost}"
    return finding(known, why, saved, figures, change=known["change"].format(lines=lines))


def _site(site: Site, steps: int) -> str:
    return f"{site.where} {site.call} {site.times / steps:.1f} per step, {1000 * site.host_s / steps:.2f} ms"

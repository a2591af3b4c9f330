"""Does the device wait: for batches, for their copies, or at lines where the host waits for it?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings import NO_TIME, TOPICS, Saved, facts, finding, share_of
from gpuledger.training.meter.observed import LoaderFacts, Observed, Site
from gpuledger.units import Unknown

SHOWN_SITES = 5
MOST_WORKERS = 16
WORKERS = """
loader = DataLoader(
    dataset,
    batch_size=batch_size,
    shuffle=True,
    num_workers={workers},          # now {now}
    pin_memory=True,
    prefetch_factor=4,
    persistent_workers=True,
)
"""
OTHER_LOADER = """
# Make batches in other processes, ahead of time, so that the loop only has to take them.
loader = DataLoader(dataset, batch_size=batch_size, num_workers={workers}, pin_memory=True, prefetch_factor=4)
"""
COPIES = """
loader = DataLoader(dataset, batch_size=batch_size, pin_memory=True)
for batch in loader:
    # A copy from pinned memory does not block: it overlaps with the previous step.
    batch = {name: tensor.to("cuda", non_blocking=True) for name, tensor in batch.items()}
"""
SYNC_POINTS = """
# {lines}
total = torch.zeros((), device=device)
for step, batch in enumerate(loader):
    loss = train_step(batch)
    total += loss.detach()          # stays on the device: nothing waits
    if step % 100 == 99:
        print(step, (total / 100).item())
        total.zero_()
"""


@TOPICS.register("loader")
def starved(seen: Observed) -> MeasuredFinding | None:
    """The share of the step in which the device has nothing to do because the batch is not there."""
    known, share = facts("loader"), seen.share("data_wait")
    if share < known["wait_from_ratio"]:
        return None
    wait_ms = 1000 * seen.phases_s["data_wait"]
    now, change = _loader(seen.loader, seen.cpus)
    why = f"the device waits {wait_ms:.1f} ms of each step ({100 * share:.0f} %) for its batch; {now}"
    return finding(
        "loader", "num-workers", "The device waits for its batches", why, change, share_of(share, known),
        known["source"], data_wait_ms=wait_ms, data_wait_ratio=share,
        host_wait_ms=1000 * seen.host_s.get("data_wait", 0.0), cpus=seen.cpus,
    )  # fmt: skip


def _loader(loader: LoaderFacts | Unknown, cpus: int) -> tuple[str, str]:
    """How batches are made now, and the change."""
    workers = max(1, min(MOST_WORKERS, cpus))
    if isinstance(loader, Unknown) or loader.workers is None:
        kind = "the source of the batches" if isinstance(loader, Unknown) else loader.kind
        return f"{kind} makes them in the training process", OTHER_LOADER.format(workers=workers)
    if loader.workers >= workers:
        workers = 2 * loader.workers
    now = f"num_workers={loader.workers}, pin_memory={loader.pinned}, prefetch_factor={loader.prefetch}"
    return f"{now}, {cpus} processors", WORKERS.format(workers=workers, now=loader.workers)


@TOPICS.register("h2d")
def copies(seen: Observed) -> MeasuredFinding | None:
    """Time between the batch's arrival and the first layer, on a GPU; unknown where the first layer was not seen."""
    known, share = facts("h2d"), seen.share("h2d")
    if seen.place.kind != "cuda" or share < known["copy_from_ratio"] or not seen.phases_s["forward"]:
        return None
    ms, megabytes = 1000 * seen.phases_s["h2d"], seen.batch_bytes / 1e6
    pinned = isinstance(seen.loader, LoaderFacts) and bool(seen.loader.pinned)
    why = f"{ms:.2f} ms of each step ({100 * share:.0f} %) pass before the first layer, with {megabytes:.1f} MB to copy"
    return finding(
        "h2d", "h2d-overlap" if pinned else "pin-memory", "The device waits while batches are copied to it",
        f"{why}; the loader's batches are {'' if pinned else 'not '}in pinned memory", COPIES, share_of(share, known),
        known["source"], h2d_ms=ms, h2d_ratio=share, batch_mb=megabytes,
    )  # fmt: skip


@TOPICS.register("sync_points")
def sync_points(seen: Observed) -> MeasuredFinding | None:
    """Lines that make the host wait, with file and number."""
    known, steps = facts("sync"), max(seen.watched_steps or seen.steps, 1)
    often = [s for s in seen.sites if s.times / steps >= known["waits_from_per_step"]]
    if not often:
        return None
    step_s, idle, on_gpu = sum(seen.phases_s.values()), seen.share("sync"), seen.place.kind == "cuda"
    held = min(sum(s.host_s for s in often) / steps / step_s, 1.0) if step_s else 0.0
    lines = "; ".join(_site(s, steps) for s in often[:SHOWN_SITES])
    if len(often) > SHOWN_SITES:
        lines += f"; and {len(often) - SHOWN_SITES} more"
    cost = "on a GPU the host would wait there for all work queued so far"
    saved: Saved = NO_TIME
    if on_gpu:
        idle_ms = 1000 * seen.phases_s.get("sync", 0.0)
        cost = f"there the device idles {idle_ms:.2f} ms per step and the host is held for {100 * held:.0f} % of it"
        if held >= known["least_ratio"]:
            high = max(idle, known["host_share_ratio"] * (1 - seen.share("forward", "backward", "optimizer")), 0.0)
            saved = (known["saves_low_ratio"] * idle, known["saves_middle_ratio"] * idle, min(high, held))
    waits = sum(s.times for s in often) / steps
    return finding(
        "sync_points", "sync-points", "The host waits for the device in every step",
        f"{waits:.1f} waits per step: {lines}; {cost}", SYNC_POINTS.format(lines=lines), saved, known["source"],
        waits_per_step=waits, sync_ratio=idle, host_held_ratio=held,
    )  # fmt: skip


def _site(site: Site, steps: int) -> str:
    return f"{site.where} {site.call} {site.times / steps:.1f} per step, {1000 * site.host_s / steps:.2f} ms"

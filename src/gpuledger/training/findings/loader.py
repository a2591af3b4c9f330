"""Does the device wait for batches?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import facts, finding, share_of, topic
from gpuledger.training.meter.observed import LoaderFacts, Observed
from gpuledger.units import Unknown

CHANGE = """
loader = DataLoader(
    dataset,
    batch_size=batch_size,
    shuffle=True,
    num_workers={workers},          # {now}
    pin_memory=True,
    prefetch_factor=4,
    persistent_workers=True,
)
"""
OTHER = """
# Make batches in other processes, ahead of time: the loop must only take them.
loader = DataLoader(dataset, batch_size=batch_size, num_workers={workers}, pin_memory=True, prefetch_factor=4)
"""


@topic("loader")
def starved(seen: Observed) -> MeasuredFinding | None:
    """The share of the step in which the device has nothing to do because the batch is not there."""
    known, share = facts("loader"), seen.share("data_wait")
    if share < known["wait_from_ratio"]:
        return None
    wait_ms = 1000 * seen.phases_s["data_wait"]
    now, change = _now(seen.loader, seen.cpus)
    why = f"the device waits {wait_ms:.1f} ms of each step ({100 * share:.0f} %) for its batch; {now}"
    return finding(
        "loader",
        "num-workers",
        "The device waits for its batches",
        why,
        change,
        share_of(share, known),
        known["source"],
        data_wait_ms=wait_ms,
        data_wait_ratio=share,
        host_wait_ms=1000 * seen.host_s.get("data_wait", 0.0),
        cpus=seen.cpus,
    )


def _now(loader: LoaderFacts | Unknown, cpus: int) -> tuple[str, str]:
    workers = max(1, min(16, cpus))
    if isinstance(loader, Unknown) or loader.workers is None:
        kind = "what gives the batches" if isinstance(loader, Unknown) else loader.kind
        return f"{kind} makes them in the training process", OTHER.format(workers=workers)
    if loader.workers >= workers:
        workers = 2 * loader.workers
    said = f"num_workers={loader.workers}, pin_memory={loader.pinned}, prefetch_factor={loader.prefetch}"
    return f"{said}, {cpus} processors", CHANGE.format(workers=workers, now=f"now {loader.workers}")

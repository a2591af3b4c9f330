"""Does the device wait while batches travel to it?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import facts, finding, share_of, topic
from gpuledger.training.meter.observed import LoaderFacts, Observed

CHANGE = """
loader = DataLoader(dataset, batch_size=batch_size, pin_memory=True)
for batch in loader:
    # From pinned memory a copy need not be waited for: it runs beside the work of the step before.
    batch = {name: tensor.to("cuda", non_blocking=True) for name, tensor in batch.items()}
"""


@topic("h2d")
def copies(seen: Observed) -> MeasuredFinding | None:
    """Time between the batch's arrival and the first layer, on a GPU; not told from it where that was not seen."""
    known, share = facts("h2d"), seen.share("h2d")
    if seen.place.kind != "cuda" or share < known["copy_from_ratio"] or not seen.phases_s["forward"]:
        return None
    ms, megabytes = 1000 * seen.phases_s["h2d"], seen.batch_bytes / 1e6
    pinned = isinstance(seen.loader, LoaderFacts) and bool(seen.loader.pinned)
    why = f"{ms:.2f} ms of each step ({100 * share:.0f} %) pass before the first layer, with {megabytes:.1f} MB to copy"
    return finding(
        "h2d",
        "h2d-overlap" if pinned else "pin-memory",
        "The device waits while batches travel to it",
        f"{why}; the loader's batches are {'' if pinned else 'not '}in pinned memory",
        CHANGE,
        share_of(share, known),
        known["source"],
        h2d_ms=ms,
        h2d_ratio=share,
        batch_mb=megabytes,
    )

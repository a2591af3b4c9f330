"""Do the products have sizes the tensor cores like?"""

from __future__ import annotations

from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import COMPUTE, by_speedup, facts, finding, topic
from gpuledger.training.meter.observed import Observed
from gpuledger.units import Unknown

CHANGE = """
# Sizes in multiples of 8 (64 is better): {sizes}
vocabulary = (vocabulary + 63) // 64 * 64       # rows beyond the tokenizer's are never looked up
loader = DataLoader(dataset, batch_size=batch_size // 8 * 8 or 8, drop_last=True)
"""


@topic("tensor_cores")
def odd_sizes(seen: Observed) -> MeasuredFinding | None:
    """The share of the product FLOPs whose sizes are no multiples of 8, where products run on tensor cores."""
    known, work = facts("tensor_cores"), seen.work
    if isinstance(seen.precision, Unknown) or seen.precision in VECTOR_PRECISIONS:
        return None
    if seen.place.kind != "cuda" or isinstance(work, Unknown) or work.odd_ratio < known["odd_from_ratio"]:
        return None
    sizes = ", ".join(" x ".join(map(str, size)) for size in work.odd_sizes)
    share = seen.share(*COMPUTE) * work.odd_ratio
    return finding(
        "tensor_cores",
        "tensor-cores",
        "Products have sizes that are no multiples of 8",
        f"{100 * work.odd_ratio:.0f} % of the product FLOPs have a size that is no multiple of 8, such as {sizes}",
        CHANGE.format(sizes=sizes),
        by_speedup(share, known["speedup_low"], known["speedup_middle"], known["speedup_high"]),
        known["source"],
        odd_ratio=work.odd_ratio,
        compute_ratio=seen.share(*COMPUTE),
    )

"""At which lines does the host wait for the device, and what does that cost?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import Saved, facts, finding, topic
from gpuledger.training.meter.observed import Observed
from gpuledger.training.meter.sites import Site

SHOWN = 5
CHANGE = """
# {lines}
total = torch.zeros((), device=device)
for step, batch in enumerate(loader):
    loss = train_step(batch)
    total += loss.detach()          # stays on the device: nothing waits
    if step % 100 == 99:
        print(step, (total / 100).item())
        total.zero_()
"""


@topic("sync_points")
def waits(seen: Observed) -> MeasuredFinding | None:
    """Lines that make the host wait, with file and number."""
    known, steps = facts("sync"), max(seen.watched_steps or seen.steps, 1)
    often = [s for s in seen.sites if s.times / steps >= known["waits_from_per_step"]]
    if not often:
        return None
    step_s = sum(seen.phases_s.values())
    idle = seen.share("sync")
    held = min(sum(s.host_s for s in often) / steps / step_s, 1.0) if step_s else 0.0
    on_gpu = seen.place.kind == "cuda"
    lines = "; ".join(_words(s, steps) for s in often[:SHOWN])
    if len(often) > SHOWN:
        lines += f"; and {len(often) - SHOWN} more"
    if on_gpu:
        idle_ms = 1000 * seen.phases_s.get("sync", 0.0)
        cost = f"the device idles {idle_ms:.2f} ms a step there, the host is held {100 * held:.0f} % of it"
    else:
        cost = "on a GPU the host would wait there for all work queued so far"
    saved: Saved = (0.0, 0.0, 0.0)
    if on_gpu and held >= known["least_ratio"]:
        high = max(idle, known["host_share_ratio"] * (1 - seen.share("forward", "backward", "optimizer")), 0.0)
        saved = (known["saves_low_ratio"] * idle, known["saves_middle_ratio"] * idle, min(high, held))
    return finding(
        "sync_points",
        "sync-points",
        "The host waits for the device in every step",
        f"{sum(s.times for s in often) / steps:.1f} waits a step: {lines}; {cost}",
        CHANGE.format(lines=lines),
        saved,
        known["source"],
        waits_per_step=sum(s.times for s in often) / steps,
        sync_ratio=idle,
        host_held_ratio=held,
    )


def _words(site: Site, steps: int) -> str:
    return f"{site.where} {site.call} {site.times / steps:.1f} a step, {1000 * site.host_s / steps:.2f} ms"

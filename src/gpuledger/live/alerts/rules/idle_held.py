"""Which owners hold GPUs, with memory in use, and run nothing?"""

from collections import defaultdict
from collections.abc import Iterator

from gpuledger.ledger.read.scope import owner_name
from gpuledger.live.alerts.devices import Device
from gpuledger.live.alerts.rule import Evidence, Reading, Subject, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import MS_PER_DAY, MS_PER_MIN

_SHOWN = 5


@alert(
    "idle_held",
    "GPUs held without work",
    unit="min",
    next_step="ask the owner whether the job still runs; stop it, or let it give the GPUs back while it waits",
)
def look(seen: Seen) -> Iterator[Reading]:
    """By owner the longest time one of its GPUs has held memory without work; one message however many GPUs."""
    by_owner: dict[str, list[Device]] = defaultdict(list)
    for device in seen.devices.values():
        own = device.owner
        name = owner_name(own.namespace, own.workload or own.run_id)
        by_owner[f"{own.cluster}/{name}" if own.cluster else name].append(device)
    for id_, devices in sorted(by_owner.items()):
        held = {d.subject.name: seen.idle_held_since[d.id] for d in devices if d.id in seen.idle_held_since}
        since = min(held.values(), default=None)
        owner = devices[0].owner
        minutes = 0.0 if since is None else (seen.newest_ms - since) / MS_PER_MIN
        first = sorted(held, key=lambda gpu: held[gpu])
        more = f" and {len(first) - _SHOWN} more" if len(first) > _SHOWN else ""
        evidence: Evidence = {
            "gpus_held": len(held),
            "gpus_of_the_owner": len(devices),
            "longest": ", ".join(first[:_SHOWN]) + more,
        }
        if since is not None and since % MS_PER_DAY == 0 and since <= seen.newest_ms - seen.forget_ms:
            evidence = {**evidence, "began": "before the days looked at, so it may be longer"}
        yield Reading(Subject("owner", id_, id_), minutes, seen.newest_ms, since, owner, evidence)

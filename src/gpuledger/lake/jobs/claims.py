"""What does a scheduler claim about a GPU, and when do two claims say the same?

The claims of a lake are a set: the order in which tables come, and how often, changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

from gpuledger.telemetry import schema

LABELS = (*schema.OWNER, "pod")
Owner = tuple[str | None, ...]  # the labels of a sample, in this order
# The name of a job is what its table calls it; telemetry may call it by its command or its deployment.
_COMPARED = tuple(name for name in LABELS if name != "workload")
Identity = tuple[str | None, ...]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One job on one host from `start_ms` up to `end_ms` (None: still running when the table was written).

    `gpu`: the index on the host or the UUID; None where the table does not say which. `gpus`: how many of the host's
    GPUs the job holds; None where unknown. Without a host the GPU is a UUID.

    Of a pod: `seen_ms`, when the newest list of pods that has it was taken, and `seen_in`, how many have it. `sure_ms`:
    up to when it surely ran, where a list that may be newer lacks it; `gone_ms`: from when on it surely did not.
    """

    host: str | None
    gpu: str | None
    gpus: int | None
    start_ms: int
    end_ms: int | None
    cluster: str | None = None
    namespace: str | None = None
    team: str | None = None
    user: str | None = None
    account: str | None = None
    workload: str | None = None
    run_id: str | None = None
    pod: str | None = None
    seen_ms: int | None = None
    seen_in: int = 0
    sure_ms: int | None = None
    gone_ms: int | None = None

    @property
    def identity(self) -> Identity:
        """The job: its pod where it has one, as a job may have several; else its id, else all known of its owner."""
        if self.pod is not None:
            return ("pod", self.namespace, self.pod)
        if self.run_id is not None:
            return ("job", self.run_id)
        return ("owner", self.namespace, self.team, self.user, self.account, self.workload)

    @property
    def labels(self) -> dict[str, str | None]:
        """The labels of the owner, in their order."""
        return {name: getattr(self, name) for name in LABELS}

    @property
    def name(self) -> str:
        """The job as notes and joint owners name it."""
        return (
            self.run_id or self.pod or self.workload or self.user or self.account or self.team or self.namespace or ""
        )

    def contradicts(self, own: Owner) -> bool:
        """Whether a label of a sample and of the job are both known and differ."""
        return bool(self.differing(own))

    def differing(self, own: Owner) -> set[str]:
        """The labels that are known of a sample and of the job, and differ; a pod may have several run ids."""
        labels, of = self.labels, dict(zip(LABELS, own, strict=True))
        differ = {n for n in _COMPARED if of[n] and labels[n] and of[n] != labels[n]}
        same_pod = self.pod is not None and of["pod"] == self.pod
        return differ - {"run_id"} if same_pod else differ

    def named_by(self, own: Owner) -> bool:
        """Whether a label of a sample names the job or its owner."""
        labels = self.labels
        return any(t and t == labels[n] for n, t in zip(LABELS, own, strict=True) if n != "cluster")


def is_index(gpu: str) -> bool:
    """Whether a GPU is named by its number on its host."""
    return gpu.isdecimal()


def settled(claims: Iterable[Claim]) -> tuple[list[Claim], list[Claim]]:
    """The claims with those of one job, place and start made one, in order; and those whose owners contradicted.

    What one table leaves open another may fill in: an end, a label, the very GPUs. Of two ends the later holds; of two
    different labels the later in the alphabet, so that no order of files matters.
    """
    found: dict[tuple[object, ...], Claim] = {}
    torn: dict[tuple[object, ...], Claim] = {}
    for claim in claims:
        key = (claim.identity, claim.host, claim.gpu, claim.start_ms)
        other = found.get(key)
        if other is not None and any(t and other.labels[n] not in (None, "", t) for n, t in claim.labels.items()):
            torn[key] = claim
        found[key] = claim if other is None else _joined(claim, other)
    # Where one table names the GPUs of a job on a host, another that does not is about the same GPUs.
    loose = {(c.identity, c.host, c.start_ms): c for c in found.values() if c.gpu is None}
    exact = {(c.identity, c.host, c.start_ms) for c in found.values() if c.gpu is not None}
    kept = [c for key, c in loose.items() if key not in exact]
    kept += [_seen_too(c, loose.get((c.identity, c.host, c.start_ms))) for c in found.values() if c.gpu is not None]
    return sorted(kept, key=order_of), [found[key] for key in torn]


def ended(claims: Iterable[Claim]) -> list[Claim]:
    """The claims, those without an end ended where their job started again or is in no list, as it had ended by then.

    A pod, and a job whose scheduler says how many GPUs it holds, run once at a time, on whatever hosts. Others may hold
    several GPUs, each from a time of its own on.
    """
    found = list(claims)
    starts: dict[tuple[object, ...], list[int]] = {}
    for claim in sorted(found, key=lambda c: c.start_ms):
        starts.setdefault(_run_of(claim), []).append(claim.start_ms)
    return [claim if claim.end_ms is not None else _until(claim, starts[_run_of(claim)]) for claim in found]


def _until(claim: Claim, starts: list[int]) -> Claim:
    place = bisect_right(starts, claim.start_ms)
    ends = [t for t in (claim.gone_ms, *starts[place : place + 1]) if t is not None]
    if not ends:
        return claim
    sure = None if claim.sure_ms is None or claim.sure_ms >= min(ends) else claim.sure_ms
    return msgspec.structs.replace(claim, end_ms=min(ends), sure_ms=sure)


def _run_of(claim: Claim) -> tuple[object, ...]:
    counted = claim.run_id is not None and claim.gpu is None and claim.gpus is not None
    return (claim.identity,) if claim.pod is not None or counted else (claim.identity, claim.host, claim.gpu)


def order_of(claim: Claim) -> tuple[str, ...]:
    """A sort key that no two claims of a settled set share."""
    start = f"{claim.start_ms:015d}"
    return (claim.host or "", start, *(t or "" for t in claim.identity), claim.gpu or "")


def _joined(a: Claim, b: Claim) -> Claim:
    ends = [c.end_ms for c in (a, b) if c.end_ms is not None]
    counts = [c.gpus for c in (a, b) if c.gpus is not None]
    known = {n: [t for t in (getattr(a, n), getattr(b, n)) if t is not None] for n in LABELS}
    labels = {name: max(texts, default=None) for name, texts in known.items()}
    joined = msgspec.structs.replace(a, end_ms=max(ends, default=None), gpus=max(counts, default=None), **labels)
    return _seen_too(joined, b)


def _seen_too(claim: Claim, other: Claim | None) -> Claim:
    """The claim, seen also in the lists that show the other one of the same pod."""
    if other is None or other.seen_ms is None:
        return claim
    seen_ms = other.seen_ms if claim.seen_ms is None else max(claim.seen_ms, other.seen_ms)
    return msgspec.structs.replace(claim, seen_ms=seen_ms, seen_in=claim.seen_in + other.seen_in)

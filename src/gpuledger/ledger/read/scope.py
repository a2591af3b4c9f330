"""Which lines of the ledger does a statement use?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.errors import InputError, NothingFound, UnknownName, nearest
from gpuledger.lake.layout import Lake
from gpuledger.lake.names import Names
from gpuledger.ledger.read.columns import Wanted, read_files
from gpuledger.ledger.store import Ledger
from gpuledger.units import MS_PER_DAY, utc, utc_day

# Time without an owner; the word also works as a filter.
UNALLOCATED = "unallocated"
# Time without a namespace that other labels name the owner of: a job, a user, an account.
NO_NAMESPACE = "no namespace"
# A namespace that is really called so, in statements and as a filter.
CALLED_UNALLOCATED = "unallocated (namespace)"
CALLED_NO_NAMESPACE = "no namespace (namespace)"
ACHIEVABLE_SOURCES = ("published", "peak", "measured")
_FORMER_NAMES = {"s0": "published"}  # as documented for version 0.1


def namespace_name(namespace: str | None) -> str:
    """A namespace as statements and filters name it, so that no name can be mistaken for time without an owner."""
    if namespace is None:
        return UNALLOCATED
    return {UNALLOCATED: CALLED_UNALLOCATED, NO_NAMESPACE: CALLED_NO_NAMESPACE}.get(namespace, namespace)


def owner_name(namespace: str | None, workload: str | None) -> str:
    """Namespace and workload, as the owner filter takes them."""
    if not workload:
        return namespace_name(namespace or None)
    return f"{namespace}/{workload}" if namespace else workload


@dataclass(frozen=True)
class Scope:
    """The window, from `since_ms` up to `until_ms`, and the owners asked for."""

    since_ms: int | None = None
    until_ms: int | None = None
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def names_owners(self) -> bool:
        """Whether only some owners are asked for."""
        return bool(self.clusters or self.namespaces or self.owners)

    def days(self) -> tuple[str, str] | None:
        """The days whose files can hold such lines; a span over midnight is posted with the day before."""
        if self.since_ms is None and self.until_ms is None:
            return None
        first = "" if self.since_ms is None else utc_day(self.since_ms - MS_PER_DAY)
        return first, "9999" if self.until_ms is None else utc_day(self.until_ms)

    def __str__(self) -> str:
        parts = [f"from {utc(self.since_ms):%Y-%m-%d %H:%M} UTC"] if self.since_ms is not None else []
        parts += [f"until {utc(self.until_ms):%Y-%m-%d %H:%M} UTC"] if self.until_ms is not None else []
        for kind in ("clusters", "namespaces", "owners"):
            if names := getattr(self, kind):
                parts.append(f"{kind} {', '.join(names)}")
        return ", ".join(parts) or "no filter"


def check_source(achievable: str) -> str:
    """The named source of achievable TFLOPS, or an error that lists them."""
    achievable = _FORMER_NAMES.get(achievable, achievable)
    if achievable not in ACHIEVABLE_SOURCES:
        raise UnknownName("source of achievable TFLOPS", achievable, ACHIEVABLE_SOURCES)
    return achievable


def nothing_posted(lake: Lake) -> InputError:
    """The error for a lake whose samples were never posted."""
    hint = "post the samples first: gpuledger analyze does it on the way"
    return InputError(f"{lake.root}: nothing is posted yet", hint=hint)


def nothing_found(lake: Lake, scope: Scope) -> NothingFound:
    """The error for a scope without a line: what was asked, and what there is."""
    ledger = Ledger(lake)
    days = sorted(d.day for d in ledger.manifest().days)
    names = {kind: Names() for kind in ("cluster", "namespace", "workload")}
    for _ in read_files(ledger.files("lines"), Wanted(names, ())):
        pass  # reading numbers the names
    known = {kind: sorted(t for t in found.texts if t is not None) for kind, found in names.items()}
    there = [f"days {days[0]} to {days[-1]}"] if days else []
    there += [f"{kind}s {', '.join(texts[:12])}" for kind, texts in known.items() if texts]
    asked = (("cluster", scope.clusters), ("namespace", scope.namespaces), ("workload", scope.owners))
    close = [n for kind, wanted in asked for w in wanted if w not in known[kind] for n in nearest(w, known[kind], 1)]
    hint = f"the ledger holds {'; '.join(there)}"
    if close:
        hint = f"did you mean {' or '.join(close)}? {hint}"
    return NothingFound(f"no data matches: {scope}", hint=hint)

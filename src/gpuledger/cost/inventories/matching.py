"""Which GPUs of a lake does a name in a bill mean? By host name, instance ID or UUID; never by likeness.

A machine has several names: a bill knows i-0abc, a cluster ip-10-0-1-2.ec2.internal. A list of nodes ties them
together. A host name matches with and without its domain, as long as one host of the lake only has that short name.
Hosts of one name in several clusters are called CLUSTER/HOST, and the bare name means neither of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuledger.cost.inventories.kinds import Node
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope

_FACTS = ("gpu_uuid", "gpu_instance_id", "host", "cluster", "gpu_index", "gpu_model")
_INSTANCE = re.compile(r"(?<![a-z0-9])i-[0-9a-f]{8,17}(?![a-z0-9])")
_IP = re.compile(r"\d+\.\d+\.\d+\.\d+")


@dataclass(frozen=True)
class Presence:
    """One GPU on one host, from its first to its last sample there; `slices` are its MIG instances."""

    gpu_uuid: str
    host: str
    gpu_index: str | None
    gpu_model: str | None
    first_ms: int
    last_ms: int
    slices: frozenset[str] = frozenset()


def read_presences(lake: Lake) -> list[Presence]:
    """Every GPU on every host it was seen on, in order; the ledger must be posted."""
    books = Books(lake, Scope())
    seen = Accumulator(most=("last_ms",), least=("first_ms",))
    for _, rows in books.blocks(_FACTS[2:], ("first_ms", "last_ms")):
        seen.add([rows[c] for c in _FACTS], {c: rows[c] for c in ("first_ms", "last_ms")})
    keys, ends = seen.total()
    if not keys:
        return []
    texts = [books.names[c].text(k) for c, k in zip(_FACTS, keys, strict=True)]
    lines = list(zip(*texts, ends["first_ms"].tolist(), ends["last_ms"].tolist(), strict=True))
    named = _told_apart([(host or "", cluster, uuid or "") for uuid, _part, host, cluster, *_rest in lines])
    found: dict[tuple[str, str], Presence] = {}
    for uuid, part, host, cluster, index, model, first, last in lines:
        key = (uuid or "", named.get((host or "", cluster), host or ""))
        old = found.get(key, Presence(*key, index, model, first, last))
        newer = last >= old.last_ms
        found[key] = Presence(
            *key, (newer and index) or old.gpu_index or index, (newer and model) or old.gpu_model or model,
            min(first, old.first_ms), max(last, old.last_ms), old.slices | ({part} if part else set()),
        )  # fmt: skip
    return [found[key] for key in sorted(found)]


def _told_apart(seen: Iterable[tuple[str, str | None, str]]) -> dict[tuple[str, str | None], str]:
    """Names for hosts that are called alike in several clusters: CLUSTER/HOST. A GPU seen in both makes them one."""
    gpus: dict[str, dict[str, set[str]]] = {}
    for host, cluster, uuid in seen:
        if host and cluster:
            gpus.setdefault(host, {}).setdefault(cluster, set()).add(uuid)
    return {
        (host, cluster): f"{cluster}/{host}"
        for host, clusters in gpus.items()
        if len(clusters) > 1 and sum(map(len, clusters.values())) == len(set().union(*clusters.values()))
        for cluster in clusters
    }


class Directory:
    """The names by which the hosts and GPUs of a lake are known."""

    def __init__(self, presences: Sequence[Presence], nodes: Iterable[Node] = ()) -> None:
        self.presences = presences
        self._hosts: dict[str, set[str]] = {}
        self._meant: dict[tuple[str, ...], tuple[Presence, ...]] = {}
        self._keys: dict[tuple[str, ...], str] = {}
        self.gpus: dict[str, str] = {}
        for seen in presences:
            uuid = seen.gpu_uuid
            self.gpus |= {name: name for name in (uuid, *(f"{uuid}/{part}" for part in seen.slices)) if uuid}
        hosts = sorted({seen.host for seen in presences if seen.host})
        short = Counter(_short(host) for host in hosts)
        for host in hosts:
            names = {host.casefold(), *_INSTANCE.findall(host.casefold())}
            names |= {_short(host)} if short[_short(host)] == 1 else set()
            for name in names:
                self._hosts.setdefault(name, set()).add(host)
        for seen in sorted(presences, key=lambda p: p.last_ms):
            if seen.host and seen.gpu_index:
                self.gpus[f"{seen.host}/{seen.gpu_index}"] = seen.gpu_uuid
        self.shared = {host.partition("/")[2].casefold() for host in hosts if "/" in host}
        self._join(nodes)

    def _join(self, nodes: Iterable[Node]) -> None:
        """Every name of a node means what one of its names means."""
        found = [(node, self.hosts((node.name, *sorted(node.aliases)))) for node in nodes]
        for node, hosts in found:
            for name in (node.name, *node.aliases):
                self._hosts.setdefault(name.casefold(), set()).update(hosts)

    def hosts(self, names: Iterable[str]) -> frozenset[str]:
        """The hosts of the lake that the first known of these names means; empty where none is known."""
        for name in names:
            folded = name.casefold()
            found = self._hosts.get(folded) or (None if _IP.fullmatch(folded) else self._plain(folded))
            if found:
                return frozenset(found)
        return frozenset()

    def gpu(self, name: str) -> str | None:
        """The GPU called so: by its UUID, by that of a slice, or by any name of its host and its index there."""
        if name in self.gpus:
            return self.gpus[name]
        host, _, index = name.rpartition("/")
        found = {f"{known}/{index}" for known in self.hosts((host,))} & self.gpus.keys()
        return self.gpus[found.pop()] if len(found) == 1 else None

    def ambiguous(self, names: Iterable[str]) -> bool:
        """Whether one of these names is that of several hosts."""
        return any(name.casefold() in self.shared for name in names)

    def _plain(self, folded: str) -> set[str] | None:
        """A name with a domain means the host of that name without one."""
        short = folded.partition(".")[0]
        found = self._hosts.get(short, set()) if short != folded else set()
        return {host for host in found if host.casefold() == short} or None

    def key(self, names: tuple[str, ...]) -> str:
        """The same for names of the same machines; the first name where none is known."""
        if names not in self._keys:
            found = ", ".join(sorted({f"{p.host} {p.gpu_uuid}" for p in self.meant(names)}))
            self._keys[names] = found or names[0]
        return self._keys[names]

    def meant(self, names: tuple[str, ...]) -> tuple[Presence, ...]:
        """The GPUs that the first known of these names means: one by its UUID, or all that were seen on its hosts."""
        if names not in self._meant:
            uuid = next((name for name in names if name in self.gpus), "").partition("/")[0]
            hosts = frozenset[str]() if uuid else self.hosts(names)
            self._meant[names] = tuple(p for p in self.presences if p.gpu_uuid == uuid or p.host in hosts)
        return self._meant[names]


def _short(host: str) -> str:
    folded = host.casefold()
    return folded if _IP.fullmatch(folded) else folded.partition(".")[0]

"""kubectl get nodes -o json: which machines have GPUs, and what are they called elsewhere?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from gpuledger.cost.inventories.azure import machine_names
from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import Fields, gpus_in
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Node

_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
# The boards, as GPU feature discovery labels them, before what pods can ask for, which may be slices and shares.
_BOARDS = "nvidia.com/gpu.count"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_SPOT = {
    "eks.amazonaws.com/capacityType": "SPOT", "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true", "kubernetes.azure.com/scalesetpriority": "spot",
    "karpenter.sh/capacity-type": "spot",
}  # fmt: skip


class Kubernetes:
    """A List or NodeList of nodes, or one node."""

    def read(self, content: Content) -> Found:
        """The nodes with GPUs, under all of their names."""
        skipped, nodes, count = Counter[Skipped](), list[Node](), 0
        for count, item in enumerate(_items(content.document), start=1):
            node = _node(content, count, item)
            if node.gpus or gpus_in(node.instance):
                nodes.append(node)
            else:
                skipped[Skipped.NO_GPU] += 1
        return Found(content.path, "kubernetes", count, nodes=tuple(nodes), skipped=skipped)


def _items(document: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, dict):
        items = document.get("items") if "items" in document else [document]
        yield from _listed(items)


def _part(item: Mapping[str, Any], *path: str) -> Any:
    found: Any = item
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _listed(found: Any) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _node(content: Content, number: int, item: Mapping[str, Any]) -> Node:
    labels, capacity = (_mapping(_part(item, *path)) for path in (("metadata", "labels"), ("status", "capacity")))
    boards = str(labels.get(_BOARDS, ""))
    gpus = boards or next((str(capacity[name]) for name in _GPUS if name in capacity), "")
    provider = str(_part(item, "spec", "providerID") or "")
    names = [str(a.get("address", "")) for a in _listed(_part(item, "status", "addresses"))]
    names += [provider, provider.rpartition("/")[2] if not provider.startswith("azure") else ""]
    names += [*machine_names(provider), *(n for n in machine_names(provider.rpartition("/virtualMachines/")[0]))]
    names += [f"ip-{name.replace('.', '-')}" for name in names if _is_ip(name)]
    created = Fields(content, number, {"creationTimestamp": str(_part(item, "metadata", "creationTimestamp") or "")})
    spot = any(str(labels.get(label, "")).casefold() == value.casefold() for label, value in _SPOT.items())
    return Node(
        content.path, number, str(_part(item, "metadata", "name") or ""), frozenset(name for name in names if name),
        instance=next((str(labels[name]) for name in _TYPE if name in labels), ""),
        region=next((str(labels[name]) for name in _REGION if name in labels), ""),
        gpus=int(gpus) if gpus.isdecimal() and len(gpus) < 10 else None, from_ms=created.instant("creationTimestamp"),
        purchase_option="spot" if spot else "on_demand",
    )  # fmt: skip


def _is_ip(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(p.isdecimal() for p in parts)


KINDS.register("kubernetes")(Kubernetes())

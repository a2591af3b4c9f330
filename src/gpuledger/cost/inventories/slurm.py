"""scontrol show node, as text or JSON, or sinfo -N with a header: which nodes have GPUs?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import gpus_in
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Node

_BLOCK = re.compile(r"(?m)^NodeName=\S+")
_FIELD = re.compile(r"(\w+)=(\S+)")
_GPUS = re.compile(r"\bgpu(?::[\w.-]+)?:(\d+)", re.IGNORECASE)
_KEYS = {"name": "NodeName", "address": "NodeAddr", "hostname": "NodeHostName", "gres": "Gres"}
_HEADS = {"NODELIST": "NodeName", "HOSTNAMES": "NodeHostName", "GRES": "Gres"}


class Slurm:
    """Plain text, as the two commands print it."""

    def read(self, content: Content) -> Found:
        """The nodes with GPUs; a node in several partitions is one node."""
        skipped, nodes, count = Counter[Skipped](), dict[str, Node](), 0
        for count, row in enumerate(_rows(content), start=1):
            node = _node(content.path, count, row)
            if node.gpus or gpus_in(node.instance):
                nodes.setdefault(node.name, node)
            else:
                skipped[Skipped.NO_GPU] += 1
        return Found(content.path, "slurm", count, nodes=tuple(nodes.values()), skipped=skipped)


def _rows(content: Content) -> Iterator[Mapping[str, str]]:
    """The nodes under the names that scontrol gives their fields."""
    if isinstance(content.document, dict):
        found = content.document.get("nodes")
        nodes = (node for node in (found if isinstance(found, list) else []) if isinstance(node, dict))
        return ({name: str(node.get(key) or "") for key, name in _KEYS.items()} for node in nodes)
    return _shown(content.text) if _BLOCK.search(content.text) else _listed(content.text)


def _shown(text: str) -> Iterator[Mapping[str, str]]:
    """The blocks of scontrol show node."""
    starts = [found.start() for found in _BLOCK.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield dict(_FIELD.findall(text[start:end]))


def _listed(text: str) -> Iterator[Mapping[str, str]]:
    """The lines of sinfo -N under their headings."""
    first, *lines = text.strip().splitlines()
    heads = first.split()
    for line in lines:
        cells = line.split()
        if len(cells) >= len(heads):
            yield {_HEADS.get(head, head): cell for head, cell in zip(heads, cells, strict=False)}


def _node(path: str, number: int, row: Mapping[str, str]) -> Node:
    gpus = sum(int(n) for n in _GPUS.findall(row.get("Gres", "")) if len(n) < 10)
    name = row.get("NodeName") or row.get("NodeHostName", "")
    known = (row.get(field, "") for field in ("NodeAddr", "NodeHostName", "InstanceId"))
    instance = row.get("InstanceType", "")
    return Node(
        path, number, name, frozenset(alias for alias in known if alias and alias != "(null)"),
        instance="" if instance == "(null)" else instance, gpus=gpus or None,
    )  # fmt: skip


KINDS.register("slurm")(Slurm())

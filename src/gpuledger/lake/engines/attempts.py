"""What happens on a node of a cluster when a task arrives there?

The same function runs as in a process of this machine, after a look at what it needs: the version of gpuledger that
sent the task, and the files and folders it works on.
"""

from __future__ import annotations

import socket
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gpuledger.errors import GpuledgerError
from gpuledger.lake.engines.engine import everywhere
from gpuledger.lake.processes import Answer, Order, carried_out
from gpuledger.lake.stores.path import StorePath
from gpuledger.version import __version__

# Files up to here are compared by content: a folder of the same name may be another one on that node.
_COMPARED_BYTES = 1 << 20
NO_BUCKET = (
    "give every node the same endpoint and credentials of the object store, in the environment of ray start; "
    "or run without a cluster: --engine local"
)


class Sight(msgspec.Struct, frozen=True):
    """A file or folder as the sender sees it. `check`: of its content, where it is a file and small."""

    path: str
    size: int = -1
    check: int = -1


class Sent(msgspec.Struct, frozen=True):
    """An order on its way to a node."""

    order: Order
    version: str
    shared: tuple[Sight, ...]
    hint: str


class Returned(msgspec.Struct, frozen=True):
    """What came of it, where it ran, and how many rows each stage has done."""

    answer: Answer
    node: str
    rows: dict[str, int]


def sights(paths: Iterable[str | Path]) -> tuple[Sight, ...]:
    """Files, folders and objects as this machine sees them."""
    return tuple(_sight(everywhere(path)) for path in paths)


def _sight(path: str) -> Sight:
    place = _place(path)
    if not place.is_file():
        return Sight(path)
    size = place.stat().st_size
    return Sight(path, size, zlib.crc32(place.read_bytes()) if size <= _COMPARED_BYTES else -1)


def _place(path: str) -> Path:
    return StorePath(path) if "://" in path else Path(path)


def attempt(sent: bytes) -> bytes:
    """Carry out an order on this node."""
    asked = msgspec.msgpack.decode(sent, type=Sent)
    rows: Counter[str] = Counter()
    node = socket.gethostname()
    answer = _refused(asked, node) or carried_out(asked.order, lambda stage, done: rows.update({stage: done}))
    return msgspec.msgpack.encode(Returned(answer, node, dict(rows)))


def _refused(asked: Sent, node: str) -> Answer | None:
    """Why this node cannot do it, if so."""
    if asked.version != __version__:
        words = f"node {node} has gpuledger {__version__}, and the work was sent by {asked.version}"
        hint = f'install one version everywhere: pip install "gpuledger=={asked.version}" on every node'
        return Answer(kind="InputError", error=words, hint=hint)
    for seen in asked.shared:
        words = f"node {node} of the cluster cannot see {seen.path}"
        try:
            found = _sight(seen.path) if _place(seen.path).exists() else None
        except GpuledgerError as error:
            return Answer(kind="LakeError", error=f"{words}: {error.message}", hint=f"on every node, {error.hint}")
        if found is None:
            return Answer(kind="LakeError", error=words, hint=NO_BUCKET if "://" in seen.path else asked.hint)
        if found != seen:
            words = f"node {node} of the cluster has another {seen.path} than this machine"
            return Answer(kind="LakeError", error=words, hint=NO_BUCKET if "://" in seen.path else asked.hint)
    return None

"""What happens on a node of a cluster when a task arrives there?

The same function runs as in a process of this machine, after a look at what it needs: the version of gpuledger that
sent the task, and the files and folders it works on.
"""

from __future__ import annotations

import os
import socket
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gpuledger.lake.engines.engine import everywhere
from gpuledger.lake.processes import Answer, Order, carried_out
from gpuledger.quick_start import without_pandas
from gpuledger.version import __version__

# Files up to here are compared by content: a folder of the same name may be another one on that node.
_COMPARED_BYTES = 1 << 20


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
    """Files and folders as this machine sees them; addresses of object stores are the same everywhere."""
    return tuple(_sight(everywhere(path)) for path in paths if "://" not in str(path))


def _sight(path: str) -> Sight:
    if not os.path.isfile(path):  # noqa: PTH113
        return Sight(path)
    size = os.path.getsize(path)  # noqa: PTH202
    return Sight(path, size, zlib.crc32(Path(path).read_bytes()) if size <= _COMPARED_BYTES else -1)


def attempt(sent: bytes) -> bytes:
    """Carry out an order on this node."""
    with without_pandas():
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
        if not os.path.exists(seen.path):  # noqa: PTH110
            return Answer(kind="LakeError", error=f"node {node} of the cluster cannot see {seen.path}", hint=asked.hint)
        if _sight(seen.path) != seen:
            words = f"node {node} of the cluster has another {seen.path} than this machine"
            return Answer(kind="LakeError", error=words, hint=asked.hint)
    return None

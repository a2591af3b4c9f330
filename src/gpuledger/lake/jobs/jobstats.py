"""What did the GPUs of a job do, as jobstats wrote it into the AdminComment of Slurm?

`JS1:` and JSON, packed with gzip and base64: by node and GPU index the mean utilization and the memory used and total.
A job that was too short has `JS1:Short`, one without data `JS1:None`.
https://github.com/PrincetonUniversity/jobstats
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass
from typing import Annotated

import msgspec

PREFIX = "JS1:"
_NOTHING = frozenset(("", "Short", "None"))
_MOST_BYTES = 16 << 20  # of a job on ten thousand nodes
_GZIP = 16 + zlib.MAX_WBITS
_Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]


class BrokenUsage(ValueError):
    """A comment of jobstats that cannot be read; the text says why."""


@dataclass(frozen=True)
class GpuUsage:
    """One GPU of a job: its mean utilization, and the most memory that was used; None where jobstats has no figure."""

    host: str
    gpu: str
    gpu_util_pct: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None


class _Node(msgspec.Struct):
    gpu_utilization: dict[str, _Percent] = {}
    gpu_used_memory: dict[str, _Bytes] = {}
    gpu_total_memory: dict[str, _Bytes] = {}


class _Job(msgspec.Struct):
    nodes: dict[str, _Node] = {}


def usage_of(comment: str) -> tuple[GpuUsage, ...]:
    """The GPUs of a comment; none where it is not of jobstats or has no data."""
    if not comment.startswith(PREFIX) or comment.removeprefix(PREFIX).strip() in _NOTHING:
        return ()
    try:
        packed = base64.b64decode(comment.removeprefix(PREFIX), validate=True)
        reader = zlib.decompressobj(_GZIP)
        text = reader.decompress(packed, _MOST_BYTES)
        if not reader.eof:
            raise BrokenUsage("it is cut off, or larger than the description of a job")
        job = msgspec.json.decode(text, type=_Job)
    except (binascii.Error, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise BrokenUsage(str(error)) from error
    return tuple(
        GpuUsage(
            host, gpu, node.gpu_utilization.get(gpu), node.gpu_used_memory.get(gpu), node.gpu_total_memory.get(gpu)
        )
        for host, node in job.nodes.items()
        for gpu in sorted(node.gpu_utilization.keys() | node.gpu_total_memory.keys())
    )

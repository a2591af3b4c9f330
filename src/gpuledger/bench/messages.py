"""What do the runner and its workers say to each other?"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import msgspec

from gpuledger.bench.load import Phase

_LENGTH = struct.Struct(">I")


class Task(msgspec.Struct, frozen=True):
    """What one worker does: whom to ask, what, and how long an answer may take.

    `device`: where the worker is on another machine, whom to ask there for telemetry; empty: nobody. `run` is
    the same for all workers of a run, and known to nobody else.
    """

    node: str
    target: str
    settings: dict[str, Any]
    phases: tuple[Phase, ...]
    timeout_s: float
    seed: str
    run: str = ""
    device: str = ""
    hz: float = 10.0


class Ready(msgspec.Struct, tag=True):
    """The worker stands at the barrier."""

    node: str
    facts: dict[str, Any]
    machine: dict[str, Any]
    problem: str = ""
    unreachable: str = ""


class Records(msgspec.Struct, tag=True):
    """Requests that came to an end: their names, and their lines for the file."""

    node: str
    requests: tuple[int | str, ...]
    lines: bytes
    last_end_s: float


class Beat(msgspec.Struct, tag=True):
    """Still here."""

    node: str


class Done(msgspec.Struct, tag=True):
    """All orders were carried out."""

    node: str
    client: dict[str, Any]
    facts: dict[str, Any] = {}
    telemetry: tuple[tuple[str, bytes], ...] = ()


class Failed(msgspec.Struct, tag=True):
    """The worker cannot go on."""

    node: str
    why: str


class Gone(msgspec.Struct, tag=True):
    """Nothing more will come from this worker; `why` says how it ended. Said by whoever watches it."""

    node: str
    why: str


Message = Ready | Records | Beat | Done | Failed | Gone
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def write_message(out: BinaryIO, message: Message) -> None:
    """One message, whole."""
    raw = _encode(message)
    out.write(_LENGTH.pack(len(raw)) + raw)
    out.flush()


def read_message(source: BinaryIO) -> Message | None:
    """The next message, or None where the other side is gone."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    raw = source.read(size)
    return _decode(raw) if len(raw) == size else None

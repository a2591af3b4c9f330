"""The command `record`: one flush, at its end."""

from __future__ import annotations

from pathlib import Path

from crash.operations import Operation, gpuledger
from crash.operations.record import REPLAY


def argv(_data: Path) -> list[str]:
    return gpuledger("record", "--duration", "0.3", "--hz", "20", "--device", REPLAY, "-q")


operation = Operation("record, command", argv, grows=True)

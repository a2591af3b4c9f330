"""The first import: before it there is no lake."""

from __future__ import annotations

from crash.operations import Operation, gpuledger

operation = Operation("import, first", lambda data: gpuledger("import", data / "fleet", "-q"))

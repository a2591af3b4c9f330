"""An import into a lake with posted days: some rows are there already, some are rejected."""

from __future__ import annotations

from pathlib import Path

from crash.operations import Operation, gpuledger, must
from crash.processes import Commands


def prepare(commands: Commands, folder: Path, data: Path) -> None:
    must(commands, folder, "import", data / "fleet", "-q")
    must(commands, folder, "analyze", "-q")


operation = Operation("import, more", lambda data: gpuledger("import", data / "more", "-q"), prepare)

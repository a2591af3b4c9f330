"""Job tables: who held which GPU changes on days that are posted."""

from __future__ import annotations

from pathlib import Path

from crash.operations import Operation, gpuledger, must
from crash.processes import Commands


def prepare(commands: Commands, folder: Path, data: Path) -> None:
    must(commands, folder, "import", data / "fleet", "-q")
    must(commands, folder, "jobs", data / "first-jobs.csv", "-q")
    must(commands, folder, "analyze", "-q")


operation = Operation("add jobs", lambda data: gpuledger("jobs", data / "jobs.csv", "-q"), prepare)

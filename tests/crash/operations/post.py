"""Posting: days of several parts are merged and posted for the first time, and others again where they changed."""

from __future__ import annotations

from pathlib import Path

from crash.operations import Operation, gpuledger, must
from crash.processes import Commands


def prepare(commands: Commands, folder: Path, data: Path) -> None:
    must(commands, folder, "import", data / "fleet", "-q")
    must(commands, folder, "analyze", "-q")
    must(commands, folder, "import", data / "more", "-q")
    must(commands, folder, "import", data / "late", "-q")


operation = Operation("post", lambda _data: gpuledger("analyze", "-q"), prepare)

"""Compaction: hour lines become day lines; samples stay."""

from __future__ import annotations

import time
from pathlib import Path

from crash.operations import Operation, gpuledger, must
from crash.processes import Commands

SECOND_DAY_S = 1_768_953_600  # 2026-01-21 00:00 UTC


def prepare(commands: Commands, folder: Path, data: Path) -> None:
    must(commands, folder, "import", data / "fleet", "-q")
    must(commands, folder, "analyze", "-q")
    must(commands, folder, "import", data / "late", "-q")


def argv(fold: str) -> list[str]:
    return gpuledger("tidy", "--fold-older-than", fold, "--keep-samples", "-q")


def one_day() -> str:
    """The age of the second day of the fleet: only the first is older."""
    return f"{(time.time() - SECOND_DAY_S) / 3600 - 1:.0f}h"


# Days are folded one by one: a kill may leave the first day folded and the second as it was.
operation = Operation("tidy, fold", lambda _data: argv("1d"), prepare, lambda _data: [argv(one_day())])

"""Retention: old days are folded and their samples are deleted."""

from __future__ import annotations

from pathlib import Path

from crash.operations import Operation, fold, gpuledger, must
from crash.processes import Commands


def prepare(commands: Commands, folder: Path, data: Path) -> None:
    must(commands, folder, "import", data / "fleet", "-q")
    must(commands, folder, "analyze", "-q")
    must(commands, folder, "import", data / "late", "-q")


def argv(_data: Path) -> list[str]:
    return gpuledger("tidy", "--fold-older-than", "1d", "--drop-samples-older-than", "2d", "--yes", "-q")


def between(_data: Path) -> list[list[str]]:
    """Days are folded one by one before any samples go."""
    return [fold.argv(fold.one_day()), fold.argv("1d")]


operation = Operation("tidy, drop", argv, prepare, between)

"""Which readers are given hostile files, and through which call of a user's?

A target is a reader of files, the seeds its hostile files are made from, and the share of all inputs it gets. One file
of targets per family; `fuzz/seeds` has the seeds that tests/ does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random

HERE = Path(__file__).parents[1]
ROOT = HERE.parent
FAMILIES = ("telemetry", "tables", "jobs", "money", "plans", "benches", "lakes", "configs", "servers", "statements")


@dataclass(frozen=True)
class Seed:
    """A file as a user has it: its name and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Target:
    """`run` reads the file at a path as a user's file is read. `made` writes a file of its own, by chance, where a
    structure matters more than bytes. `share`: how many inputs it gets, compared with others.
    """

    name: str
    run: Callable[[Path], object]
    seeds: Callable[[], list[Seed]]
    share: float = 1.0
    made: Callable[[Random], Seed] | None = None


def files_of(*places: str | Path) -> Callable[[], list[Seed]]:
    """The files of folders, or files, relative to the root of the project; what Atheris kept of them comes too."""

    def seeds() -> list[Seed]:
        found = [
            f for place in places for f in ([ROOT / place] if (ROOT / place).is_file() else (ROOT / place).rglob("*"))
        ]
        return [Seed(f.name, f.read_bytes()) for f in sorted(found) if f.is_file()]

    return seeds


def kept(name: str) -> list[Seed]:
    """The inputs kept for a target: those Atheris found to reach new code, and those that once failed."""
    folder = HERE / "corpus" / name
    return [Seed(f.name, f.read_bytes()) for f in sorted(folder.glob("*"))] if folder.is_dir() else []


def targets_of(*families: str) -> dict[str, Target]:
    """The targets of these families, else of all, by name."""
    return {t.name: t for family in families or FAMILIES for t in import_module(f"targets.{family}").TARGETS}


def families() -> dict[str, str]:
    """The family of each target: a process that runs one need not load the others."""
    return {name: family for family in FAMILIES for name in targets_of(family)}

"""What is an engine, and how does work run without a cluster?

Work is a function of a task and a progress call; both the task and what it returns are structs. A task may run more
than once: what it writes is named by what it returns, or replaces a file in one step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self

from gpuledger.lake.processes import D, Progress, T, Workers, cores


def everywhere(path: str | Path) -> str:
    """A path that means the same in whatever folder a task runs; links stay as they are named."""
    return str(path) if "://" in str(path) else os.path.abspath(path)  # noqa: PTH100


class Runner(Protocol):
    """Takes tasks for as long as it is open."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_why: object) -> None: ...

    def run(self, work: Callable[[T, Progress], D], tasks: Sequence[T], progress: Progress) -> Iterator[tuple[int, D]]:
        """Do the tasks; what is done comes with its task's number, in any order."""
        ...


class Engine(Protocol):
    """Somewhere to run tasks."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether tasks may run on other machines."""
        ...

    def ready(self) -> None:
        """Fail now where it cannot be reached."""
        ...

    def at_once(self, rows: int, least: int) -> int:
        """How many tasks are worth running at once for this many rows; 1: run them here.

        `least`: below this many rows, starting processes of this machine costs more than they save.
        """
        ...

    def runner(self, several: int, shared: Sequence[str | Path] = (), hint: str = "") -> Runner:
        """What runs them. `shared`: files and folders every task must see; `hint`: what to do where one cannot."""
        ...


class Local:
    """Processes of this machine: as many as are asked for, else one per core where it is worth it."""

    name = "local"
    elsewhere = False

    def __init__(self, processes: int | None = None) -> None:
        self._processes = processes

    def ready(self) -> None:
        """It always is."""

    def at_once(self, rows: int, least: int) -> int:
        """As many as there are cores, from `least` rows on."""
        return self._processes or (cores() if rows >= least else 1)

    def runner(self, several: int, shared: Sequence[str | Path] = (), hint: str = "") -> Workers:  # noqa: ARG002
        """Processes; they see what this one sees."""
        return Workers(several)

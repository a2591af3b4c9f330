"""What is killed? One file per operation: the lake it starts from, and the command that changes it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crash.faults import LAKE
from crash.processes import Commands

Prepare = Callable[[Commands, Path, Path], None]


@dataclass(frozen=True)
class Operation:
    """A command and what comes before it.

    `prepare(commands, folder, data)` makes the lake `folder`/crash-lake that it starts from; `argv(data)` is the
    command, run in that folder. `between(data)`: commands that do only some of its commits, each leading to a state
    that a kill may leave. `grows`: it commits rows again and again, so a kill may leave any number of them.
    `costly`: it starts interpreters of its own, so it gets fewer rounds.
    """

    name: str
    argv: Callable[[Path], list[str]]
    prepare: Prepare = lambda _commands, _folder, _data: None
    between: Callable[[Path], list[list[str]]] = lambda _data: []
    grows: bool = False
    costly: bool = False


def gpuledger(*argv: str | Path) -> list[str]:
    """A command on the lake under test."""
    return ["gpuledger", *map(str, argv), "--lake", LAKE]


def must(commands: Commands, folder: Path, *argv: str | Path) -> None:
    """Run a command that has to work."""
    done = commands.run(gpuledger(*argv), folder)
    assert done.code == 0, f"gpuledger {' '.join(map(str, argv))}: {done}"


def operations() -> dict[str, Operation]:
    """All operations, by name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        made = importlib.import_module(f"{__name__}.{module.name}").operation
        if made is not None:  # what this version of gpuledger has
            assert isinstance(made, Operation)
            found[made.name] = made
    return found

"""How do tasks of one import hand each other files: in a folder that all of them see, or through the lake's bucket?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpuledger.lake.engines.engine import Engine, everywhere
from gpuledger.lake.layout import Lake
from gpuledger.lake.stores.path import StorePath


class Desk:
    """Where a task works. `here`: a folder on this machine; `apart`: the machines of other tasks do not see it."""

    apart = False

    def __init__(self, here: Path) -> None:
        self.here = here

    @property
    def name(self) -> str:
        """The folder or address that tasks are given."""
        return everywhere(self.here)

    def seen_by_all(self) -> Path:
        """What every task must be able to see."""
        return self.here

    def hand_over(self, files: Sequence[str]) -> list[str]:
        """Files for other tasks: the names they have there. A file that was not written keeps its name."""
        return [everywhere(file) for file in files]

    def fetched(self, files: Sequence[str]) -> list[str]:
        """Files that tasks have handed over, on this machine, for as long as its folder is there."""
        return list(files)

    def clear(self) -> None:
        """Delete what is on its way; the folder itself goes with the work."""


def own_desk(lake: Lake, here: Path, engine: Engine) -> Desk:
    """The desk of the command that gives tasks out."""
    if not isinstance(lake.root, StorePath) or not engine.elsewhere:
        return Desk(here)
    from gpuledger.lake.stores.desk import BucketDesk

    return BucketDesk.new(lake.root, here)


@contextmanager
def desk(name: str) -> Iterator[Desk]:
    """The desk of a task that was given this folder or address to work in."""
    if "://" not in name:
        yield Desk(Path(name))
        return
    from gpuledger.lake.stores.desk import at_desk

    with at_desk(StorePath(name)) as own:
        yield own


def given_file(name: str) -> Path:
    """A file to import, on this machine."""
    if "://" not in name:
        return Path(name)
    from gpuledger.lake.stores.desk import fetched_once

    return fetched_once(StorePath(name))

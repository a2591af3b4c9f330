"""What can be done with the place a lake lies in, whatever kind it is?

Both kinds keep the same promise: new files first, under names that are not read yet; then the manifest that names them
is replaced as a whole, by a writer that no other writer overtook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpuledger.lake.stores.folder import Folder
from gpuledger.lake.stores.path import StorePath, place_of

if TYPE_CHECKING:
    import pyarrow as pa


class Store(Protocol):
    """The place of a lake. `root`: as users name it; `here`: a folder on this machine for what stays on it."""

    @property
    def root(self) -> Path:
        """The lake's own place."""

    @property
    def here(self) -> Path:
        """A folder on this machine."""

    @property
    def staging(self) -> Path:
        """Where work in progress is kept, on this machine."""

    @property
    def remote(self) -> bool:
        """Whether files must be fetched to be read."""

    def is_new(self) -> bool:
        """Whether nothing at all is here, and a failed import should leave nothing."""

    def undo_new(self) -> None:
        """Take away what a first import that failed has left."""

    def locked(self) -> AbstractContextManager[None]:
        """One writer at a time; readers never wait."""

    def aside(self, target: Path) -> Path:
        """Where on this machine to write a new file that no manifest names yet."""

    def add(self, written: Sequence[tuple[Path, Path]]) -> None:
        """Make files safe at their places: (where it was written, its place)."""

    def swap(self, file: Path, content: bytes) -> None:
        """Replace a manifest, if it is still the one read under this lock. Call inside `locked()`."""

    def local(self, files: Sequence[Path]) -> list[Path]:
        """Files on this machine with the content of these; only for files that never change."""

    def source(self, file: Path) -> pa.NativeFile | None:
        """A file to read pieces of without a copy; None where it, or a copy of it, is on this machine."""

    def next_number(self, before: int) -> int:
        """The number of what replaces `before`: larger, and not one that another writer may choose."""

    def nonce(self) -> str:
        """What a new name needs so that no other writer can choose it."""

    def now_s(self) -> float:
        """The time by the clock that dates files."""

    def abandon(self, files: Iterable[Path]) -> None:
        """Take back files that were added by a commit that failed."""

    def delete(self, files: Iterable[Path]) -> None:
        """Delete files; what is not there is not missed."""


def open_store(place: str | Path) -> Store:
    """The store at a folder or an address; opening touches nothing."""
    root = place_of(place)
    if not isinstance(root, StorePath):
        return Folder(root)
    from gpuledger.lake.stores.remote import Remote  # only lakes on object stores load what it needs

    return Remote(root)

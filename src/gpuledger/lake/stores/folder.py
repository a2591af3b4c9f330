"""How is a lake kept in a folder of a local or shared file system?"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.staging import clear_asides
from gpuledger.lake.stores.path import StorePath

_SEVERAL, _SYNCED_AT_ONCE = 2, 8


class Folder:
    """A lake in a folder: its files are read where they lie, a lock file keeps writers apart."""

    remote = False

    def __init__(self, root: Path) -> None:
        self.root = self.here = root
        self.staging = root / "staging"

    def is_new(self) -> bool:
        """Whether nothing at all is here yet."""
        return not self.root.exists()

    def undo_new(self) -> None:
        """Take away the folder of a lake in which nothing was ever committed, unless other work is in it."""
        with contextlib.suppress(OSError, LakeError), self.locked():
            for name in ("samples", "staging"):
                with contextlib.suppress(OSError):
                    (self.root / name).rmdir()
            if [inner.name for inner in self.root.iterdir()] == ["lock"]:
                (self.root / "lock").unlink()
                self.root.rmdir()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; readers never wait."""
        with file_lock(self.root / "lock"):
            yield

    def aside(self, target: Path) -> Path:
        """Where to write a new file that no manifest names yet."""
        return target

    def add(self, written: Sequence[tuple[Path, Path]]) -> None:
        """Make files safe at their places: written there, or moved there from the same disk."""
        sync_all([file for file, _ in written])
        moved = [(file, target) for file, target in written if file != target]
        for file, target in moved:
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
        sync_all(list(dict.fromkeys(target.parent for _, target in moved)))

    def swap(self, file: Path, content: bytes) -> None:
        """Replace a manifest. Call inside `locked()`."""
        clear_asides(file)
        write_atomically(file, content)

    def local(self, files: Sequence[Path]) -> list[Path]:
        """The files, on this machine."""
        return list(files)

    def source(self, file: Path) -> None:
        """Nothing: files are read where they lie."""

    def next_number(self, before: int) -> int:
        """The number of what replaces `before`."""
        return before + 1

    def nonce(self) -> str:
        """What a new name needs so that no other writer can choose it: nothing, under a lock."""
        return ""

    def now_s(self) -> float:
        """The time by the clock that dates files."""
        return time.time()

    def abandon(self, files: Iterable[Path]) -> None:
        """Take back files that were added and will not be named."""
        self.delete(files)

    def delete(self, files: Iterable[Path]) -> None:
        """Delete plain files; what is not there, or not a plain file, stays."""
        for file in files:
            if file.parent.is_symlink():
                continue
            try:
                if stat.S_ISREG(file.lstat().st_mode):
                    file.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise map_os_error(error, file, "delete replaced files") from error


@contextlib.contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Hold a lock file; the operating system lets go of it when the process ends, however it ends."""
    with _lock(file):
        yield


def _lock(file: Path) -> IO[bytes]:
    """The lock file, locked while it is open: Ctrl-C at any moment leaves no number of a file that is never closed."""
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle = open(file, "ab", buffering=0, opener=_opened)  # noqa: SIM115
        except OSError as error:
            raise map_os_error(error, file.parent, "write") from error
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):
            if os.fstat(handle.fileno()).st_ino == file.stat().st_ino:
                return handle
        handle.close()  # its folder was taken away while we waited (`Folder.undo_new`)


def _opened(name: str, flags: int) -> int:
    return os.open(name, flags, 0o644)


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Sequence[Path]) -> None:
    """Force several to disk at once: the disk writes many as fast as one."""
    if len(paths) < _SEVERAL:
        for path in paths:
            sync(path)
        return
    try:
        from concurrent.futures import ThreadPoolExecutor  # long to load

        with ThreadPoolExecutor(min(len(paths), _SYNCED_AT_ONCE)) as pool:
            list(pool.map(sync, paths))
    except RuntimeError:  # a program that is ending starts no threads: a recording is still committed
        for path in paths:
            sync(path)


def write_atomically(target: Path, content: bytes) -> None:
    """The file has either its old content or the new, whatever happens in between."""
    if isinstance(target, StorePath):
        target.write_bytes(content)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not mkstemp: its files are for one user only, and others read the lake too.
    aside = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync(target.parent)

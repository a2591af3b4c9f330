"""Where is work in progress kept, and how is it found again after its process was killed?

Every piece of work has a folder of its own under DIR/staging with a locked file in it. The operating system drops the
lock when the process ends, however it ends: a folder whose lock is free was left behind. A folder that is about to
move files into the samples lists them first, so that files moved by a commit that never finished are found as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

_PREFIX = "work-"
_LOCK = "in-use"
_MOVING = "moving.json"
# A folder without a lock file was cut off at its very start, or is just being made.
_UNLOCKED_FOR_S = 24 * 3600.0
_ASIDE_FOR_S = 3600.0
_TRIES = 100


@contextlib.contextmanager
def work_folder(staging: Path) -> Iterator[Path]:
    """A folder of its own, gone afterwards."""
    folder = _new_folder(staging)
    handle = -1
    try:
        # Locked before it gets its name: the file is never seen unlocked while its process lives.
        unnamed = folder / f".{_LOCK}"
        handle = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        unnamed.rename(folder / _LOCK)
        yield folder
    finally:
        with contextlib.suppress(OSError):
            _remove(folder)
        if handle >= 0:
            os.close(handle)
        with contextlib.suppress(OSError):
            staging.rmdir()


def _new_folder(staging: Path) -> Path:
    for _ in range(_TRIES):
        staging.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # other work has just ended and taken the empty folder away
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=staging))
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=staging))


def note_moving(folder: Path, places: Iterable[str]) -> Path:
    """Write down which files this folder is about to move into the samples; return the note."""
    (folder / _MOVING).write_bytes(msgspec.json.encode(list(places)))
    return folder / _MOVING


def moving_into(staging: Path) -> set[str]:
    """The files that unfinished work, running or killed, moves into the samples."""
    return {place for folder in staging.glob(f"{_PREFIX}*") for place in _moving(folder)}


def forget_moving(folder: Path) -> None:
    """The move is over."""
    (folder / _MOVING).unlink(missing_ok=True)


def clear_asides(target: Path) -> None:
    """Delete what killed writers left of a file that is replaced atomically. For files with one writer at a time."""
    for aside in target.parent.glob(f".{target.name}.*"):
        with contextlib.suppress(OSError):
            aside.unlink()


def clear_old_asides(root: Path) -> None:
    """As `clear_asides`, of all small files of a lake: each is on its way to its name for a moment, not for an hour."""
    for aside in root.glob("*/.*.json.*"):
        with contextlib.suppress(OSError):
            if time.time() - aside.lstat().st_mtime > _ASIDE_FOR_S:
                aside.unlink()


def clear_abandoned(staging: Path, delete: Callable[[list[str]], None]) -> None:
    """Delete work folders that are unused. `delete` is called first with the files each was moving into the samples:
    killed in between, the folder is there to be found again.
    """
    if staging.is_symlink() or not staging.is_dir():
        return
    for folder in sorted(staging.glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError):
            if not folder.is_symlink() and folder.is_dir() and _abandoned(folder):
                delete(_moving(folder))
                _remove(folder)
    with contextlib.suppress(OSError):
        staging.rmdir()


def _remove(folder: Path) -> None:
    """Delete a work folder, its lock last: killed in between, it is an abandoned folder like any other."""
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            shutil.rmtree(inner)
        elif inner.name != _LOCK:
            inner.unlink()
    shutil.rmtree(folder)


def _abandoned(folder: Path) -> bool:
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > _UNLOCKED_FOR_S
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _moving(folder: Path) -> list[str]:
    try:
        return msgspec.json.decode((folder / _MOVING).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):  # none, or cut off before the first file was moved
        return []

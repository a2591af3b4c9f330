"""How is a folder replaced whole or not at all?"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpuledger.errors import FileFault, map_os_error


@contextlib.contextmanager
def replacing(target: Path, marker: str) -> Iterator[Path]:
    """A new folder that takes the place of `target` when all went well; only a folder with `marker` is replaced."""
    if target.exists() and not target.is_dir():
        raise FileFault(target, "it is a file, not a folder", hint="name another folder with --out")
    if target.is_dir() and any(target.iterdir()) and not (target / marker).is_file():
        raise FileFault(
            target, "the folder holds other things and would be replaced", hint="name a new or empty folder with --out"
        )
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    except OSError as error:
        raise map_os_error(error, target, "write") from error
    try:
        fresh = aside / "new"
        fresh.mkdir()
        yield fresh
        (fresh / marker).write_text("made by gpuledger; replaced when it runs again\n", encoding="utf-8")
        _swap(fresh, target, aside / "old")
    except OSError as error:
        raise map_os_error(error, target, "write") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _swap(fresh: Path, target: Path, old: Path) -> None:
    """Put `fresh` where `target` is; put the old one back should that fail."""
    there = target.exists()
    if there:
        target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        if there:
            old.rename(target)
        raise

"""What does a lake look like on disk, and how does it change without ever being half-changed?

DIR/manifest.json                  which parts make up the lake: the only truth, replaced atomically
DIR/samples/day=YYYY-MM-DD/*.parquet   parts, sorted by device and time, row groups hold whole devices
DIR/rejects/*.csv                  rows that could not be taken, with the reason
DIR/ledger/                        what posting made of the samples
DIR/staging/                       work in progress; safe to delete when nothing runs
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpuledger.errors import LakeError, map_os_error

MANIFEST_VERSION = 1


class Part(msgspec.Struct, frozen=True):
    """One Parquet file of one UTC day. `made_of` lists the parts it was merged from."""

    id: int
    day: str
    file: str
    rows: int
    first_ms: int
    last_ms: int
    first_device: str
    last_device: str
    made_of: tuple[int, ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """All parts of the lake, the next free id, and the days closed to late samples."""

    version: int = MANIFEST_VERSION
    next_id: int = 1
    parts: tuple[Part, ...] = ()
    closed_before: str = ""

    def days(self) -> list[str]:
        """The days that have samples, in order."""
        return sorted({p.day for p in self.parts})

    def of_day(self, day: str) -> tuple[Part, ...]:
        """The parts of one day."""
        return tuple(p for p in self.parts if p.day == day)


class Lake:
    """A lake at `root`. Opening one touches nothing; the first commit makes it."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    @property
    def ledger_dir(self) -> Path:
        """Where posting keeps its tables."""
        return self.root / "ledger"

    def exists(self) -> bool:
        """Whether anything was ever committed here."""
        return (self.root / "manifest.json").is_file()

    def require(self) -> None:
        """Fail with the next step where there is no lake."""
        if not self.exists():
            raise LakeError(
                f"{self.root}: there is no lake here",
                hint=f"import telemetry first: gpuledger import FILE --lake {self.root} (or try gpuledger demo)",
            )

    def manifest(self) -> Manifest:
        """The lake as last committed."""
        file = self.root / "manifest.json"
        try:
            raw = file.read_bytes()
        except FileNotFoundError:
            return Manifest()
        except OSError as error:
            raise map_os_error(error, file, "read") from error
        try:
            manifest = msgspec.json.decode(raw, type=Manifest)
        except msgspec.DecodeError as error:
            raise LakeError(f"{file}: not a manifest: {error}", hint="restore the file from a backup") from error
        if manifest.version > MANIFEST_VERSION:
            raise LakeError(
                f"{file}: format {manifest.version} is newer than this gpuledger reads ({MANIFEST_VERSION})",
                hint="upgrade gpuledger",
            )
        return manifest

    def path(self, part: Part) -> Path:
        """The file of a part."""
        return self.root / "samples" / f"day={part.day}" / part.file

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder of its own on the lake's disk, gone afterwards."""
        try:
            (self.root / "staging").mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=self.root / "staging"))
        except OSError as error:
            raise map_os_error(error, self.root, "write") from error
        try:
            yield folder
        except OSError as error:
            raise map_os_error(error, self.root, "write") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                (self.root / "staging").rmdir()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; readers never wait."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise map_os_error(error, self.root, "write") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def commit(
        self, staged: list[tuple[Path, Part]], replaces: tuple[int, ...] = (), closed_before: str = ""
    ) -> Manifest:
        """Make the staged files part of the lake, all or none. Call inside `locked()`.

        The files move first, under names nobody reads yet; the manifest that names them is replaced last.
        """
        before = self.manifest()
        parts = [p for p in before.parts if p.id not in replaces]
        next_id = before.next_id
        try:
            for file, part in staged:
                named = msgspec.structs.replace(part, id=next_id, file=f"part-{next_id:08d}.parquet")
                target = self.path(named)
                target.parent.mkdir(parents=True, exist_ok=True)
                sync_file(file)
                file.replace(target)
                sync_folder(target.parent)
                parts.append(named)
                next_id += 1
            after = Manifest(MANIFEST_VERSION, next_id, tuple(parts), max(closed_before, before.closed_before))
            write_atomically(self.root / "manifest.json", msgspec.json.format(msgspec.json.encode(after), indent=1))
        except OSError as error:
            raise map_os_error(error, self.root, "write") from error
        return after

    def sweep(self) -> None:
        """Delete part files no manifest names. Call inside `locked()`, when no reader of an older manifest is left."""
        live = {self.path(p) for p in self.manifest().parts}
        for file in (self.root / "samples").glob("day=*/*.parquet"):
            if file not in live:
                file.unlink(missing_ok=True)


def sync_file(file: Path) -> None:
    """Force a file's bytes to disk."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(target: Path, content: bytes) -> None:
    """The file has either its old content or the new, whatever happens in between."""
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
    sync_folder(target.parent)

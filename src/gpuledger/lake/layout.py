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
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.manifest import MANIFEST_VERSION, Manifest, Part, decode_manifest, is_place, part_name, part_number
from gpuledger.lake.staging import (
    clear_abandoned,
    clear_asides,
    clear_old_asides,
    forget_moving,
    moving_into,
    note_moving,
    work_folder,
)

__all__ = ["MANIFEST_VERSION", "Lake", "Manifest", "Part", "sync", "write_atomically"]


class Lake:
    """A lake at `root`. Opening one touches nothing; the first commit makes it."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._next_id = 0

    @property
    def ledger_dir(self) -> Path:
        """Where posting keeps its tables."""
        return self.root / "ledger"

    def exists(self) -> bool:
        """Whether anything was ever committed here."""
        return (self.root / "manifest.json").is_file()

    def require(self) -> None:
        """Fail with the next step where no lake exists."""
        if not self.exists():
            self._refuse_remains()
            raise LakeError(
                f"{self.root}: no lake was found here",
                hint=f"import telemetry first: gpuledger import FILE --lake {self.root} (or try gpuledger demo)",
            )

    def manifest(self) -> Manifest:
        """The lake as last committed."""
        file = self.root / "manifest.json"
        try:
            raw = file.read_bytes()
        except FileNotFoundError:
            self._refuse_remains()
            return self.manifest() if self.exists() else Manifest()
        except OSError as error:
            raise map_os_error(error, file, "read") from error
        return decode_manifest(file, raw)

    def _refuse_remains(self) -> None:
        """Without its manifest a lake is not an empty lake: what is left of it must not be built over."""
        moving = moving_into(self.root / "staging")
        left = sum(f.relative_to(self.root / "samples").as_posix() not in moving for f in self._part_files())
        if (not left and not (self.ledger_dir / "manifest.json").exists()) or self.exists():
            return
        new = self.root.with_name(f"{self.root.name}-recovered")
        files = f"{left} file{'s' * (left != 1)} of samples" if left else "a ledger"
        recover = (
            f", or make a new lake from the samples: gpuledger import {self.root}/samples/*/part-*.parquet --lake {new}"
        )
        raise LakeError(
            f"{self.root}: manifest.json is missing, but the folder holds {files}: nothing was changed",
            hint=f"restore manifest.json from a backup{recover if left else ''}",
        )

    def _part_files(self) -> Iterator[Path]:
        """The files in the samples whose names are those of parts."""
        samples = self.root / "samples"
        return (f for f in samples.glob("day=*/part-*.parquet") if is_place(f.relative_to(samples).as_posix()))

    def path(self, part: Part) -> Path:
        """The file of a part."""
        return self.root / "samples" / part.place

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder of its own on the lake's disk, gone afterwards."""
        try:
            with work_folder(self.root / "staging") as folder:
                yield folder
        except OSError as error:
            raise map_os_error(error, self.root, "write") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; readers never wait."""
        handle = self._lock()
        try:
            yield
        finally:
            os.close(handle)

    def _lock(self) -> int:
        file = self.root / "lock"
        while True:
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise map_os_error(error, self.root, "write") from error
            fcntl.flock(handle, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):
                if os.fstat(handle).st_ino == file.stat().st_ino:
                    return handle
            os.close(handle)  # its folder was taken away while we waited (`forget_unused`)

    def forget_unused(self) -> None:
        """Take away the folder of a lake in which nothing was ever committed, unless other work is in it."""
        with contextlib.suppress(OSError, LakeError), self.locked():
            for name in ("samples", "staging"):
                with contextlib.suppress(OSError):
                    (self.root / name).rmdir()
            if [inner.name for inner in self.root.iterdir()] == ["lock"]:
                (self.root / "lock").unlink()
                self.root.rmdir()

    def commit(
        self, staged: list[tuple[Path, Part]], replaces: tuple[int, ...] = (), closed_before: str = ""
    ) -> Manifest:
        """Make the staged files part of the lake, all or none. Call inside `locked()`.

        The files move first, under names that are not read yet; the manifest that names them is replaced last.
        """
        before = self.manifest()
        parts = [p for p in before.parts if p.id not in replaces]
        gone = [p.place for p in before.parts if p.id in replaces]
        number = self._first_free(before)
        named = [
            msgspec.structs.replace(part, id=number + i, file=part_name(number + i))
            for i, (_, part) in enumerate(staged)
        ]
        after = Manifest(
            MANIFEST_VERSION,
            number + len(named),
            (*parts, *named),
            max(closed_before, before.closed_before),
            (*(r for r in before.replaced if (self.root / "samples" / r).exists()), *gone),
        )
        try:
            for folder in {file.parent for file, _ in staged}:
                noted = note_moving(folder, [p.place for p in named])
                if not self.exists():  # after a power cut the note tells a first commit from a lost manifest
                    sync(noted)
                    sync(folder)
            for (file, _), part in zip(staged, named, strict=True):
                target = self.path(part)
                target.parent.mkdir(parents=True, exist_ok=True)
                sync(file)
                file.replace(target)
                sync(target.parent)
            self._write(after)
            for folder in {file.parent for file, _ in staged}:
                forget_moving(folder)
        except BaseException as error:
            with contextlib.suppress(OSError, LakeError):
                self._delete([p.place for p in named], self.manifest())
            if isinstance(error, OSError):
                raise map_os_error(error, self.root, "write") from error
            raise
        self._next_id = after.next_id
        return after

    def replace(self, parts: Sequence[Part], file: Path, merged: Part) -> Manifest:
        """Put a file that holds the rows of several parts in their place. Call inside `locked()`."""
        made_of = tuple(sorted({i for p in parts for i in (p.made_of or (p.id,))}))
        return self.commit([(file, msgspec.structs.replace(merged, made_of=made_of))], tuple(p.id for p in parts))

    def _first_free(self, manifest: Manifest) -> int:
        """The next id: above those of all files there are, named by the manifest or not."""
        if not self._next_id:
            on_disk = (part_number(f.name) or 0 for f in self._part_files())
            self._next_id = max((*on_disk, *(p.id for p in manifest.parts)), default=0) + 1
        return max(self._next_id, manifest.next_id)

    def _write(self, manifest: Manifest) -> None:
        write_atomically(self.root / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest), indent=1))

    def sweep(self) -> None:
        """Delete the files that commits have replaced, and what killed work has left. Call inside `locked()`.

        Files that no commit has named are not touched: whose they are is not known.
        """
        manifest = self.manifest()
        self._delete(manifest.replaced, manifest)
        clear_abandoned(self.root / "staging", lambda moved: self._delete(moved, manifest))
        clear_asides(self.root / "manifest.json")
        clear_old_asides(self.root)

    def _delete(self, places: Iterable[str], manifest: Manifest) -> None:
        live, samples = {p.place for p in manifest.parts}, self.root / "samples"
        for place in places:
            file = samples / place
            if place in live or not is_place(place) or file.parent.is_symlink():
                continue
            try:
                if stat.S_ISREG(file.lstat().st_mode):
                    file.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise map_os_error(error, file, "delete replaced samples") from error
            if file.parent.name.removeprefix("day=") not in manifest.days():
                with contextlib.suppress(OSError):
                    file.parent.rmdir()


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to disk."""
    handle = os.open(path, os.O_RDONLY)
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
    sync(target.parent)

"""What does a lake look like on disk, and how does it change without ever being half-changed?

DIR/manifest.json                  which parts make up the lake: the only truth, replaced atomically
DIR/samples/day=YYYY-MM-DD/*.parquet   parts, sorted by device and time, row groups hold whole devices
DIR/rejects/*.csv                  rows that could not be taken, with the reason
DIR/ledger/                        what posting made of the samples
DIR/staging/                       work in progress; safe to delete when nothing runs

DIR is a folder or a place in a bucket (`stores`). In a bucket the names of parts carry a nonce, work in progress is
kept on the machines that do it, and replaced files stay for `GRACE_S`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

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
from gpuledger.lake.stores.folder import sync, write_atomically
from gpuledger.lake.stores.store import open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuledger.catalog.thresholds import Thresholds

__all__ = [
    "MANIFEST_VERSION", "AnyLake", "Lake", "Manifest", "Part", "lake_of", "posted_lake", "sync", "write_atomically",
]  # fmt: skip

# In a bucket, files that were replaced stay for as long as a statement may take to read them.
GRACE_S = 600
# In a bucket, files that no manifest names were left by a writer that was killed, if they are as old as this.
ORPHAN_S = 24 * 3600
# Work in progress lies there for as long as an import runs, which may be longer.
ABANDONED_S = 7 * 24 * 3600


class Lake:
    """A lake at `root`. Opening one touches nothing; the first commit makes it."""

    def __init__(self, root: str | Path) -> None:
        self.store = open_store(root)
        self.root = self.store.root
        self._next_id = 0
        self._swept = False
        self._read: tuple[bytes, Manifest] | None = None

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
        before = self._read
        if before is None or before[0] != raw:  # to compare takes a hundredth of reading it
            self._read = before = (raw, decode_manifest(file, raw))
        return before[1]

    def _refuse_remains(self) -> None:
        """Without its manifest a lake is not an empty lake: what is left of it must not be built over."""
        found = [f.relative_to(self.root / "samples").as_posix() for f in self._part_files()]
        # Looked for after the files: a first commit notes them before it moves them.
        left = len(set(found) - moving_into(self.store.staging))
        if not left and not (self.ledger_dir / "manifest.json").exists():
            return
        with contextlib.suppress(OSError):  # asked anew: another writer may just have made it
            (self.root / "manifest.json").stat()
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

    def place(self, part: Part) -> Path:
        """Where the file of a part lies."""
        return self.root / "samples" / part.place

    def path(self, part: Part) -> Path:
        """The file of a part, on this machine."""
        return self.paths([part])[0]

    def paths(self, parts: Sequence[Part]) -> list[Path]:
        """The files of parts, on this machine."""
        return self.store.local([self.place(part) for part in parts])

    def source(self, part: Part) -> pa.NativeFile | None:
        """The file of a part to read pieces of, without a copy; None where it is on this machine."""
        return self.store.source(self.place(part))

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder of its own on the lake's disk, gone afterwards."""
        try:
            with work_folder(self.store.staging) as folder:
                yield folder
        except OSError as error:
            raise map_os_error(error, self.root, "write") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; readers never wait."""
        with self.store.locked():
            yield

    def commit(
        self, staged: list[tuple[Path, Part]], replaces: tuple[int, ...] = (), closed_before: str = ""
    ) -> Manifest:
        """Make the staged files part of the lake, all or none. Call inside `locked()`.

        The files move first, under names that are not read yet; the manifest that names them is replaced last.
        """
        before = self.begin()
        parts = [p for p in before.parts if p.id not in replaces]
        gone = [p.place for p in before.parts if p.id in replaces]
        number, nonce = self._first_free(before), self.store.nonce()
        named = [
            msgspec.structs.replace(
                part, id=number + i, file=part.file if self._put(file, part) else part_name(number + i, nonce)
            )
            for i, (file, part) in enumerate(staged)
        ]
        waiting, expired = self._replaced(before)
        after = Manifest(
            MANIFEST_VERSION,
            number + (len(named) or int(self.store.remote)),  # a server may mark equal contents alike
            (*parts, *named),
            max(closed_before, before.closed_before),
            (*waiting, *gone),
            self._replaced_at(before, waiting, gone),
        )
        # What a task has put into a bucket itself is at its place.
        moves = [(f, p) for f, p in zip((f for f, _ in staged), map(self.place, named), strict=True) if f != p]
        folders = {file.parent for file, _ in moves}
        try:
            for folder in folders:
                noted = note_moving(folder, [p.place for p in named])
                # After a power cut the note tells a first commit from a lost manifest.
                if not self.store.remote and not self.exists():
                    sync(noted)
                    sync(folder)
            self.store.add(moves)
            self._write(after)
            for folder in folders:
                forget_moving(folder)
        except BaseException as error:
            with contextlib.suppress(OSError, LakeError):
                self._delete([p.place for p in named], self.manifest(), self.store.abandon)
            if isinstance(error, OSError):
                raise map_os_error(error, self.root, "write") from error
            raise
        self._next_id = after.next_id
        self._delete(expired, after)
        return after

    def _put(self, file: Path, part: Part) -> bool:
        """Whether a task has put a part into the bucket itself, under a name of its own."""
        return bool(part.file) and file == self.place(part)

    def begin(self) -> Manifest:
        """The lake as last committed; call before files are added, inside `locked()`.

        In a bucket the manifest comes before the first file, so that files without one are never the start of a lake.
        """
        before = self.manifest()
        if self.store.remote:
            try:
                (self.root / "manifest.json").read_bytes()
            except FileNotFoundError:
                self._write(before)
        return before

    def _replaced(self, before: Manifest) -> tuple[list[str], list[str]]:
        """The replaced files that are still there, and those that are to go now."""
        if not self.store.remote:
            return [r for r in before.replaced if (self.root / "samples" / r).exists()], []
        long_ago = self.store.now_s() - GRACE_S if before.replaced else 0.0
        expired = [r for r in before.replaced if before.replaced_at.get(r, 0) < long_ago]
        return [r for r in before.replaced if r not in expired], expired

    def _replaced_at(self, before: Manifest, waiting: Sequence[str], gone: Sequence[str]) -> dict[str, int]:
        if not self.store.remote or not (waiting or gone):
            return {}
        now = int(self.store.now_s())
        return {place: before.replaced_at.get(place, now) for place in (*waiting, *gone)}

    def replace(self, parts: Sequence[Part], file: Path, merged: Part) -> Manifest:
        """Put a file that holds the rows of several parts in their place. Call inside `locked()`."""
        made_of = tuple(sorted({i for p in parts for i in (p.made_of or (p.id,))}))
        return self.commit([(file, msgspec.structs.replace(merged, made_of=made_of))], tuple(p.id for p in parts))

    def _first_free(self, manifest: Manifest) -> int:
        """The next id: above those of all files there are, named by the manifest or not."""
        if not self._next_id and not self.store.remote:  # in a bucket names are new whatever the number
            on_disk = (part_number(f.name) or 0 for f in self._part_files())
            self._next_id = max((*on_disk, *(p.id for p in manifest.parts)), default=0) + 1
        return max(self._next_id, manifest.next_id)

    def _write(self, manifest: Manifest) -> None:
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        self.store.swap(self.root / "manifest.json", content)
        self._read = (content, manifest)

    def sweep(self) -> None:
        """Delete the files that commits have replaced, and what killed work has left. Call inside `locked()`.

        Files that no commit has named are not touched: whose they are is not known. In a bucket they are, once old.
        """
        manifest = self.manifest()
        if not self.store.remote:
            self._delete(manifest.replaced, manifest)
            clear_abandoned(self.store.staging, lambda moved: self._delete(moved, manifest))
            clear_asides(self.root / "manifest.json")
            clear_old_asides(self.root)
            return
        if not self._swept:
            self.store.delete(self._old_work())
        left: list[str] = []
        clear_abandoned(self.store.staging, left.extend)
        waiting = set(manifest.replaced)
        orphans = [*(place for place in left if place not in waiting), *self._orphans(manifest)]
        if (orphans or self._replaced(manifest)[1]) and self.exists():
            # A commit of its own: a writer that was away and still means to name these files is thereby overtaken.
            self._delete(orphans, self.commit([]))

    def _old_work(self) -> list[Path]:
        """What an import on a cluster was handing over through the bucket when it was killed, a week ago or more."""
        found = list((self.root / "staging").glob("*/*/*"))
        long_ago = self.store.now_s() - ABANDONED_S if found else 0.0
        return [file for file in found if file.stat().st_mtime < long_ago]

    def _orphans(self, manifest: Manifest) -> list[str]:
        """Files of a bucket that no manifest names and that are a day old; looked for once by every writer."""
        if self._swept or not manifest.parts:
            return []
        self._swept = True
        samples, named = self.root / "samples", {*(p.place for p in manifest.parts), *manifest.replaced}
        found = [f for f in self._part_files() if f.relative_to(samples).as_posix() not in named]
        long_ago = self.store.now_s() - ORPHAN_S if found else 0.0
        return [f.relative_to(samples).as_posix() for f in found if f.stat().st_mtime < long_ago]

    def _delete(
        self, places: Iterable[str], manifest: Manifest, how: Callable[[Iterable[Path]], None] | None = None
    ) -> None:
        live = {p.place for p in manifest.parts}
        wanted = [self.root / "samples" / place for place in places if place not in live and is_place(place)]
        (how or self.store.delete)(wanted)
        for folder in {file.parent for file in wanted}:
            if folder.name.removeprefix("day=") not in manifest.days():
                with contextlib.suppress(OSError):
                    folder.rmdir()


@runtime_checkable
class Opened(Protocol):
    """A lake as `gpuledger.open` returns it."""

    lake: Lake

    def posted(self, limits: Thresholds | None = None) -> Lake:
        """The lake, with new samples posted."""


AnyLake = Lake | str | Path | Opened


def lake_of(given: AnyLake) -> Lake:
    """A lake that is given in any way: by its folder or address, or opened."""
    if isinstance(given, Lake):
        return given
    return given.lake if isinstance(given, Opened) else Lake(given)


def posted_lake(given: AnyLake, limits: Thresholds | None = None) -> Lake:
    """The lake for a statement: where it was opened with `gpuledger.open`, new samples are posted first."""
    return given.posted(limits) if isinstance(given, Opened) else lake_of(given)

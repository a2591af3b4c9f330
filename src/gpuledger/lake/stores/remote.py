"""How is a lake kept in a bucket, where nothing can be renamed and hosts share no lock?

New files go up under names no other writer can choose, then the manifest is swapped if it is still the one read under
the lease. Files are read from copies on this machine. A file that was replaced stays for a while, for statements still
reading it.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.errors import map_os_error
from gpuledger.lake.stores.bucket import Bucket, bucket_of
from gpuledger.lake.stores.cache import cache_folder, machine_name, make_own, most_bytes, note_use, state_folder, trim
from gpuledger.lake.stores.faults import gone
from gpuledger.lake.stores.folder import file_lock, sync
from gpuledger.lake.stores.lease import NAME as LEASE
from gpuledger.lake.stores.lease import Lease, Overtaken
from gpuledger.lake.stores.path import StorePath

if TYPE_CHECKING:
    import pyarrow as pa

# Copies are counted after this many bytes were added to them, or this share of their bound where it is small.
_COUNT_AFTER, _COUNT_SHARE = 1 << 30, 8


class Remote:
    """A lake in a bucket."""

    remote = True

    def __init__(self, root: StorePath) -> None:
        self.root = root
        self.address = root.address
        self.copies = cache_folder(self.address)
        self.here = state_folder(self.address)
        self._own = False
        self._lease: Lease | None = None
        self._fresh_bytes = _COUNT_AFTER
        self._skew_s: float | None = None

    @property
    def staging(self) -> Path:
        """Where work in progress is kept."""
        return self._owned() / "staging"

    @property
    def bucket(self) -> Bucket:
        """Its bucket, opened when first needed."""
        return bucket_of(self.address)

    def is_new(self) -> bool:
        """Never: a failed import leaves no folder behind."""
        return False

    def undo_new(self) -> None:
        """Nothing: what was not committed is swept by age."""

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time: among the processes of this machine by a lock file, among machines by a lease."""
        bucket, folder, copies = self.bucket, self.address.key, self._owned()
        with file_lock(copies / "lock"):
            lease = Lease(bucket, folder, machine_name(copies))
            with lease.held():
                bucket.hold(folder)
                self._lease, self._skew_s = lease, None
                try:
                    yield
                finally:
                    self._lease = None
                    bucket.let_go(folder)

    def aside(self, target: Path) -> Path:
        """Where on this machine to write a new file: where its copy will be."""
        copy = self._copy(target)
        self._make(copy.parent)
        return copy

    def add(self, written: Sequence[tuple[Path, Path]]) -> None:
        """Put files into the bucket; copies of them stay here."""
        wanted = []
        for file, target in written:
            copy = self.aside(target)
            sync(file)
            self._fresh_bytes += file.stat().st_size
            if file != copy:
                file.replace(copy)
            wanted.append((copy, self._key(target)))
        self.bucket.upload(wanted)
        self._trim()

    def swap(self, file: Path, content: bytes) -> None:
        """Replace a manifest if it is still the one read under this lease."""
        key, lease = self._key(file), self._lease
        assert lease is not None, "swapped outside of locked()"
        if lease.lost or self.bucket.swap(key, content, self.bucket.known(key)) is None:
            raise Overtaken(
                f"{self.root}: another writer changed the lake while this one did not reach it; nothing was committed",
                hint="run the same command again",
            )

    def local(self, files: Sequence[Path]) -> list[Path]:
        """Copies of files on this machine, fetched where they are not there yet."""
        copies = [self._copy(file) for file in files]
        missing = [(file, copy) for file, copy in zip(files, copies, strict=True) if not note_use(copy)]
        if missing:
            for folder in {copy.parent for _, copy in missing}:
                self._make(folder)
            try:
                absent = self.bucket.download((self._key(file), copy) for file, copy in missing)
            except OSError as error:
                raise map_os_error(error, self.copies, "keep copies of the lake") from error
            if absent:
                raise gone(StorePath(str(self.bucket.at(absent[0]))))
            self._fresh_bytes += sum(copy.stat().st_size for _, copy in missing)
            self._trim()
        return copies

    def source(self, file: Path) -> pa.NativeFile | None:
        """An object to read pieces of; None where a copy of it is on this machine."""
        from gpuledger.lake.stores.ranges import Ranges

        return None if note_use(self._copy(file)) else Ranges(self.bucket, self._key(file)).opened()

    def next_number(self, before: int) -> int:
        """A larger number that no other writer can choose: counted in the high half, drawn in the low one."""
        return ((before >> 32) + 1) << 32 | secrets.randbits(32)

    def nonce(self) -> str:
        """What a new name needs so that no other writer can choose it."""
        return secrets.token_hex(6)

    def now_s(self) -> float:
        """The time by the server's clock, which dates its objects: by how long ago it says the lease was written."""
        if self._skew_s is None:
            found = self.bucket.head(f"{self.address.key}/{LEASE}".lstrip("/"))
            written = self._lease.written_s if self._lease else time.time()
            self._skew_s = 0.0 if found is None else found.modified_s - written
        return time.time() + self._skew_s

    def abandon(self, files: Iterable[Path]) -> None:
        """Let go of the copies. The objects are swept by age: an answer may be lost of a commit that did arrive."""
        for file in files:
            self._copy(file).unlink(missing_ok=True)

    def delete(self, files: Iterable[Path]) -> None:
        """Delete objects and their copies."""
        wanted = list(files)
        self.bucket.delete(self._key(file) for file in wanted)
        for file in wanted:
            self._copy(file).unlink(missing_ok=True)

    def _key(self, file: Path) -> str:
        return StorePath(file).address.key

    def _copy(self, file: Path) -> Path:
        return self._owned() / StorePath(file).relative_to(self.root).as_posix()

    def _owned(self) -> Path:
        """The folder of the copies, after a look at who may write there."""
        if not self._own:
            for folder in (self.copies.parent, self.copies):
                make_own(folder)
            self._own = True
        return self.copies

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise map_os_error(
                error, folder, "keep copies of the lake (GPULEDGER_CACHE names another folder)"
            ) from error

    def _trim(self) -> None:
        if self._fresh_bytes >= min(_COUNT_AFTER, most_bytes() // _COUNT_SHARE):
            self._fresh_bytes = 0
            trim(self.copies)

"""How does a place in a bucket stand where code expects a path?

It is shown as its address, and small files are read, written, listed and deleted through it. Large ones are never
opened here: `Store.local` brings copies of them to this machine. What has no meaning in a bucket is refused, not
attempted on the local disk.
"""

from __future__ import annotations

import io
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path, PosixPath, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from gpuledger.lake.stores.address import Address, address_in

if TYPE_CHECKING:
    from gpuledger.lake.stores.bucket import Bucket, Entry


class StorePath(PosixPath):
    """A place in a bucket."""

    _entry: Entry | None = None

    @property
    def address(self) -> Address:
        """Its bucket and key."""
        found = address_in(super().__str__())
        assert found is not None
        return found

    def __str__(self) -> str:
        text = super().__str__()
        return str(address_in(text) or text)

    def __fspath__(self) -> str:
        return str(self)

    @property
    def _bucket(self) -> Bucket:
        from gpuledger.lake.stores.bucket import bucket_of

        return bucket_of(self.address)

    def resolve(self, strict: bool = False) -> StorePath:  # noqa: ARG002
        """Itself: links do not exist here."""
        return self

    def read_bytes(self) -> bytes:
        """The whole object; FileNotFoundError where there is none."""
        found = self._bucket.read(self.address.key)
        if found is None:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        return found

    def read_text(self, *_how: Any, **_more: Any) -> str:
        """The whole object as text."""
        return self.read_bytes().decode()

    def write_bytes(self, data: Any) -> int:
        """Write or replace the whole object."""
        self._bucket.write(self.address.key, bytes(data))
        return len(data)

    def touch(self, mode: int = 0o666, exist_ok: bool = True) -> None:  # noqa: ARG002
        """Make an empty object; FileExistsError where there is one that may not be."""
        if not self._bucket.create(self.address.key, b"") and not exist_ok:
            raise FileExistsError(17, os.strerror(17), str(self))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object."""
        if not missing_ok and not self.exists():
            raise FileNotFoundError(2, os.strerror(2), str(self))
        self._bucket.delete([self.address.key])

    def open(self, mode: str = "r", *_given: Any, **_more: Any) -> Any:
        """The whole object as a stream of bytes; nothing else can be opened in place."""
        return io.BytesIO(self.read_bytes()) if mode == "rb" else self._refused()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        """Size and time of the object; the time differs whenever its content does."""
        found = self._entry or self._bucket.head(self.address.key)
        if found is None:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        seconds = int(found.modified_s)
        # Servers keep whole seconds; the mark of the content makes up the rest.
        at = (seconds, seconds, seconds)
        # A listing has fewer marks of an object than the object itself.
        mark = found.mark.e_tag or found.mark.version or ""
        numbers = {"st_mtime_ns": seconds * 10**9 + zlib.crc32(mark.encode()) % 10**9}
        return os.stat_result((stat.S_IFREG | 0o644, 0, 0, 1, 0, 0, found.size, *at), numbers)

    def lstat(self) -> os.stat_result:
        """As `stat`."""
        return self.stat()

    def exists(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        """Whether there is such an object. A small one is read at once: that is what is asked for next."""
        key, bucket = self.address.key, self._bucket
        if self._entry is not None:
            return True
        return (bucket.read(key) if self.suffix == ".json" else bucket.head(key)) is not None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        """Whether there is such an object."""
        return self.exists()

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        """Whether there are objects below."""
        return any(True for _ in self._bucket.below(self.address.key))

    def is_symlink(self) -> bool:
        """Links do not exist here."""
        return False

    def glob(self, pattern: str, **_how: Any) -> Iterator[StorePath]:  # type: ignore[override]
        """The objects below that fit, and folders of objects; one listing, however many there are."""
        depth, start = len(PurePosixPath(pattern).parts), self.address.key
        seen: set[str] = set()
        for entry in self._bucket.below(start):
            parts = PurePosixPath(entry.key).relative_to(start).parts
            below = "/".join(parts[:depth])
            if len(parts) >= depth and below not in seen and PurePosixPath(below).match(pattern):
                seen.add(below)
                found = self / below
                found._entry = entry if len(parts) == depth else None  # noqa: SLF001
                yield found

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder of a bucket is there once an object is."""

    def rmdir(self) -> None:
        """Nothing: a folder of a bucket is gone once its last object is."""

    def _refused(self, *_given: Any, **_more: Any) -> NoReturn:
        raise NotImplementedError(f"{self}: an object is not a local file")

    iterdir = rename = replace = rglob = write_text = symlink_to = hardlink_to = chmod = _refused


def place_of(place: str | Path) -> Path:
    """A folder, or a place in a bucket, as a path."""
    if isinstance(place, StorePath):
        return place
    found = address_in(place)
    return Path(place) if found is None else StorePath(str(found))

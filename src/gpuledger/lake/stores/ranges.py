"""How is a piece of an object read without fetching all of it?"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa

from gpuledger.lake.stores.faults import gone
from gpuledger.lake.stores.path import StorePath

if TYPE_CHECKING:
    from gpuledger.lake.stores.bucket import Bucket


class Ranges(io.RawIOBase):
    """An object as a file: every read is a request."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        found = bucket.head(key)
        if found is None:
            raise gone(StorePath(str(bucket.at(key))))
        self._bucket, self._key, self._size, self._at = bucket, key, found.size, 0

    def opened(self) -> pa.NativeFile:
        """The object as Arrow reads it."""
        return pa.PythonFile(self, mode="r")

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Begin the next read elsewhere."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes."""
        end = self._size if size is None or size < 0 else min(self._size, self._at + size)
        found = self._bucket.piece(self._key, self._at, end) if end > self._at else b""
        self._at += len(found)
        return found

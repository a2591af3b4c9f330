"""How are the objects of one bucket read, written, replaced only if unchanged, and listed?

An object is whole or not there. What was read is remembered with the server's mark of it: for a second, so that a
statement that asks for the manifest a hundred times sends one request; and for as long as a writer holds its lease,
since a manifest is replaced only if it is still the one the writer read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from gpuledger.errors import LakeError
from gpuledger.lake.stores.address import Address
from gpuledger.lake.stores.clients import endpoint_of, open_client
from gpuledger.lake.stores.faults import NoSuchBucket, fault

FRESH_S = 1.0
# Requests are short: a slow network then shows as many answers, not as one that never ends.
_PIECE = 16 << 20
_AT_ONCE = 8


class Mark(NamedTuple):
    """The server's mark of an object's content."""

    e_tag: str | None
    version: str | None


class Entry(NamedTuple):
    """An object: its key, size, time and mark."""

    key: str
    size: int
    modified_s: float
    mark: Mark


class _Known(NamedTuple):
    mark: Mark | None
    content: bytes | None
    at_s: float


class Bucket:
    """One bucket."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._client = open_client(address)
        self._known: dict[str, _Known] = {}
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def at(self, key: str) -> Address:
        """The address of an object."""
        return Address(self.address.scheme, self.address.bucket, key)

    def hold(self, folder: str) -> None:
        """From now on what is read below a folder stays as first read; forget what was read before."""
        with self._lock:
            self._known = {key: found for key, found in self._known.items() if not _below(key, folder)}
            self._held.add(folder)

    def let_go(self, folder: str) -> None:
        """Read anew again."""
        with self._lock:
            self._held.discard(folder)

    def known(self, key: str) -> Mark | None:
        """The mark of an object as last read; None where it was not there."""
        self.read(key)
        return self._known[key].mark

    def read(self, key: str) -> bytes | None:
        """The whole of a small object; None where there is none."""
        with self._lock:
            before = self._known.get(key)
            held = any(_below(key, folder) for folder in self._held)
        if before is not None and (held or time.monotonic() - before.at_s < FRESH_S):
            return before.content
        now = time.monotonic()
        mark, content = self._got(key, before)
        with self._lock:
            self._known[key] = _Known(mark, content, now)
        return content

    def read_now(self, key: str) -> tuple[Mark | None, bytes | None]:
        """A small object as it is at this moment."""
        return self._got(key, None)

    def _got(self, key: str, before: _Known | None) -> tuple[Mark | None, bytes | None]:
        from obstore.exceptions import NotModifiedError

        options: Any = {"if_none_match": before.mark.e_tag} if before and before.mark and before.mark.e_tag else None
        try:
            found = self._client.get(key, options=options)
            return _mark(found.meta), bytes(found.bytes())
        except NotModifiedError:
            assert before is not None
            return before.mark, before.content
        except Exception as error:
            if self._missing(error, key):
                return None, None
            raise fault(error, self.at(key), "read it") from error

    def _missing(self, error: Exception, key: str) -> bool:
        """Whether an error says that an object is not there, while its bucket is."""
        if not isinstance(error, FileNotFoundError):
            return False
        words = fault(error, self.at(key), "read it")
        if isinstance(words, NoSuchBucket):
            raise words from error
        return True

    def head(self, key: str) -> Entry | None:
        """Size, time and mark of an object; None where there is none."""
        try:
            found = self._client.head(key) if key else None
            return None if found is None else _entry(found)
        except Exception as error:
            if self._missing(error, key):
                return None
            raise fault(error, self.at(key), "look at it") from error

    def below(self, folder: str) -> Iterator[Entry]:
        """All objects below a folder."""
        try:
            for batch in self._client.list(f"{folder}/" if folder else None):
                yield from (_entry(meta) for meta in batch)
        except Exception as error:
            raise fault(error, self.at(folder), "list it") from error

    def write(self, key: str, content: bytes) -> None:
        """Write or replace a small object."""
        try:
            mark = _mark(self._client.put(key, content, use_multipart=False))
        except Exception as error:
            raise fault(error, self.at(key), "write it") from error
        self._remember(key, mark, content)

    def create(self, key: str, content: bytes) -> bool:
        """Write a small object; False, and nothing written, where there is one."""
        return self._put_if(key, content, None) is not None

    def swap(self, key: str, content: bytes, mark: Mark | None) -> Mark | None:
        """Replace an object that still has this mark (None: that is not there); None where it has another.

        No two writers may give the same content. An answer that was lost on the way is asked for: whoever reads back
        its own content has written it.
        """
        try:
            made = self._put_if(key, content, mark)
        except LakeError:
            now, found = self.read_now(key)
            if found != content:
                raise
            made = now
        if made is None:
            now, found = self.read_now(key)
            made = now if found == content else None
        if made is not None:
            self._remember(key, made, content)
        return made

    def _put_if(self, key: str, content: bytes, mark: Mark | None) -> Mark | None:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        wanted = "create" if mark is None else {k: v for k, v in mark._asdict().items() if v is not None}
        try:
            return _mark(self._client.put(key, content, mode=cast("Any", wanted), use_multipart=False))
        except (AlreadyExistsError, PreconditionError):
            return None
        except Exception as error:
            if mark is not None and self._missing(error, key):
                return None
            raise fault(error, self.at(key), "write it") from error

    def _remember(self, key: str, mark: Mark, content: bytes) -> None:
        with self._lock:
            self._known[key] = _Known(mark, content, time.monotonic())

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; what is not there is not missed."""
        wanted = list(keys)
        if not wanted:
            return
        with self._lock:
            for key in wanted:
                self._known.pop(key, None)
        try:
            self._client.delete(wanted)
        except FileNotFoundError:
            for key in wanted if len(wanted) > 1 else ():
                self.delete([key])
        except Exception as error:
            raise fault(error, self.at(wanted[0]), "delete it") from error

    def upload(self, files: Iterable[tuple[Path, str]]) -> None:
        """Write files of this machine as objects."""

        def one(file: Path, key: str) -> None:
            try:
                self._client.put(key, file)
            except Exception as error:
                raise fault(error, self.at(key), "write it") from error

        _at_once(one, files)

    def download(self, wanted: Iterable[tuple[str, Path]]) -> list[str]:
        """Write objects to files of this machine, each whole or not at all; returns the keys that are not there."""
        missing: list[str] = []

        def one(key: str, file: Path) -> None:
            aside = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
            try:
                with aside.open("wb") as out:
                    for piece in self._pieces(key):
                        out.write(piece)
                    out.flush()
                    os.fsync(out.fileno())
                aside.replace(file)
            except KeyError:
                missing.append(key)
            finally:
                aside.unlink(missing_ok=True)

        _at_once(one, wanted)
        return missing

    def piece(self, key: str, start: int, end: int) -> bytes:
        """Some bytes of an object."""
        try:
            return bytes(self._client.get_range(key, start=start, end=end))
        except Exception as error:
            raise fault(error, self.at(key), "read it") from error

    def _pieces(self, key: str) -> Iterator[Any]:
        """The content of an object, in one request where it is small; KeyError where it does not exist."""
        try:
            found = self._client.get(key)
            size = found.meta["size"]
            if size <= _PIECE:
                yield found.bytes()
                return
            for start in range(0, size, _PIECE):
                yield self._client.get_range(key, start=start, end=min(start + _PIECE, size))
        except Exception as error:
            if self._missing(error, key):
                raise KeyError(key) from error
            raise fault(error, self.at(key), "read it") from error


def _at_once(work: Any, items: Iterable[tuple[Any, Any]]) -> None:
    wanted = list(items)
    if len(wanted) == 1:
        work(*wanted[0])
    elif wanted:
        with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as pool:
            for done in [pool.submit(work, *item) for item in wanted]:
                done.result()


def _below(key: str, folder: str) -> bool:
    return not folder or key.startswith(f"{folder}/")


def _mark(meta: Any) -> Mark:
    return Mark(meta.get("e_tag"), meta.get("version"))


def _entry(meta: Any) -> Entry:
    return Entry(meta["path"], meta["size"], meta["last_modified"].timestamp(), _mark(meta))


def bucket_of(address: Address) -> Bucket:
    """The bucket of an address, opened once per process and endpoint."""
    return _opened(Address(address.scheme, address.bucket), endpoint_of(address.scheme))


@lru_cache(maxsize=32)
def _opened(address: Address, _endpoint: str) -> Bucket:
    return Bucket(address)

"""How is a file read that is packed or in UTF-16? gzip, Zstandard and UTF-16 are recognized by their first bytes."""

from __future__ import annotations

import codecs
import io
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpuledger.bounds import Unpacked, lines
from gpuledger.errors import FileFault, map_os_error

_MARKS_OF_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def packing(path: Path) -> str | None:
    """How the file is packed: gzip, zstd, or not at all (None)."""
    with path.open("rb") as file:
        return packing_of(file.read(4))


def packing_of(first: bytes) -> str | None:
    """How a file with these first bytes is packed."""
    return next((name for magic, name in _MAGIC.items() if first.startswith(magic)), None)


@contextmanager
def open_plain(path: Path) -> Iterator[Any]:
    """The file's bytes, unpacked; those of UTF-16, which PowerShell writes, as UTF-8."""
    wide = is_utf16(_start(path))
    with _unpacked(path) as stream:
        yield _AsUtf8(stream) if wide else stream


def is_plain(path: Path) -> bool:
    """Whether the file's own bytes are those that are read, so that reading may start at any of them."""
    return packing(path) is None and not is_utf16(_start(path))


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of the unpacked file."""
    with open_plain(path) as stream:
        return stream.read(count)


@contextmanager
def _unpacked(path: Path) -> Iterator[Any]:
    packed = packing(path)
    with pa.input_stream(str(path), compression=packed) as stream:
        yield Unpacked(stream, path) if packed else stream


def _start(path: Path) -> bytes:
    """As many bytes of the unpacked file as a mark of UTF-16 has."""
    if packing(path) is None:
        with path.open("rb") as file:
            return file.read(len(codecs.BOM_UTF16))
    with _unpacked(path) as stream:
        return stream.read(len(codecs.BOM_UTF16))


class _AsUtf8(io.RawIOBase):
    """Text in UTF-16 as UTF-8, without its mark; half a letter at the end, where a file was cut, is left out."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream, self._decoder, self._held = stream, codecs.getincrementaldecoder("utf-16")("replace"), b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        room = memoryview(buffer).cast("B")
        while not self._held:
            found = self._stream.read(max(len(room), 2))
            if not found:
                return 0
            self._held = self._decoder.decode(found).encode()
        count = min(len(room), len(self._held))
        room[:count], self._held = self._held[:count], self._held[count:]
        return count

    def close(self) -> None:
        """Close what it reads from."""
        self._stream.close()
        super().close()


def open_text(stream: Any, newline: str | None = None) -> io.TextIOWrapper:
    """A stream of bytes as text, without a mark of its byte order."""
    return io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", newline=newline)


def is_utf16(first: bytes) -> bool:
    """Whether text starts with the mark of UTF-16, which no UTF-8 text has."""
    return first.startswith(_MARKS_OF_UTF16)


def not_utf8(path: Path, at: int | None = None) -> FileFault:
    """The fault for text in another encoding, which is named where its first bytes show it.

    `at`: where in the unpacked file it is found, if that is known; the fault then names the line.
    """
    try:
        wide = is_utf16(_start(path))
    except OSError as error:
        return FileFault(path, f"it cannot be unpacked: {error}", hint="copy or export the file again")
    recoded = f"iconv -f {'UTF-16' if wide else 'LATIN1'} -t UTF-8 {shlex.quote(str(path))} > utf8.csv"
    hint = "unpack it and save it as UTF-8" if packing(path) else f"save it as UTF-8: {recoded}"
    where = "it" if at is None else f"line {_line_at(path, at):,}"
    return FileFault(path, "it is UTF-16, not UTF-8 text" if wide else f"{where} is not UTF-8 text", hint=hint)


def _line_at(path: Path, at: int) -> int:
    """The number of the line that holds a byte of the unpacked file."""
    before, left = 0, at
    with open_plain(path) as stream:
        while left and (block := stream.read(min(left, 1 << 22))):
            before += block.count(b"\n")
            left -= len(block)
    return before + 1


def text_lines(path: Path, *, ends: bool = False) -> Iterator[str]:
    """The lines of a text file, unpacked, without line ends; a fault where it is not text or cannot be unpacked.

    `ends`: a line feed alone ends a line, and stays.
    """
    try:
        with open_plain(path) as stream, open_text(stream, "\n" if ends else None) as text:
            for line in lines(text, path):
                yield line if ends else line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> Exception:
    """What stands in the way of reading a file that may be packed."""
    with suppress(OSError):
        if packing(path):
            return FileFault(path, f"cannot be unpacked: {error}", hint="copy or export the file again")
    return map_os_error(error, path, "read") if isinstance(error, OSError) else error

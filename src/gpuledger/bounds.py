"""How much of a file from outside is held in memory at once, and when is a packed file refused as a bomb?

Tables are streamed and may have any size, but not a line without an end. What has to be held whole (a configuration, a
JSON document, a server's answer) may have a number of MiB; the environment variable GPULEDGER_MAX_FILE_MIB replaces it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gpuledger.errors import FileFault, InputError

VARIABLE = "GPULEDGER_MAX_FILE_MIB"
SETTINGS_MIB = 16  # what a person writes
DOCUMENT_MIB = 256  # what a program exports
LINE_BYTES = 16 << 20
# Telemetry and bills shrink to a 10th or a 50th. Beyond this, and beyond a number of bytes, it is not data.
MOST_TIMES = 300
BOMB_BYTES = 1 << 30
MOST_ROWS = 10_000_000
ROWS_PER_BYTE = 100  # a table with times has less than 20


def most_bytes(mib: int = DOCUMENT_MIB) -> int:
    """How many bytes may be held whole: the MiB given, or those that the environment gives."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return mib << 20
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 1 << 24):
        raise InputError(f"{VARIABLE} is {text[:40]!r}, not a number of MiB", hint=f"export {VARIABLE}=1024")
    return int(text) << 20


def read_whole(file: Path, mib: int = DOCUMENT_MIB) -> bytes:
    """All bytes of a file; refused where they are more than may be held."""
    with file.open("rb") as stream:
        return whole(stream, str(file), mib)


def read_text(file: Path, encoding: str = "utf-8", mib: int = SETTINGS_MIB) -> str:
    """All text of a file, with any line ends as line feeds; refused where it is more than may be held."""
    return read_whole(file, mib).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def whole(stream: IO[bytes], path: str | Path, mib: int = DOCUMENT_MIB) -> bytes:
    """All bytes of a stream, unpacked as they come; refused where they are more than may be held."""
    most, parts, size = most_bytes(mib), list[bytes](), 0
    while part := stream.read(1 << 20):
        parts.append(part)
        size += len(part)
        if size > most:
            raise too_large(path, mib)
    return b"".join(parts)


def too_large(path: str | Path, mib: int = DOCUMENT_MIB) -> FileFault:
    """The fault for a file that is more than may be held in memory."""
    most = most_bytes(mib) >> 20
    hint = f"give a smaller file, or allow more: export {VARIABLE}={most * 4}"
    return FileFault(path, f"larger than {most:,} MiB, unpacked", hint=hint)


def lines(text: io.TextIOBase, path: str | Path) -> Iterator[str]:
    """The lines of a text with their ends; a line that does not end is refused before it fills the memory."""
    while line := text.readline(LINE_BYTES + 1):
        if len(line) > LINE_BYTES:
            raise FileFault(
                path, f"a line is longer than {LINE_BYTES >> 20} MiB", hint="check the export for a missing line end"
            )
        yield line


def refuse_claims(path: str | Path, rows: int) -> None:
    """Refuse a table that claims to have far more rows than its bytes can hold, as a Parquet file may."""
    if rows > MOST_ROWS and rows > ROWS_PER_BYTE * Path(path).stat().st_size:
        raise FileFault(
            path,
            f"it claims {rows:,} rows, more than {ROWS_PER_BYTE} for each of its bytes",
            hint="write the file again with the tool that made it",
        )


class Unpacked(io.RawIOBase):
    """The bytes of a packed file; refused once they are hundreds of times what was packed."""

    def __init__(self, stream: Any, path: Path) -> None:
        super().__init__()
        self._stream, self._path, self._size = stream, path, 0
        self._most = max(BOMB_BYTES, MOST_TIMES * path.stat().st_size)

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        found = self._stream.read(len(buffer))
        self._size += len(found)
        if self._size > self._most:
            raise FileFault(
                self._path,
                f"it unpacks to more than {MOST_TIMES} times its size and more than {BOMB_BYTES >> 30} GiB",
                hint="unpack it yourself if it is what you expect, and give the plain file",
            )
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Close what it reads from."""
        self._stream.close()
        super().close()

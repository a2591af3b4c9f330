"""How is a text file read in blocks of whole lines?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuledger.errors import FileFault
from gpuledger.telemetry.unpacking import is_plain, not_utf8, open_plain

# A line must fit into a block.
BLOCK_BYTES = 16 << 20
_NEAR_BYTES = 1 << 12


class Span(NamedTuple):
    """Bytes of a file; the header is in the first."""

    start: int
    end: int


class Block(NamedTuple):
    """Whole lines, as bytes that are overwritten when the next block is asked for, and where they start."""

    lines: memoryview
    start: int


def line_blocks(path: Path, span: Span | None = None) -> Iterator[Block]:
    """The file's bytes, unpacked, in blocks of whole lines; or a span of a plain file. The last line may not end."""
    room, held, left, start = np.empty(2 * BLOCK_BYTES, np.uint8), 0, 1 << 62, 0
    with open_plain(path) as stream:
        if span is not None and is_plain(path):
            left, start = span.end - span.start, span.start
            stream.seek(start)
        while found := stream.readinto(room.data[held : held + min(BLOCK_BYTES, left)]):
            left -= found
            held += found
            end = _end_of_lines(room.data[:held])
            if not end and held > BLOCK_BYTES:
                raise FileFault(
                    path,
                    f"a line is longer than {BLOCK_BYTES >> 20} MiB",
                    hint="check the export for a missing line end",
                )
            if end:
                yield Block(room.data[:end], start)
            rest, start = room[end:held], start + end
            held = len(rest)
            if held + BLOCK_BYTES > len(room):
                room = np.empty(held + BLOCK_BYTES, np.uint8)
            room[:held] = rest
    if held:
        yield Block(room.data[:held], start)


def utf8_blocks(path: Path) -> Iterator[bytes]:
    """The file's bytes, unpacked, in blocks of whole lines, as long as they are UTF-8."""
    for block in line_blocks(path):
        check_utf8(path, block)
        yield bytes(block.lines)


def check_utf8(path: Path, block: Block) -> None:
    """A fault that names the line, where a block is not UTF-8.

    Arrow would look at the encoding of the cells it is asked for only, and cannot report a row it cannot decode.
    """
    try:
        str(block.lines, "utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, block.start + error.start) from error


def _end_of_lines(text: memoryview) -> int:
    """Behind the last line feed, or where there is none the last carriage return; 0 without either."""
    near = bytes(text[-_NEAR_BYTES:])
    if b"\n" in near:
        return len(text) - len(near) + near.rindex(b"\n") + 1
    whole = bytes(text)
    return whole.rfind(b"\n") + 1 or whole.rfind(b"\r") + 1

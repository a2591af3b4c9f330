"""Do blocks of whole lines add up to the file they are of?"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import FileFault
from gpuledger.telemetry import blocks
from gpuledger.telemetry.blocks import Span, line_blocks, utf8_blocks

ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = st.lists(st.text("ab,é", max_size=6).map(str.encode), max_size=30)


@given(LINES, ENDS, st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_blocks_add_up_to_the_file(lines: list[bytes], end: bytes, first: int, more: int, packed: bool) -> None:
    """In the order of the file, each at its place; all but the last end with a line end."""
    text = end.join(lines)
    with tempfile.TemporaryDirectory() as folder, patch.object(blocks, "BLOCK_BYTES", 16):
        path = Path(folder) / "file"
        path.write_bytes(gzip.compress(text) if packed else text)
        span = None if packed else Span(min(first, len(text)), min(first + more, len(text)))
        wanted = text if span is None else text[span.start : span.end]
        found, at = b"", 0 if span is None else span.start
        for block in line_blocks(path, span):
            assert block.start == at + len(found)
            assert found[-1:] in (b"", b"\n", b"\r")
            found += bytes(block.lines)
        assert found == wanted


def test_a_line_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 40)
    with patch.object(blocks, "BLOCK_BYTES", 16), pytest.raises(FileFault, match="a line is longer"):
        list(line_blocks(path))


def test_text_of_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nthr\xe9e\nfour\n")
    with patch.object(blocks, "BLOCK_BYTES", 6), pytest.raises(FileFault, match="line 3 is not UTF-8"):
        list(utf8_blocks(path))

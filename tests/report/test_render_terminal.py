"""Do lines on a terminal break where a reader would break them?"""

from __future__ import annotations

import io
import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from gpuledger.report.document import Bullets, Document
from gpuledger.report.render.terminal import screen
from gpuledger.report.written import percent

FIGURES = st.floats(0, 1000).map(percent) | st.integers(0, 999).map(lambda n: f"({n} %)") | st.just("15 kg")
WORDS = st.lists(FIGURES | st.sampled_from(["of", "the", "bill", "$1,234.56", "utilization", "70", "%"]), min_size=1)


def drawn(document: Document, width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    for part in screen(document, width):
        console.print(part)
    return out.getvalue().splitlines()


@settings(max_examples=150, deadline=None)
@given(WORDS, st.integers(24, 100))
def test_no_line_breaks_within_a_figure(words: list[str], width: int) -> None:
    text = " ".join(words)
    lines = drawn(Document(name="d", kind="K", title="T", headline=text, summary=[Bullets([text])]), width)
    assert all(len(line) <= width for line in lines)
    for before, after in pairwise(lines):
        assert not (re.search(r"\d\s*$", before) and re.match(r"[\s-]*(%|kg)", after)), (before, after)
    bare = re.sub(r"\s", "", text)
    assert re.sub(r"\s", "", "".join(lines)) == f"{bare}-{bare}"

"""Does text from a file do nothing where it is shown: a spreadsheet, a page, a terminal, Prometheus?"""

from __future__ import annotations

import csv
import io
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from targets.statements import HOSTILE, Unsafe, _check, made, reported

from gpuledger.live.exposition import family, text_of
from gpuledger.plain_text import _FORMULA, _NUMBER, csv_cell, csv_text
from gpuledger.telemetry.formats.metric_text import sample, series_labels

hostile = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(),
    st.lists(st.sampled_from([*";=+-@1a \t\r\n\",'"]), max_size=12).map("".join),
)


@given(st.lists(hostile, min_size=1, max_size=4))
def test_no_cell_is_a_formula_whichever_mark_separates_cells(cells):
    text = csv_text([cells])
    for separator in ",;":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=csv.QUOTE_MINIMAL):
            for cell in row if separator == "," else text.rstrip("\n").split(";")[1:]:
                shown = cell.lstrip(" ") if separator == ";" else cell
                piece = shown.partition(",")[0].rstrip(' "') if separator == ";" else shown
                assert not piece.startswith(_FORMULA) or _NUMBER.fullmatch(piece), (separator, cell)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a;=1+1", "a;'=1+1"), ("a; @x;-5", "a; '@x;-5"), ("a;b-c", "a;b-c"), ("=1;=2", "'=1;'=2"), ("x; -", "x; '-")],
)
def test_a_formula_behind_a_semicolon_becomes_text(value, shown):
    assert csv_cell(value) == shown


@given(hostile.filter(lambda text: text.isprintable() or text == "a\nb"))
def test_a_label_reads_back_from_a_metrics_page_as_it_was(label):
    page = text_of([family("gpuledger_x", "x", [({"namespace": label, "z": "end"}, 1.5)])])
    lines = [line for line in page.split("\n") if line and not line.startswith("#")]
    assert len(lines) == 1
    found = sample(lines[0])
    assert found is not None
    assert (series_labels(found.series) or {}).get("namespace", "") == label


def test_a_report_of_hostile_labels_acts_nowhere(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(made(Random(3)).data)
    assert reported(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<p><script>alert(1)</script>"),
        ("a.svg", '<svg xmlns="x"><img src=x onerror=alert(1)></svg>'),
        ("a.md", "a\x1b[2J"),
        ("a.csv", "a,=1+1\n"),
    ],
)
def test_the_check_of_reports_finds_what_acts(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(Unsafe):
        _check(path)

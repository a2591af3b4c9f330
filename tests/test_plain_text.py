"""Is text from outside made harmless for each output, and nothing else changed?"""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.plain_text import csv_cell, csv_text, json_text, visible, visible_tree


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 5 °C, 日本, a‑b", "plain, 5 °C, 日本, a‑b"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("\u202eevil\u2028", "\\u202eevil\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert visible(text) == shown


def test_line_feeds_stay_where_the_text_has_lines():
    assert visible("a\nb\r\x1b", lines=True) == "a\nb\\r\\x1b"


def test_a_tree_is_made_visible_in_names_and_values():
    assert visible_tree({"a\x1b": ["\x07", 1, None, ("x\x00",)]}) == {"a\\x1b": ["\\x07", 1, None, ["x\\x00"]]}


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_reads_back_as_the_same(data):
    text = json_text(data, indent=1)
    assert json.loads(text) == data
    assert visible(text, lines=True) == text


@pytest.mark.parametrize("value", ["=1+1", "+1+cmd", "-2+3", "@SUM(1)", "\t=1", "\r=1", "＝1", "-", "-rf"])
def test_a_formula_becomes_text(value):
    assert csv_cell(value).startswith("'")


@pytest.mark.parametrize("value", ["-5", "+3.25", "-1.5e-07", -5, -2.5, None, "a=b", "GPU-0", ""])
def test_numbers_and_words_stay(value):
    assert csv_cell(value) == value


@given(st.lists(st.lists(st.text() | st.integers(), min_size=1, max_size=3), min_size=1, max_size=4))
def test_each_row_is_one_line(rows):
    text = csv_text(rows)
    assert text.count("\n") == len(rows)
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert [len(row) for row in read] == [len(row) for row in rows]

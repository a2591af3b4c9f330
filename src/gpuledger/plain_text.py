"""How is text from outside (labels, paths, error messages) shown so that it does nothing where it is shown?

A label may hold an escape sequence that moves the cursor, a mark that turns the reading direction, or a formula that a
spreadsheet runs. Each output has one function here: `visible` for the terminal, pages, Markdown and charts, `json_text`
for JSON, `csv_text` for CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

# DEL, C1; marks of reading direction; line and paragraph separators; the byte order mark; what XML does not allow.
_BEYOND_C0 = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff"
_CONTROL = re.compile(f"[\x00-\x1f{_BEYOND_C0}]")
# JSON itself escapes C0 within strings; what stands between values is ours.
_LEFT_BY_JSON = re.compile(f"[{_BEYOND_C0}]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with control characters written out, ESC as \x1b; `lines` keeps line feeds, for text of many lines."""
    return _CONTROL.sub(lambda found: "\n" if lines and found[0] == "\n" else _written(found[0]), text)


def _written(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def visible_tree(value: Any) -> Any:
    """Lists and dicts with every string in them made visible, as for the specification of a chart."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_tree(name): visible_tree(inner) for name, inner in value.items()}
    return [visible_tree(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def json_text(data: Any, indent: int | None = None) -> str:
    r"""JSON that reads back as the same data, control characters as \u escapes. Not-a-number is refused."""
    import json  # the help needs none of these

    # Without an indent json writes in C, ten times as fast.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    if indent is not None:
        import msgspec

        text = msgspec.json.format(text, indent=indent)
    if text.isascii() and "\x7f" not in text:  # most often
        return text
    return _LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def csv_cell(value: Any) -> Any:
    """A cell a spreadsheet shows and never runs: text that could be a formula starts with an apostrophe.

    Where a semicolon separates cells, a spreadsheet cuts the text at each of them: every piece is looked at.
    """
    if not isinstance(value, str):
        return value
    return ";".join(_never_run(piece, first=not place) for place, piece in enumerate(value.split(";")))


def _never_run(piece: str, *, first: bool) -> str:
    start = piece if first else piece.lstrip(" ")
    runs = start.startswith(_FORMULA) and not _NUMBER.fullmatch(start.rstrip(" "))
    return f"{piece[: len(piece) - len(start)]}'{visible(start)}" if runs else visible(piece)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV, one line each; numbers stay numbers, None is an empty cell."""
    import csv
    import io

    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue()

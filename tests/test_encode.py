"""Is every statement written in one shape?"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.encode import as_text, encode, plain
from gpuledger.plain_text import json_text
from gpuledger.units import Unknown


class Color(Enum):
    RED = "red"


@dataclass(frozen=True)
class Row:
    name: str
    klass: str
    share_pct: Decimal | Unknown
    usd: Decimal | Unknown


class Struct(msgspec.Struct, frozen=True):
    start_ms: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Renamed:
    inner: Row

    def as_json(self) -> dict[str, Any]:
        return {"row": self.inner, "extra": Unknown("nobody counted")}


GONE = Unknown("no price")
ROWS = (Row("a", "idle", Decimal("12.50"), GONE), Row("b", "busy", GONE, GONE))


def test_an_unknown_is_null_in_its_place_and_listed_once_per_figure_with_its_count() -> None:
    made = encode("sample", Struct(0, ROWS), v=3, named=[("fleet", "nothing was recorded")])
    assert made == {
        "v": 3,
        "statement": "sample",
        "start_ms": 0,
        "start_utc": "1970-01-01T00:00:00Z",
        "rows": [
            {"name": "a", "class": "idle", "share_pct": 12.5, "usd": None},
            {"name": "b", "class": "busy", "share_pct": None, "usd": None},
        ],
        "not_known": [
            {"figure": "rows[].usd", "why": "no price", "count": 2},
            {"figure": "rows[].share_pct", "why": "no price", "count": 1},
            {"figure": "fleet", "why": "nothing was recorded", "count": 1},
        ],
    }


def test_a_class_may_say_itself_how_it_reads() -> None:
    made = encode("sample", {"held": Renamed(ROWS[0])})
    assert made["held"]["row"]["class"] == "idle"
    assert made["held"]["extra"] is None
    assert {"figure": "held.extra", "why": "nobody counted", "count": 1} in made["not_known"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Color.RED, "red"),
        (dt.date(2026, 11, 15), "2026-11-15"),
        (Path("a/b"), "a/b"),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({Color.RED: 1}, {"red": 1}),
        (Decimal("1E+3"), "1000"),
        (True, True),
    ],
)
def test_values_that_json_does_not_have(value: object, written: object) -> None:
    assert plain(value) == written


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_reads_back_as_the_same_number(value: Decimal) -> None:
    text = as_text(value)
    assert Decimal(text) == value
    assert "E" not in text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
        | st.just(GONE) | st.decimals(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)  # fmt: skip
def test_whatever_a_statement_holds_json_can_write(value: object) -> None:
    json_text(encode("sample", {"held": value}))

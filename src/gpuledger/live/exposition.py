"""How is a family of series written for Prometheus? The text format, version 0.0.4.

An unknown figure is a series that is not there, never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.plain_text import visible
from gpuledger.units import Unknown

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Value = float | int | Decimal
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """A name, what it means, and its series: labels and value. Labels without a value are left out when written."""

    name: str
    help: str
    series: tuple[tuple[Labels, Value], ...]
    kind: Literal["gauge", "counter"] = "gauge"


def family(
    name: str, meaning: str, series: Iterable[tuple[Mapping[str, str | None], Value | Unknown | None]]
) -> Family:
    """A family of the series whose value is known."""
    known = (
        ({k: v for k, v in labels.items() if v}, value)
        for labels, value in series
        if value is not None and not isinstance(value, Unknown) and math.isfinite(value)
    )
    return Family(name, meaning, tuple(known))


def text_of(families: Iterable[Family]) -> str:
    """The page a server scrapes; families without a series have no lines."""
    return "".join(line for found in families if found.series for line in _lines(found))


def _lines(found: Family) -> Iterator[str]:
    yield f"# HELP {found.name} {_escaped(found.help)}\n"
    yield f"# TYPE {found.name} {found.kind}\n"
    for labels, value in found.series:
        inner = ",".join(f'{name}="{_label(text)}"' for name, text in labels.items())
        yield f"{found.name}{{{inner}}} {_number(value)}\n" if inner else f"{found.name} {_number(value)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _label(text: str) -> str:
    # Control characters other than the line feed are written out: they would move the cursor of who looks at the page.
    shown = "\n".join(visible(line) if not line.isprintable() else line for line in text.split("\n"))
    return _escaped(shown).replace('"', '\\"')


def _number(value: Value) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))

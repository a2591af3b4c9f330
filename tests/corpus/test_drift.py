"""Does an answer follow the units and names in a file's header when a new release of a tool changes them?

Never a wrong figure without a word: it follows the unit, or a note names the column that is not read.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gpuledger
from gpuledger.errors import InputError
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.formats import Kind, recognize

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "telemetry" / "fixtures"
TABLES = [
    f for f in sorted([*HERE.glob("*.csv"), *FIXTURES.glob("*/*.csv")]) if recognize(f).format.kind is Kind.TELEMETRY
]
# The unit as written, the one it becomes with the same numbers, the reading, and what becomes of it.
UNITS = [("MiB", "MB", "fb_used_bytes", 1e6 / 2**20), ("W", "mW", "power_w", 1e-3)]
READINGS = {"gpu_util_ratio", "power_w", "fb_used_bytes"}


def name_of(table: Path) -> str:
    """What a table is called in the list of tests."""
    return f"{table.parent.name}-{table.stem}"


def means(file: Path, lake: Path) -> tuple[dict[str, float], str]:
    """The mean of each reading that an import keeps, and its notes; of a refusal its words."""
    try:
        kept = gpuledger.open(lake)
        notes = kept.ingest(file).notes
        found = kept.samples().df().select_dtypes("number").mean()
    except InputError as error:
        return {}, str(error)
    return {name: float(mean) for name, mean in found.items() if not np.isnan(mean)}, "\n".join(notes)


def text_of(table: Path) -> str:
    """The text of a table, which may be in UTF-16."""
    raw = table.read_bytes()
    return raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def with_unit(text: str, old: str, new: str) -> str:
    """The text with another unit behind the same numbers."""
    return re.sub(rf"(?<![A-Za-z]){old}\b", new, text)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit[0]}-{unit[1]}")
@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_another_unit_with_the_same_numbers(tmp_path, table, unit):
    old, new, reading, factor = unit
    text = text_of(table)
    drifted = with_unit(text, old, new)
    before, _ = means(table, tmp_path / "before")
    if drifted == text or reading not in before:
        return
    (tmp_path / "a").mkdir()
    changed = tmp_path / "a" / table.name
    changed.write_text(drifted, "utf-8")
    after, said = means(changed, tmp_path / "after")
    dropped = [h.strip() for h in drifted.splitlines()[0].split(",") if new in h]
    if reading in after:
        assert after[reading] == pytest.approx(before[reading] * factor)
    else:
        assert any(name in said for name in dropped) or "out_of_range" in said, said


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_another_name(tmp_path, table):
    text, found = text_of(table), explain(table)
    before, _ = means(table, tmp_path / "before")
    named = [c for c in found.columns if c.column in READINGS and found.gpus_per_row == 1 and c.source in text]
    for number, column in enumerate(named):
        changed = tmp_path / f"renamed{number}.csv"
        changed.write_text(text.replace(column.source, f"new_{column.source}"), "utf-8")
        after, said = means(changed, tmp_path / f"after{number}")
        if column.column in after:
            assert after[column.column] == pytest.approx(before[column.column]), column.source
        elif after:  # else it is refused
            assert f"new_{column.source}" in said, said

"""Do the columns fit every width, and do cells say what is known and no more?"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from gpuledger.cost.pricing import PriceUsed
from gpuledger.tui.columns import columns_for, fitted, spark, waste_text
from gpuledger.tui.drawing import cells, chart, price_line, table, titles
from gpuledger.tui.fleet import Waste, blank
from gpuledger.tui.live_devices import _Place
from gpuledger.tui.orders import SORTS, matches, ordered
from gpuledger.units import Unknown


def test_every_width_is_used_and_none_exceeded(node):
    found = node.look().gpus
    names = [f"a-very-long-host-name-{i}/3" for i in range(len(found))]
    long = [replace(g, host=f"h{i}", name=names[i], owners=("x" * 60,)) for i, g in enumerate(found)]
    for width in range(76, 220, 3):
        for gpus in (found, long):
            columns = columns_for(width, gpus)
            heads = [c.title for c in columns[:9]]
            assert heads == ["GPU", "UTIL%", "REAL%", "W", "MEM", "STATE", "$/H", "WASTE", "OWNER"]
            assert sum(c.width + 1 for c in columns) <= width
            for gpu in gpus:
                assert [c.cell_len for c in cells(gpu, columns)] == [c.width for c in columns]
            assert [len(t) for t in titles(columns)] == [c.width for c in columns]
    assert len(columns_for(200, found)) > len(columns_for(80, found))


def test_a_plain_table_of_eighty_columns(node):
    lines = [line.plain for line in table(node.look(), 80, "waste")]
    assert max(map(len, lines)) <= 80
    assert lines[3].split()[:3] == ["GPU", "UTIL%", "REAL%"]
    assert lines[4].split()[0] == "3"


def test_unknown_figures_come_last(node):
    gpus = node.look().gpus
    silent = blank("GPU-x", _Place("GPU-x", "node-1", "9"), None, None, "lost", "it was lost")
    for sort in SORTS:
        found = ordered([silent, *gpus], sort)
        assert len(found) == 6
        if sort not in ("name", "state", "owner"):
            assert found[-1] is silent, sort


def test_a_filter_looks_at_names_states_owners_and_programs(node):
    gpus = node.look().gpus
    assert [g.name[-1] for g in gpus if matches(g, "LLAMA")] == ["0", "2"]
    assert [g.name[-1] for g in gpus if matches(g, "vllm light")] == ["2"]
    assert [g.name[-1] for g in gpus if matches(g, "train.py matrix")] == ["0"]
    assert [g.name[-1] for g in gpus if matches(g, "ada")] == ["0", "1", "2"]
    assert len([g for g in gpus if matches(g, " ")]) == 5


@pytest.mark.parametrize(
    ("least", "more", "text"),
    [
        ("1", "0", "1.00"),
        ("1", "0.01", "1.00"),
        ("1", "1", "1.00+"),
        ("0", "2", "?"),
        ("0", "0", "0.00"),
        ("123.4", "0", "123"),
    ],
)
def test_waste_that_may_be_more_says_so(least, more, text):
    assert waste_text(Waste(Decimal(least), Decimal(more))) == text
    assert waste_text(Unknown("no price")) == "?"


def test_long_names_keep_both_ends():
    assert fitted("ip-10-0-12-34.internal/7", 12) == "ip-10-…nal/7"
    assert fitted("short", 12) == "short"
    assert fitted("a\x1b[2Jb", 12) == "a\\x1b[2Jb"


def test_bars():
    assert spark([0, None, 50, 100], 6) == "  ▁ ▄█"
    assert chart([0, 50, 100, None], 4, 2, 100) == ["  █ ", "▁██ "]


def price(
    model: str, usd: str, low: str, high: str, basis: str = "market", newest: str | None = "2026-08-22"
) -> PriceUsed:
    return PriceUsed(model, Decimal(usd), Decimal(low), Decimal(high), basis, "", None, newest, None, 1, 1.0)


def test_prices_name_their_basis_and_date():
    h200, a100 = price("NVIDIA H200", "4.47", "2.10", "10.84"), price("NVIDIA A100", "3.05", "0.94", "4.01")
    given = price("H100", "2", "2", "2", "given", None)
    assert price_line([h200]) == "H200 $4.47/h, market median of 2026-08-22 ($2.10 to $10.84)"
    both = "H200 $4.47/h, A100 $3.05/h, market median of 2026-08-22; H100 $2.00/h, as given"
    assert price_line([h200, a100, given]) == both

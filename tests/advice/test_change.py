from __future__ import annotations

import pytest
from idle_fleet import HOUR, START, busy, gpu, idle, lake_of

from gpuledger.advice.asking import asked
from gpuledger.advice.change import change
from gpuledger.errors import InputError
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import end_ms

WEEK = 7 * 24


def test_a_new_owner_one_that_left_and_one_that_idles_more(tmp_path):
    lake = lake_of(
        tmp_path,
        gpu("a", (0, 2 * WEEK), lambda h: busy() if h < WEEK else idle(), namespace="idler"),
        gpu("b", (WEEK, 2 * WEEK), lambda _: busy(), namespace="comer"),
        gpu("c", (0, WEEK), lambda _: busy(), namespace="goer"),
    )
    window = Scope(START + WEEK * HOUR, START + 2 * WEEK * HOUR)
    found = change(lake, window, asked(lake.root, price=1))
    owners = {row.owner: row for row in found.owners}
    assert {name: row.cause for name, row in owners.items()} == {
        "idler": "efficiency", "comer": "new", "goer": "gone",
    }  # fmt: skip
    assert float(owners["comer"].change_usd) == pytest.approx(WEEK, rel=0.01)
    assert float(owners["goer"].change_usd) == pytest.approx(-WEEK, rel=0.01)
    assert float(owners["idler"].change_usd) == pytest.approx(0, abs=1)
    assert float(owners["idler"].waste_after_usd) == pytest.approx(WEEK, rel=0.01)
    assert (found.before.gpus, found.now.gpus) == (2, 2)
    assert sum(row.after_usd for row in found.owners) == found.now.paid_usd
    assert sum(row.before_usd for row in found.owners) == found.before.paid_usd


def test_nothing_before_the_window_is_an_error_with_a_next_step(tmp_path):
    lake = lake_of(tmp_path, gpu("a", (0, 48), lambda _: busy()))
    with pytest.raises(InputError, match="nothing to compare with") as raised:
        change(lake, Scope(), asked(lake.root, price=1))
    assert "last=24h" in raised.value.hint
    end = end_ms(lake)
    named = Scope(end - 24 * HOUR, end)
    assert change(lake, named, asked(lake.root, price=1)).before.gpus == 1  # what the hint names can be compared


def test_samples_of_less_than_two_hours_suggest_no_period(tmp_path):
    lake = lake_of(tmp_path, gpu("a", (0, 1), lambda _: busy()))
    with pytest.raises(InputError, match="nothing to compare with") as raised:
        change(lake, Scope(), asked(lake.root, price=1))
    assert raised.value.hint == "import older samples"

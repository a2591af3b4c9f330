from __future__ import annotations

import random
from decimal import Decimal

import pytest
from idle_fleet import A100, DAY, FREE, HELD, HOUR, START, busy, gpu, idle, lake_of

from gpuledger.advice.asking import asked
from gpuledger.advice.give_back import give_back
from gpuledger.errors import InputError
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import Unknown

H100 = "NVIDIA H100 80GB HBM3"
END_H = 96


def ask(lake, n=10, scope=None, **given):
    return give_back(lake, scope or Scope(), asked(lake.root, **({"price": 1} | given)), n)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Four days: one GPU idle throughout, one that stopped after two days, one at work, one at work at times."""
    return lake_of(
        tmp_path_factory.mktemp("fleet"),
        gpu("idle", (0, END_H), lambda _: idle()),
        gpu("stopped", (0, END_H), lambda h: busy() if h < 48 else idle(HELD), namespace="lab"),
        gpu("busy", (0, END_H), lambda _: busy()),
        gpu("turns", (0, END_H), lambda h: busy() if int(h) // 6 % 2 else idle(HELD)),
        gpu("silent", (0, END_H - 6), lambda _: idle()),
        gpu("mute", (0, END_H), lambda _: {"DCGM_FI_DEV_FB_USED": FREE}),
    )


def test_the_gpus_that_idle_or_stopped_with_dollars_and_since_when(fleet):
    found = ask(fleet)
    first, second = found.give_back
    assert (first.gpu, first.gpu_uuid, first.owner) == ("node-idle/3", "GPU-idle", "ml")
    assert (second.gpu, second.owner) == ("node-stopped/3", "lab")
    assert first.since_ms == START
    assert first.from_first_sample
    assert second.since_ms == START + 48 * HOUR
    assert not second.from_first_sample
    # $1 per hour: 720 hours per month, all of them idle; half of them.
    assert float(first.idle_usd_per_month) == pytest.approx(720, rel=0.005)
    assert float(second.idle_usd_per_month) == pytest.approx(360, rel=0.01)
    assert float(second.usd_per_month) == pytest.approx(720, rel=0.005)
    assert (first.idle_h, first.idle_held_h, first.worked_h) == (pytest.approx(96, abs=0.5), 0, 0)
    assert (second.idle_h, second.idle_held_h) == (0, pytest.approx(48, abs=0.5))
    assert first.util_pct == 0
    assert first.power_w == pytest.approx(60)
    assert second.util_pct == pytest.approx(47.5, abs=0.5)
    assert first.rules == ("release-idle",)
    assert second.rules == ("cull-idle",)
    assert first.confidence == "utilization"
    assert found.idle_usd_per_month == first.idle_usd_per_month + second.idle_usd_per_month


def test_one_that_works_in_between_is_counted_and_not_listed(fleet):
    found = ask(fleet)
    assert found.in_use.gpus == 1
    assert float(found.in_use.idle_usd_per_month) == pytest.approx(360, rel=0.01)
    assert "GPU-turns" not in {row.gpu_uuid for row in found.give_back}


def test_a_gpu_whose_idleness_is_unknown_is_never_listed(fleet):
    found = ask(fleet)
    assert {row.gpu_uuid: row.reason for row in found.not_judged} == {
        "GPU-silent": "silent",
        "GPU-mute": "activity not recorded",
    }


def test_since_may_lie_before_the_window(fleet):
    found = ask(fleet, scope=Scope(START + 84 * HOUR, None))
    since = {row.gpu_uuid: row.since_ms for row in found.give_back}
    assert since == {"GPU-idle": START, "GPU-stopped": START + 48 * HOUR}


def test_since_is_unknown_in_a_window_that_ends_at_work(fleet):
    found = ask(fleet, scope=Scope(None, START + 40 * HOUR))
    assert {row.gpu_uuid for row in found.give_back} == {"GPU-idle", "GPU-silent"}  # it was not silent yet


def test_only_the_first_n(fleet):
    found = ask(fleet, n=1)
    assert [row.gpu_uuid for row in found.give_back] == ["GPU-idle"]
    assert found.found == 2
    assert found.all_idle_usd_per_month > found.idle_usd_per_month
    with pytest.raises(InputError, match="n=0"):
        ask(fleet, n=0)


def test_a_filter_chooses_gpus_and_not_parts_of_their_time(tmp_path):
    """Half of the day it works for another owner: the owner that idles cannot give it back."""
    mine = gpu("shared", (0, 48), lambda h: idle(HELD) if h % 24 < 12 else None, namespace="quiet")
    theirs = gpu("shared", (0, 48), lambda h: busy() if h % 24 >= 12 else None, namespace="loud")
    lake = lake_of(tmp_path, mine, theirs, gpu("own", (0, 48), lambda _: idle(), namespace="quiet"))
    found = ask(lake, scope=Scope(namespaces=("quiet",)))
    assert [row.gpu_uuid for row in found.give_back] == ["GPU-own"]
    assert ask(lake, scope=Scope(namespaces=("loud",))).give_back == ()


def test_a_gap_does_not_end_a_stretch_and_is_reported(tmp_path):
    lake = lake_of(
        tmp_path, gpu("gap", (0, 48), lambda h: busy() if h < 6 else None if 20 <= h < 22 else idle()),
        gpu("other", (0, 48), lambda _: busy()),
    )  # fmt: skip
    (row,) = ask(lake).give_back
    assert row.since_ms == START + 6 * HOUR
    assert row.since_unobserved_h == pytest.approx(2, abs=0.5)


def test_without_a_price_the_hours_decide_and_the_reason_is_given(tmp_path):
    lake = lake_of(tmp_path, gpu("x", (0, 24), lambda _: idle(), model="Unheard Of GPU"))
    (row,) = give_back(lake, Scope(), asked(lake.root)).give_back
    assert isinstance(row.idle_usd_per_month, Unknown)
    assert row.idle_h == pytest.approx(24, abs=0.5)


def test_paid_but_never_sampled_and_reserved(tmp_path):
    lake = lake_of(tmp_path, gpu("kept", (0, 48), lambda _: idle()), gpu("spare", (0, 48), lambda _: idle()))
    stock = tmp_path / "inventory.csv"
    stock.write_text(
        "device,from,to,usd_per_h,purchase_option\n"
        "GPU-kept,,,2,reserved\nGPU-spare,,,2,on_demand\nGPU-unseen,,,2,on_demand\n"
    )
    found = give_back(lake, Scope(START, START + 2 * DAY), asked(lake.root, inventory=stock))
    assert [row.gpu_uuid for row in found.give_back] == ["GPU-spare"]
    assert found.committed.gpus == 1
    assert found.unmatched == ("GPU-unseen",)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_idle_dollars_counted_by_hand(tmp_path, seed):
    """Each GPU works for some hours, then idles to the end; its dollars are its idle hours times its price."""
    draw = random.Random(seed)
    prices, expected, gpus = {"a100-sxm4-40gb": Decimal(1), "h100-sxm5-80gb": Decimal("2.5")}, {}, []
    for number in range(8):
        model, price = draw.choice([(A100, 1.0), (H100, 2.5)])
        works, name = draw.randrange(0, 30), f"{number}"
        gpus.append(gpu(name, (0, 36), lambda h, works=works: busy() if h < works else idle(), model=model))
        if 36 - works >= 24:  # a day; pauses are not given back
            expected[f"GPU-{name}"] = (36 - works) * price
    found = ask(lake_of(tmp_path, *gpus), price=prices)
    got = [row.gpu_uuid for row in found.give_back]
    assert set(got) == set(expected)
    dollars = [expected[uuid] for uuid in got]
    assert dollars == sorted(dollars, reverse=True)
    for row in found.give_back:
        assert float(row.idle_usd_per_month) == pytest.approx(expected[row.gpu_uuid] * 20, rel=0.03)

from __future__ import annotations

import pytest
from casebook import HOUR, activity, line, memory

from gpuledger.advice.build import audit_statement
from gpuledger.advice.case import Case
from gpuledger.advice.stretches import read_stretches
from gpuledger.errors import InputError
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import Unknown

GEMM = activity(engine=0.99, tensor=0.6, dram=0.2) | memory(0.5)
WAITS = activity(engine=0.35, tensor=0.15, dram=0.1) | memory(0.5)
HELD = {"idle_held_ms": HOUR} | activity(engine=0.0, tensor=0.0, dram=0.0) | memory(0.1)


def by_class(cases: tuple[Case, ...]) -> dict[str, Case]:
    return {c.klass: c for c in cases}


def test_a_mixed_group_is_split_by_what_its_gpus_do(books):
    rows = [line(h, "GPU-a", **GEMM) for h in range(4)]
    rows += [line(h, "GPU-b", **WAITS) for h in range(4)]
    rows += [line(h, "GPU-c", **HELD) for h in range(4)]
    made = audit_statement(books(*rows), price=2)
    cases = by_class(made.cases)
    assert set(cases) == {"compute-bound", "starved", "idle-held"}
    assert cases["starved"].devices == ("GPU-b",)
    assert cases["starved"].signals.engine_ratio == pytest.approx(0.35)
    (group,) = made.behaviours
    assert group.gpus == 3
    assert {k: round(v) for k, v in group.shares_pct.items()} == {"compute-bound": 33, "starved": 33, "idle-held": 33}
    assert {p.klass for p in group.parts} == set(cases)
    assert all(p.evidence for p in group.parts)


def test_nights_do_not_blur_the_days(books):
    # Ten hours of products and fourteen of nothing: not the mean of the two.
    rows = [line(h, **(GEMM if h % 24 < 10 else HELD)) for h in range(72)]
    (one,) = audit_statement(books(*rows), price=2).cases
    assert one.klass == "compute-bound"
    assert one.signals.tensor_ratio == pytest.approx(0.6)
    assert one.idle_held_ratio == pytest.approx(14 / 24)
    assert one.shares == pytest.approx({"compute-bound": 10 / 24, "idle-held": 14 / 24})
    assert one.quiet_hours == tuple(range(10, 24))
    assert one.quiet_idle_ratio == pytest.approx(14 / 24)
    assert one.days == pytest.approx(3)


def test_the_little_work_of_an_idle_gpu_does_not_name_it(books):
    mostly = dict(HELD) | {"idle_held_ms": HOUR * 95 // 100} | activity(engine=0.04, tensor=0.02, dram=0.01)
    (one,) = audit_statement(books(line(0, **mostly), line(1, **mostly)), price=2).cases
    assert one.klass == "idle-held"
    assert one.evidence


def test_waits_between_batches_are_not_idle_time_to_be_culled(books):
    # A loop that waits for seconds at a time: NVML sees nothing run, the memory stays held.
    loop = WAITS | {"idle_held_ms": HOUR * 45 // 100}
    alone = audit_statement(books(*(line(h, **loop) for h in range(4))), price=2)
    (one,) = alone.cases
    assert one.klass == "starved"
    assert one.idle_held_ratio == pytest.approx(0.45)
    assert "num-workers" in {r.id for r in alone.recommendations}
    assert {"cull-idle", "release-idle"}.isdisjoint(r.id for r in alone.recommendations)


def test_a_loop_that_waits_by_day_is_culled_for_its_nights_alone(books):
    loop = WAITS | {"idle_held_ms": HOUR * 45 // 100}
    made = audit_statement(books(*(line(h, **(loop if h % 24 < 12 else HELD)) for h in range(48))), price=2)
    (one,) = made.cases
    assert one.idle_held_ratio == pytest.approx(0.725)
    assert one.idle_held_waits_ratio == pytest.approx(0.225)
    cull = next(r for r in made.recommendations if r.id == "cull-idle")
    assert "50 % of the time" in cull.why
    # 80 % of the nights, which are half of the bill.
    assert float(cull.saving.middle_pct) == pytest.approx(40, abs=0.01)


def test_the_demand_is_while_working(books):
    rows = [line(0, **GEMM, nvlink_ms=HOUR, nvlink_bytes=9_000_000 * HOUR, pcie_rx_ms=HOUR, pcie_rx_bytes=1000 * HOUR)]
    rows += [line(1, **HELD)]
    (one,) = audit_statement(books(*rows), price=2).cases
    assert one.demand.pcie_rx_bytes_per_s == pytest.approx(1e6)
    assert one.demand.nvlink_bytes_per_s == pytest.approx(9e9)
    assert one.demand.memory_max_ratio == pytest.approx(0.5)
    assert one.demand.memory_mean_ratio == pytest.approx(0.3, abs=1e-3)
    assert one.demand.dram_bytes_per_s == pytest.approx(0.2 * 3.35e12, rel=0.01)


def test_the_work_is_rated_at_its_high_end(books):
    worked = GEMM | {"tensor_ppm_mhz_ms": round(0.6e6) * 1500 * HOUR, "tensor_precision": "bf16"}
    (one,) = audit_statement(books(line(0, **worked)), price=2).cases
    # 0.6 x 132 SMs x 4096 FLOP x 1500 MHz, and no more than an active pipe can issue.
    assert one.demand.tflops == pytest.approx(0.6 * 132 * 4096 * 1.5e9 / 1e12, rel=0.01)
    assert one.precision == "bf16"


def test_dollars_of_cases_are_the_dollars_of_the_bill(books):
    rows = [line(h, "GPU-a", **GEMM) for h in range(4)] + [line(h, "GPU-b", **HELD) for h in range(2)]
    made = audit_statement(books(*rows), price=2)
    assert not isinstance(made.cost.dollars, Unknown)
    assert sum(c.dollars.paid_usd for c in made.cases) == made.cost.paid_usd == 12
    assert {c.purchase for c in made.cases} == {"not said"}
    listed = audit_statement(books(*rows))
    assert {c.purchase for c in listed.cases} == {"on_demand"}


def test_how_the_time_was_bought_comes_from_the_inventory(books, tmp_path):
    file = tmp_path / "inventory.csv"
    head = "device,from,to,instance,region,purchase_option,usd_per_h\n"
    file.write_text(f"{head}GPU-a,,,p5.48xlarge,us-east-1,spot,2.5\nGPU-b,,,,,owned,1\n")
    rows = [line(0, "GPU-a", **GEMM), line(0, "GPU-b", **WAITS)]
    cases = by_class(audit_statement(books(*rows), inventory=file).cases)
    assert (cases["compute-bound"].purchase, cases["compute-bound"].instance) == ("spot", "p5.48xlarge")
    assert cases["starved"].purchase == "owned"


def test_slices_are_cases_of_their_own_device(books):
    rows = [line(0, gpu_instance_id=str(i), slice_ppm=142_857, **HELD) for i in (1, 2)]
    (one,) = audit_statement(books(*rows), price=7).cases
    assert one.sliced
    assert one.gpus == 1
    assert one.devices == ("GPU-a/1", "GPU-a/2")
    assert "mig" not in {r.id for r in audit_statement(books(*rows), price=7).recommendations}


def test_what_each_owner_is_for(books):
    rows = [line(0, "GPU-a", namespace="chat-serving", **WAITS), line(0, "GPU-b", namespace=None, **HELD)]
    found = {c.namespace: c.purpose for c in audit_statement(books(*rows), price=2).cases}
    assert found == {"chat-serving": "inference", None: None}


def test_filters_and_windows_hold(books):
    lake = books(line(0, **GEMM), line(1, namespace="other", **HELD), line(2, **GEMM))
    assert {s.namespace for s in read_stretches(lake, Scope(namespaces=("other",))).found} == {"other"}
    with pytest.raises(InputError, match="no line"):
        read_stretches(lake, Scope(namespaces=("nobody",)))
    late = Scope(since_ms=line(2)["hour_ms"])
    assert sum(s.sums["observed_ms"] for s in read_stretches(lake, late).found) == HOUR


def test_a_large_fleet_is_judged_by_several_days_at_once(books, monkeypatch):
    from gpuledger.advice import stretches

    lake = books(*(line(24 * d, f"GPU-{g}", **GEMM) for d in range(4) for g in range(4)))
    assert len(read_stretches(lake, Scope()).found) == 16
    monkeypatch.setattr(stretches, "MAX_STRETCHES", 8)
    found = read_stretches(lake, Scope())
    assert found.period_days == 4
    assert len(found.found) <= 8
    assert sum(s.sums["observed_ms"] for s in found.found) == 16 * HOUR

from __future__ import annotations

from typing import Any

import pytest
from casebook import HOUR, activity, line, memory

from gpuledger.advice.build import audit_statement
from gpuledger.advice.case import Case
from gpuledger.advice.limits import load_limits
from gpuledger.advice.stretches import Stretch, read_stretches
from gpuledger.errors import InputError
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import Unknown

GEMM = activity(engine=0.99, tensor=0.6, fp32=0.0, dram=0.2) | memory(0.5)
WAITS = activity(engine=0.35, tensor=0.15, fp32=0.0, dram=0.1) | memory(0.5)
HELD = {"idle_held_ms": HOUR, "state": "idle"} | activity(engine=0.0, tensor=0.0, fp32=0.0, dram=0.0) | memory(0.1)
# Lines of version 1 have no state.
OLD = {"state": None}


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


@pytest.mark.parametrize("version", [{}, OLD])
def test_nights_do_not_blur_the_days(books, version):
    # Ten hours of products and fourteen of nothing: not the mean of the two.
    rows = [line(h, **(GEMM if h % 24 < 10 else HELD) | version) for h in range(72)]
    (one,) = audit_statement(books(*rows), price=2).cases
    assert one.klass == "compute-bound"
    assert one.signals.tensor_ratio == pytest.approx(0.6)
    assert one.idle_held_ratio == pytest.approx(14 / 24)
    assert one.shares == {"compute-bound": 1.0}  # each day is judged by its work
    assert one.quiet_hours == tuple(range(10, 24))
    assert one.quiet_idle_ratio == pytest.approx(14 / 24)
    assert one.days == pytest.approx(3)


def test_owners_of_one_gpu_have_their_own_hours(books):
    # One works from 8 to 18, the other holds the memory at night and works for an hour at 20.
    def owner(hour: int) -> dict[str, Any]:
        return (
            {"namespace": "day", **GEMM} if 8 <= hour < 18 else {"namespace": "night", **(GEMM if hour == 20 else HELD)}
        )

    made = audit_statement(books(*(line(h, **owner(h % 24)) for h in range(72))), price=2)
    found = {c.namespace: (c.quiet_hours, round(c.quiet_idle_ratio, 6)) for c in made.cases}
    assert found["day"] == ((), 0.0)
    hours, ratio = found["night"]
    assert hours == (*range(8), 18, 19, 21, 22, 23)
    # 13 of its 14 hours a day.
    assert ratio == pytest.approx(13 / 14, abs=1e-6)


@pytest.mark.parametrize("version", [{}, OLD])
def test_the_little_work_of_an_idle_gpu_does_not_name_it(books, version):
    # Three minutes of work in an hour; a line of version 1 holds both.
    part = HOUR * 95 // 100
    little = activity(HOUR - part, engine=0.8, tensor=0.4, fp32=0.0, dram=0.2)
    if version:
        rows = [line(h, **HELD | {"idle_held_ms": part} | little | version) for h in (0, 1)]
    else:
        rows = [line(h, **HELD | {"idle_held_ms": part, "observed_ms": part}) for h in (0, 1)]
        rows += [line(h, observed_ms=HOUR - part, **little) for h in (0, 1)]
    (one,) = audit_statement(books(*rows), price=2).cases
    assert one.klass == "idle-held"
    assert one.idle_held_ratio == pytest.approx(0.95)
    assert one.evidence == ("no work 95 % of the time, memory is held",)
    assert one.by_counters


def test_waits_between_batches_are_not_idle_time_to_be_culled(books):
    # A loop that waits for seconds at a time: nothing runs, the memory stays held.
    alone = audit_statement(books(*(row for h in range(4) for row in waiting_loop(h))), price=2)
    (one,) = alone.cases
    assert one.klass == "starved"
    assert one.idle_held_ratio == 0
    assert one.signals.wait_ratio == pytest.approx(0.45)
    assert one.signals.bounces_per_min == pytest.approx(6)
    assert "num-workers" in {r.id for r in alone.recommendations}
    assert {"cull-idle", "release-idle"}.isdisjoint(r.id for r in alone.recommendations)


def test_a_loop_that_waits_by_day_is_culled_for_its_nights_alone(books):
    rows = [row for h in range(48) for row in (waiting_loop(h) if h % 24 < 12 else [line(h, **HELD)])]
    made = audit_statement(books(*(row | {"namespace": "notebooks"} for row in rows)), price=2)
    (one,) = made.cases
    assert one.klass == "starved"
    assert one.idle_held_ratio == pytest.approx(0.5)
    assert one.signals.wait_ratio == pytest.approx(0.45)
    cull = next(r for r in made.recommendations if r.id == "cull-idle")
    assert "50 % of the time" in cull.why
    assert "up to 12.0 h at a stretch" in cull.why
    # 80 % of the nights but for the first hour of each, the timeout; nights are half of the bill.
    assert float(cull.saving.middle_pct) == pytest.approx(40 * 11 / 12, abs=0.01)


def test_a_job_that_rests_at_night_and_works_on_is_not_ended(books):
    rows = [row for h in range(48) for row in (waiting_loop(h) if h % 24 < 12 else [line(h, **HELD)])]
    ids = {r.id for r in audit_statement(books(*rows), price=2).recommendations}
    assert "num-workers" in ids
    assert ids.isdisjoint({"cull-idle", "schedule-off-hours", "spot"})


def waiting_loop(hour: int) -> list[dict[str, Any]]:
    """An hour of which 45 % are waits of under 10 s, 360 of them, and the rest is full work."""
    waits = HOUR * 45 // 100
    still = activity(waits, engine=0.0, tensor=0.0, fp32=0.0, dram=0.0)
    busy = activity(HOUR - waits, engine=0.95, tensor=0.5, fp32=0.0, dram=0.2)
    rest = {"state": "wait", "observed_ms": waits, "wait_10s_ms": waits, "waits": 360}
    return [line(hour, **rest | still | memory(0.5)), line(hour, observed_ms=HOUR - waits, **busy | memory(0.5))]


@pytest.mark.parametrize("version", [{}, OLD])
def test_the_demand_is_while_working(books, version):
    links = {"nvlink_ms": HOUR, "nvlink_bytes": 9_000_000 * HOUR, "pcie_rx_ms": HOUR, "pcie_rx_bytes": 1000 * HOUR}
    rows = line(0, **GEMM | links | version), line(1, **HELD | version)
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

    def stretches(scope: Scope) -> tuple[Stretch, ...]:
        return read_stretches(lake, scope, load_limits())

    assert {s.namespace for s in stretches(Scope(namespaces=("other",)))} == {"other"}
    with pytest.raises(InputError, match="no data"):
        stretches(Scope(namespaces=("nobody",)))
    assert sum(s.sums["all_ms"] for s in stretches(Scope(since_ms=line(2)["hour_ms"]))) == HOUR


def test_days_of_one_class_are_one_stretch(books):
    # Four GPUs for three days of products and one of waits: memory follows devices and classes, not days.
    lake = books(*(line(24 * d, f"GPU-{g}", **(GEMM if d < 3 else WAITS)) for d in range(4) for g in range(4)))
    found = read_stretches(lake, Scope(), load_limits())
    assert [(s.gpu_uuid, s.klass, s.sums["all_ms"]) for s in found] == [
        (f"GPU-{g}", klass, days * HOUR) for g in range(4) for klass, days in (("compute-bound", 3), ("starved", 1))
    ]
    (one,) = audit_statement(lake, price=2).cases
    assert one.klass == "compute-bound"
    assert one.shares == {"compute-bound": 0.75, "starved": 0.25}


def test_idle_time_with_memory_unknown_is_idle_and_says_so(books):
    blind = {"state": "idle", "idle_unknown_ms": HOUR, **activity(engine=0.0, tensor=0.0, fp32=0.0, dram=0.0)}
    made = audit_statement(books(*(line(h, **blind) for h in range(24))), price=2)
    (one,) = made.cases
    assert (one.klass, one.idle_ratio, one.memory_known) == ("idle", 1.0, False)
    assert "memory use is not recorded" in one.evidence[0]
    release = next(r for r in made.recommendations if r.id == "release-idle")
    assert "see that no job holds it" in release.why


def test_time_at_a_power_limit_is_counted(books):
    part = HOUR // 4
    free, held_down = (activity(ms, engine=0.99, tensor=0.6, fp32=0.0, dram=0.2) for ms in (HOUR - part, part))
    capped = {"state": "capped", "limit_mw": 500_000, "observed_ms": part}
    lake = books(line(0, observed_ms=HOUR - part, **free), line(0, **capped, **held_down))
    (one,) = audit_statement(lake, price=2).cases
    assert one.demand.capped_ratio == pytest.approx(0.25)


def test_work_outside_the_recorded_pipes_leaves_the_demand_unknown(books):
    worked = activity(engine=0.99, tensor=0.1, dram=0.2) | memory(0.5)
    (one,) = audit_statement(books(line(0, state="matrix-unseen", **worked)), price=2).cases
    assert isinstance(one.demand.tflops, Unknown)
    assert "DCGM_FI_PROF_PIPE_FP32_ACTIVE" in one.demand.tflops.why


def test_the_slices_of_a_board_share_its_energy(books):
    # 3.6e9 mJ are 1 kWh, read for the whole board and repeated for each slice: 4/7 and 3/7 of it, 1 kWh together.
    energy = {"energy_mj": 3_600_000_000, "energy_ms": HOUR}
    halves = (("1", "left", 571_429), ("2", "right", 428_571))
    rows = [line(0, gpu_instance_id=i, namespace=n, slice_ppm=p, **GEMM, **energy) for i, n, p in halves]
    made = audit_statement(books(*rows), price=2)
    assert {c.namespace: c.energy_kwh for c in made.cases} == pytest.approx({"left": 4 / 7, "right": 3 / 7}, rel=1e-5)
    assert made.cost.energy_kwh == pytest.approx(1.0)


def test_owners_that_read_alike_are_two_cases(books):
    # Namespace "train" with workload "b", and a namespace "train/b" without one: the same words, two bills.
    rows = [line(h, "GPU-a", namespace="train", workload="b", **WAITS) for h in range(24)]
    rows += [line(h, "GPU-b", namespace="train/b", **WAITS) for h in range(24)]
    made = audit_statement(books(*rows), price=2)
    one, other = made.cases
    assert one.name == other.name
    assert one.key != other.key
    alone = audit_statement(books(*rows), Scope(namespaces=("train",)), price=2)
    assert made.savings.combined_pct == alone.savings.combined_pct
    assert all(t.counted for r in made.recommendations for t in r.targets if r.id == "num-workers")
    workers = next(r for r in made.recommendations if r.id == "num-workers")
    assert len(workers.targets) == 2

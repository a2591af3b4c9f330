from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from handmade import BUSY, HOUR, START, Books, line

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import cost_report, cost_statement
from gpuledger.cost.inventory import demo_inventory, read_inventory
from gpuledger.cost.savings import Bill, Lever, combine
from gpuledger.cost.statement import BUCKETS, CostStatement, to_json
from gpuledger.cost.teams import Config, NamespaceConfig, demo_config
from gpuledger.encode import plain
from gpuledger.errors import InputError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import PPM, Unknown, day_start_ms

COLUMNS = "device,from,to,instance,region,purchase_option,usd_per_h"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The demo fleet's first two days, a sample every ten minutes."""
    folder = tmp_path_factory.mktemp("demo")
    write_fleet(FleetSpec(days=2, step_s=600), folder / "fleet.parquet")
    lake = Lake(folder / "lake")
    import_files(lake, [folder / "fleet.parquet"])
    post_lake(lake, load_thresholds())
    return lake


def paid(statement: CostStatement) -> Decimal:
    assert not isinstance(statement.paid_usd, Unknown)
    return statement.paid_usd


def test_the_demo_inventory_prices_the_demo_fleet(demo: Lake) -> None:
    scope = Scope(day_start_ms("2026-01-20"), day_start_ms("2026-01-22"))
    made = cost_statement(demo, scope, inventory=demo_inventory(), teams=demo_config())
    hourly = sum((r.usd_per_h or Decimal(0)) for r in demo_inventory().rows)
    assert paid(made) == hourly * 48
    assert made.unpriced == ()
    assert made.gpus == 50
    assert {r.name for r in made.by_team} == {"foundation models", "serving", "risk", "research"}
    assert made.evidence_pct == {"counters": 100, "power": 0, "none": 0}
    assert not isinstance(made.work, Unknown)
    assert made.work.low_usd < made.work.high_usd
    assert isinstance(made.work.middle_usd, Unknown)  # its samples have no SM activity: a range


def test_every_group_adds_up_to_the_bill_exactly(demo: Lake) -> None:
    made = cost_statement(demo, inventory=demo_inventory(), teams=demo_config())
    assert not isinstance(made.dollars, Unknown)
    assert sum(made.dollars.parts()) == paid(made)
    for rows in (made.by_gpu, made.by_model, made.by_cluster, made.by_namespace, made.by_owner, made.by_team):
        for bucket in BUCKETS:
            amounts = [r.dollars.each()[bucket] for r in rows if not isinstance(r.dollars, Unknown)]
            assert sum(amounts, Decimal(0)) == made.dollars.each()[bucket]
            assert sum(r.times.each()[bucket] for r in rows) == made.times.each()[bucket]


def test_the_json_holds_what_was_promised(demo: Lake) -> None:
    told = json.loads(json.dumps(to_json(cost_statement(demo, inventory=demo_inventory(), previous=True))))
    assert set(told["buckets"]) == set(BUCKETS)
    assert abs(sum(map(Decimal, told["buckets"].values())) - Decimal(told["paid_usd"])) == 0
    assert float(told["monthly_usd"]) == round(float(told["hourly_usd"]) * 24 * 30, 2)
    assert float(told["yearly_usd"]) == round(float(told["hourly_usd"]) * 24 * 365, 2)
    assert sum(told["phases"].values()) == pytest.approx(100, abs=1e-9)
    assert told["quarter"]["name"] == "2026-Q2"
    assert {"by_gpu", "by_namespace", "by_team", "prices", "assumptions"} <= set(told)
    assert "previous" in {n["figure"] for n in told["not_known"]}


def test_without_prices_the_market_is_used_and_said(demo: Lake) -> None:
    made = cost_statement(demo, as_of_ms=day_start_ms("2026-09-01"))
    assert {p.basis for p in made.prices} == {"market"}
    assert {p.age_days for p in made.prices} == {10}
    assert isinstance(made.paid_low_usd, Decimal)
    assert isinstance(made.paid_high_usd, Decimal)
    assert made.paid_low_usd < paid(made) < made.paid_high_usd
    said = " ".join(made.assumptions)
    assert "no inventory was given" in said
    assert "market median" in said


def test_an_instance_prices_its_own_gpus_and_the_market_the_rest(demo: Lake) -> None:
    made = cost_statement(demo, instance="p5.48xlarge", region="us-east-1")
    basis = {p.gpu_model: p.basis for p in made.prices}
    assert basis == {
        "NVIDIA H100 80GB HBM3": "instance", "NVIDIA A100-SXM4-40GB": "market", "NVIDIA A10G": "market",
    }  # fmt: skip


def test_the_report_is_the_bill_as_a_rate(demo: Lake) -> None:
    found = cost_report(demo, price="2")
    assert not isinstance(found, Unknown)
    assert found.hourly_usd == pytest.approx(Decimal(100), abs=Decimal(2))
    assert found.monthly_usd == round(found.hourly_usd * 720, 2)
    assert sum(found.buckets_monthly_usd.values()) == found.monthly_usd  # all of them are known


def test_one_gpu_for_four_hours_by_pencil(books: Books) -> None:
    # Seen in hours 0 and 1 (busy) and 3 (idle), at $2: $4 productive, $2 unobserved, $2 idle.
    lake = books(line(0, **BUSY), line(1, **BUSY), line(3, idle_ms=HOUR, namespace=None))
    made = cost_statement(lake, price=2, usd_per_kwh="0.1")
    assert not isinstance(made.dollars, Unknown)
    assert made.dollars.each() == {
        "productive": 4, "stalled": 0, "unrated": 0, "underused": 0, "idle": 2, "idle_held": 0, "unobserved": 2,
    }  # fmt: skip
    names = {r.name: r.dollars for r in made.by_namespace}
    assert names["n1"].paid_usd == 4  # type: ignore[union-attr]
    assert names[UNALLOCATED].paid_usd == 4  # type: ignore[union-attr]
    assert made.dollars.waste_usd == 2
    assert isinstance(made.projection.hourly_usd, Decimal)  # type: ignore[union-attr]
    assert made.projection.hourly_usd == 2  # type: ignore[union-attr]
    assert isinstance(made.energy_usd, Unknown)
    assert isinstance(made.phases_pct, Unknown)
    assert "2.0 h have no pipe counters" in " ".join(made.assumptions)


def test_a_price_that_changes_within_the_hour(books: Books, tmp_path: Path) -> None:
    file = tmp_path / "inventory.csv"
    file.write_text(
        f"{COLUMNS}\nGPU-a,2026-01-20T00:00,2026-01-20T00:30,,,,2\nGPU-a,2026-01-20T00:30,2026-01-20T02:00,,,,4\n"
    )
    made = cost_statement(books(line(0, **BUSY), line(1, **BUSY)), inventory=file)
    assert paid(made) == 1 + 2 + 4
    assert {p.usd_per_h for p in made.prices} == {2, 4}
    assert made.by_gpu[0].usd_per_h == Decimal("3.5")


def test_the_window_cuts_hours(books: Books) -> None:
    lake = books(line(0, **BUSY), line(1, idle_ms=HOUR), line(2, **BUSY))
    made = cost_statement(lake, Scope(START + HOUR // 2, START + 2 * HOUR), price=2)
    assert not isinstance(made.dollars, Unknown)
    assert (made.dollars.productive_usd, made.dollars.idle_usd, made.wall_h) == (1, 2, 1.5)


def test_time_seen_outside_the_inventory_costs_nothing_and_is_said(books: Books, tmp_path: Path) -> None:
    file = tmp_path / "inventory.csv"
    unseen = "GPU-c195f12f-f2a7-5b50-b391-9ce8d061eb39"
    file.write_text(f"{COLUMNS}\nGPU-a,,2026-01-20T01:00,,,,2\n{unseen},2026-01-20T01:00,2026-01-20T02:00,,,,3\n")
    made = cost_statement(books(line(0, **BUSY), line(1, **BUSY)), inventory=read_inventory(file))
    assert paid(made) == 2 + 3
    said = " ".join(made.assumptions)
    assert "1.0 h were seen while not paid for" in said
    assert f"{unseen} is in the inventory but in no sample" in said


def test_an_unknown_gpu_is_left_out_of_the_dollars_and_named(books: Books) -> None:
    lake = books(line(0, **BUSY), line(0, "GPU-b", gpu_model="Banana 9000", limit_mw=None, **BUSY))
    made = cost_statement(lake, price={"h100-sxm5-80gb": 3})
    assert paid(made) == 3
    (missing,) = made.unpriced
    assert (missing.gpu_model, missing.gpus, missing.paid_h) == ("Banana 9000", 1, 1.0)
    alone = cost_statement(lake, Scope(namespaces=("n1",)), price={"h100-sxm5-80gb": 3})
    assert paid(alone) == 3
    told = to_json(made)
    assert any("Banana 9000" in n["figure"] for n in told["not_known"])
    row = next(r for r in told["by_model"] if r["name"] == "Banana 9000")
    assert row["paid_usd"] is None
    (missing,) = (n for n in told["not_known"] if n["figure"] == "by_model[].paid_usd")
    assert "Banana 9000" in missing["why"]


def test_a_group_has_its_hours_its_shares_and_its_waste_in_json(books: Books) -> None:
    made = cost_statement(books(line(0, **BUSY), line(1, idle_ms=HOUR), line(2, namespace="n2", **BUSY)), price=2)
    told = to_json(made)
    assert told["paid_h"] == 3
    first = next(row for row in told["by_namespace"] if row["name"] == "n1")
    for holder in (told, first, *told["by_gpu"]):
        assert Decimal(holder["waste_usd"]) == Decimal(holder["paid_usd"]) - Decimal(holder["buckets"]["productive"])
        assert sum(holder["bucket_pct"].values()) == pytest.approx(100)
        assert holder["waste_pct"] == pytest.approx(100 - holder["bucket_pct"]["productive"])
    assert first["bucket_pct"]["idle"] == 50


def test_a_precision_that_was_told_is_not_called_unknown(books: Books) -> None:
    pipe = {"tensor_ms": HOUR, "tensor_ppm_ms": HOUR * PPM // 2, "tensor_ppm_mhz_ms": HOUR * PPM * 700}
    work = BUSY | pipe | {"fp32_ms": HOUR, "state": "matrix"}
    lake = books(
        line(0, **work, tensor_precision="bf16"),
        line(1, **work, namespace="n2"),
        line(2, idle_ms=HOUR),
    )

    def unknown(*namespaces: str) -> bool:
        made = cost_statement(lake, Scope(namespaces=namespaces), price=2)
        return any("tensor precision unknown" in words for words in made.assumptions)

    assert not unknown("n1")
    assert unknown("n2")
    assert unknown()


def test_nothing_priced_is_unknown_not_zero(books: Books) -> None:
    made = cost_statement(books(line(0, gpu_model="Banana 9000", **BUSY)))
    assert isinstance(made.paid_usd, Unknown)
    assert isinstance(made.projection, Unknown)
    told = to_json(made)
    assert told["paid_usd"] is None
    assert told["monthly_usd"] is None


def test_filters_keep_their_owners(books: Books) -> None:
    lake = books(line(0, **BUSY), line(1, namespace="n2", **BUSY), line(2, "GPU-b", cluster="c2", **BUSY))
    assert paid(cost_statement(lake, Scope(namespaces=("n2",)), price=2)) == 2
    assert paid(cost_statement(lake, Scope(clusters=("c1",)), price=2)) == 4
    with pytest.raises(InputError, match="no data"):
        cost_statement(lake, Scope(namespaces=("n9",)), price=2)


def test_this_period_against_the_last(books: Books) -> None:
    lake = books(line(0, idle_ms=HOUR), line(1, idle_ms=HOUR), line(2, **BUSY), line(3, idle_ms=HOUR))
    made = cost_statement(lake, Scope(START + 2 * HOUR, START + 4 * HOUR), price=2, previous=True)
    assert not isinstance(made.previous, Unknown)
    idle = next(e for e in made.previous.by_bucket if e.bucket == "idle")
    assert (idle.before_usd, idle.after_usd, idle.efficiency_usd) == (4, 2, -2)
    assert made.previous.total.change_usd == 0
    longer = cost_statement(lake, Scope(START + HOUR, START + 4 * HOUR), price=2, previous=True)
    assert "seen for 1.0 of 3.0 h only" in longer.previous.words[-1]  # type: ignore[union-attr]
    first = cost_statement(lake, Scope(None, START + 2 * HOUR), price=2, previous=True)
    assert isinstance(first.previous, Unknown)


def test_teams_share_the_bill(books: Books) -> None:
    config = Config(namespaces={"n1": NamespaceConfig(team="red")})
    lake = books(line(0, **BUSY), line(1, namespace="n2", **BUSY), line(2, namespace=None, **BUSY))
    made = cost_statement(lake, price=2, teams=config)
    assert {r.name for r in made.by_team} == {"red", "no team", UNALLOCATED}


def test_a_mig_board_is_paid_once(books: Books) -> None:
    slices = [line(0, gpu_instance_id=str(i), slice_ppm=ppm, **BUSY) for i, ppm in enumerate((500_000, 250_000))]
    made = cost_statement(books(*slices), price=4)
    assert paid(made) == 4
    assert made.gpus == 1
    assert {(g.gpu_instance_id, g.board_share) for g in made.by_gpu} == {("0", 0.5), ("1", 0.25), (None, 1.0)}
    assert made.dollars.unobserved_usd == 1  # type: ignore[union-attr]


def test_a_price_that_is_no_number_is_refused(books: Books) -> None:
    with pytest.raises(InputError, match="not a price"):
        cost_statement(books(line(0)), price="two")


def test_savings_as_json(demo: Lake) -> None:
    made = cost_statement(demo, price=2)
    assert not isinstance(made.dollars, Unknown)
    fix = Lever("fix", "throughput", Decimal("0.1"), Decimal("0.2"), Decimal("0.3"))
    rows = {row.name: row.dollars.each() for row in made.by_namespace if not isinstance(row.dollars, Unknown)}
    told = plain(combine(Bill(rows), [fix]))
    assert told == plain(combine(Bill.whole(made.dollars.each()), [fix]))
    assert told["combined_pct"] == told["with_rate_pct"] == told["naive_pct"] == 20 <= told["cap_pct"]
    assert told["combined"] == {"low_pct": 10, "middle_pct": 20, "high_pct": 30}
    assert Decimal(told["combined_usd"]) == round(paid(made) / 5, 12)

"""Statements made by hand: a believable week of 50 GPUs, and the corners (one GPU, nothing known, hostile labels)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import Decimal

import pytest

from gpuledger.advice.rule import Effort, Snippet
from gpuledger.advice.statement import (
    AuditSavings,
    AuditStatement,
    GroupBehaviour,
    MonthlyEnergy,
    MonthlyUsd,
    Recommendation,
    RoiPriced,
    Target,
)
from gpuledger.cost.periods import Comparison, Effect
from gpuledger.cost.pricing import PriceUsed, Unpriced
from gpuledger.cost.projections import PaidBoard, months_of, project
from gpuledger.cost.savings import Kind, Spread
from gpuledger.cost.statement import (
    NOT_ASKED,
    CostRow,
    CostStatement,
    Dollars,
    GpuCost,
    Times,
    WorkCost,
)
from gpuledger.efficiency.statement import (
    ActiveAnalysis,
    Capacity,
    CapacityAnalysis,
    EfficiencyStatement,
    GpuRow,
    GroupRow,
    HourRow,
    Means,
    NotKnown,
    Range,
    RoiRow,
    Trend,
    UtilPowerCell,
)
from gpuledger.physics.causes import Cause, LikelyCause
from gpuledger.units import MS_PER_HOUR, Unknown

START_MS = 1_768_867_200_000
MODELS = {"NVIDIA A100-SXM4-40GB": 102.0, "NVIDIA H100 80GB HBM3": 646.0, "Homemade X1": None}
# util, pif, tensor share, class, cause
KINDS: tuple[tuple[float, float, float, str, Cause | None], ...] = (
    (92.5, 0.92, 0.52, "efficient", None),
    (90.0, 0.52, 0.14, "bottlenecked", "storage"),
    (83.0, 0.56, 0.11, "bottlenecked", "network"),
    (55.0, 0.66, 0.22, "moderate", None),
    (2.5, 0.21, 0.0, "idle", None),
)
NO_COUNTERS = Unknown("the source sends no pipe activity")


def means(util: float, pif: float, tensor: float | None, gpus: int = 1, hours: float = 168.0) -> Means:
    return Means(
        gpus=gpus,
        samples=int(gpus * hours * 60),
        observed_h=gpus * hours,
        gpu_util_pct=util,
        pif=pif,
        rfu_power_pct=100 * pif,
        rfu_power_idle_corrected_pct=max(0.0, (pif - 0.12) / 0.88 * 100),
        rfu_counters_pct=NO_COUNTERS
        if tensor is None
        else Range(tensor * 50, tensor * 100, tensor * 200, "counters", "tensor pipe only, lower bound"),
        efficiency_gap_pp=util - 100 * pif,
        memory_pct=30.0 if tensor is not None else NO_COUNTERS,
        power_w=400 * pif,
        util_p50_pct=util,
        util_p95_pct=min(100.0, util + 6),
        energy_kwh=0.4 * pif * hours * gpus,
    )


def gpu_row(index: int, namespace: str | None) -> GpuRow:
    util, pif, tensor, klass, cause = KINDS[(index * 7) % 5]
    shift = (index % 9 - 4) * 0.8
    stuck = klass == "bottlenecked"
    model = list(MODELS)[index % 3]
    return GpuRow(
        gpu_uuid=f"GPU-{index:08x}-f2a7-5b50-b391-{index:012x}",
        gpu_instance_id=None,
        gpu_model=model,
        host=f"node-{index // 8:02d}",
        gpu_index=str(index % 8),
        cluster=("prod-east", "prod-west", "lab")[index % 3],
        namespace=namespace,
        means=means(max(0.0, util + shift), pif + shift / 100, None if model == "Homemade X1" else tensor),
        klass=klass,
        bottlenecked_pct_of_active=91.0 + shift if stuck else 2.0,
        bottlenecked_days=7 if stuck else 0,
        active_days=7,
        consistently_bottlenecked=stuck,
        cause=LikelyCause(cause, "PCIe receive is low while the engine waits", "PCIe 0.3 GB/s") if cause else None,
        idle_h=150.0 if klass == "idle" else 1.0,
        idle_held_h=3.0,
        longest_idle_h=80.0 if klass == "idle" else 0.5,
        unobserved_h=0.25,
    )


def hour_row(index: int) -> HourRow:
    wave = math.sin(index / 24 * 2 * math.pi)
    pif = 0.65 + 0.02 * wave
    return HourRow(
        start_ms=START_MS + index * MS_PER_HOUR,
        hours=1.0,
        gpus=50,
        samples=3000,
        gpu_util_pct=70 + 3 * wave,
        pif=pif,
        rfu_power_pct=100 * pif,
        rfu_counters_pct=Unknown("no pipe activity in this hour") if 24 <= index < 36 else 24 + 2 * wave,
        efficiency_gap_pp=70 + 3 * wave - 100 * pif,
        realized_power_tflops=8600 + 300 * wave,
        power_kw=18.0 + wave,
    )


def group(name: str, util: float, pif: float, tensor: float | None, target: float | None = None) -> GroupRow:
    classes = {"efficient": 28.0, "moderate": 22.0, "bottlenecked": 31.0, "inefficient": 7.0, "idle": 12.0}
    return GroupRow(name, means(util, pif, tensor, gpus=12), 33.0, classes, target, "mixed")


def cells() -> tuple[UtilPowerCell, ...]:
    out = []
    for util, pif, _, klass, _ in KINDS:
        for du in (-5, 0, 5):
            for dp in (-0.05, 0.0, 0.05):
                low_util, low_pif = util + du - util % 5, round(pif + dp - pif % 0.05, 2)
                if 0 <= low_util < 100 and 0 <= low_pif < 1:
                    out.append(UtilPowerCell(low_util, low_pif, 900 / (1 + abs(du) + 40 * abs(dp)), klass))
    return tuple(out)


def capacity(name: str, gpus: int, per_gpu: float | None) -> Capacity:
    unknown = Unknown(f"{name} is not in the catalog")
    return Capacity(
        name=name,
        gpus=gpus,
        peak_tflops=unknown if per_gpu is None else gpus * per_gpu * 2,
        achievable_tflops=unknown if per_gpu is None else gpus * per_gpu,
        achievable_source="published",
        realized_power_tflops=unknown if per_gpu is None else gpus * per_gpu * 0.65,
        realized_counters_tflops=unknown
        if per_gpu is None
        else Range(gpus * per_gpu * 0.1, gpus * per_gpu * 0.2, gpus * per_gpu * 0.4, "counters"),
    )


def make_statement(gpus: int = 50, hours: int = 168, namespaces: bool = True) -> EfficiencyStatement:
    """A week of a fleet, as the builder would give it."""
    names = ("ml-training", "ml-inference", "research", "fraud-detection")
    rows = tuple(gpu_row(i, names[i % 4] if namespaces else None) for i in range(gpus))
    return EfficiencyStatement(
        start_ms=START_MS,
        end_ms=START_MS + hours * MS_PER_HOUR,
        gpus=gpus,
        clusters=3,
        namespaces=4 if namespaces else 0,
        samples=gpus * hours * 60,
        conflicts=0,
        fleet=means(70.9, 0.649, 0.243, gpus=gpus, hours=hours),
        capacity=CapacityAnalysis(
            capacity("fleet", gpus, 280.0),
            tuple(capacity(n, 16, t) for n, t in MODELS.items()),
            (capacity("prod-east", 20, 280.0), capacity("prod-west", 20, 280.0), capacity("lab", 10, 35.0)),
        ),
        active=ActiveAnalysis(
            active_h=gpus * hours * 0.93,
            gpu_util_pct=77.4,
            pif=0.69,
            rfu_power_pct=69.0,
            efficiency_gap_pp=8.4,
            bottlenecked_pct_of_active=31.37,
            classes_pct={"efficient": 29.0, "moderate": 24.0, "bottlenecked": 29.0, "inefficient": 6.0, "idle": 12.0},
            phases_pct={"idle": 12.0, "underutilized": 24.0, "productive": 20.0, "compute_bound": 44.0},
            class_unknown_h=12.5,
        ),
        util_power=cells(),
        hours=tuple(hour_row(i) for i in range(hours)),
        trends=(
            Trend("pif", 0.001, -0.001, 0.003, "flat", Unknown("no step stands out"), 0.649, 0.649, "168 hours"),
            Trend("gpu_util_pct", -1.2, -1.6, -0.8, "falling", START_MS + 90 * MS_PER_HOUR, 72.0, 68.0, "168 hours"),
        ),
        by_model=(
            group("NVIDIA A100-SXM4-40GB", 69.0, 0.63, 0.21),
            group("NVIDIA H100 80GB HBM3", 74.0, 0.70, 0.31),
            group("Homemade X1", 66.0, 0.61, None),
        ),
        per_gpu=rows,
        by_namespace=(
            group("ml-training", 84.0, 0.72, 0.30, 70.0),
            group("ml-inference", 45.0, 0.55, 0.12, 50.0),
            group("research", 68.0, 0.58, 0.20, None),
            group("fraud-detection", 40.0, 0.52, None, 50.0),
        )
        if namespaces
        else (),
        roi=(RoiRow(70.0, 3.93, 94.4, 2831.0), RoiRow(80.0, 11.63, 279.2, 8377.0)),
        findings=(
            "31.4 % of active GPU time was busy but drew little power.",
            "20 of 50 GPUs were bottlenecked on most of their active days, 10 of them likely by storage.",
            "Reaching 70 % RFU would be worth 3.9 GPUs.",
        ),
        assumptions=("Zone-less times were read as UTC.", "Tensor precision was taken as bf16, range tf32 to fp8."),
        not_known=(NotKnown("peak_tflops of Homemade X1", "the model is not in the catalog; nearest: none"),),
    )


def nothing_known(value: object, why: str = "the source was silent") -> object:
    """The same statement with every figure that may be unknown made so."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for field in dataclasses.fields(value):
            declared = str(field.type)
            held = getattr(value, field.name)
            may = "Figure" in declared or "Unknown" in declared
            changed[field.name] = Unknown(why) if may else nothing_known(held, why)
        return dataclasses.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(nothing_known(v, why) for v in value)
    return value


@pytest.fixture(scope="session")
def statement() -> EfficiencyStatement:
    return make_statement(hours=48)


@pytest.fixture(scope="session")
def make() -> Callable[..., EfficiencyStatement]:
    return make_statement


@pytest.fixture(scope="session")
def one_gpu() -> EfficiencyStatement:
    return dataclasses.replace(make_statement(gpus=1, hours=3, namespaces=False), roi=(), trends=(), clusters=1)


@pytest.fixture(scope="session")
def unknown_statement() -> EfficiencyStatement:
    blank = nothing_known(make_statement(gpus=3, hours=4))
    return dataclasses.replace(blank, util_power=(), roi=(), by_namespace=(), findings=())  # type: ignore[type-var,return-value]


def dollars(scale: str) -> Dollars:
    """A bill in which no amount is a whole number of cents."""
    parts = ("10.123456", "12.345678", "4.777777", "8.111111", "1.055555", "0.504444", "0.333333")
    return Dollars(*(Decimal(p) * Decimal(scale) for p in parts))


def cost_row(name: str, scale: str) -> CostRow:
    times = Times(*(round(float(p) * 3_600_000) for p in dollars(scale).parts()))
    return CostRow(name, 2, times, dollars(scale), 0.0)


def gpu_cost(row: CostRow, place: int) -> GpuCost:
    uuid = f"GPU-{place:08x}-f2a7-5b50-b391-{place:012x}"
    words = "inventory: $2.50 a GPU-hour (on-demand)"
    return GpuCost(
        uuid, None, "NVIDIA H100 80GB HBM3", "lab", "us-east-1", "node-1", str(place), 1.0, row.times, row.dollars,
        Decimal("2.5"), words,
    )  # fmt: skip


def make_cost() -> CostStatement:
    """Three namespaces, one of them without a price beside its dollars."""
    rows = (cost_row("ml-training", "100"), cost_row("research", "31.7"), cost_row("ml-inference", "7.77"))
    priced = [r.dollars for r in rows if isinstance(r.dollars, Dollars)]
    whole, times = Dollars.total(priced), Times.total(r.times for r in rows)
    paid, week = whole.paid_usd, 168 * MS_PER_HOUR
    boards = [PaidBoard("GPU-a", "node-1/0", paid, week, 0, listed=False)]
    months = months_of(week, boards)
    return CostStatement(
        start_ms=START_MS,
        end_ms=START_MS + week,
        gpus=6,
        times=times,
        dollars=whole,
        paid_low_usd=paid,
        paid_high_usd=paid,
        projection=project(week, START_MS, boards, months),
        months=months,
        phases_pct={"idle": 12.0, "underutilized": 24.0, "productive": 20.0, "compute_bound": 44.0},
        evidence_pct={"counters": 100.0, "power": 0.0, "none": 0.0},
        work=WorkCost(Decimal("3.98"), Decimal("7.5"), Decimal("15.65"), 12.0, 6, "all that was paid"),
        energy_kwh=120.0,
        energy_usd=Unknown("no price per kWh was given"),
        by_gpu=tuple(gpu_cost(row, i) for i, row in enumerate(rows)),
        by_model=(),
        by_cluster=(),
        by_namespace=rows,
        by_owner=tuple(dataclasses.replace(r, name=f"{r.name}/job") for r in rows),
        by_team=(dataclasses.replace(rows[0], name="foundation models"), *rows[1:]),
        prices=(
            PriceUsed(
                "NVIDIA H100 80GB HBM3", Decimal("2.5"), Decimal("2.5"), Decimal("3.25"), "market",
                "H100 on the market: median $2.50", "2025-09-11", "2026-08-22", 30, 6, 400.0,
            ),
        ),
        unpriced=(Unpriced("Homemade X1", 1, 20.0, "'Homemade X1' is not in the catalog"),),
        previous=Unknown(NOT_ASKED),
        assumptions=("paid time comes from inventory.csv",),
        samples=60_480,
    )  # fmt: skip


def recommendation(place: int, lever: Kind | None) -> Recommendation:
    spread = Spread(Decimal(place), Decimal(place + 2), Decimal(place + 5))
    month = MonthlyUsd(Decimal("100.10"), Decimal("200.20"), Decimal("1300.30"))
    worth = month if lever else Unknown("it claims no dollars of the bill")
    target = Target(
        "ml-training/job", "ml-training", "job", "NVIDIA H100 80GB HBM3", "starved", 4, ("GPU-1",),
        "a kernel runs 38 % of the time", spread, worth, "assumed", True, "counted in full",
    )  # fmt: skip
    return Recommendation(
        id=f"rule-{place}",
        title=f"Change number {place}",
        lever=lever,
        exclusive="one way to buy" if lever == "rate" else "",
        effort=Effort("small", 4.0),
        change=Snippet("python", f"loader = DataLoader(dataset, num_workers={place})\nif a < b and c > d: ```\n"),
        why="a kernel runs 38 % of the time",
        basis="assumed",
        source="assumed: nobody measured it",
        namespaces=("ml-training", "research"),
        gpus=4,
        month=worth,
        saving=spread,
        energy=None if lever else MonthlyEnergy(300.0, 705.0, 1367.0, Decimal("84.66")),
        targets=(target, dataclasses.replace(target, owner="research/job", counted=False, words="left out")),
    )


def make_audit() -> AuditStatement:
    """An audit as the builder would give it."""
    cost = make_cost()
    spread = Spread(Decimal(14), Decimal(40), Decimal("57.9"))
    dearer = Spread(Decimal(33), Decimal("66.9"), Decimal("83.1"))
    month = MonthlyUsd(Decimal("1000.11"), Decimal("2000.22"), Decimal("3000.33"))
    behaviour = GroupBehaviour(
        "ml-training", "job", "NVIDIA H100 80GB HBM3", "training", 4, 100.0, "starved",
        {"starved": 72.7, "compute-bound": 27.3}, {}, ("a kernel runs 38 % of the time",), "counters", (),
    )  # fmt: skip
    levers: tuple[Kind | None, ...] = ("rate", "hours", "throughput", "throughput", "throughput", "hours", None)
    advice = tuple(recommendation(i, lever) for i, lever in enumerate(levers, 1))
    return AuditStatement(
        cost=cost,
        phases_pct=cost.phases_pct,
        behaviours=(behaviour,),
        cases=(),
        recommendations=advice,
        savings=AuditSavings(
            "the bill", Decimal("113.8"), Decimal("46.0"), Decimal(40), Decimal("68.3"), Decimal("44.9"),
            Decimal("66.9"), spread, dearer, month, month,
            ("rule-2 and rule-3 overlap in underused time", "rule-1 compounds with all the rest"),
        ),
        roi_priced=(RoiPriced(RoiRow(70.0, 3.93, 94.4, 2831.0), Decimal("3.826"), Decimal("10828.69")),),
        first=advice[2],
        headline=("$13,773 a month for 6 GPUs, 29 % of it put to use.", "First: Change number 3, for ml-training."),
        not_known=(NotKnown("price of Homemade X1", "not in the catalog"),),
        assumptions=("hours of the day are UTC; a month is 30 days",),
    )  # fmt: skip


@pytest.fixture(scope="session")
def audit() -> AuditStatement:
    return make_audit()


@pytest.fixture(scope="session")
def unpriced_audit() -> AuditStatement:
    """The same without any price: dollars are not known, hours are."""
    made, why = make_audit(), Unknown("no price for Homemade X1")
    rows = tuple(dataclasses.replace(r, dollars=why) for r in made.cost.by_namespace)
    cost = dataclasses.replace(
        made.cost, dollars=why, paid_low_usd=why, paid_high_usd=why, projection=why, work=why, prices=(),
        by_namespace=rows, by_owner=rows, by_team=rows,
        by_gpu=tuple(dataclasses.replace(g, dollars=why, usd_per_h=why) for g in made.cost.by_gpu),
    )  # fmt: skip
    advice = tuple(dataclasses.replace(r, month=why) if r.lever else r for r in made.recommendations)
    assert isinstance(made.savings, AuditSavings)
    savings = dataclasses.replace(made.savings, of="the paid GPU-hours", combined_month=why, with_rate_month=why)
    return dataclasses.replace(made, cost=cost, recommendations=advice, savings=savings)


@pytest.fixture(scope="session")
def compared_audit() -> AuditStatement:
    """The same beside the period before."""
    made = make_audit()
    assert isinstance(made.cost.dollars, Dollars)
    effects = tuple(
        Effect(b, v * Decimal("0.9"), v, v * Decimal("0.06"), v * Decimal("0.04"), Decimal(0))
        for b, v in made.cost.dollars.each().items()
    )
    paid = made.cost.dollars.paid_usd
    total = Effect("paid", paid * Decimal("0.9"), paid, paid * Decimal("0.06"), paid * Decimal("0.04"), Decimal(0))
    before = Comparison(START_MS - 168 * MS_PER_HOUR, START_MS, total, effects, ("paid more by volume",))
    return dataclasses.replace(made, cost=dataclasses.replace(made.cost, previous=before))

"""Which GPUs should be given back first?

Each GPU is judged by itself, over all of its owners, by the rules of advice for idle GPUs. One is listed where a rule
applies and it hardly works, or the idle stretch that lasts to the end is long enough for the rule by itself. A GPU that
works in between is not listed: its idle hours can be scheduled or shared, but it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from operator import index

from gpuledger.advice.asking import Asked
from gpuledger.advice.case import Case, LongIdle
from gpuledger.advice.cases import case_of_board
from gpuledger.advice.findings import Finding, find
from gpuledger.advice.hours import idle_times
from gpuledger.advice.idle_gpus import GiveBack, IdleGpu, Left, NotJudged, Reason
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import RULES, with_rule_limits
from gpuledger.advice.stretches import Stretch, read_pods, read_stretches
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import statement_and_bill
from gpuledger.cost.charges import Charge, grouped
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.money import CENT, ZERO, usd
from gpuledger.cost.projections import SPARSE_BELOW_RATIO, Months
from gpuledger.cost.statement import CostStatement, Dollars, Times
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.naming import name_of
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.idle import QuietTime, quiet_times
from gpuledger.ledger.read.scope import Scope, owner_name
from gpuledger.units import MS_PER_HOUR, PPM, Unknown

IDLE_RULES = ("release-idle", "cull-idle")
COMMITTED = ("reserved", "owned")
# A device without samples for this long at the end of the window may be gone.
SILENT_FROM_MS = MS_PER_HOUR
_READINGS = ("util_ms", "util_ppm_ms", "power_ms", "power_uj")
NO_UTIL = Unknown("utilization is not recorded")
NO_POWER = Unknown("power is not recorded")


@dataclass(frozen=True)
class _Board:
    """One GPU: what it did for each owner, what was paid for it, and when it was last seen."""

    stretches: Sequence[Stretch]
    charges: Sequence[Charge]
    last_ms: int
    first_ms: int

    @property
    def times(self) -> Times:
        return Times.total(c.times for c in self.charges)

    @property
    def parts(self) -> int:
        """How many devices it is: slices, or the whole of it."""
        return len({s.gpu_instance_id for s in self.stretches})


@dataclass(frozen=True)
class _Window:
    """What every GPU of a window is judged with."""

    limits: Limits
    stock: Inventory | None
    months: Months
    start_ms: int
    end_ms: int


def give_back(lake: Lake, scope: Scope, asked: Asked, n: int = 10) -> GiveBack:
    """The `n` GPUs to give back first; the ledger must be posted. A GPU with time of an owner in scope is judged over
    the time of all of its owners."""
    try:
        whole = None if isinstance(n, bool) else index(n)
    except TypeError:
        whole = None
    if whole is None or whole < 1:
        raise InputError(f"n={n!r} is not a number of GPUs", hint="give a whole number, 1 or more")
    n = whole
    everyone = replace(scope, clusters=(), namespaces=(), owners=())
    cost, bill = statement_and_bill(lake, everyone, **(asked.terms | {"calibration": load_calibration(lake)}))
    found = read_stretches(lake, everyone, asked.limits, load_thresholds())
    wanted = None if not scope.names_owners else {s.gpu_uuid for s in read_stretches(lake, scope, asked.limits)}
    stretches = grouped(found, lambda s: s.gpu_uuid)
    charges = grouped(bill.charges, lambda c: c.device.gpu_uuid)
    seen = grouped(bill.devices, lambda d: d.gpu_uuid)
    boards = {
        uuid: _Board(
            stretches.get(uuid, ()), mine,
            max((d.last_ms for d in seen.get(uuid, ())), default=0),
            min((d.first_ms for d in seen.get(uuid, ())), default=0),
        )
        for uuid, mine in charges.items()
        if wanted is None or uuid in wanted
    }  # fmt: skip
    stock = inventory_of(lake, asked.terms.get("inventory"))
    window = _Window(with_rule_limits(asked.limits), stock, cost.months, bill.window.start_ms, bill.window.end_ms)
    return _answer(lake, everyone, cost, boards, window, n)


def _answer(
    lake: Lake, scope: Scope, cost: CostStatement, boards: Mapping[str, _Board], window: _Window, n: int
) -> GiveBack:
    not_judged = [gone for uuid in sorted(boards) if (gone := _not_judged(uuid, boards[uuid], window)) is not None]
    unknown = {gone.gpu_uuid for gone in not_judged}
    judged = _cases(lake, scope, {uuid: board for uuid, board in boards.items() if uuid not in unknown}, window)
    cases: dict[str, tuple[Case, list[Finding]]] = {}
    for uuid, case in judged.items():
        findings = [f for name in IDLE_RULES if (f := find(RULES.get(name), case, window.limits)) is not None]
        pauses = case.works and case.idle_ratio + case.idle_held_ratio >= window.limits.idle.idle_heavy_from_ratio
        if findings or pauses or (not case.works and case.purchase in COMMITTED):
            cases[uuid] = case, findings
    quiet = _quiet(lake, scope, cases)
    readings = _readings(lake, scope, cases)
    committed = [u for u, (case, _) in cases.items() if case.purchase in COMMITTED]
    rows, in_use = [], []
    for uuid in (u for u in cases if u not in committed):
        case, findings = cases[uuid]
        row = _row(uuid, boards[uuid], case, findings, quiet.get(uuid, []), readings, window)
        stopped = row.since_ms is not None and _stretch_alone(row, case, window)
        if findings and (not case.works or stopped):
            rows.append(row)
        else:
            in_use.append(uuid)
    rows.sort(key=_most_first)
    first = tuple(rows[:n])
    return GiveBack(
        start_ms=cost.start_ms,
        end_ms=cost.end_ms,
        gpus=len(boards),
        asked=n,
        found=len(rows),
        idle_usd_per_month=_monthly((r.idle_usd_per_month for r in first), window),
        usd_per_month=_monthly((r.usd_per_month for r in first), window),
        all_idle_usd_per_month=_monthly((r.idle_usd_per_month for r in rows), window),
        idle_usd=_sum(r.idle_usd for r in first),
        give_back=first,
        in_use=_left(in_use, cases, window),
        committed=_left(committed, cases, window),
        not_judged=tuple(not_judged),
        unmatched=tuple(sorted({row.name for row in cost.inventory.unmatched})) if cost.inventory else (),
        assumptions=tuple(_assumptions(cost, window)),
        inventory=cost.inventory,
    )


def _cases(lake: Lake, scope: Scope, boards: Mapping[str, _Board], window: _Window) -> dict[str, Case]:
    """Each board as a case, with the long stretches without work of those that idle much."""
    pods, limits = read_pods(lake, scope), window.limits
    cases = {u: case_of_board(b.stretches, b.charges, window.stock, limits, pods) for u, b in boards.items()}
    idle = [u for u, c in cases.items() if c.idle_ratio + c.idle_held_ratio >= limits.idle.idle_heavy_from_ratio]
    keys = {s.key: place for place, uuid in enumerate(idle) for s in boards[uuid].stretches}
    for place, long in idle_times(lake, scope, keys, window.end_ms).long.items():
        uuid, together = idle[place], (long.last_h,)
        # Of slices only the time counts in which all of them have stopped.
        own = long if boards[uuid].parts == 1 else LongIdle(together, together, together, long.last_h)
        cases[uuid] = replace(cases[uuid], long_idle=own)
    return cases


def _not_judged(uuid: str, board: _Board, window: _Window) -> NotJudged | None:
    """Why the idleness of a GPU is unknown; None where it can be judged."""
    device, times = board.charges[0].device, board.times
    observed = sum(s.sums["all_ms"] for s in board.stretches)
    unstated = sum(s.sums["unstated_ms"] for s in board.stretches)
    reason: Reason | None = None
    if not board.stretches:
        reason = "not sampled"
    elif unstated and unstated >= SPARSE_BELOW_RATIO * observed:
        reason = "activity not recorded"
    elif window.end_ms - board.last_ms >= SILENT_FROM_MS:
        reason = "silent"
    elif times.unobserved_ms >= SPARSE_BELOW_RATIO * times.paid_ms:
        reason = "mostly unobserved"
    if reason is None:
        return None
    hours = times.paid_h, times.unobserved_ms / MS_PER_HOUR
    return NotJudged(name_of(uuid, device.host, device.gpu_index), uuid, device.host, device.gpu_index, reason, *hours)


def _quiet(lake: Lake, scope: Scope, cases: Mapping[str, object]) -> dict[str, list[list[QuietTime]]]:
    """By GPU the quiet times of each of its devices; also those before the window, for a stretch may start there."""
    if not cases:
        return {}
    out: dict[str, list[list[QuietTime]]] = {}
    for (uuid, _), times in quiet_times(Books(lake, Scope(None, scope.until_ms)), cases.keys()).items():
        out.setdefault(uuid, []).append(times)
    return out


def _readings(lake: Lake, scope: Scope, cases: Mapping[str, object]) -> dict[str, dict[str, int]]:
    """By GPU the sums that mean utilization and power come from, over all of the observed time."""
    if not cases:
        return {}
    books, sums = Books(lake, scope), Accumulator()
    for _, rows in books.blocks((), _READINGS):
        sums.add([rows["gpu_uuid"]], {name: rows[name] for name in _READINGS})
    keys, columns = sums.total()
    names = books.names["gpu_uuid"].text(keys[0]) if keys else []
    return {name or "": {c: int(v[i]) for c, v in columns.items()} for i, name in enumerate(names)}


def _row(
    uuid: str,
    board: _Board,
    case: Case,
    findings: Sequence[Finding],
    quiet: Sequence[Sequence[QuietTime]],
    readings: Mapping[str, Mapping[str, int]],
    window: _Window,
) -> IdleGpu:
    device, times = board.charges[0].device, board.times
    sums = readings.get(uuid, dict.fromkeys(_READINGS, 0))
    end = min(board.last_ms, window.end_ms)
    last = [times_of[-1] for times_of in quiet if times_of[-1].end_ms >= end]
    # A board cut into slices is idle since its last slice stopped.
    since = max(last, key=lambda q: q.start_ms) if last and len(last) == board.parts else None
    inside = [q for times_of in quiet for q in times_of if q.end_ms > window.start_ms]
    longest = max(inside, key=lambda q: q.length_ms, default=None) if board.parts == 1 else since
    owners = {owner_name(s.namespace, s.workload) for s in board.stretches}
    return IdleGpu(
        gpu=name_of(uuid, device.host, device.gpu_index),
        gpu_uuid=uuid,
        host=device.host,
        gpu_index=device.gpu_index,
        gpu_model=device.gpu_model,
        cluster=device.cluster,
        owner=case.owner,
        other_owners=len(owners - {case.owner}),
        idle_usd_per_month=_idle_usd(case, uuid, window),
        usd_per_month=_per_month(case.dollars, lambda d: d.paid_usd, uuid, window),
        idle_usd=case.dollars if isinstance(case.dollars, Unknown) else _idle(case.dollars),
        since_ms=since.start_ms if since else None,
        since_unobserved_h=since.unobserved_ms / MS_PER_HOUR if since else 0.0,
        from_first_sample=since is not None and since.start_ms <= board.first_ms,
        longest_start_ms=longest.start_ms if longest else None,
        longest_end_ms=longest.end_ms if longest else None,
        idle_h=times.idle_ms / MS_PER_HOUR,
        idle_held_h=times.idle_held_ms / MS_PER_HOUR,
        worked_h=(times.paid_ms - times.idle_ms - times.idle_held_ms - times.unobserved_ms) / MS_PER_HOUR,
        unobserved_h=times.unobserved_ms / MS_PER_HOUR,
        util_pct=100 * sums["util_ppm_ms"] / PPM / sums["util_ms"] if sums["util_ms"] else NO_UTIL,
        power_w=sums["power_uj"] / sums["power_ms"] / 1e3 if sums["power_ms"] else NO_POWER,
        memory_known=case.memory_known,
        confidence="counters" if any(s.sums["seen_ms"] for s in board.stretches) else "utilization",
        rules=tuple(f.rule.id for f in findings),
        why="; ".join(f.reason.why for f in findings),
    )


def _stretch_alone(row: IdleGpu, case: Case, window: _Window) -> bool:
    """Whether the stretch that lasts to the end is idle for as much of the time as the rules ask for."""
    assert row.since_ms is not None
    seen_h = (window.end_ms - max(row.since_ms, window.start_ms)) / MS_PER_HOUR - row.since_unobserved_h
    return seen_h >= window.limits.idle.idle_heavy_from_ratio * case.observed_h


def _idle_usd(case: Case, uuid: str, window: _Window) -> Decimal | Unknown:
    """What is paid per month for the time a GPU idles."""
    return _per_month(case.dollars, _idle, uuid, window)


def _idle(dollars: Dollars) -> Decimal:
    return dollars.idle_usd + dollars.idle_held_usd


def _per_month(
    dollars: Dollars | Unknown, part: Callable[[Dollars], Decimal], uuid: str, window: _Window
) -> Decimal | Unknown:
    month = window.months.of(uuid)
    if isinstance(dollars, Unknown):
        return dollars
    return month if isinstance(month, Unknown) else usd(Fraction(part(dollars)) * month)


def _most_first(row: IdleGpu) -> tuple[bool, bool, Decimal, float, str]:
    """By dollars to the cent, then by idle hours: per month first, then of the window; GPUs without a price last."""
    brief = isinstance(row.idle_usd_per_month, Unknown)
    dollars = row.idle_usd if brief else row.idle_usd_per_month
    return (
        isinstance(dollars, Unknown),
        brief,
        -(dollars.quantize(CENT) if not isinstance(dollars, Unknown) else ZERO),
        -row.quiet_h,
        row.gpu_uuid,
    )


def _sum(amounts: Iterable[Decimal | Unknown]) -> Decimal | Unknown:
    """The sum of what is known; the first reason where nothing is."""
    given = list(amounts)
    known = [a for a in given if not isinstance(a, Unknown)]
    return sum(known, ZERO) if known or not given else given[0]


def _monthly(amounts: Iterable[Decimal | Unknown], window: _Window) -> Decimal | Unknown:
    """The sum of amounts per month; the reason where the window is too short for any, of no GPU too."""
    return _sum(amounts) if window.months.why is None else window.months.why


def _left(uuids: Sequence[str], cases: Mapping[str, tuple[Case, list[Finding]]], window: _Window) -> Left:
    return Left(len(uuids), _monthly((_idle_usd(cases[u][0], u, window) for u in uuids), window))


def _assumptions(cost: CostStatement, window: _Window) -> Iterator[str]:
    idle = window.limits.idle
    yield (
        f"listed: idle {100 * idle.idle_heavy_from_ratio:.0f} % of the time or more, and at work for less than "
        f"{100 * idle.active_from_ratio:.0f} % of it or idle to the end of the window for that long ({idle.source})"
    )
    yield (
        f"one stretch without work must last {idle.release_from_h:g} h, or {idle.cull_timeout_h:g} h with memory held "
        "by what people work at, such as notebooks; production and services are not listed, however long they wait"
    )
    yield "dollars per month are those of the idle and idle-held buckets of the audit; a month is 30 days"
    yield "a gap between two idle times does not end an idle stretch; its length is reported as unobserved"
    yield from cost.assumptions

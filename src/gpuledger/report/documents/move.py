"""What does the plan from the ledger show? A proposal per namespace, what it rests on, and what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuledger.encode import encode
from gpuledger.plan.move.statement import HoldingPlan, LakePlan, Move, NamespacePlan, RefusedMove
from gpuledger.plan.outcome import UsdRange
from gpuledger.report.document import Block, Bullets, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.documents.efficiency import unknown_section
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import capital, gpus, number, whole
from gpuledger.units import Unknown, utc

STAY = "stay"
ALL = 1_000  # rows a terminal shows with everything
SCREEN_RISKS = 3
KINDS = {"fewer": "fewer GPUs", "slices": "slices (MIG)"}


@document_for(LakePlan)
def move_document(plan: LakePlan) -> Document:
    """The document of a plan from the ledger."""
    moves, found = moves_table(plan), risks(plan)
    summary: list[Block] = [namespaces_table(plan)]
    return Document(
        name="migrate",
        kind="Migration plan",
        title="Migration plan from the ledger",
        headline=plan.headline,
        facts=[
            f"{utc(plan.start_ms):%Y-%m-%d} to {utc(plan.end_ms):%Y-%m-%d}", gpus(plan.gpus),
            f"ages of prices counted to {plan.today}", plan.price_source,
        ],
        notes=[Prose(plan.beside_audit), *_unpriced(plan)],
        figures=key_figures(plan),
        summary=summary,
        sections=[
            Section("moves", "Moves", [moves, *([Bullets(found)] if found else [])]),
            Section("measured", "What was measured", [measured_table(plan)]),
            Section("refused", "What was refused", [refused_table(plan)]),
            Section("assumptions", "Assumptions", [Bullets(plan.assumptions)]),
            unknown_section(plan.not_known),
        ],
        screen=[*summary, replace(moves, note="", screen_rows=8), *_few(found)],
        data=lambda: encode("move", plan),
    )  # fmt: skip


def _few(found: Sequence[str]) -> list[Block]:
    """The first sentences about risk, and how many more there are."""
    if not found:
        return []
    more = len(found) - SCREEN_RISKS
    rest: list[Block] = [Prose(f"and {more} more on risk and price", "dim")] if more > 0 else []
    return [Bullets(found[:SCREEN_RISKS], "Risk and price"), *rest]


def _unpriced(plan: LakePlan) -> list[Prose]:
    if not plan.unpriced_gpus:
        return []
    left_out = "has no known price and is" if plan.unpriced_gpus == 1 else "have no known price and are"
    return [Prose(f"{gpus(plan.unpriced_gpus)} {left_out} in none of the dollars; Unknown has the reasons.", "warning")]


def key_figures(plan: LakePlan) -> list[KeyFigure]:
    """Cost now and as proposed, the saving, and how many groups move."""
    held = list(holdings(plan))
    moving = sum(h.move is not None for h in held)
    saved = plan.saving_month
    note = "dollars per month"
    if isinstance(saved, Unknown):
        saving = KeyFigure("Saving", str(saved), "", note, unknown=True)
    else:
        saving = KeyFigure("Saving", _usd(saved.middle_usd), span(saved), f"{_share(plan.saving_pct).text} of now")
    return [
        _money("Now", plan.month_now_usd, note),
        _money("As proposed", plan.month_after_usd, note),
        saving,
        KeyFigure("Moves", f"{moving} of {len(held)}", "", "groups of GPUs by namespace and model"),
    ]


def _money(label: str, value: Decimal | Unknown, note: str) -> KeyFigure:
    unknown = isinstance(value, Unknown)
    return KeyFigure(label, str(value) if isinstance(value, Unknown) else _usd(value), "", note, unknown)


def _usd(value: Decimal) -> str:
    return f"${value:,.0f}"


def span(month: UsdRange | Unknown) -> str:
    """The range of a saving."""
    return "unknown" if isinstance(month, Unknown) else f"{_usd(month.low_usd)} to {_usd(month.high_usd)}"


def _share(pct: Decimal | Unknown) -> Cell:
    return figure(pct, lambda value: f"{number(value)} %")


def _saved(month: UsdRange | Unknown) -> Row:
    """The middle of a saving and its range."""
    return [figure(month if isinstance(month, Unknown) else month.middle_usd, _usd), span(month)]


def holdings(plan: LakePlan) -> Iterator[HoldingPlan]:
    """All groups of GPUs, namespace by namespace."""
    for space in plan.namespaces:
        yield from space.holdings


def _model(plan: HoldingPlan) -> str:
    return plan.gpu_model or "no model name"


def namespaces_table(plan: LakePlan) -> Table:
    """What each namespace pays, what it could pay, and the proposal."""

    def row(name: str, s: NamespacePlan | LakePlan, verdict: str) -> Row:
        now, after = figure(s.month_now_usd, _usd), figure(s.month_after_usd, _usd)
        return [name, figure(s.gpus, str), now, after, *_saved(s.saving_month), _share(s.saving_pct), verdict]

    rows = [row(s.namespace, s, s.verdict) for s in plan.namespaces]
    total = tuple(c if isinstance(c, Cell) else cell(c) for c in row("all", plan, ""))
    heads = ("Namespace", "GPUs", "Now", "After", "Saved", "Range", "Share", "Proposal")
    caption = "What to do, dollars per month"
    return make_table("namespaces", caption, heads, "wnnnnNnw", rows, total=total, screen_rows=ALL)


def measured_table(plan: LakePlan) -> Table:
    """What the GPUs did."""
    rows: list[Row] = []
    for h in holdings(plan):
        m = h.measured
        phases = " / ".join(f"{share:.0f}" for share in m.phases_pct.values())
        bytes_of = (m.busy_hours_dram_bytes_per_s, m.memory_max_bytes, m.nvlink_bytes_per_s)
        rows.append(
            [
                h.namespace, _model(h), figure(m.gpus, str), figure(m.busy_gpu_h, whole),
                figure(m.busy_hours_gpus, lambda v: f"{v:.1f}"), _tflops(h), m.evidence,
                *(figure(v, lambda each: whole(each / 1e9)) for v in bytes_of),
                phases,
            ]
        )  # fmt: skip
    heads = (
        "Namespace", "GPU", "GPUs", "Busy GPU-h", "Busy hours need", "TFLOPS", "By", "DRAM GB/s", "Memory GB",
        "Link GB/s", "Utilization bands %",
    )  # fmt: skip
    note = (
        "Busy hours need: GPUs' worth of time at the 95th percentile of each GPU's hours. TFLOPS: realized, of all "
        "GPUs together, over all observed time. DRAM: busy hours, all GPUs. Memory and link: the most of any GPU. "
        "Utilization bands: near zero / low / high / very high (under 10 %, 70 %, 90 %, from 90 %)."
    )
    caption = "Demand by namespace and GPU model"
    return make_table("measured", caption, heads, "wwnNnnWNnNW", rows, note=note, screen_rows=ALL)


def _tflops(plan: HoldingPlan) -> Cell:
    m = plan.measured
    if isinstance(m.tflops_low, Unknown) or isinstance(m.tflops_high, Unknown):
        return cell("unknown", Unknown("not measured"))
    most = whole(m.tflops_high)
    return cell(f"at most {most}" if m.evidence == "power" else f"{whole(m.tflops_low)} to {most}", m.tflops_high)


def moves_table(plan: LakePlan) -> Table:
    """The proposed moves, and those that come next."""
    rows: list[Row] = []
    for h in holdings(plan):
        rows += [_move(h, "proposed", h.move)] if h.move else []
        rows += [_move(h, "next", move) for move in h.runners_up]
    heads = ("Namespace", "From", "", "Move", "GPUs after", "Saves", "Range", "Share", "Cap", "Risk", "Price",
             "For example")  # fmt: skip
    note = (
        "GPUs after: cautious, middle, bold; stay: none moves. The price with its age in days. Share and cap are "
        "of what is paid for these GPUs; the cap is the waste measured on the GPUs that move."
    )
    empty = "No move carries the demand of any namespace for less."
    caption = "The moves proposed, and those that come next, dollars per month"
    return make_table("moves", caption, heads, "wWwwnnNnNWwW", rows, note=note, empty=empty, screen_rows=ALL)


def _move(plan: HoldingPlan, place: str, m: Move) -> Row:
    after = " / ".join(str(count) if count else STAY for count in m.gpus_after)
    part = f"{m.moved} of {m.gpus_now}: " if m.moved < m.gpus_now else ""
    return [
        plan.namespace, _model(plan), place, f"{part}{what(m)}", after, *_saved(m.saving_month),
        _share(m.saving.middle_pct), _share(m.cap_pct), m.risk, price_words(m),
        f"{e.cloud} {e.instance or e.gpu.name} in {e.region}" if (e := m.example) else "",
    ]  # fmt: skip


def what(move: Move) -> str:
    """The move in a few words."""
    if move.kind == "other":
        return f"to {move.gpu_name}"
    return f"slices: {move.slice_name}" if move.kind == "slices" else "fewer, loads put together"


def price_words(move: Move) -> str:
    """The price it is calculated with, and its age."""
    if move.price is None:
        return "as paid now"
    p = move.price
    own = "yours, " if p.yours else ""
    age = "" if p.age_days is None else f", {p.age_days} d{', stale' * p.stale}"
    return f"{own}${p.usd_per_gpu_h:.2f}/GPU-h{age}"


def refused_table(plan: LakePlan) -> Table:
    """What was refused, by reason: names together, the first one's why, the remedy."""
    rows: list[Row] = []
    for h in holdings(plan):
        groups: dict[tuple[str, str], list[RefusedMove]] = {}
        for r in h.refused:
            groups.setdefault((r.kind, r.reason), []).append(r)
        for (kind, reason), members in groups.items():
            names = ", ".join(r.gpu_name for r in members) if kind == "other" else KINDS[kind]
            more = f" ({members[0].gpu_name})" if len(members) > 1 else ""
            rows.append([h.namespace, _model(h), names, reason, f"{members[0].why}{more}", members[0].remedy])
    heads = ("Namespace", "From", "Refused", "Reason", "Why", "What would change it")
    empty = "Nothing was refused."
    return make_table("refused", "Refused moves by reason", heads, "wWwWww", rows, empty=empty, screen_rows=ALL)


def risks(plan: LakePlan) -> list[str]:
    """What each proposed move risks and what spot would add to it; for what stays, what a lower price would save."""
    out = []
    for h in holdings(plan):
        who = f"{h.namespace} on {h.gpu_model}"
        if h.cheaper_host is not None and h.cheaper_host_pct is not None:
            host = h.cheaper_host
            out.append(
                f"{who}: the same GPU is {h.cheaper_host_pct:.0f} % cheaper in {host.cloud} {host.instance} in "
                f"{host.region}. That is a price, not in the dollars."
            )
        if h.move is not None:
            out.append(f"{who}: {_risk(h.move)}")
        elif not isinstance(s := h.spot_pct, Unknown):
            out.append(
                f"{who}: stays; its work can stop and resume, and spot of the same GPU is {s.middle_pct:.0f} % cheaper "
                f"({s.low_pct:.0f} to {s.high_pct:.0f} % for 80 % of the zones). That is a price, not in the dollars."
            )
    return out


def _risk(move: Move) -> str:
    reasons, spot = "; ".join(move.risk_reasons), move.with_spot_pct
    because = f" {capital(reasons)}." if reasons else ""
    more = "" if isinstance(spot, Unknown) else f" On spot it would be {spot:.0f} % in all ({move.spot_words})."
    return f"{move.risk} risk, {move.effort_hours:g} h of work. {capital(move.fits)}.{because}{more}"

"""Which tables does the plan from the ledger fill, on a screen and on a page alike?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from gpuledger.plan.move.statement import HoldingPlan, LakePlan, MonthRange, Move, RefusedMove
from gpuledger.report.documents.migrate import cell, table
from gpuledger.report.tables import Cell, Table
from gpuledger.units import Unknown

NOT_KNOWN = "not known"
STAY = "stay"


def usd(value: Decimal | Unknown) -> Cell:
    """Whole dollars of a month."""
    return cell(NOT_KNOWN if isinstance(value, Unknown) else f"${value:,.0f}", value)


def span(month: MonthRange | Unknown) -> str:
    """The range of a saving."""
    return NOT_KNOWN if isinstance(month, Unknown) else f"${month.low_usd:,.0f} to ${month.high_usd:,.0f}"


def share(pct: Decimal | Unknown) -> Cell:
    """A saving as a share of what is paid."""
    return cell(NOT_KNOWN if isinstance(pct, Unknown) else f"{pct:.0f} %", pct)


def saved(month: MonthRange | Unknown) -> Cell:
    """The middle of a saving."""
    return usd(month if isinstance(month, Unknown) else month.middle_usd)


def holdings(plan: LakePlan) -> Iterator[HoldingPlan]:
    """All of them, namespace by namespace."""
    for space in plan.namespaces:
        yield from space.holdings


def namespaces_table(plan: LakePlan) -> Table:
    """What each namespace pays, what it could pay, and the proposal."""
    rows = [
        [
            cell(s.namespace), cell(str(s.gpus), s.gpus), usd(s.month_now_usd), usd(s.month_after_usd),
            saved(s.saving_month), cell(span(s.saving_month)), share(s.saving_pct), cell(s.verdict),
        ]
        for s in plan.namespaces
    ]  # fmt: skip
    heads = ("Namespace", "GPUs", "Now", "After", "Saved", "Range", "Share", "Proposal")
    note = ""
    if plan.unpriced_gpus:
        one = "1 GPU has" if plan.unpriced_gpus == 1 else f"{plan.unpriced_gpus} GPUs have"
        note = f"{one} no known price: in none of the dollars. Reasons are listed under not known."
    made = table("namespaces", "What to do, dollars per month", heads, "wnnnnnnw", rows, note=note)
    total = (
        cell("all"), cell(str(plan.gpus), plan.gpus), usd(plan.month_now_usd), usd(plan.month_after_usd),
        saved(plan.saving_month), cell(span(plan.saving_month)), share(plan.saving_pct), cell(""),
    )  # fmt: skip
    return replace(made, total=total)


def measured_table(plan: LakePlan) -> Table:
    """What the GPUs really did."""
    rows = []
    for h in holdings(plan):
        m = h.measured
        phases = " / ".join(f"{share:.0f}" for share in m.phases_pct.values())
        rows.append(
            [
                cell(h.namespace), cell(h.gpu_model or "no model name"), cell(str(m.gpus), m.gpus),
                cell(f"{m.busy_gpu_h:,.0f}", m.busy_gpu_h), cell(f"{m.busy_hours_gpus:.1f}", m.busy_hours_gpus),
                cell(_tflops(h), m.tflops_high), cell(m.evidence), _rate(m.busy_hours_dram_bytes_per_s),
                _amount(m.memory_max_bytes), _rate(m.nvlink_bytes_per_s), cell(phases),
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
    return table("measured", "Demand by namespace and GPU model", heads, "wwnnnnwnnnw", rows, note=note)


def _tflops(plan: HoldingPlan) -> str:
    m = plan.measured
    if isinstance(m.tflops_low, Unknown) or isinstance(m.tflops_high, Unknown):
        return NOT_KNOWN
    return f"at most {m.tflops_high:,.0f}" if m.evidence == "power" else f"{m.tflops_low:,.0f} to {m.tflops_high:,.0f}"


def _rate(value: float | Unknown) -> Cell:
    return cell(NOT_KNOWN if isinstance(value, Unknown) else f"{value / 1e9:,.0f}", value)


def _amount(value: float | Unknown) -> Cell:
    return _rate(value)


def moves_table(plan: LakePlan) -> Table:
    """The proposed moves, and those that come next."""
    rows = []
    for h in holdings(plan):
        moves = [*([("proposed", h.move)] if h.move else []), *(("next", m) for m in h.runners_up)]
        rows += [_move(h, place, m) for place, m in moves]
    heads = ("Namespace", "From", "", "Move", "GPUs after", "Saves", "Range", "Share", "Cap", "Risk", "Price",
             "For example")  # fmt: skip
    note = (
        "GPUs after: cautious, middle, bold; stay: none moves. The price with its age in days. Share and cap are "
        "of what is paid for these GPUs; the cap is the waste measured on the GPUs that move."
    )
    empty = "No move carries the demand of any namespace for less."
    return table(
        "moves",
        "The moves proposed, and those that come next, dollars a month",
        heads,
        "wwwwwnnnnwww",
        rows,
        note=note,
        empty=empty,
    )


def _move(plan: HoldingPlan, place: str, m: Move) -> list[Cell]:
    after = " / ".join(str(gpus) if gpus else STAY for gpus in m.gpus_after)
    part = f"{m.moved} of {m.gpus_now}: " if m.moved < m.gpus_now else ""
    month = m.saving_month
    middle = month if isinstance(month, Unknown) else month.middle_usd
    return [
        cell(plan.namespace), cell(plan.gpu_model or "no model name"), cell(place), cell(f"{part}{what(m)}"),
        cell(after), usd(middle), cell(span(month)), cell(f"{m.saving.middle_pct:.0f} %", m.saving.middle_pct),
        cell(f"{m.cap_pct:.0f} %", m.cap_pct), cell(m.risk), cell(price_words(m)),
        cell(f"{e.cloud} {e.instance or e.gpu.name} in {e.region}" if (e := m.example) else ""),
    ]  # fmt: skip


def what(move: Move) -> str:
    """The move in a few words."""
    if move.kind == "other":
        return f"to {move.gpu_name}"
    return f"slices: {move.slice_name}" if move.kind == "slices" else "fewer, loads put together"


def price_words(move: Move) -> str:
    """The price it is reckoned with, and its age."""
    if move.price is None:
        return "as paid now"
    p = move.price
    own = "yours, " if p.yours else ""
    age = "" if p.age_days is None else f", {p.age_days} d{', stale' * p.stale}"
    return f"{own}${p.usd_per_gpu_h:.2f}/GPU-h{age}"


def refused_table(plan: LakePlan) -> Table:
    """What was refused, by reason: names together, the first one's why, the remedy."""
    rows = []
    for h in holdings(plan):
        groups: dict[tuple[str, str], list[RefusedMove]] = {}
        for r in h.refused:
            groups.setdefault((r.kind, r.reason), []).append(r)
        for (kind, reason), members in groups.items():
            names = ", ".join(r.gpu_name for r in members) if kind == "other" else _KINDS[kind]
            more = f" ({members[0].gpu_name})" if len(members) > 1 else ""
            rows.append(
                [cell(h.namespace), cell(h.gpu_model or "no model name"), cell(names), cell(reason),
                 cell(f"{members[0].why}{more}"), cell(members[0].remedy)]
            )  # fmt: skip
    heads = ("Namespace", "From", "Refused", "Reason", "Why", "What would change it")
    return table("refused", "Refused moves by reason", heads, "wwwwww", rows, empty="Nothing was refused.")


_KINDS = {"fewer": "fewer GPUs", "slices": "slices (MIG)"}


def risks(plan: LakePlan) -> list[str]:
    """Why each proposed move is as risky as it is said to be, and what spot would add; or would save for what stays."""
    out = []
    for h in holdings(plan):
        if h.cheaper_host is not None and h.cheaper_host_pct is not None:
            host = h.cheaper_host
            out.append(
                f"{h.namespace} on {h.gpu_model}: the same GPU is {h.cheaper_host_pct:.0f} % cheaper in {host.cloud} "
                f"{host.instance} in {host.region}. That is a price, not in the dollars."
            )
        if h.move is None:
            if not isinstance(s := h.spot_pct, Unknown):
                zones = f"{s.low_pct:.0f} to {s.high_pct:.0f} % for 80 % of the zones"
                out.append(
                    f"{h.namespace} on {h.gpu_model}: stays; its work can stop and resume, and spot of the same GPU is "
                    f"{s.middle_pct:.0f} % cheaper ({zones}). That is a price, not in the dollars."
                )
            continue
        words = f"{h.namespace} on {h.gpu_model}: {h.move.risk} risk, {h.move.effort_hours:g} h of work. {h.move.fits}."
        reasons = "; ".join(h.move.risk_reasons)
        spot = h.move.with_spot_pct
        on_top = "" if isinstance(spot, Unknown) else f" On spot it would be {spot:.0f} % in all ({h.move.spot_words})."
        out.append(f"{words} {reasons[:1].upper()}{reasons[1:]}{'.' * bool(reasons)}{on_top}")
    return out

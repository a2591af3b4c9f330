"""What does a capacity plan show of dollars: how a shortfall is met, spending by month, and the budget?"""

from __future__ import annotations

from gpuledger.plan.capacity.statement import CapacityPlan, InvestOption, MonthRange, MonthSpend
from gpuledger.plan.outcome import UsdRange
from gpuledger.report.document import KeyFigure
from gpuledger.report.plan_sections import dollar_figure
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import gpus, number, tenth, usd
from gpuledger.units import Unknown

VERDICTS = {
    "over": "over", "uncertain": "may be over", "within": "within", "no budget": "", "unknown": "unknown",
}  # fmt: skip


def money_figures(plan: CapacityPlan) -> list[KeyFigure]:
    """What renting the GPUs that are short costs, and when buying them pays back."""
    options = () if isinstance(plan.investment, Unknown) else plan.investment.options
    rent, buy = ([o for o in options if o.kind == kind] for kind in ("rent", "buy"))
    out = [dollar_figure("Rent what is short", o.usd_per_month, f"{gpus(o.gpus)}, per month") for o in rent[:1]]
    return [*out, *map(_payback, buy)]


def _payback(option: InvestOption) -> KeyFigure:
    found, label = option.payback_months, "Buying pays back"
    if not isinstance(found, MonthRange):
        return KeyFigure(label, "unknown", "", found.why if found else "", unknown=True)
    ends = "" if found.low == found.high else f"{tenth(found.low)} to {tenth(found.high)}"
    return KeyFigure(label, f"{tenth(found.middle)} months", ends, "against renting, without power, space and people")


def invest_table(plan: CapacityPlan) -> Table:
    """How the GPUs that are short are found."""
    found = plan.investment
    options = () if isinstance(found, Unknown) else found.options
    rows: list[Row] = [[o.kind, cell(number(o.gpus), o.gpus), *_dollars(o.usd_per_month), o.words] for o in options]
    heads = ("Way", "GPUs", "Per month", "Range", "What it is")
    caption = "How the GPUs that are short are found, cheapest first"
    return make_table("investment", caption, heads, "wnnNw", rows, empty="No GPU is short.", screen_rows=8)


def _dollars(amount: UsdRange | Unknown) -> list[Cell | str]:
    if isinstance(amount, Unknown):
        return [cell("unknown", amount), ""]
    ends = "" if amount.low_usd == amount.high_usd else f"{usd(amount.low_usd, 0)} to {usd(amount.high_usd, 0)}"
    return [cell(usd(amount.middle_usd, 0), amount.middle_usd), ends]


def spending_table(plan: CapacityPlan) -> Table:
    """Dollars month by month, and the budget."""
    rows = [_spent(m) for m in plan.spending]
    several = len({m.name for m in plan.spending}) > 1
    heads = ("Month", "Days", "For", "As now", "As needed", "Range", "Budget", "Verdict")
    note = (
        "As needed: the GPUs there now, and more in months whose need passes them. A part of a month has that part of "
        "its budget."
    )
    caption = "Spending by month, nominal need"
    words = "wNwnnnnw" if several else "wnWnnnnw"
    return make_table("spending", caption, heads, words, rows, note=note, screen_rows=40)


def _spent(m: MonthSpend) -> Row:
    budget = cell("-") if m.budget_usd is None else cell(usd(m.budget_usd, 0), m.budget_usd)
    now = figure(m.now_usd, lambda v: usd(v, 0))
    return [m.month, cell(number(m.days), m.days), m.name, now, *_dollars(m.need_usd), budget, VERDICTS[m.verdict]]

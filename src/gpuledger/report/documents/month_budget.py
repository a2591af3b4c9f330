"""What does budget against actual show?"""

from __future__ import annotations

from decimal import Decimal

from gpuledger.cost.month_budget import BudgetLine, MonthBudget
from gpuledger.encode import encode
from gpuledger.report.document import Bullets, Document, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.documents.inventory import inventory_warnings
from gpuledger.report.tables import Row, Table, cell, make_table, whole_usd
from gpuledger.report.written import capital, number, usd
from gpuledger.units import Unknown, utc

VERDICTS = {
    "over already": "over already", "over": "will be over", "uncertain": "may be over", "within": "within",
    "no budget": "no budget", "unknown": "unknown",
}  # fmt: skip
NO_BUDGET = (
    "No budget is set: give one with --budget USD or --budget NAME=USD, or in the [budgets] section of gpuledger.toml."
)


@document_for(MonthBudget)
def month_budget_document(found: MonthBudget) -> Document:
    """The verdict, each budget, and the days the forecast rests on."""
    table = _table(found)
    return Document(
        name="budget",
        kind="Budget",
        title=f"Budget of {found.month}",
        headline=headline(found),
        facts=[
            found.month,
            f"as of {utc(found.as_of_ms):%Y-%m-%d %H:%M} UTC",
            f"{number(found.days_left, 1)} days left",
        ],
        notes=[*inventory_warnings(found.inventory), *_notes(found)],
        summary=[table],
        sections=[
            Section("days", "Days", [_days(found)]),
            Section("assumptions", "Assumptions", [Bullets(found.assumptions)]),
        ],
        screen=[table, *([Prose(f"{capital(found.assumptions[0])}.", "note")] if found.assumptions else [])],
        data=lambda: encode("budget", found),
        main_table="lines",
    )


def _notes(found: MonthBudget) -> list[Prose]:
    out = [] if any(line.budget_usd is not None for line in found.lines) else [Prose(NO_BUDGET, "note")]
    if found.unseen_days:
        days = number(found.unseen_days, 1)
        words = f"The first {days} days of the month are before the first sample: their dollars are forecast too."
        out.append(Prose(f"{words} An inventory would price them.", "warning"))
    if hours := found.lines[0].unpriced_h:
        out.append(Prose(f"{number(hours, 1)} GPU-hours have no price and are in no figure.", "warning"))
    return out


def headline(found: MonthBudget) -> str:
    """Over or within, by how much, with the range."""
    budgets = [line for line in found.lines if line.budget_usd is not None]
    if not budgets:
        return f"{found.month}: {_spending(found.lines[0])}."
    order = list(VERDICTS)
    budgets.sort(key=lambda line: order.index(line.verdict))
    worst = budgets[0]
    rest = sum(line.verdict in {"over already", "over", "uncertain"} for line in budgets[1:])
    more = f" {number(rest)} more may be over." if rest else ""
    return f"{_verdict(worst)}: {_spending(worst)} against a budget of {_whole(worst.budget_usd)}.{more}"


def _verdict(line: BudgetLine) -> str:
    over = line.over_usd
    if over is None or isinstance(over, Unknown):
        return f"{line.name}: {VERDICTS[line.verdict]}"
    amount = f"by {usd(abs(over), 0)}{_range(line)}"
    side = "over" if over > 0 else "under"
    words = {
        "over already": f"{line.name}: over budget already, {amount} at month end",
        "over": f"{line.name}: over budget {amount} at month end",
        "within": f"{line.name}: within budget, under {amount} at month end",
        "uncertain": f"{line.name}: may be over budget, most likely {side} {amount}",
    }
    return words[line.verdict]


def _range(line: BudgetLine) -> str:
    """How far over at both ends of the forecast; under is written as such."""
    low, high, budget = line.total_low_usd, line.total_high_usd, line.budget_usd
    if budget is None or isinstance(low, Unknown) or isinstance(high, Unknown):
        return " (range unknown)"
    if low == high:
        return ""

    def side(total: Decimal) -> str:
        off = total - budget
        return f"{usd(abs(off), 0)} {'over' if off > 0 else 'under'}"

    return f" ({side(low)} to {side(high)})"


def _spending(line: BudgetLine) -> str:
    if isinstance(line.actual_usd, Unknown):
        return f"spending unknown ({line.actual_usd.why})"
    spent, total = _whole(line.actual_usd), line.total_usd
    if isinstance(total, Unknown):
        return f"{spent} spent so far, the month's total unknown ({total.why})"
    return f"{spent} spent so far, {_whole(total)} expected by month end"


def _whole(value: Decimal | None) -> str:
    return "none" if value is None else usd(value, 0)


def _table(found: MonthBudget) -> Table:
    rows: list[Row] = []
    for line in found.lines:
        low, high = line.total_low_usd, line.total_high_usd
        ends = (
            "unknown" if isinstance(low, Unknown) or isinstance(high, Unknown) else f"{_whole(low)} to {_whole(high)}"
        )
        over = line.over_usd
        rows.append(
            [
                line.name, line.of or "", cell("-") if line.budget_usd is None else whole_usd(line.budget_usd),
                whole_usd(line.actual_usd), whole_usd(line.total_usd), cell(ends),
                cell("-") if over is None else whole_usd(over), VERDICTS[line.verdict],
            ]
        )  # fmt: skip
    heads = ("Name", "", "Budget", "Spent so far", "Month end", "Range", "Over by", "Verdict")
    note = "Month end: spent so far and the forecast of the rest. Range: 95 % of the outcomes by the scatter of days."
    caption = f"Budget against actual, {found.month}"
    return make_table("budgets", caption, heads, "wWnnnnnw", rows, note=note, screen_rows=len(rows))


def _days(found: MonthBudget) -> Table:
    rows: list[Row] = [[day, cell(usd(amount), amount)] for day, amount in found.daily.items()]
    empty = "No whole day of samples."
    return make_table("days", "Whole days the forecast rests on", ("Day", "Paid"), "wn", rows, empty=empty)

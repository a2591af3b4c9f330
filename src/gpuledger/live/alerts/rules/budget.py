"""Will a team or namespace end the month over its budget?"""

from collections.abc import Iterator

from gpuledger.cost.month_budget import ALL
from gpuledger.live.alerts.rule import Owner, Reading, Subject, Unknown, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import known


@alert(
    "budget",
    "Month ends over budget",
    unit="% of the budget",
    next_step="see where it goes: gpuledger ask budget, gpuledger audit --by team",
)
def look(seen: Seen) -> Iterator[Reading]:
    """What the month will have cost, by what was spent and a forecast of the rest, against each budget that is set."""
    month = seen.budgets
    for line in month.lines if month else ():
        if month is None or line.budget_usd is None:
            continue
        total = line.total_usd
        value = total if isinstance(total, Unknown) else float(100 * total / line.budget_usd)
        spent, whole = known(line.actual_usd), known(total)
        evidence = {
            "month": month.month,
            "budget_usd": f"{line.budget_usd:,.2f}",
            "spent_usd": None if spent is None else f"{spent:,.2f}",
            "month_end_usd": None if whole is None else f"{whole:,.2f}",
            "verdict": line.verdict,
            "forecast_too": f"{month.unseen_days:.1f} days before the first sample" if month.unseen_days else "",
        }
        of_space = Owner(namespace=line.name, team=seen.teams.set_team(None, line.name))
        owner = Owner(team=line.name) if line.of == "team" else Owner() if line.name == ALL else of_space
        subject = Subject("budget", f"{month.month}/{line.name}", line.name)
        yield Reading(subject, value, month.as_of_ms, None, owner, evidence)

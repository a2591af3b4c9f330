"""How many GPUs would better use of the present ones be worth?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.documents.efficiency import EfficiencyView, next_target
from gpuledger.report.marks import alt, by_name, empty, layered, rows_of, says
from gpuledger.report.written import amount, gpus, percent, round_percent, tenth, whole, write
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme

WIDTH, ROW_HEIGHT = 480, 58


@chart_of("roi", document="efficiency", section="roi", order=5)
def draw(view: EfficiencyView, theme: Theme) -> Drawing:
    """Equivalent GPUs by target."""
    s = view.statement
    first = next_target(s)
    rfu = s.fleet.rfu_power_pct
    if isinstance(rfu, Unknown):
        title = f"What better use would be worth is {rfu}"
    elif first is None:
        title = "No target is above the present RFU"
    else:
        worth = tenth(first.equivalent_gpus)
        title = f"Reaching {round_percent(first.target_rfu_pct)} RFU would be worth {worth} more GPUs"
    subtitle = (
        f"Equivalent GPUs = GPUs × (target RFU / present RFU − 1), with {gpus(s.gpus)} at "
        f"{write(rfu, 'percent')} RFU by power. RFU by power measures watts, "
        "so read these as the published method's estimate."
    )
    if not s.roi:
        return Drawing(title, subtitle, title, empty(theme, title))
    rows = [
        {
            "target": f"{round_percent(r.target_rfu_pct)} RFU",
            "gpus": r.equivalent_gpus,
            "words": amount(tenth(r.equivalent_gpus), "GPU"),
            "hours": f"{amount(whole(r.gpu_hours_per_day), 'GPU-hour')} per day"
            + ("" if isinstance(r.gpu_hours_per_month, Unknown) else f", {whole(r.gpu_hours_per_month)} per month"),
            "label": f"Target {percent(r.target_rfu_pct)}: {amount(tenth(r.equivalent_gpus), 'GPU')}",
        }
        for r in s.roi
    ]
    y = by_name("target", gaps=(0.4, 0.2), labelFontSize=theme.text_px + 2)
    base = alt.Chart(rows_of(rows)).encode(y=y, x=alt.X("gpus:Q", axis=None, scale=alt.Scale(zero=True)))
    layers = (
        base.mark_bar(color=theme.palette.moderate).encode(**says()),
        base.mark_text(align="left", dx=8, dy=-9, fontWeight="bold", fontSize=theme.text_px + 3).encode(
            text=alt.Text("words:N")
        ),
        base.mark_text(align="left", dx=8, dy=10, color=theme.palette.muted).encode(text=alt.Text("hours:N")),
    )
    words = "; ".join(str(r["label"]) for r in rows)
    return Drawing(
        title, subtitle, f"Bars by target. {words}.", layered(*layers, width=WIDTH, height=alt.Step(ROW_HEIGHT))
    )

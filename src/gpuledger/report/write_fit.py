"""Where do the files of an answer about memory go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

from pathlib import Path

from gpuledger import __version__
from gpuledger.encode import encode
from gpuledger.plain_text import json_text
from gpuledger.plan.fit.build import Fit
from gpuledger.report.fit_tables import cards, headline, parts_table, remedies_table
from gpuledger.report.markdown import bullets, md_table, safe, with_range
from gpuledger.report.page import Page, html_cards, html_list, html_table, render_page
from gpuledger.report.write import write_whole


def write_fit(fit: Fit, out_dir: Path | str) -> dict[str, Path]:
    """Write page, Markdown and JSON; name to path."""
    folder = Path(out_dir)
    text = json_text(encode("fit", fit), indent=2)
    return {
        "fit.html": write_whole(folder / "fit.html", render_fit_html(fit)),
        "fit.md": write_whole(folder / "fit.md", render_fit_markdown(fit)),
        "fit.json": write_whole(folder / "fit.json", text + "\n"),
    }


def render_fit_html(fit: Fit) -> str:
    """The whole page."""
    parts = f'<section aria-labelledby="memory"><h2 id="memory">Memory</h2>{html_table(parts_table(fit))}</section>'
    remedy = f'<h2 id="remedies">Remedies</h2>{html_table(remedies_table(fit))}'
    return render_page(
        Page(
            title=f"Memory of {fit.model}",
            kind="Memory fit",
            headline=headline(fit),
            facts=[f"{fit.setup.count} x {fit.gpu}", fit.setup.mode, fit.setup.precision],
            cards=html_cards(cards(fit)),
            top="",
            contents=[("memory", "Memory"), ("remedies", "Remedies"), ("assumptions", "Assumptions")],
            sections=[parts, f'<section aria-labelledby="remedies">{remedy}</section>'],
            closing=f'<h2 id="assumptions">Assumptions</h2>{html_list([*fit.assumptions, fit.capacity_from])}',
            json_name="fit.json",
        )
    )


def render_fit_markdown(fit: Fit) -> str:
    """The page's Markdown twin."""
    figures = [f"| {safe(c.label)} | {safe(with_range(c.value, c.range))} | {safe(c.note)} |" for c in cards(fit)]
    out = [
        f"# {safe(headline(fit))}",
        "\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *figures]),
        "## Memory",
        md_table(parts_table(fit)),
        "## Remedies",
        md_table(remedies_table(fit)) if fit.remedies else safe(fit.nowhere or "It fits as it is."),
        "## Assumptions",
        bullets([*fit.assumptions, fit.capacity_from]),
        f"Made by gpuledger {__version__}. Every figure here is in fit.json under the same name.",
    ]
    return "\n\n".join(out) + "\n"

"""Where do the files of the plan from the ledger go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

from pathlib import Path

from gpuledger.encode import encode
from gpuledger.plain_text import json_text
from gpuledger.plan.move.statement import LakePlan
from gpuledger.report.lake_plan_html import render_lake_plan_html
from gpuledger.report.lake_plan_markdown import render_lake_plan_markdown
from gpuledger.report.write import write_whole


def write_lake_plan(plan: LakePlan, out_dir: Path | str) -> dict[str, Path]:
    """Write page, Markdown and JSON; name to path."""
    folder = Path(out_dir)
    text = json_text(encode("move", plan), indent=2)
    return {
        "migrate.html": write_whole(folder / "migrate.html", render_lake_plan_html(plan)),
        "migrate.md": write_whole(folder / "migrate.md", render_lake_plan_markdown(plan)),
        "migrate.json": write_whole(folder / "migrate.json", text + "\n"),
    }

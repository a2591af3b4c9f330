"""Where do the files of a scaling report go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gpuledger import __version__
from gpuledger.errors import UnknownName
from gpuledger.report.charts import Drawing
from gpuledger.report.scaling_charts import scaling_drawings
from gpuledger.report.scaling_html import render_scaling_html
from gpuledger.report.scaling_markdown import render_scaling_markdown
from gpuledger.report.theme import load_theme
from gpuledger.report.write import Progress, write_charts, write_whole
from gpuledger.scaling.encode import to_json
from gpuledger.scaling.statement import ScalingStatement

FORMATS = ("html", "md", "json")


def write_scaling(
    statement: ScalingStatement,
    out_dir: Path | str,
    formats: Sequence[str] = FORMATS,
    charts: bool = True,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write the documents asked for, and the charts as files; name to path. `progress` hears each step's name."""
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("report format", name, FORMATS)
    folder, say = Path(out_dir), progress or (lambda _: None)
    out: dict[str, Path] = {}
    pictures: dict[str, Path] = {}
    drawn: dict[str, Drawing] = {}
    if charts:
        say("drawing the charts")
        drawn = scaling_drawings(statement, load_theme("light"))
        pictures = {f"charts/{n}": p for n, p in write_charts(drawn, folder / "charts", say).items()}
    if "html" in formats:
        say("scaling.html")
        page = render_scaling_html(statement, charts=charts, drawn=drawn)
        out["scaling.html"] = write_whole(folder / "scaling.html", page)
    if "md" in formats:
        say("scaling.md")
        files = {Path(name).stem: name for name in pictures if name.endswith(".png")}
        text = render_scaling_markdown(statement, charts=files, drawn=drawn)
        out["scaling.md"] = write_whole(folder / "scaling.md", text)
    if "json" in formats:
        say("scaling.json")
        text = json.dumps(
            {"made_by": f"gpuledger {__version__}", **to_json(statement)}, indent=2, ensure_ascii=False, allow_nan=False
        )
        out["scaling.json"] = write_whole(folder / "scaling.json", text + "\n")
    return out | pictures

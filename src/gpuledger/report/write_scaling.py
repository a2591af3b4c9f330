"""Where do the files of a scaling report go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger import __version__
from gpuledger.encode import encode
from gpuledger.report.scaling_charts import scaling_drawings
from gpuledger.report.scaling_html import render_scaling_html
from gpuledger.report.scaling_markdown import render_scaling_markdown
from gpuledger.report.write import Document, Progress, check_formats, write_document
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
    check_formats(formats, FORMATS)
    document = Document(
        name="scaling",
        draw=lambda theme: scaling_drawings(statement, theme),
        html=lambda drawn: render_scaling_html(statement, charts=charts, drawn=drawn),
        markdown=lambda files, drawn: render_scaling_markdown(statement, charts=files, drawn=drawn),
        data=lambda: {"made_by": f"gpuledger {__version__}", **encode("scaling", statement)},
    )
    return write_document(document, Path(out_dir), formats, charts, progress)

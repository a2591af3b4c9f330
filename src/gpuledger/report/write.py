"""Where do the report's files go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.errors import UnknownName, map_os_error
from gpuledger.report.charts import Drawing, drawings
from gpuledger.report.html import render_html
from gpuledger.report.markdown import render_markdown
from gpuledger.report.outline import Comparison
from gpuledger.report.theme import load_theme

FORMATS = ("html", "md", "json")
Progress = Callable[[str], None]


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write aside, then take the name: a reader sees the old file or the new one."""
    data = content.encode() if isinstance(content, str) else content
    aside = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(aside).chmod(0o644)
        Path(aside).replace(path)
    except OSError as error:
        if aside:
            Path(aside).unlink(missing_ok=True)
        raise map_os_error(error, path, "write the report") from error
    return path


def write_charts(drawn: Mapping[str, Drawing], folder: Path, progress: Progress | None = None) -> dict[str, Path]:
    """Every chart as PNG and SVG, `NAME.png` to its path."""
    from gpuledger.report.render import compose, svg_to_png, to_svg

    out: dict[str, Path] = {}
    for name, picture in drawn.items():
        if progress:
            progress(f"charts/{name}")
        svg = to_svg(compose(picture, load_theme("light")))
        out[f"{name}.png"] = write_whole(folder / f"{name}.png", svg_to_png(svg))
        out[f"{name}.svg"] = write_whole(folder / f"{name}.svg", svg)
    return out


def write_report(
    statement: EfficiencyStatement,
    out_dir: Path | str,
    formats: Sequence[str] = FORMATS,
    charts: bool = True,
    progress: Progress | None = None,
    *,
    comparison: Comparison | None = None,
    limits: Thresholds | None = None,
) -> dict[str, Path]:
    """Write the documents asked for, and the charts as files; name to path. `progress` hears each step's name."""
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("report format", name, FORMATS)
    folder = Path(out_dir)
    say = progress or (lambda _: None)
    out: dict[str, Path] = {}
    pictures: dict[str, Path] = {}
    drawn: dict[str, Drawing] = {}
    if charts:
        say("drawing the charts")
        drawn = drawings(statement, load_theme("light"), limits or load_thresholds())
        pictures = write_charts(drawn, folder / "charts", say)
    if "html" in formats:
        say("report.html")
        page = render_html(statement, comparison=comparison, charts=charts, drawn=drawn)
        out["report.html"] = write_whole(folder / "report.html", page)
    if "md" in formats:
        say("report.md")
        files = {Path(name).stem: f"charts/{name}" for name in pictures if name.endswith(".png")}
        text = render_markdown(statement, comparison=comparison, charts=files, drawn=drawn)
        out["report.md"] = write_whole(folder / "report.md", text)
    if "json" in formats:
        from gpuledger.efficiency.encode import to_json

        say("report.json")
        text = json.dumps(to_json(statement), indent=2, ensure_ascii=False, allow_nan=False)
        out["report.json"] = write_whole(folder / "report.json", text + "\n")
    return out | {f"charts/{name}": path for name, path in pictures.items()}

"""Where do the report's files go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.errors import UnknownName, map_os_error
from gpuledger.plain_text import json_text
from gpuledger.report.charts import Drawing, drawings
from gpuledger.report.html import render_html
from gpuledger.report.markdown import render_markdown
from gpuledger.report.outline import Comparison
from gpuledger.report.theme import Theme, load_theme

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


@dataclass(frozen=True)
class Document:
    """A report to be written: the name of its files, and who draws its charts and makes its page and twins."""

    name: str
    draw: Callable[[Theme], dict[str, Drawing]]
    html: Callable[[dict[str, Drawing]], str]
    markdown: Callable[[dict[str, str], dict[str, Drawing]], str]
    data: Callable[[], Mapping[str, Any]]


def check_formats(formats: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse a format nobody writes."""
    for name in formats:
        if name not in allowed:
            raise UnknownName("report format", name, allowed)


def write_document(
    document: Document, folder: Path, formats: Sequence[str], charts: bool, progress: Progress | None
) -> dict[str, Path]:
    """Page, Markdown and JSON as asked for, and the charts as files; name to path."""
    say = progress or (lambda _: None)
    drawn: dict[str, Drawing] = {}
    pictures: dict[str, Path] = {}
    if charts:
        say("drawing the charts")
        drawn = document.draw(load_theme("light"))
        pictures = {f"charts/{n}": p for n, p in write_charts(drawn, folder / "charts", say).items()}
    files = {Path(name).stem: name for name in pictures if name.endswith(".png")}
    made: dict[str, Callable[[], str]] = {
        "html": lambda: document.html(drawn),
        "md": lambda: document.markdown(files, drawn),
        "json": lambda: json_text(document.data(), indent=2) + "\n",
    }
    out: dict[str, Path] = {}
    for kind in (k for k in made if k in formats):
        name = f"{document.name}.{kind}"
        say(name)
        out[name] = write_whole(folder / name, made[kind]())
    return out | pictures


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
    from gpuledger.efficiency.statement import to_json

    check_formats(formats, FORMATS)
    shown = limits or load_thresholds()
    document = Document(
        name="report",
        draw=lambda theme: drawings(statement, theme, shown),
        html=lambda drawn: render_html(statement, comparison=comparison, charts=charts, drawn=drawn),
        markdown=lambda files, drawn: render_markdown(statement, comparison=comparison, charts=files, drawn=drawn),
        data=lambda: to_json(statement),
    )
    return write_document(document, Path(out_dir), formats, charts, progress)

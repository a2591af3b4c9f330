"""Where do a document's files go? All of them into one folder, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuledger.arguments import names_of, refuse_unknown
from gpuledger.errors import UnknownName, map_os_error
from gpuledger.lake.layout import write_atomically
from gpuledger.plain_text import json_text
from gpuledger.report.charts import Drawing, need_charts
from gpuledger.report.document import Document
from gpuledger.report.documents import maker_of
from gpuledger.report.render.html import draw_charts, render_html
from gpuledger.report.render.markdown import render_markdown
from gpuledger.report.theme import load_theme

FORMATS = ("html", "md", "json", "csv")
Progress = Callable[[str], None]


def write_document(
    document: Document,
    out_dir: Path | str,
    formats: Sequence[str] = FORMATS,
    charts: bool = True,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write page, Markdown, JSON and CSV files as asked for, and the charts as files; name to path.

    `progress` is called with the name of each step.
    """
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("report format", name, FORMATS)
    folder, say = Path(out_dir), progress or (lambda _: None)
    drawn: dict[str, Drawing] = {}
    pictures: dict[str, Path] = {}
    if charts:
        need_charts()
        say("drawing the charts")
        drawn = draw_charts(document)
        pictures = _write_charts(drawn, folder / "charts", say)
    shown = {name: (found, f"charts/{name}.png") for name, found in drawn.items()}
    made: dict[str, Callable[[], str]] = {
        f"{document.name}.html": lambda: render_html(document, drawn),
        f"{document.name}.md": lambda: render_markdown(document, shown),
        f"{document.name}.json": lambda: json_text(document.data(), indent=2) + "\n",
        **document.files,
    }
    out: dict[str, Path] = {}
    for name, make in made.items():
        kind = Path(name).suffix.removeprefix(".")
        if kind in formats or kind not in FORMATS:  # of another kind: a manifest to paste
            say(name)
            out[name] = write_whole(folder / name, make())
    return out | pictures


def write_report(
    statement: object,
    out_dir: Path | str,
    formats: Sequence[str] = FORMATS,
    charts: bool = True,
    progress: Progress | None = None,
    **more: Any,
) -> dict[str, Path]:
    """Write any statement as its document; `more` is passed on to the document."""
    make = maker_of(statement)
    refuse_unknown("write_report", more, (*names_of(write_report), *names_of(make)[1:]))
    return write_document(make(statement, **more), out_dir, formats, charts, progress)


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write aside, then take the name: a reader sees the old file or the new one."""
    try:
        write_atomically(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise map_os_error(error, path, "write the report") from error
    return path


def _write_charts(drawn: Mapping[str, Drawing], folder: Path, say: Progress) -> dict[str, Path]:
    """Every chart as PNG and SVG, `charts/NAME.png` to its path."""
    from gpuledger.report.render.pictures import dressed, svg_to_png, to_svg

    out: dict[str, Path] = {}
    for name, picture in drawn.items():
        say(f"charts/{name}")
        svg = to_svg(dressed(picture, load_theme("light")))
        for file, content in ((f"{name}.png", svg_to_png(svg)), (f"{name}.svg", svg)):
            out[f"charts/{file}"] = write_whole(folder / file, content)
    return out

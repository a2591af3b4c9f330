"""How does a page of the dashboard look? A document of the reports, within a frame of navigation and filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment

from gpuledger import __version__
from gpuledger.catalog.files import data_dir
from gpuledger.plain_text import visible
from gpuledger.report.charts import can_draw
from gpuledger.report.document import Document
from gpuledger.report.render.html import LONG_HEADLINE, colors, draw_charts, environment
from gpuledger.web.contract import Filters, Status

PAGES = (
    ("/", "Overview"), ("/timeline", "Timeline"), ("/gpus", "GPUs"), ("/owners", "Owners"),
    ("/savings", "Waste and savings"), ("/energy", "Energy"), ("/plans", "Plans"), ("/data", "Data"),
)  # fmt: skip

WINDOWS = (("all", "all"), ("24h", "last day"), ("7d", "last week"), ("30d", "last 30 days"))


@dataclass(frozen=True)
class Asked:
    """What an address asks for: its path, and its filters."""

    path: str
    filters: Filters

    def query(self, **more: Any) -> str:
        """The filters as an address writes them, with some parameters more."""
        pairs = [
            (k, v) for k, value in vars(self.filters).items() for v in ((value,) if isinstance(value, str) else value)
        ]
        pairs += [(k, str(v)) for k, v in more.items()]
        written = urlencode([(k, v) for k, v in pairs if v != ""])
        return f"?{written}" if written else ""

    def gpu_href(self, device: str) -> str:
        """Where the page of a GPU is, with the same filters."""
        return f"/gpus/{quote(device, safe='')}{self.query()}"


def page(
    document: Document, asked: Asked, status: Status, names: Mapping[str, Sequence[str]], default_last: str = "all",
    **more: Any,
) -> str:  # fmt: skip
    """A whole page; `names`: what the filters may choose from. `default_last`: the window where none is asked for."""
    drawn = draw_charts(document) if can_draw() else {}
    named = dict(WINDOWS)
    given = [(last, f"last {last}") for last in (default_last, asked.filters.last) if last and last not in named]
    windows = dict((*WINDOWS, *given)).items()
    more |= {"drawn": drawn, "windows": windows, "default_last": default_last}
    return _render("page.html", asked, status, names, document=document, **more)


def message(title: str, words: str, hint: str, asked: Asked, status: Status) -> str:
    """A page without figures: loading, empty, an error."""
    return _render("message.html", asked, status, {}, title=title, words=words, hint=hint)


def _render(template: str, asked: Asked, status: Status, names: Mapping[str, Sequence[str]], **more: Any) -> str:
    document = more.get("document")
    made = _templates().get_template(template)
    text = made.render(
        asked=asked, gpu_href=asked.gpu_href, status=status, names=names, pages=PAGES, version=__version__,
        long=document is not None and len(document.headline) > LONG_HEADLINE, **more,
    )  # fmt: skip
    return visible(text, lines=True)


@cache
def _templates() -> Environment:
    return environment(str(data_dir("gpuledger.web", "templates")))


@cache
def static_files() -> Mapping[str, tuple[str, str]]:
    """By name the text and the type of what pages load."""
    report, own = data_dir("gpuledger.report", "templates"), data_dir("gpuledger.web", "templates")
    style = "\n".join((colors(), (report / "style.css").read_text("utf-8"), (own / "web.css").read_text("utf-8")))
    script = "\n".join((report / "page.js").read_text("utf-8") if name == "page.js" else (own / name).read_text("utf-8")
                       for name in ("page.js", "web.js"))  # fmt: skip
    return {"style.css": (style, "text/css"), "page.js": (script, "text/javascript")}

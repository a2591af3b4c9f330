"""How is metric text read: an exporter's page, OpenMetrics text, `promtool tsdb dump`?

DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45                      a page
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45 1768900000000        a page with times, in ms
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45 1768900000.5         OpenMetrics, in seconds
{UUID="GPU-1", __name__="DCGM_FI_DEV_GPU_UTIL", gpu="0"} 45 1768900000000    promtool tsdb dump
{"DCGM_FI_DEV_GPU_UTIL", "k8s.node"="n1", UUID="GPU-1"} 45         names in quotes, since Prometheus 3
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Opened, Seen
from gpuledger.telemetry.requests import is_of_requests, may_be_served, names_server, requests_note, servers_among
from gpuledger.telemetry.series import FARTHEST_MS, Points
from gpuledger.telemetry.series.exporters import NAME, readings
from gpuledger.telemetry.series.opening import MOST_WRONG_LINES, SHOWN_CHARS, opened, read_once
from gpuledger.telemetry.series.pivot import pivot
from gpuledger.telemetry.unpacking import text_lines

_COMMENT = re.compile(rb"# (HELP|TYPE|UNIT) [a-zA-Z_:][a-zA-Z0-9_:]* |# EOF\s*$", re.MULTILINE)
_DUMPED = re.compile(rb'\s*\{(?:[a-zA-Z_][a-zA-Z0-9_]*="|"[^"\\\n]+"(?:="|\s*[,}]))')
# How many lines are looked at.
FIRST_LINES = 20
_NAME = re.compile(r'(?:.*[{\s,]__name__="|\s*\{"|\s*)([a-zA-Z_:][a-zA-Z0-9_:]*)')


def _score(head: Head) -> Seen:
    """Lines of metrics; those of a model server without a reading of a GPU are another format's."""
    if not (why := is_metric_text(head)):
        return NOT_SEEN
    return Seen(Fit.LIKELY if server_of(head) else Fit.SURE, f"lines of metrics ({why})")


def is_metric_text(head: Head) -> str:
    """What shows lines of metrics: a comment, the first series, or a line that can be nothing but a sample."""
    if head.text and (found := _COMMENT.match(head.first) or _DUMPED.match(head.first)):
        return found[0].decode(errors="replace").strip()
    lines = islice((line for line in head.lines if not line.startswith("#")), FIRST_LINES)
    return next((line[:40] for line in lines if _is_sample(line)), "")


def server_of(head: Head) -> str:
    """The model server whose metrics a page has; empty where it has readings of GPUs too."""
    lines = head.page.splitlines() if may_be_served(head.page) else []
    found = (sample(line) for line in lines if not line.startswith("#"))
    names = {(series_labels(one.series) or {}).get(NAME, "") for one in found if one}
    servers = servers_among(names)
    return servers[0].name if servers and names.isdisjoint(readings()) else ""


def _read(path: Path) -> Opened:
    """All points are read here: a row needs the metrics of its device, which stand far apart."""
    reader = _Reader(path)
    for number, line in enumerate(text_lines(path, ends=True), start=1):
        reader.take(number, line)
    return reader.opened()


class _Reader:
    """One file being read. A series is looked up by its text; what it means is decided once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points = Points()
        self.wrong: list[tuple[int, str]] = []
        self.series: dict[str, int] = {}
        self.untimed: dict[int, tuple[int, float]] = {}
        self.timed = False

    def take(self, number: int, line: str) -> None:
        """One line of the file."""
        head, end, tail = line.rpartition("} ")
        series = self.series.get(head) if end else None
        if series is not None:  # the usual line of a dump: its labels need no second look
            numbers = numbers_of(tail)
            if numbers is not None and numbers[1] is not None:
                self.timed = True
                self.points.add(series, numbers[1], numbers[0])
                return
        text = line.strip()
        if not text or text.startswith("#"):
            return
        found = sample(text)
        labels = series_labels(found.series) if found else None
        if found is None or labels is None:
            name = _NAME.match(text)
            if name is None or "{" not in text or name[1] in readings():
                self._wrong(number, text)
            return
        key = found.series.removesuffix("}")
        if key not in self.series:
            self.series[key] = self.points.series(labels)
        self._add(number, line, self.series[key], found)

    def _add(self, number: int, line: str, series: int, found: Sample) -> None:
        if found.at_ms is not None:
            self.timed = True
            self.points.add(series, found.at_ms, found.value)
        elif series in self.untimed and not self.timed:
            raise FileFault(
                self.path,
                f"lines {self.untimed[series][0]} and {number} are of one series and have no time: it is several pages",
                hint="import one page at a time with --at TIME",
            )
        else:
            self.untimed[series] = number, found.value
            if self.timed and _known(found.series):
                self._wrong(number, line.strip())

    def _wrong(self, number: int, text: str) -> None:
        self.wrong.append((number, text[:SHOWN_CHARS]))
        if len(self.wrong) > MOST_WRONG_LINES:
            raise FileFault(
                self.path, f"more than {MOST_WRONG_LINES:,} lines are not metrics", hint="check the file's beginning"
            )

    def opened(self) -> Opened:
        """The whole file."""
        if not self.timed:
            for series, (_, value) in self.untimed.items():
                self.points.add(series, 0, value)
        made = opened(self.path, pivot(self.points, timed=self.timed), self.wrong, "a page of metrics")
        made.notes.extend(requests_note(self._last, {labels.get(NAME, "") for labels in self.points.labels}))
        return made

    def _last(self) -> Iterator[tuple[dict[str, str], float]]:
        """The last value of each series of a model server."""
        series, at_ms, values = self.points.arrays()
        asked = [n for n, labels in enumerate(self.points.labels) if is_of_requests(labels.get(NAME, ""))]
        mine = np.flatnonzero(np.isin(series, asked))
        order = mine[np.argsort(at_ms[mine], kind="stable")]
        last = dict(zip(series[order].tolist(), values[order].tolist(), strict=True))
        return ((self.points.labels[number], value) for number, value in last.items())


def _is_sample(line: str) -> bool:
    """Whether a line is a sample of a known metric, or of any with a name and labels: `NAME{LABEL="TEXT"} VALUE`."""
    found = sample(line)
    name = (labels := (series_labels(found.series) if found else None) or {}).get(NAME, "")
    return name in readings() or names_server(name) or bool(name and len(labels) > 1)


def _known(series: str) -> bool:
    return (series_labels(series) or {}).get(NAME) in readings()


FORMATS.register("metrics")(Format("page of metrics", Kind.TELEMETRY, _score, lambda path: read_once(path, _read)))


_METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_LABEL = rf"(?:[a-zA-Z_][a-zA-Z0-9_.]*|{_QUOTED})={_QUOTED}|{_QUOTED}"
# Everything up to the closing brace is the series; it is looked up as it stands.
LINE = re.compile(
    rf"\s*(?P<series>{_METRIC}|(?:{_METRIC})?\s*\{{\s*(?:(?:{_LABEL})[\s,]*)*\}})"
    r"\s+(?P<numbers>[^#]+)(?:#.*)?"
)
_SERIES = re.compile(rf"\s*(?P<name>{_METRIC})?\s*(?:\{{(?P<labels>.*)\}})?\s*", re.DOTALL)
_PAIR = re.compile(
    rf"\s*(?:(?P<name>[a-zA-Z_][a-zA-Z0-9_.]*|{_QUOTED})\s*=\s*(?P<text>{_QUOTED})|(?P<metric>{_QUOTED}))\s*,?"
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
# Seconds below, milliseconds above, for any time from 2000 to 2100.
_SECONDS_BELOW = 1e11


class Sample(NamedTuple):
    """One line: the text of its series, its value, and its time in ms where the line has one."""

    series: str
    value: float
    at_ms: int | None


def sample(line: str) -> Sample | None:
    """The line as a sample; None where it is not one."""
    found = LINE.fullmatch(line)
    numbers = numbers_of(found["numbers"]) if found else None
    return Sample(found["series"], *numbers) if found and numbers else None


def numbers_of(text: str) -> tuple[float, int | None] | None:
    """The value and the time in ms that stand behind a series; None where they are not numbers."""
    words = text.split()
    try:
        value = float(words[0])
        if len(words) == 1:
            return value, None
        time = float(words[1])
        at_ms = round(time * 1000 if abs(time) < _SECONDS_BELOW else time)
        return (value, at_ms) if len(words) == 2 and abs(at_ms) < FARTHEST_MS else None
    except (ValueError, OverflowError, IndexError):
        return None


def series_labels(text: str) -> dict[str, str] | None:
    """The labels a series is written with, the metric's name among them; None where the text is not a series."""
    found = _SERIES.fullmatch(text)
    if found is None or (found["name"] is None and found["labels"] is None):
        return None
    labels = {NAME: found["name"]} if found["name"] else {}
    inner, place = found["labels"] or "", 0
    while place < len(inner):
        pair = _PAIR.match(inner, place)
        if pair is None:
            return labels if not inner[place:].strip() else None
        if pair["metric"]:
            labels[NAME] = _plain(pair["metric"])
        else:
            name = pair["name"]
            labels[_plain(name) if name[0] == '"' else name] = _plain(pair["text"])
        place = pair.end()
    return labels


def _plain(quoted: str) -> str:
    return _ESCAPE.sub(lambda e: _ESCAPED.get(e[1], e[0]), quoted[1:-1])

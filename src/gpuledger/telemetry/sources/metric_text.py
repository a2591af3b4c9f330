"""How is metric text read: an exporter's page, OpenMetrics text, `promtool tsdb dump`?"""

from __future__ import annotations

import re
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.series.exporters import readings
from gpuledger.telemetry.series.opening import MOST_WRONG_LINES, SHOWN_CHARS, opened, read_once, text_lines
from gpuledger.telemetry.series.pivot import pivot
from gpuledger.telemetry.series.points import Points
from gpuledger.telemetry.series.text import Sample, numbers_of, sample, series_labels
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened

_COMMENT = re.compile(rb"# (HELP|TYPE|UNIT) [a-zA-Z_:][a-zA-Z0-9_:]* |# EOF\s*$", re.MULTILINE)
_DUMPED = re.compile(rb'\s*\{[a-zA-Z_][a-zA-Z0-9_]*="')
_NAME = re.compile(r'(?:\s*|.*[{\s,]__name__=")([a-zA-Z_:][a-zA-Z0-9_:]*)')


class MetricText:
    """One sample per line; lines of a series need not stand together."""

    def fits(self, head: Head) -> Fit:
        """Its comments, its first series, or a line that reads as a sample of a known metric."""
        if head.broken or b"\x00" in head.first:
            return Fit.NO
        if _COMMENT.match(head.first) or _DUMPED.match(head.first):
            return Fit.SURE
        lines = head.first.decode("utf-8", "replace").splitlines()[:20]
        known = any((found := sample(line)) and _known(found.series) for line in lines)
        return Fit.SURE if known else Fit.NO

    def open(self, path: Path) -> Opened:
        """All points are read here: a row needs the metrics of its device, which stand far apart."""
        return read_once(path, _read)


def _read(path: Path) -> Opened:
    reader = _Reader(path)
    for number, line in enumerate(text_lines(path), start=1):
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
            if self.timed:
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
        return opened(self.path, pivot(self.points, timed=self.timed), self.wrong)


def _known(series: str) -> bool:
    name = _NAME.match(series)
    return name is not None and name[1] in readings()


SOURCES.register("metrics")(MetricText())

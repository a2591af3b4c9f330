"""How is the CSV of a Grafana panel read, or any CSV with one row per metric?

"Time","{__name__=""DCGM_FI_DEV_GPU_UTIL"", UUID=""GPU-1""}",...     series joined by time: one column per series
"Time","Metric","Value"                                              series to rows
"Time","UUID","__name__","gpu","Value"                               format: table
timestamp,metric,UUID,gpu,value                                      one row per metric, as scripts write it

Inspect, Data, Download CSV writes these; "Download for Excel" puts a line sep=, first. Several frames stand below one
another, each with its header, with an empty line between.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.metric_text import series_labels
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.exporters import NAME, readings
from gpuledger.telemetry.series.opening import SHOWN_CHARS, opened, read_once
from gpuledger.telemetry.series.pivot import pivot
from gpuledger.telemetry.stamps import Fault, StampReader
from gpuledger.telemetry.unpacking import text_lines

_SEPARATORS = ",;\t"
_EXCEL = re.compile(r"\s*sep=(.)\s*", re.IGNORECASE)
_EMPTY = frozenset(("", "null", "undefined", "nan", "-"))
_WITH_UNIT = re.compile(r"[-+]?\d[\d.,]*\s*[A-Za-z%°µ/]+.*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TIMES = ("time", "timestamp", "ts", "datetime")
_METRICS = (NAME, "metric", "metric_name", "name")

# Takes the cells of a row; gives the series and values in it.
_Frame = Callable[[list[str]], Iterable[tuple[int, str]]]


def _score(head: Head) -> Seen:
    """A time first, and columns that name series, or a metric and a value."""
    separator, lines = _separator(head.lines)
    rows = csv.reader(lines[:2], delimiter=separator)
    header, first = next(rows, []), next(rows, [])
    shape = _shape(header) or ("long" if _is_long(header, first) else "")
    return sure(shape and f"its columns stand for series ({shape})")


def _separator(lines: list[str]) -> tuple[str, list[str]]:
    """The separator of the cells, and the lines without the one that names it."""
    if lines and (named := _EXCEL.fullmatch(lines[0])):
        return named[1], lines[1:]
    first = lines[0] if lines else ""
    outside = re.sub(r'"(?:[^"]|"")*"', "", first)
    return max(_SEPARATORS, key=outside.count), lines


def _shape(header: list[str]) -> str:
    """How the columns stand for series: joined, rows, table or matrix; empty where they do not."""
    names = [h.strip() for h in header]
    if len(names) > 1 and names[0].startswith("Time\\"):
        return "matrix"
    if len(names) < 2 or names[0].lower() != "time":
        return ""
    if [n.lower() for n in names[1:]] == ["metric", "value"]:
        return "rows"
    if NAME in names and any(n == "Value" or n.startswith("Value #") for n in names):
        return "table"
    return "joined" if any("{" in n and series_labels(n) for n in names[1:]) else ""


def _place(header: list[str], names: Iterable[str]) -> int | None:
    """Where the first of these names stands in a header, in any case."""
    found = [h.strip().lower() for h in header]
    return next((found.index(name) for name in names if name in found), None)


def _is_long(header: list[str], first: list[str]) -> bool:
    """Whether each row is one metric at one time: it has a time, a value and the name of a metric that is known."""
    metric = _place(header, _METRICS)
    known = metric is not None and len(first) == len(header) and first[metric].strip() in readings()
    return known and _place(header, _TIMES) is not None and _place(header, ("value",)) is not None


def _read(path: Path) -> Opened:
    reader = _Reader(path)
    reader.read()
    reader.check_times()
    return opened(path, pivot(reader.points, times=list(reader.times)), reader.wrong)


class _Reader:
    """One file being read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points = Points()
        self.times: dict[str, int] = {}
        self.wrong: list[tuple[int, str]] = []
        self.numbers = 0
        self.with_unit = ""
        self.time = 0  # its place in a row

    def read(self) -> None:
        """All frames of the file."""
        take: _Frame | None = None
        for number, cells in self._rows():
            if not any(c.strip() for c in cells):
                take = None  # an empty line ends a frame
            elif take is None:
                self.time = _place(cells, _TIMES) or 0
                take = self._frame(cells)
            else:
                self._row(number, cells, take)
        if self.with_unit and not self.numbers:
            raise FileFault(
                self.path,
                f"its values are rounded and have units ({self.with_unit!r})",
                hint="in Grafana's panel inspector switch off 'Formatted data' and download the CSV again",
            )

    def check_times(self) -> None:
        """A fault where not one time can be read: Grafana writes them as the browser or the dashboard formats them."""
        _, faults = StampReader(()).read(pa.array(self.times, pa.string()))
        if len(faults) and (faults == Fault.WRONG).all():
            raise FileFault(
                self.path,
                f"its times are written as a browser shows them ({next(iter(self.times))[:SHOWN_CHARS]!r})",
                hint="in Grafana's panel inspector switch off 'Formatted data' and download the CSV again:"
                " times are then numbers, which have no time zone to guess (from a script, write ISO 8601)",
            )

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        lines = text_lines(self.path, ends=True)
        first = next(lines, "").removeprefix("\ufeff")
        separator, rest = _separator([first])
        numbered = csv.reader([*rest, *lines] if rest else lines, delimiter=separator)
        try:
            for cells in numbered:
                yield numbered.line_num + (0 if rest else 1), cells
        except csv.Error as error:
            where = f"line {numbered.line_num + (0 if rest else 1)} cannot be cut into cells"
            hint = "look there for a stray line break (\\r) or a quote that is not closed, or export the CSV again"
            raise FileFault(self.path, where, hint=hint) from error

    def _frame(self, header: list[str]) -> _Frame:
        shape = _shape(header)
        names = [h.strip() for h in header]
        if shape == "rows":
            return lambda cells: [(self._series(cells[1]), cells[2])]
        if shape == "table" or (not shape and None not in (_place(names, _METRICS), _place(names, ("value",)))):
            return self._table(names)
        if shape in ("", "matrix"):
            raise FileFault(
                self.path,
                f"its columns do not say which metric and which GPU they are of: {', '.join(names[:4])}",
                hint="in Grafana set the query's Legend to Verbose, or its Format to Table, leave out transformations"
                " such as 'Grouping to matrix', and export again",
            )
        series = [(place, self._series(name)) for place, name in enumerate(names) if place]
        return lambda cells: [(number, cells[place]) for place, number in series]

    def _table(self, names: list[str]) -> _Frame:
        values = [p for p, name in enumerate(names) if name.lower() == "value" or name.startswith("Value #")]
        metric = _place(names, _METRICS)
        called = {p: NAME if p == metric else n for p, n in enumerate(names) if p != self.time and p not in values}
        labels = [(p, n) for p, n in called.items() if _LABEL.fullmatch(n)]

        def take(cells: list[str]) -> list[tuple[int, str]]:
            number = self.points.series({name: cells[place].strip() for place, name in labels})
            return [(number, cells[place]) for place in values]

        return take

    def _series(self, text: str) -> int:
        labels = series_labels(text.strip())
        if labels is not None and NAME not in labels:
            raise FileFault(
                self.path,
                f"a series does not say which metric it is: {text.strip()[:SHOWN_CHARS]}",
                hint="in Grafana set the query's Legend to Verbose, or its Format to Table, and export again",
            )
        return self.points.series(labels or {NAME: text.strip()})

    def _row(self, number: int, cells: list[str], take: _Frame) -> None:
        try:
            found, time = list(take(cells)), cells[self.time].strip()
        except IndexError:
            self.wrong.append((number, ",".join(cells)[:SHOWN_CHARS]))
            return
        at = self.times.setdefault(time, len(self.times))
        for series, text in found:
            word = text.strip()
            if word.lower() in _EMPTY:
                continue
            try:
                self.points.add(series, at, float(word))
                self.numbers += 1
            except ValueError:
                self.wrong.append((number, word[:SHOWN_CHARS]))
                if _WITH_UNIT.fullmatch(word):
                    self.with_unit = self.with_unit or word[:SHOWN_CHARS]


FORMATS.register("grafana")(
    Format("CSV of a Grafana panel", Kind.TELEMETRY, _score, lambda path: read_once(path, _read))
)

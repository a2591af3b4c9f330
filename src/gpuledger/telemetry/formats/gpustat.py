"""What does gpustat print, once or in a loop (-i)?

A line per GPU, after a header with the host, the time and the driver (none with --no-header). With -F the first percent
is the fan; the last one is the utilization. What is not supported is `??`. MB are MiB: gpustat divides by 1024 * 1024.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.logs import Row, Wrong, of_rows
from gpuledger.telemetry.unpacking import text_lines

# Colors and what clears the screen in a loop.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[(][AB0]|\x1b[=>78]|\x0f|\r")
_LINE = re.compile(
    r"\[(?P<gpu>\d+)\] *(?P<model>[^|]*?) *\|"
    r" *(?P<temp>\d+|\?\?)[^\d|]{0,4}C, *(?P<shares>[^|(]*?%)"
    r"(?: \((?:E: *(?P<enc>\d+|\?\?) %)? *(?:D: *(?P<dec>\d+|\?\?) %)?\))?"
    r"(?:, *(?P<power>\d+|\?\?)(?: */ *(?P<limit>\d+|\?\?))? *W)?"
    r" *\| *(?P<used>\d+|\?\?) */ *(?P<total>\d+|\?\?) MB\b"
)
_COLUMNS = {
    "gpu": "gpu",
    "model": "model",
    "temp": "temperature [C]",
    "enc": "encoder [%]",
    "dec": "decoder [%]",
    "power": "power [W]",
    "limit": "power limit [W]",
    "used": "memory used [MiB]",
    "total": "memory total [MiB]",
}
_HEADER = re.compile(r"(?P<host>\S+) +(?P<time>\S+ .*?\d{4}\b(?: [\d:]+(?: [AP]M)?)?)(?: +\S+)*")
# In the C locale, which Python keeps unless told otherwise, and in that of the United States.
_STAMPS = ("%a %b %d %H:%M:%S %Y", "%a %d %b %Y %I:%M:%S %p", "%a %d %b %Y %H:%M:%S")


def _score(head: Head) -> Seen:
    """By the first line of a GPU."""
    found = (_LINE.match(_plain(line)) for line in head.lines)
    return sure(next((f"the line {match[0][:40]}" for match in found if match), None))


def _read(path: Path) -> Opened:
    return of_rows(path, "gpustat", _rows)


def _rows(path: Path) -> Iterator[Row | Wrong]:
    """The rows of all rounds, each with what its header said. Processes below a GPU (├─) are passed over."""
    said: dict[str, str] = {}
    for number, line in enumerate(map(_plain, text_lines(path)), 1):
        if found := _LINE.match(line):
            yield said | _cells(found)
        elif re.match(r"\[\d+\]", line):
            yield Wrong(number, line)
        elif stamped := _header(line):
            said = stamped


def _plain(line: str) -> str:
    return _ESCAPES.sub("", line).strip()


def _cells(found: re.Match[str]) -> dict[str, str]:
    """A GPU's readings; those that are not supported are left out."""
    cells = {column: found[name] for name, column in _COLUMNS.items()}
    cells["util [%]"] = found["shares"].split("%")[-2].strip(" ,")
    return {column: cell for column, cell in cells.items() if cell and cell != "??"}


def _header(line: str) -> dict[str, str]:
    """Host and time of a round; empty for other lines."""
    found = _HEADER.fullmatch(line)
    if found is None:
        return {}
    for stamp in _STAMPS:
        with suppress(ValueError):
            return {"host": found["host"], "time": dt.datetime.strptime(found["time"], stamp).isoformat(" ")}
    return {}


FORMATS.register("gpustat")(Format("gpustat", Kind.TELEMETRY, _score, _read))

"""Labels that act where they are shown: from a file through the whole report, checked in every output."""

from __future__ import annotations

import csv as csv_format
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from random import Random

from mutate import TOKENS

import gpuledger
from targets import Seed, Target, files_of

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg/onload=alert(1)>", "=1+1", "@SUM(A1)",
    "-2+3", "+cmd|' /C calc'!A0", "\x1b[2J\x1b]0;x\x07", "\u202etxt.exe", "|a|b|", "[x](javascript:alert(1))", "`x`",
    "../../etc/passwd", "a\nb", 'a"} 1\nfake_metric{x="', "\\", "${x}", "{{7*7}}",
    "</script><script>alert(1)</script>",
]  # fmt: skip
_LIVE = re.compile(r"<script>alert|<img src=x|<svg/onload|javascript:alert\(1\)\"|href=\"javascript:", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class Unsafe(AssertionError):
    """Text of a label that acts where it is shown."""


def made(rng: Random) -> Seed:
    """A small fleet whose labels are hostile."""
    names = [
        "timestamp",
        "Hostname",
        "gpu",
        "UUID",
        "modelName",
        "namespace",
        "pod",
        "cluster",
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_POWER_USAGE",
    ]
    words = [
        rng.choice([*HOSTILE, *HOSTILE, *TOKENS]).replace("\x00", "").encode("utf-8", "replace").decode()
        for _ in range(4)
    ]
    rows = [names]
    for minute in range(0, 60, 5):
        at = f"2026-01-20T10:{minute:02d}:00Z"
        rows.append(
            [
                at,
                words[0] or "h",
                "0",
                "GPU-1",
                "NVIDIA H100 80GB HBM3",
                words[1],
                words[2],
                words[3],
                str(minute),
                "300",
            ]
        )
    from io import StringIO

    text = StringIO()
    csv_format.writer(text).writerows(rows)
    return Seed("labels.csv", text.getvalue().encode())


def reported(path: Path) -> object:
    """The audit of the file as page, Markdown, JSON and CSV; none of them may act on what a label holds."""
    with tempfile.TemporaryDirectory() as folder:
        audit = gpuledger.read(path).audit(prices=2.5)
        written = audit.save(Path(folder) / "report", charts=False)
        for file in {f for f in (Path(folder) / "report").rglob("*") if f.is_file()}:
            _check(file)
        return len(written)


def _check(file: Path) -> None:
    text = file.read_bytes().decode("utf-8")
    kind = file.suffix
    if kind in (".html", ".svg") and (found := _LIVE.search(text)):
        raise Unsafe(f"{file.name}: {found[0]!r} is live")
    if kind in (".html", ".md", ".json", ".csv") and (found := _CONTROL.search(text)):
        raise Unsafe(f"{file.name}: control character {found[0]!r}")
    if kind == ".svg":
        ET.fromstring(text)
    if kind == ".csv":
        cells = (cell for row in csv_format.reader(text.splitlines()) for cell in row)
        for cell in cells:
            if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(cell):
                raise Unsafe(f"{file.name}: {cell!r} runs in a spreadsheet")


TARGETS = [Target("report of hostile labels", reported, files_of("fuzz/seeds/csv/plain.csv"), 0.04, made)]

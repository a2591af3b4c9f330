"""Which command writes what a tool printed for people to read, so that it can be imported?

Screens, reports, tables in blanks and sums of whole runs are saved often. They are not samples over time; the command
that writes those is named instead of the columns that they lack. So is the way out of JSON that no source knows.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FIELDS = "timestamp,name,uuid,index,utilization.gpu,memory.used,power.draw"
_QUERY = f"nvidia-smi --query-gpu={_FIELDS} --format=csv -l 5 > gpus.csv"
_AMD = "amd-smi monitor -p -t -u -m -v -w 5 --csv > monitor.csv"


class Printed(NamedTuple):
    """What a file is, and what to do instead."""

    what: str
    instead: str


def _screen(what: str, command: str) -> Printed:
    return Printed(f"it is {what}, not samples over time", f"record samples: {command}")


_PRINTED = (
    (re.compile(rb"\|\s+NVIDIA-SMI \d"), _screen("the screen of nvidia-smi", _QUERY)),
    (re.compile(rb"=+NVSMI LOG=+"), _screen("the report of nvidia-smi -q", _QUERY)),
    (
        re.compile(rb"(?m)^ *(TIMESTAMP +)?GPU +(XCP +)?[A-Z][A-Z0-9_%]*( +[A-Z][A-Z0-9_%]*)+ *\r?$"),
        _screen("a table that amd-smi prints without --csv", _AMD),
    ),
    (
        re.compile(rb"=+ ROCm System Management Interface =+"),
        _screen(
            "the screen of rocm-smi",
            "rocm-smi --showuse --showpower --showmeminfo vram --showproductname --csv > rocm.csv",
        ),
    ),
    (
        re.compile(rb'\A\s*(\[\s*)?\{\s*"'),
        Printed(
            "it is JSON of a kind that is not known",
            "write it as CSV, a column per label and reading: pandas.read_json(FILE, lines=True).to_csv('gpus.csv')",
        ),
    ),
    (re.compile(rb"\|\s+AMD-SMI \d"), _screen("the screen of amd-smi", _AMD)),
    (
        re.compile(
            rb"(?i)\A[^\r\n]*\b(codecarbon_version|emissions_rate)\b"
            rb"|\A(?=[^\r\n]*\bduration\b)(?=[^\r\n]*\bemissions\b)[^\r\n]*\benergy_consumed\b"
        ),
        _screen("the emissions file of CodeCarbon, whose rows are runs of all GPUs together", _QUERY),
    ),
)


def printed(first: bytes) -> Printed | None:
    """What the first bytes of a file are the print of; None where they may be anything else."""
    return next((found for mark, found in _PRINTED if mark.search(first)), None)

"""Which command writes what a tool printed for people to read, so that it can be imported?

Screens, reports and tables in blanks are saved often. They are not samples over time; the command that writes those is
named instead of the columns that they lack.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FIELDS = "timestamp,name,uuid,index,utilization.gpu,memory.used,power.draw"
_QUERY = f"nvidia-smi --query-gpu={_FIELDS} --format=csv -l 5 > gpus.csv"
_AMD = "amd-smi monitor -p -t -u -m -v -w 5 --csv > monitor.csv"


class Printed(NamedTuple):
    """What a file is, and the command that writes samples."""

    what: str
    instead: str


_PRINTED = (
    (re.compile(rb"\|\s+NVIDIA-SMI \d"), Printed("the screen of nvidia-smi", _QUERY)),
    (re.compile(rb"=+NVSMI LOG=+"), Printed("the report of nvidia-smi -q", _QUERY)),
    (re.compile(rb"<nvidia_smi_log>|nvsmi_device_v\d+\.dtd"), Printed("the report of nvidia-smi -q -x", _QUERY)),
    (
        re.compile(rb"(?m)^ *(TIMESTAMP +)?GPU +(XCP +)?[A-Z][A-Z0-9_%]*( +[A-Z][A-Z0-9_%]*)+ *\r?$"),
        Printed("a table that amd-smi prints without --csv", _AMD),
    ),
    (
        re.compile(rb"=+ ROCm System Management Interface =+"),
        Printed(
            "the screen of rocm-smi",
            "rocm-smi --showuse --showpower --showmeminfo vram --showproductname --csv > rocm.csv",
        ),
    ),
    (re.compile(rb"\|\s+AMD-SMI \d"), Printed("the screen of amd-smi", _AMD)),
)


def printed(first: bytes) -> Printed | None:
    """What the first bytes of a file are the print of; None where they may be anything else."""
    return next((found for mark, found in _PRINTED if mark.search(first)), None)

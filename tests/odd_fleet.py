"""A fleet of which much is unknown: activity, power, a price, whether busy time did work."""

from __future__ import annotations

import csv
import datetime as dt
from pathlib import Path

# As the columns below, less the time.
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"
ODD = (
    ("GPU-warm", H100, "n1", 0, "", "", "dark", "", "", "", "", "", 50),
    ("GPU-full", H100, "n1", 1, "", "", "dark", "", "", "", "", 70000, ""),
    ("GPU-busy", H100, "n1", 2, "", "", "train", "\u00c9quipe", "zo\u00eb", 95, 500, 60000, 60),
    ("GPU-idle", H100, "n1", 3, "", "", "train", "\u00c9quipe", "zo\u00eb", 0, 70, 0, 35),
    ("GPU-half", "NVIDIA L4", "n2", 0, "", "", "edge", "", "", 50, "", "", ""),
    ("../../etc/passwd", A100, "n3", 0, "", "", "train", "", "", 0, 60, 60000, 40),
    ("GPU-acme", "Acme Frobnicator 9000", "n4", 0, "", "", "odd", "", "", 0, 300, 60000, 60),
    ("GPU-cut", A100, "n5", 0, 1, "2g.20gb", "mig", "", "", 90, 300, 10000, 60),
    ("GPU-cut", A100, "n5", 0, 2, "2g.20gb", "mig", "", "", 90, 300, 10000, 60),
)
_HEADS = (
    "timestamp", "UUID", "modelName", "Hostname", "gpu", "GPU_I_ID", "GPU_I_PROFILE", "namespace", "team", "user",
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP",
)  # fmt: skip


def odd_rows(start: dt.datetime, minutes: int, leave_out: str = "") -> list[list[object]]:
    """Samples of the odd fleet, one per GPU and minute; without the GPUs of one namespace."""
    stamps = ((start + dt.timedelta(minutes=m)).strftime("%Y-%m-%dT%H:%M:%SZ") for m in range(minutes))
    return [[at, *gpu] for at in stamps for gpu in ODD if gpu[6] != leave_out]


def write_odd(file: Path, rows: list[list[object]]) -> Path:
    """The samples as a CSV file that an import reads."""
    with file.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([_HEADS, *rows])
    return file

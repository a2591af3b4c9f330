"""What do tools print that holds no samples of GPUs, and which command gives them instead?

Each is a format too: what the first lines show, what the file is, and a way out that works. `tests/corpus` has one file
of each and runs its way out.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Seen

_AMD = "record samples: amd-smi monitor -p -t -u -m -v -w 5 --csv > monitor.csv"


class Refused(NamedTuple):
    """A format that is refused. `marks`: patterns that all stand in the first lines."""

    name: str
    what: str
    way_out: str
    marks: tuple[str, ...]
    fit: Fit = Fit.SURE


REFUSED = {
    "amd_smi_text": Refused(
        "amd-smi as text", "a table that amd-smi prints without --csv, not samples over time", _AMD,
        (r"^ *(TIMESTAMP +)?GPU +(XCP +)?[A-Z][A-Z0-9_%]*( +[A-Z][A-Z0-9_%]*)+ *$",),
    ),
    "amd_smi_screen": Refused(
        "screen of amd-smi", "the screen of amd-smi, not samples over time", _AMD, (r"\|\s+AMD-SMI \d",)
    ),
    "rocm_smi_screen": Refused(
        "screen of rocm-smi", "the screen of rocm-smi, not samples over time",
        "record samples: rocm-smi --showuse --showpower --showmeminfo vram --showproductname --csv > rocm.csv",
        (r"=+ ROCm System Management Interface =+",),
    ),
    "json": Refused(
        "JSON", "JSON of a kind that is not known",
        "write one row per GPU and time as CSV with the columns time,host,gpu,util [%],power [W],memory used [MiB]",
        (r"\A\s*(\[\s*)?\{\s*[\"}]",), Fit.LIKELY,
    ),
}  # fmt: skip


def _score(one: Refused, head: Head) -> Seen:
    text = "\n".join(head.lines)
    found = [re.search(mark, text, re.MULTILINE) for mark in one.marks]
    return Seen(one.fit, " ".join(m[0].strip()[:40] for m in found if m)) if text and all(found) else NOT_SEEN


for _key, _one in REFUSED.items():
    FORMATS.register(_key)(Format(_one.name, Kind.REFUSED, partial(_score, _one), what=_one.what, way_out=_one.way_out))

#!/usr/bin/env python3
"""What is in docs/reference/columns.md? Every column of a sample with its unit and meaning, and all units read.

python docs/reference/columns.py           write the page
python docs/reference/columns.py --check   exit 1 if the page is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping.rules import EPOCH_UNITS, PARSE_KINDS
from gpuledger.telemetry.measures import units_of

PAGE = Path(__file__).with_suffix(".md")
INTRO = """\
# Columns of a sample

<!-- Written by docs/reference/columns.py from the schema; `make reference` writes it again. -->

A sample is what one GPU reported at one time. Every file is read into these columns, by a built-in layout or by your
own [mapping file](../mapping-files.md). What a file does not record is empty (NULL), never 0.

`at_ms` is the time, in milliseconds since 1970-01-01 UTC. `at_ms` and `gpu_uuid` are the only columns every row must
have. MIG (multi-instance GPU) cuts a board into instances.
"""


def labels() -> str:
    """The columns that name something."""
    rows = [f"| `{c.name}` | {c.meaning} |" for c in schema.columns().values() if c.kind == "label"]
    return "\n".join(["## Labels", "", "| label | meaning |", "|---|---|", *rows, ""])


def readings() -> str:
    """The columns that measure something."""
    grows = {"counter": " (only grows)", "level": ""}
    rows = [
        f"| `{c.name}` | {c.unit} | {c.meaning}{grows[c.kind]} | {c.min:g} to {c.max:g} |"
        for c in schema.columns().values()
        if c.kind in grows
    ]
    intro = "A value outside the range rejects its row: no GPU can have it."
    return "\n".join(
        ["## Readings", "", intro, "", "| reading | unit | meaning | range |", "|---|---|---|---|", *rows, ""]
    )


def units() -> str:
    """The units readings may come in, by the unit of the sample."""
    by_unit: dict[str, tuple[str, ...]] = {}
    for column in schema.readings():
        if known := units_of(column):
            by_unit.setdefault(schema.columns()[column].unit.split(" of ")[0], tuple(known))
    rows = [f"| {unit} | {', '.join(f'`{u}`' for u in known)} |" for unit, known in by_unit.items()]
    intro = (
        "Numbers may come in any of these units: after the number in a cell (`300.12 W`), in brackets after the name\n"
        "of the column (`power.draw [W]`), or as `unit` in a mapping file. Letter case may differ where it leaves one\n"
        "unit only: `mib` is MiB, but `mw` may be mW or MW and is refused. MB is 1,000,000 bytes, MiB 1,048,576."
    )
    heads = ["| unit of the sample | also read |", "|---|---|"]
    epochs = f"Epoch numbers may be in {', '.join(f'`{u}`' for u in EPOCH_UNITS)}."
    return "\n".join(["## Units", "", intro, "", *heads, *rows, "", epochs, ""])


def parsers() -> str:
    """What cells may hold instead of numbers."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in PARSE_KINDS.items()]
    return "\n".join(["## What `parse` reads", "", "| parse | reads |", "|---|---|", *rows, ""])


def page() -> str:
    """The whole page."""
    return "\n".join([INTRO, labels(), readings(), units(), parsers()])


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is stale\nnext: make reference\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

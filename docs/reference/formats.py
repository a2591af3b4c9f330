#!/usr/bin/env python3
"""What is in docs/reference/formats.md? Every file that is refused by name, and the way out.

python docs/reference/formats.py           write the page
python docs/reference/formats.py --check   exit 1 if the page is not what would be written
"""

import sys
from pathlib import Path

from gpuledger.telemetry.formats import FORMATS, Format, Kind

PAGE = Path(__file__).with_suffix(".md")
INTRO = """\
# Refused by name

<!-- Written by docs/reference/formats.py from the formats; `make reference` writes it again. -->

These files are recognized, and hold no samples, jobs, bills, runs or requests that can be read. The error names what
the file is, what in it shows that, and a way out; FILE is the file. [What is read](../formats.md) is on its own page.
"""
by_way = dict[str, list[str]]()
for _, made in FORMATS:
    if isinstance(made, Format) and made.kind is Kind.REFUSED:
        by_way.setdefault(made.way_out, []).append(f"- **{made.name}**: {made.what}")
parts = [
    "\n".join(["", *sorted(whats), "", "```text", way, "```", ""])
    for way, whats in sorted(by_way.items(), key=lambda one: (-len(one[1]), sorted(one[1])))
]
text = INTRO + "".join(parts)
if "--check" not in sys.argv[1:]:
    PAGE.write_text(text, encoding="utf-8")
elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
    sys.exit(f"{PAGE} is stale\nnext: make reference")

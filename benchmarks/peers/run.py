"""How does gpuledger compare with the tools people use today? All comparisons in one run, ratios on one machine.

    python benchmarks/peers/run.py [--only PART ...] [--peers PYTHON] [--update docs/results/peers.md]

Parts: analysis, startup, memory, flops, recorders, growth. `--peers`: a Python that has pyspark, polars, gpustat,
nvitop, accelerate and ray; what is missing there is named and left out. `--update` writes the page and, next to it, the
figures as JSON; with `--only`, the other parts of the page stay as they were.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
INTRO = """\
# Side by side with other tools

Each comparison runs all sides on one machine in one run: ratios count, not seconds, and those of CPU seconds more than
others, since the machine had other work too. Where another tool is better, the page says so. Repeat it with
`make bench-peers`; a part of it with `python benchmarks/peers/run.py --only PART`.
"""


@dataclass(frozen=True)
class Part:
    """A section of the page: the module that measures it and writes its lines, by the names of its functions."""

    title: str
    module: str
    measure: str = "measure"
    lines: str = "lines"

    def measured(self, asked: argparse.Namespace) -> dict[str, Any]:
        """The figures; a module is loaded only where it is asked for, since some need torch."""
        found: dict[str, Any] = getattr(importlib.import_module(self.module), self.measure)(asked)
        return found

    def written(self, found: dict[str, Any]) -> list[str]:
        """The section."""
        body: list[str] = getattr(importlib.import_module(self.module), self.lines)(found)
        return [f"## {self.title}", "", *body, ""]


PARTS = {
    "analysis": Part("Analysis of a file", "analysis"),
    "startup": Part("Command start-up", "startup"),
    "memory": Part("Memory of training, before it runs", "estimates"),
    "flops": Part("FLOPs for MFU", "flop_counts"),
    "recorders": Part("CPU of a recorder", "kept", "recorders", "recorder_lines"),
    "growth": Part("Growth", "kept", "growth", "growth_lines"),
}


def main() -> int:
    """Measure what is asked for, print it, write it where asked."""
    asked = parsed()
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    figures = asked.update.with_suffix(".json") if asked.update else None
    kept: dict[str, Any] = {}
    if figures is not None and figures.is_file():
        kept = json.loads(figures.read_text(encoding="utf-8"))
    for name in asked.only or PARTS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = PARTS[name].measured(asked)
        kept[name] = {"on": dt.datetime.now(dt.UTC).date().isoformat(), "found": found}
        print("\n".join(PARTS[name].written(found)), flush=True)
        if figures is not None:
            figures.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            asked.update.write_text(page(kept), encoding="utf-8")
    return 0


def page(kept: dict[str, Any]) -> str:
    """The whole page, of all parts measured so far."""
    sections = ["\n".join(part.written(kept[name]["found"])) for name, part in PARTS.items() if name in kept]
    return "\n".join([INTRO, *sections]).rstrip() + "\n"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--peers", default=sys.executable, help="Python that has the other tools (default: this one)")
    parser.add_argument("--update", type=Path, help="write this page and the figures next to it")
    parser.add_argument("--gpus", type=int, nargs="+", default=[50, 500], help="analysis: 10,080 samples per GPU")
    parser.add_argument("--repeat", type=int, default=3, help="analysis: rounds")
    parser.add_argument("--starts", type=int, default=7, help="startup: rounds")
    parser.add_argument("--runs", type=int, default=None, help="memory: only this many of the measured runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

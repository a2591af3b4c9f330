"""What would a fleet of any size cost to keep? Writes docs/scale.md from the weeks that `scale.py` measured.

    python benchmarks/scale_page.py [docs/results/scale.json] [--update docs/scale.md]

The model is stated on the page: costs per sample and per GPU-day are those measured, times the samples and GPU-days
of a fleet. Memory of import and posting is the largest measured: it is bounded, whatever comes. Nothing is typed in but
the fleets asked for.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FLEETS = (1_000, 10_000, 100_000)
STEP_S = 10
CORES = 2
DAY_S = 86_400
MIB, GIB = 1 << 20, 1 << 30
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def costs(weeks: list[dict[str, Any]], gpus: int) -> dict[str, float]:
    """What one sample and one GPU-day cost: medians over weeks, and the line through the statements of all weeks."""
    rows = [w["rows"] for w in weeks]
    gpu_days = [gpus * 7 * (i + 1) for i in range(len(weeks))]
    slope, base = line(gpu_days, [w["analyze"]["seconds"] for w in weeks])
    slope_mib, base_mib = line(gpu_days, [w["analyze"]["peak_mib"] for w in weeks])
    posting = [max(w["post"]["cpu_s"] - w["analyze"]["cpu_s"], 0.0) / n for w, n in zip(weeks, rows, strict=True)]
    return {
        "import_cpu_s": statistics.median(w["import"]["cpu_s"] / n for w, n in zip(weeks, rows, strict=True)),
        "post_cpu_s": statistics.median(posting),
        "sample_bytes": weeks[-1]["samples_mib"] * MIB / sum(rows),
        "gpu_day_bytes": weeks[-1]["ledger_mib"] * MIB / gpu_days[-1],
        "statement_s": slope,
        "statement_base_s": base,
        "statement_mib": slope_mib,
        "statement_base_mib": base_mib,
        "taking_mib": max(w[name]["peak_mib"] for w in weeks for name in ("import", "post")),
        "week_s": statistics.median(w["analyze_week"]["seconds"] for w in weeks),
        "peak_mib": max(w[name]["peak_mib"] for w in weeks for name in ("import", "post", "analyze", "analyze_week")),
    }


def line(x: list[int], y: list[float]) -> tuple[float, float]:
    """Slope and start of the straight line through points."""
    slope, start = statistics.linear_regression(x, y)
    return slope, start


def measured(weeks: list[dict[str, Any]]) -> str:
    """The weeks as they were measured."""
    head = ["samples in the lake", "import s", "post + analyze s", "analyze all s", "analyze 7 days s", "peak MiB"]
    out, rows = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)], 0
    names = ("import", "post", "analyze", "analyze_week")
    for week in weeks:
        rows += week["rows"]
        peak = max(week[name]["peak_mib"] for name in names)
        cells = [f"{rows:,}", *(f"{week[name]['seconds']:.1f}" for name in names), f"{peak:,.0f}"]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def modeled(found: dict[str, float]) -> str:
    """What the costs make of each fleet."""
    head = [
        "GPUs", "samples per day", "samples on disk, 30 days", "lines on disk, 1 year", "import per day",
        "posting per day", "memory of both", "statement of 30 days", "its memory",
    ]  # fmt: skip
    out = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for gpus in FLEETS:
        a_day = gpus * DAY_S // STEP_S
        import_s, post_s = (a_day * found[name] / CORES for name in ("import_cpu_s", "post_cpu_s"))
        statement = found["statement_base_s"] + found["statement_s"] * gpus * 30
        statement_mib = found["statement_base_mib"] + found["statement_mib"] * gpus * 30
        cells = [
            f"{gpus:,}", f"{a_day:,}", f"{30 * a_day * found['sample_bytes'] / GIB:,.0f} GiB",
            f"{365 * gpus * found['gpu_day_bytes'] / GIB:,.0f} GiB", _time(import_s), _time(post_s),
            f"{found['taking_mib'] / 1024:.1f} GiB", _time(statement), f"{statement_mib / 1024:.1f} GiB",
        ]  # fmt: skip
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def _range(weeks: list[dict[str, Any]]) -> str:
    return " to ".join(f"{week['analyze']['peak_mib']:,.0f}" for week in (weeks[0], weeks[-1]))


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def page(weeks: list[dict[str, Any]], gpus: int) -> str:
    """The tables and the costs they rest on."""
    found = costs(weeks, gpus)
    first, last = (w["import"]["seconds"] for w in (weeks[0], weeks[-1]))
    micro = {name: found[name] * 1e6 for name in ("import_cpu_s", "post_cpu_s", "statement_s")}
    return "\n".join([
        BEGIN,
        f"## Measured: {sum(w['rows'] for w in weeks):,} samples",
        "",
        measured(weeks),
        "",
        f"- **New samples cost the same however many are there**: importing the last week took {last:.0f} s, the first",
        f"  {first:.0f} s. Posting grows only by the statement of the whole lake that comes with it.",
        f"- **A statement follows its window**: the last seven days take {found['week_s']:.1f} s at the median,",
        "  however much is in the lake. The hour in which the window begins is posted again from its samples.",
        "- **Memory of import and posting does not grow**: the largest sum over a command and its workers was",
        f"  {found['peak_mib']:,.0f} MiB. A statement holds more for a longer window: {_range(weeks)} MiB.",
        "",
        f"## Modeled: one sample every {STEP_S} s",
        "",
        modeled(found),
        "",
        f"Costs used: {micro['import_cpu_s']:.2f} µs of CPU per sample to import,",
        f"{micro['post_cpu_s']:.2f} µs to post, over {CORES} cores; {found['sample_bytes']:.0f} bytes per sample;",
        f"{found['gpu_day_bytes'] / 1024:.1f} KiB of lines per GPU-day;",
        f"a statement {found['statement_base_s']:.1f} s plus {micro['statement_s']:.0f} µs per GPU-day,",
        f"in {found['statement_base_mib']:.0f} MiB plus {found['statement_mib'] * 1024:.1f} KiB per GPU-day. Import",
        f"and posting hold {found['taking_mib']:,.0f} MiB at most on {CORES} cores, whatever the number of samples.",
        END,
    ])  # fmt: skip


def main() -> None:
    """Print the figures, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weeks", type=Path, nargs="?", default=ROOT / "docs" / "results" / "scale.json")
    parser.add_argument("--gpus", type=int, default=5000, help="the GPUs of the fleet that was measured")
    parser.add_argument("--update", type=Path)
    args = parser.parse_args()
    made = page(json.loads(args.weeks.read_text()), args.gpus)
    if args.update is None:
        print(made)
        return
    text = args.update.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{args.update} has no place for the figures: {BEGIN} ... {END}")
    args.update.write_text(text[: text.index(BEGIN)] + made + text[text.index(END) + len(END) :])


if __name__ == "__main__":
    main()

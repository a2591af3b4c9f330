"""What do the measured runs say about plans of models, as the page of results and the figures of the guide?

Run by plan_models.py: docs/results/plans-models.md is written whole, docs/plan-models.md between its marks.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import measured_types
import numpy as np
from plan_ranges import CALIBRATES, speed_runs
from plan_runs import DATA, HERE, SERVING, Round, Row, kept_plans, measured_files, rounds, rows, words

from gpuledger.plan.speed.facts import factors
from gpuledger.units import count

DOCS = HERE.parent / "docs"
PAGE, GUIDE = DOCS / "results" / "plans-models.md", DOCS / "plan-models.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
NEAR, WIDE = 0.1, 120
AGAIN = "run python benchmarks/plan_models.py --update"


def page() -> str:
    """The page of results."""
    measured, planned = json.loads(measured_files()[0].read_text(encoding="utf-8")), kept_plans()
    made = (
        f"Measured on one {measured['device']} with torch {measured['torch']} and transformers "
        f"{measured['transformers']}; planned with transformers {planned['transformers']}; speed factors: "
        f"{factors().traced.source}. Ratios are planned over measured."
    )
    found, known = rows(), rounds()
    lines = ["# Plans of many model families, measured", "", made, "", *_first(known), "", "## As planned today", ""]
    for one in known:
        lines += [one.text.strip(), "", *_summary([row for row in found if row.split == one.split], one.what), ""]
    marked = ", ".join(f"{one.what} {one.mark}" for one in known if one.mark)
    marks = (
        "Runs marked * set the speed factors and are not in the figures above. The others are marked by round: "
        f"{marked}; held-out ones have no mark."
    )
    return "\n".join([*lines, fill(marks, WIDE), "", *_table(found, known)]) + "\n"


def _first(known: list[Round]) -> list[str]:
    """Plans written down before any run of their type, over what was measured then."""
    first = measured_types.first_plans(DATA, measured_types.measured_runs(DATA))
    lines = ["## First plans", "",
             "Plans made before any run of their type, by the code and the ranges of that time.", "",
             *_scores(first, known), "",
             "| type | round | run | peak | total | in range | speed | in range |",
             "|---|---|---|---:|---:|---|---:|---|"]  # fmt: skip
    places = [one.split for one in known]
    ordered = sorted(first, key=lambda row: places.index(row["split"]))
    return lines + [
        f"| {one['type']} | {one['split']} | {words(one['run'])} | {one['peak_ratio']:.3f} "
        f"| {one['planned'] / one['taken']:.3f} | {_yes(one['in_range'])} | {one['speed_ratio']:.2f} "
        f"| {_yes(one['speed_in_range'])} |"
        for one in ordered
    ]


def _scores(first: list[dict[str, Any]], known: list[Round]) -> list[str]:
    """How each round of first plans did, and all of them together."""
    lines = ["| round | types | peak within 10 % | total in its range | speed in its range | median error of speed |",
             "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    splits = [one.split for one in known if any(row["split"] == one.split for row in first)]
    for name, chosen in [*((split, {split}) for split in splits), ("all", set(splits))]:
        own = [row for row in first if row["split"] in chosen]
        near = sum(abs(row["peak_ratio"] - 1) <= NEAR for row in own)
        error = statistics.median(abs(row["speed_ratio"] - 1) for row in own)
        lines.append(
            f"| {name} | {len(own)} | {near} | {sum(row['in_range'] for row in own)} "
            f"| {sum(row['speed_in_range'] for row in own)} | {100 * error:.1f} % |"
        )
    return lines


def _summary(held: Sequence[Row], what: str) -> list[str]:
    """What holds over all runs of a round."""
    peak, total, speed = (
        np.array([getattr(row, name) for row in held]) for name in ("peak_ratio", "total_ratio", "speed_ratio")
    )
    runs, models = count(len(held), f"{what} run"), count(len({row.name for row in held}), "model")
    return [
        (
            f"- memory, {runs} of {models}: {100 * np.mean(np.abs(peak - 1) <= NEAR):.0f} % within 10 % of torch's "
            f"peak, the furthest {100 * np.max(np.abs(peak - 1)):.1f} % off"
        ),
        (
            f"- total (with what lies outside torch and the allocator's gaps): {_cuts(total)}; "
            f"{sum(row.in_range for row in held)} of {len(held)} inside the printed range"
        ),
        (
            f"- speed: median error {100 * np.median(np.abs(speed - 1)):.0f} %; {_cuts(speed)}; "
            f"{sum(row.speed_in_range for row in held)} of {len(held)} inside the printed range"
        ),
    ]


def _cuts(values: Any) -> str:
    return ", ".join(f"p{q} {np.quantile(values, q / 100):.3f}" for q in (10, 50, 90))


def _yes(inside: bool) -> str:
    return "yes" if inside else "no"


def _table(found: list[Row], known: list[Round]) -> list[str]:
    """All runs as a Markdown table, the calibrating ones last."""
    marks = {one.split: one.mark for one in known} | {CALIBRATES: "*"}
    lines = ["| model (family) | run | peak GB | peak | total | in range | measured /s | speed | in range |",
             "|---|---|---:|---:|---:|---|---:|---:|---|"]  # fmt: skip
    return lines + [
        f"| {f'{row.name} ({row.family}) {marks[row.split]}'.strip()} | {row.run} | {row.peak_bytes / 1e9:.2f} "
        f"| {row.peak_ratio:.3f} | {row.total_ratio:.3f} | {_yes(row.in_range)} "
        f"| {row.per_s:{',.0f' if row.per_s >= 10 else '.2g'}} {row.unit}s | {row.speed_ratio:.2f} "
        f"| {_yes(row.speed_in_range)} |"
        for row in sorted(found, key=lambda row: row.split == CALIBRATES)
    ]


def guide() -> str:
    """The figures of the guide."""
    found, known = rows(), rounds()
    first = measured_types.first_plans(DATA, measured_types.measured_runs(DATA))
    trained = [row for row in found if row.split != SERVING]
    fast = [row for row in trained if row.split != CALIBRATES]
    near, total, speed = (
        sum(abs(row.peak_ratio - 1) <= NEAR for row in trained),
        sum(row.in_range for row in trained),
        sum(row.speed_in_range for row in fast),
    )
    cast = [row for row in trained if row.memory_of == "train_autocast"]
    experts = [run.ratio for run in speed_runs()["train", "moe"]]
    error = statistics.median(abs(row.speed_ratio - 1) for row in fast)
    today = (
        f"**Planned today.** One H200, {_many(trained)}: torch's peak is met within 10 % in {near} of {len(trained)}, "
        f"and what was taken lies in the printed range in {total}. Speed lies in the printed range in {speed} of the "
        f"{len(fast)} runs that set no factor, with a median error of {100 * error:.0f} %. The tracer and the ranges "
        "were corrected by these runs, so the check is the next table."
    )
    formulas = (
        f"Formulas under autocast: {_many(cast)} were within {_off(cast)} % of torch's peak. Models with experts in "
        f"plain torch ran {min(experts):.1f} to {max(experts):.1f} times slower than formulas plan "
        f"({count(len(experts), 'run')}) and have a range of their own."
    )
    return "\n".join([
        fill(today, WIDE), "",
        "**First plans.** Types planned before any of their runs, by the code and the ranges of that time:", "",
        *_scores(first, known), "", fill(formulas, WIDE), "", "Models that make images, planned over measured:", "",
        "| runs | torch's peak | memory taken | speed | in the printed range |", "|---|---|---|---|---|",
        *_image_makers(found)])  # fmt: skip


def _many(held: Sequence[Row]) -> str:
    return f"{count(len(held), 'training run')} of {count(len({row.name for row in held}), 'model')}"


def _off(held: Sequence[Row]) -> int:
    """The furthest from torch's peak, in whole percent."""
    return int(np.ceil(100 * max(abs(row.peak_ratio - 1) for row in held)))


def _image_makers(found: list[Row]) -> Iterable[str]:
    kinds = (("denoisers", False, "training"), ("denoisers", True, "one pass without gradients"),
             ("autoencoders", False, "training"), ("autoencoders", True, "latents to pixels"))  # fmt: skip
    for of, serving, what in kinds:
        held = [row for row in found if row.speed_of == of and (row.split == SERVING) == serving]
        cells = [[getattr(row, name) for row in held] for name in ("peak_ratio", "total_ratio", "speed_ratio")]
        spans = " | ".join(f"{min(values):.2f} to {max(values):.2f}" for values in cells)
        inside = f"memory {sum(row.in_range for row in held)}, speed {sum(row.speed_in_range for row in held)}"
        yield f"| {len(held)}: {what}, {len({row.name for row in held})} {of} | {spans} | {inside} |"


def _in_guide(text: str) -> str:
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{guide()}\n{END}{after}"


def update() -> None:
    """Write the page, and the figures of the guide."""
    PAGE.write_text(page(), encoding="utf-8")
    GUIDE.write_text(_in_guide(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")


def problems() -> list[str]:
    """Which of the two is not what the runs say."""
    text = GUIDE.read_text(encoding="utf-8")
    current: tuple[tuple[Path, str, str], ...] = (
        (PAGE, PAGE.read_text(encoding="utf-8"), page()),
        (GUIDE, text, _in_guide(text)),
    )
    return [f"{file.name} is not what the runs say: {AGAIN}" for file, has, wanted in current if has != wanted]

"""Which figures of docs/training.md come from which measurement? This writes them, so that none is typed in.

    python benchmarks/tuner_on_gpu.py --out training.json
    python benchmarks/training_figures.py training.json [more.json ...]

Adds the results to those kept in docs/results/training_h200.json (a part that was measured again and to its end counts
instead of the old one) and fills each block between `<!-- figures: NAME -->` and `<!-- end -->`. Without arguments the
blocks are written again from the results that are kept. A rehearsal on another device is refused.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training_results import JOBS, Results, joined, read

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "results" / "training_h200.json"
PAGES = (ROOT / "docs" / "training.md", ROOT / "docs" / "results" / "training_h200.md")
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SPEEDS = ("speedup", "speedup_low", "speedup_high")
NOT_YET = "Not measured on this GPU yet.\n"


def table(heads: str, rows: list[list[str]]) -> str:
    """A Markdown table; heads are parted by a bar."""
    names = heads.split("|")
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def times(row: dict[str, float]) -> str:
    """ "8.1x (8.0 to 8.3)"."""
    return f"{row['speedup']:.2f}x ({row['speedup_low']:.2f} to {row['speedup_high']:.2f})"


def gain(found: dict[str, Any] | None) -> str:
    """A gain with its interval."""
    if found is None or found["ratio"] is None:
        return ""
    low = f" ({found['low']:.2f} to {found['high']:.2f})" if found["low"] is not None else ""
    return f"{found['ratio']:.2f}x{low}"


def made_with(results: Results) -> str:
    lines = []
    for run in results["runs"]:
        parts = ", ".join(part.replace("_", " ") for part in run["parts"])
        lines.append(f"- {parts}: {run['date']}, one {run['gpu']}, torch {run['torch']}, Python {run['python']}, ")
        lines[-1] += f"`{run['command']}`"
    return "\n".join(lines) + "\n"


def tensor_cores(results: Results) -> str:
    rows = []
    for n, found in results["claims"]["products"]["square"].items():
        tflops = [f"{found[kind]['tflops']:.0f}" for kind in ("fp32", "tf32", "bf16")]
        rows.append([f"{n} x {n}", *tflops, times(found["tf32"]), times(found["bf16"])])
    return table("matrix product|fp32 TFLOPS|TF32|bf16|TF32 over fp32|bf16 over fp32", rows)


def multiples_of_8(results: Results) -> str:
    found = results["claims"]["products"]["multiples_of_8"]
    first = next(iter(found.values()))["tflops"]
    rows = [[f"{n}", f"{row['tflops']:.0f}", f"{row['tflops'] / first:.2f}x"] for n, row in found.items()]
    return table("rows and columns, bf16|TFLOPS|over the first", rows)


def ways(*path: str) -> Callable[[Results], str]:
    """A block that shows each way of one comparison."""

    def block(results: Results) -> str:
        found: Any = results["claims"]
        for step in path:
            found = found[step]
        rows = [[name, f"{1e3 * row['seconds']:.3f}", times(row)] for name, row in found.items()]
        return table("way|ms|over the first", rows)

    return block


def by_size(name: str) -> Callable[[Results], str]:
    """A block that shows each way of one change on a small and on a large step."""

    def block(results: Results) -> str:
        found = {size: results["claims"]["steps"][size][name] for size in ("small", "large")}
        rows = []
        for way in found["small"]:
            shown = [(f"{1e3 * ways[way]['seconds']:.3f}", times(ways[way])) for ways in found.values()]
            rows.append([way, *(cell for pair in shown for cell in pair)])
        return table("way|ms, 1 sequence|over the first|ms, 64 sequences|over the first", rows)

    return block


def idle(results: Results) -> str:
    rows = []
    for name, row in results["idle"].items():
        share = f"{row['idle_pct']:.0f} % ({row['idle_low_pct']:.0f} to {row['idle_high_pct']:.0f})"
        rows.append([name, f"{row['samples_per_s']:,.0f}", share])
    return table("loader|images/s|of the time spent waiting for data", rows)


def batch_curve(results: Results) -> str:
    found = results["claims"]["batch_curve"]
    rows = [[f"{row['batch']}", f"{row['samples_per_s']:,.0f}", f"{row['peak_bytes'] / 1e9:.1f}"] for row in found]
    return table("batch|samples/s|peak memory GB", rows)


def ladder(results: Results) -> str:
    worked = results["worked"]
    rows = [
        [
            rung["name"],
            f"{rung['samples_per_s']:,.0f}",
            gain(rung["gain"]),
            "" if rung["utilization_pct"] is None else f"{rung['utilization_pct']:.0f} %",
            "" if rung["mfu_pct"] is None else f"{rung['mfu_pct']:.1f} %",
            "" if rung["mfu_in_use_pct"] is None else f"{rung['mfu_in_use_pct']:.1f} %",
            "" if rung["peak_bytes"] is None else f"{rung['peak_bytes'] / 1e9:.1f}",
            f"{rung['epoch_s'] / 60:.1f}",
            "" if rung["parity"] is None else f"{100 * rung['parity']['deviation_ratio']:.2f} %",
        ]
        for rung in worked["ladder"]
    ]
    heads = "step|images/s|gain|utilization|MFU|of the precision's peak|memory GB|epoch min|loss off by"
    back, refused = worked["payback"], [s for s in worked["steps"] if s["outcome"] in ("no gain", "refused")]
    listed = "; ".join(f"{s['name']} ({s['outcome']}: {s['why']})" for s in refused) or "nothing"
    paid = "."
    if back:
        epochs = f"{back['epochs']:.3f} epochs of {worked['samples_per_epoch']:,} images"
        paid = f"; it has paid for itself after {back['hours'] * 60:.1f} minutes of tuned training ({epochs})."
    speeds = ""
    if both := worked.get("side_by_side"):
        speeds = f": {both['start_samples_per_s']:,.0f} to {both['winner_samples_per_s']:,.0f} images/s"
        if both["start_mfu_pct"] is not None:
            speeds += f", MFU {both['start_mfu_pct']:.1f} to {both['winner_mfu_pct']:.1f} %"
    total = f"**{gain(worked['total'])}**{speeds}" if worked["total"] else "not measured"
    if "worked" in results.get("unfinished", {}):
        total += f"; {results['unfinished']['worked']}"
    lines = [
        table(heads, rows),
        f"End to end, start and winner alternating: {total}.",
        f"MFU is over the {worked['denominator']}, from {worked['flop_per_sample'] / 1e9:.1f} GFLOP per image as torch",
        f"counted them. The tuning took {worked['tuning_s']:.0f} s{paid}",
        "",
        f"Tried and not kept: {listed}.",
    ]
    if late := dict.fromkeys(s["name"] for s in worked["steps"] if s["outcome"] == "not tried"):
        lines.append(f"Not tried for want of time: {', '.join(late)}.")
    return "\n".join(lines) + "\n"


def grids(results: Results) -> str:
    rows = []
    for name in JOBS:
        if name not in results:
            rows.append([name, "not measured", "", "", "", ""])
            continue
        told, all_of = results[name]["tuning"], results[name].get("grid")
        found = (gain(told["total"]) or "not measured to the end") if told["gained"] else "no gain"
        row = [told["job"], found, f"{told['tuning_s']:.0f}"]
        if all_of is None:
            rows.append([*row, "none", "", "not shown: no grid was measured"])
            continue
        over = {k: all_of.get(f"winner_over_best{at}") for k, at in (("ratio", ""), ("low", "_low"), ("high", "_high"))}
        rows.append([*row, f"{len(all_of['points'])} of {all_of['possible']}", gain(over), within(all_of)])
    return table("job|tuner found|in s|grid points measured|winner over best of grid|within 5 %", rows)


def within(all_of: Results) -> str:
    """Whether the tuner came within five percent of the best."""
    if not all_of["whole"]:
        return "not shown: the grid was cut short"
    if all_of["winner_over_best"] is None:
        return "not shown: winner and best were not compared"
    return _reaches([all_of[f"winner_over_best{end}"] for end in ("", "_low", "_high")], 0.95, "yes", "no")


def claims(results: Results) -> str:
    """What was claimed, what was measured, and whether it holds here; a row for each that was measured."""
    found, worked = results.get("claims", {}), results.get("worked")
    rows = []
    if products := found.get("products"):
        bf16 = {n: [row["bf16"][k] for k in SPEEDS] for n, row in products["square"].items()}
        told = f"{min(bf16.values())[0]:.1f} to {max(bf16.values())[0]:.1f}x by size"
        rows.append(["tensor cores are 10 to 20x as fast as fp32", told, _from(bf16, 10, 20)])
    if steps := found.get("steps"):
        for size, of in (("small", "of 1 sequence"), ("large", "of 64 sequences")):
            row = steps[size]["compile"]["torch.compile"]
            middle, low, high = gained = [100 * (row[k] - 1) for k in SPEEDS]
            told = f"{middle:.0f} % ({low:.0f} to {high:.0f}) on a step {of}"
            rows.append(["torch.compile gains 15 to 25 %", told, _in(gained, 15, 25)])
    if waits := results.get("idle", {}).get("0 workers"):
        middle, low, high = waiting = [waits[f"idle_{k}pct"] for k in ("", "low_", "high_")]
        told = f"{middle:.0f} % ({low:.0f} to {high:.0f}) with 0 workers"
        rows.append(["loading wastes 35 % of the time", told, _in(waiting, 30, 40)])
    if worked and worked["total"]:
        first, last = worked["ladder"][0], worked["ladder"][-1]
        total = [worked["total"][k] for k in ("ratio", "low", "high")]
        rows.append(["a naive loop can be made 3.75x as fast", gain(worked["total"]), _reaches(total, 3.75)])
        if first["utilization_pct"] and last["utilization_pct"]:
            more, rate = last["utilization_pct"] / first["utilization_pct"], worked["total"]["ratio"]
            measured = f"utilization {more:.1f}x, images/s {rate:.1f}x"
            verdict = "holds here" if abs(more / rate - 1) < 0.2 else "refuted"
            rows.append(["utilization shows the speed", measured, verdict])
    if not rows:
        raise KeyError("claims")
    return table("claim|measured here|verdict", rows)


def _from(by_size: dict[str, list[float]], low: float, high: float) -> str:
    """For which sizes a claim holds."""
    told = {n: _in(seen, low, high) for n, seen in by_size.items()}
    held = [n if verdict == "holds" else f"{n} (in the middle)" for n, verdict in told.items() if "holds" in verdict]
    if not held or set(told.values()) == {"holds"}:
        return [*told.values()][-1]
    listed = " and ".join([", ".join(held[:-1]), held[-1]] if len(held) > 1 else held)
    return f"holds for {listed}" + (", not for the others" if len(held) < len(told) else "")


def _reaches(seen: list[float | None], wanted: float, yes: str = "holds", no: str = "does not hold") -> str:
    """Whether a gain (middle, lowest, highest) is as large as wanted, and whether its interval says the same."""
    middle, low, high = seen
    word, beyond = (yes, "below") if middle >= wanted else (no, "above")
    if low is None:
        return f"{word}; no interval"
    return word if low >= wanted or high < wanted else f"{word}; the interval reaches {beyond}"


def _in(seen: list[float], low: float, high: float) -> str:
    """Whether what was seen (middle, lowest, highest) lies in a claimed range: all of it, or the middle only."""
    middle, least, most = seen
    word = "holds" if low <= middle <= high else "less here" if middle < low else "more here"
    inside, apart = low <= least and most <= high, most < low or least > high
    return word if inside or apart else f"{word} in the middle; {least:.0f} to {most:.0f} measured"


BLOCKS: dict[str, Callable[[Results], str]] = {
    "made_with": made_with,
    "tensor_cores": tensor_cores,
    "multiples_of_8": multiples_of_8,
    "compile": by_size("compile"),
    "graphs_small": ways("graphs", "small"),
    "graphs_large": ways("graphs", "large"),
    "item": by_size("item"),
    "copies": ways("copies", "alone"),
    "beside_work": ways("copies", "beside_work"),
    "fused": by_size("fused"),
    "convolutions": ways("convolutions"),
    "idle": idle,
    "batch_curve": batch_curve,
    "ladder": ladder,
    "grids": grids,
    "claims": claims,
}


def filled(text: str, results: Results) -> str:
    """A page with its blocks written from the results."""

    def one(found: re.Match[str]) -> str:
        try:
            made = BLOCKS[found[2]](results)
        except KeyError as missing:
            if found[2] not in BLOCKS:
                raise SystemExit(f"no block is called {found[2]}; known: {', '.join(BLOCKS)}") from missing
            made = NOT_YET
        return f"{found[1]}{made}{found[3]}"

    return BLOCK.sub(one, text)


def main() -> None:
    """Keep the results, write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path, help="what tuner_on_gpu.py wrote; later ones add to earlier")
    parser.add_argument("--afresh", action="store_true", help="drop what was kept before")
    args = parser.parse_args()
    if args.results:
        files = [KEPT, *args.results] if KEPT.exists() and not args.afresh else args.results
        kept = joined([read(file) for file in files])
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    results: Results = read(KEPT) if KEPT.exists() else {}
    for page in PAGES:
        if page.exists():
            page.write_text(filled(page.read_text(), results))
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

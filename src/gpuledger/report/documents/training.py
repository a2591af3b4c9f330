"""What do a training meter's report and an MFU show? Where the step's time goes, MFU, cost, and what to change.

Reports are read as JSON: a stored one may be of an older version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gpuledger.lake.counted import CountedRun
from gpuledger.report.document import (
    Article,
    Block,
    Bullets,
    Code,
    Document,
    Figures,
    Heading,
    KeyFigure,
    Prose,
    Section,
)
from gpuledger.report.tables import Cell, make_table, styled
from gpuledger.report.written import amount, number, percent, whole
from gpuledger.training.meter.report import Ranks, compare
from gpuledger.training.mfu import ALL_PCT
from gpuledger.units import Unknown

Json = Mapping[str, Any]
# Names of phases, where they differ.
PHASES = {"data_wait": "data wait", "h2d": "host to device"}
SHARES = ("mfu_pct", "hfu_pct", "mfu_of_precision_pct", "mfu_of_measured_pct")


def training_document(counted: Sequence[CountedRun], run_id: str | None = None) -> Document:
    """The measured runs, each as its first rank reports it; `run_id` chooses one."""
    runs = {name: ranks for name, ranks in by_run(counted).items() if run_id in (None, name)}
    return Document(
        name="training",
        kind="Training meter",
        title="Training meter",
        headline=f"{amount(str(len(runs)), 'training run')} measured",
        facts=[amount(str(sum(map(len, runs.values()))), "rank")],
        sections=[Section(name, _title(ranks[0].report), _run(ranks)) for name, ranks in runs.items()],
        data=lambda: {"runs": [run_data(name, ranks) for name, ranks in runs.items()]},
    )


def by_run(counted: Sequence[CountedRun]) -> dict[str, list[CountedRun]]:
    """The ranks of each run, in order; one without a report was cut off before its first."""
    runs: dict[str, list[CountedRun]] = {}
    for one in sorted(counted, key=lambda r: r.rank):
        if one.report:
            runs.setdefault(one.run_id, []).append(one)
    return runs


def run_data(run_id: str, ranks: Sequence[CountedRun]) -> dict[str, Any]:
    """A run as JSON holds it: each rank's whole report, and the ranks compared."""
    return {"run_id": run_id, "ranks": [r.report for r in ranks], "compared": asdict(_compared(ranks))}


def meter_document(report: Json, ranks: Ranks | None = None) -> Document:
    """What one meter shows when its loop ends; with `ranks`, those of the whole run compared."""
    title = _title(report)
    return Document("training", "Training meter", title, title, summary=_rank(report, ranks), data=lambda: report)


def _compared(ranks: Sequence[CountedRun]) -> Ranks:
    return compare([r.report["seen"] for r in ranks])


def _title(report: Json) -> str:
    """Which rank of how many, and where."""
    who, place = report["seen"]["who"], report["seen"]["place"]
    rank = f", rank {who['rank']} of {who['world_size']}" if who["world_size"] > 1 else ""
    return f"{who['run_id']}{rank} on {place['name']}"


def _run(ranks: Sequence[CountedRun]) -> list[Block]:
    return _rank(ranks[0].report, _compared(ranks) if len(ranks) > 1 else None)


def _rank(report: Json, ranks: Ranks | None) -> list[Block]:
    """Phases, figures, the slowest rank, findings, notes, and what is unknown."""
    seen = report["seen"]
    steps = f"{seen['steps']:,} steps, {seen['timed_steps']:,} timed; {seen['state']}"
    out: list[Block] = [Prose(steps, "dim")]
    if seen["timed_steps"]:
        out += [_phases(report), Figures([KeyFigure(label, text, "", note) for label, text, note in figures(report)])]
    if ranks is not None:
        out.append(Prose(ranks.words))
    out += [_finding(i, found) for i, found in enumerate(report["findings"], 1)]
    out += [Prose(note, "warning") for note in seen["notes"]]
    return [*out, *(Prose(f"Unknown: {missing}", "dim") for missing in unknown(report))]


def _phases(report: Json) -> Block:
    rows = [
        [PHASES.get(name, name), f"{ms:,.2f}", Cell(f"{pct:.1f} %", pct, bar=pct)]
        for (name, ms), pct in zip(report["phases_ms"].items(), report["phases_pct"].values(), strict=True)
    ]
    total = (Cell("step"), Cell(f"{report['step_ms']:,.2f}"), Cell(""))
    return make_table("phases", "Where the step's time goes", ("Phase", "ms", "Share"), "wnn", rows, total=total)


def _finding(rank: int, found: Json) -> Article:
    """One finding with its evidence, what it saves and the change."""
    source = f" ({found['source']})" if found.get("source") else ""
    blocks: list[Block] = [Heading(found["title"], rank), Prose(found["why"]), Prose(f"{found['gain_words']}{source}")]
    return Article(f"finding-{rank}", [*blocks, Code(found["change"].rstrip(), "python")])


def figures(report: Json) -> Iterator[tuple[str, str, str]]:
    """Rates, shares, dollars and joules that are known: label, figure and note."""
    seen, work = report["seen"], report["seen"]["work"]
    if seen["precision"] is not None:
        yield "Precision", seen["precision"], _mix(seen)
    rows = (
        ("Tokens per second", "tokens_per_s", "{:,.0f}", ""),
        ("Samples per second", "samples_per_s", "{:,.1f}", ""),
        ("MFU", "mfu_pct", "{:.1f} %", report["denominator"]),
        ("HFU", "hfu_pct", "{:.1f} %", "all that the device did, over the same peak"),
        ("MFU in use", "mfu_of_precision_pct", "{:.1f} %", report["denominator_of_precision"]),
        ("MFU of measured", "mfu_of_measured_pct", "{:.1f} %", report["denominator_of_measured"]),
        ("Model TFLOP/s", "model_tflops", "{:,.3g}", work["how"] if work else ""),
        ("$ per million tokens", "usd_per_million_tokens", "{:,.4f}", report["price"]["words"]),
        ("$ per million samples", "usd_per_million_samples", "{:,.4f}", ""),
        ("Joules per step", "joules_per_step", "{:,.1f}", "the board's own counter"),
        ("Joules per token", "joules_per_token", "{:,.4f}", ""),
    )
    for label, name, form, note in rows:
        value = report[name]
        if value is not None and not (name in SHARES and value > ALL_PCT):
            yield label, form.format(value), note


def _mix(seen: Json) -> str:
    """The shares of the FLOPs; reports of older versions took the precision from the weights and have none."""
    ratios = seen.get("precision_ratios")
    if not ratios:
        return ""
    shares = ", ".join(f"{name} {100 * ratio:.1f} %" for name, ratio in ratios.items())
    return f"of the matrix products, as observed: {shares} of the FLOPs"


def unknown(report: Json) -> list[str]:
    """What is unknown, once per reason; a share above 100 % of an older report is refused."""
    reasons: dict[str, list[str]] = {}
    for missing in report["not_known"]:
        reasons.setdefault(missing["why"], []).append(missing["figure"].rpartition(".")[2])
    for name in SHARES:
        if (value := report[name]) is not None and value > ALL_PCT:
            why = f"{value:,.1f} % is impossible; a version that did not observe the precision wrote this report"
            reasons.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in reasons.items()]


GIGA = 1e9


def mfu_document(data: Mapping[str, Any]) -> Document:
    """The document, from the figures as JSON holds them."""
    unit = data["unit"]
    gaps = {n["figure"]: n["why"] for n in data["not_known"] if n["figure"].endswith("_pct")}
    parts = data[f"flop_per_{unit}_by_part"]
    rows = [[p.replace("_", " "), number(f / GIGA, 3), percent(data["part_pct"][p])] for p, f in parts.items()]
    rows.append(["all", number(data[f"flop_per_{unit}"] / GIGA, 3), ""])
    blocks: list[Block] = [
        make_table("shares", "Shares", ("Share", "%", "Denominator"), "wnw", _shares(data, gaps)),
        make_table("parts", f"Training FLOP per {unit}", ("Part", "GFLOP", "Share"), "wnn", rows),
        Bullets([f"{name}: {why}" for name, why in gaps.items()], "Unknown"),
        Bullets(data["assumptions"], "Assumptions"),
    ]
    rate = f"{whole(data[f'{unit}s_per_s'])} {unit}s/s in {data['precision']}"
    share = "unknown" if data["mfu_pct"] is None else percent(data["mfu_pct"])
    usual = data["usual"]
    near = [f"usual for {usual['words']}: {usual['low_pct']:g} to {usual['high_pct']:g} %, as claimed"] if usual else []
    return Document(
        name="mfu",
        kind="Training utilization",
        title=f"MFU of {data['model']}",
        headline=f"{data['model']}: model FLOPs utilization (MFU) {share}",
        notes=[Prose(text, "warning") for text in data["warnings"]],
        facts=[f"{data['count']:,} {data['gpu_name']}", rate, *near],
        summary=[b for b in blocks if not isinstance(b, Bullets) or b.items],
        data=lambda: data,
    )


def _shares(data: Mapping[str, Any], gaps: Mapping[str, str]) -> list[list[Cell | str]]:
    rows = [
        ("MFU", "mfu_pct", data["denominator"]),
        ("of the peak in use", "mfu_in_use_pct", data["in_use_denominator"]),
        ("of the achievable", "mfu_achievable_pct", data["achievable_denominator"]),
        ("HFU", "hfu_pct", f"the same peak as MFU; {data['hfu_counts']}"),
    ]
    if data["unit"] == "token":
        rows.append(("MFU, causal half", "mfu_causal_pct", "the same peak as MFU"))
    out: list[list[Cell | str]] = [[title, _percent(data[n], gaps.get(n, "")), over] for title, n, over in rows]
    return [*out, ["achieved", number(data["achieved_tflops"], 1), "TFLOPS per GPU of the model's own work"]]


def _percent(value: float | None, why: str) -> Cell:
    return styled(Unknown(why) if value is None else value, "percent")

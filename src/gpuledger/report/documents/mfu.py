"""What does the MFU of a training run show? The shares with their denominators, and the FLOP by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.report.document import Block, Bullets, Document, Prose
from gpuledger.report.tables import Cell, make_table, styled
from gpuledger.report.written import number, percent, whole
from gpuledger.units import Unknown

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

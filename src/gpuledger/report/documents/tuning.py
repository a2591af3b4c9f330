"""What does the tuning of a training job show? The ladder of settings, what was not kept and why, cost and payback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuledger.report.document import Block, Document, KeyFigure, Prose, Terms
from gpuledger.report.tables import Cell, Table, cell, make_table
from gpuledger.report.written import amount, number, percent, round_percent, tenth, usd

Json = Mapping[str, Any]
HOUR_S, MINUTE_S = 3600, 60
GB, MB = 1e9, 1e6
UNTRIED = ("start", "left out", "not tried")
IN_OWN_WORDS = ("total", "payback")


def tuning_document(found: Json) -> Document:
    """The document of a tuning, from its figures as JSON holds them."""
    peak = f"MFU {'' if found['peak_tflops'] is None else 'over the '}{found['denominator']}"
    others = [s for s in found["steps"] if s["outcome"] not in ("start", "kept")]
    blocks: list[Block] = [_ladder(found["ladder"])]
    if others:
        blocks.append(_not_kept(others))
    return Document(
        name="tuning",
        kind="Training tuner",
        title=f"Tuning of {found['job']}",
        headline=f"{found['job']} {_result(found)}",
        notes=[Prose(text, "warning") for text in _doubts(found)],
        facts=[found["device"], f"{found['effective_batch']} samples between optimizer steps throughout", peak],
        figures=_figures(found),
        summary=[*blocks, Terms(_rest(found))],
        data=lambda: found,
    )


def _result(found: Json) -> str:
    """The outcome in one sentence: faster with its interval, no gain, or why it is unknown."""
    total = found["total"]
    if found["gained"]:
        return f"runs {_faster(total)}" if total else "has an unknown speedup: start and winner were not compared"
    if all(step["outcome"] in UNTRIED for step in found["steps"]):
        return "was not tuned: nothing was tried"
    least = round_percent(100 * found["min_gain_ratio"])
    return f"has no gain: nothing was faster beyond the noise and by {least} or more"


def _faster(gain: Json) -> str:
    ends = "" if gain["low"] is None else f" (95 % CI {gain['low']:.2f}-{gain['high']:.2f})"
    return f"{gain['ratio']:.2f}x faster{ends}"


def _doubts(found: Json) -> list[str]:
    out = []
    if found["gained"] and found["total"] and (found["total"]["low"] or 0.0) <= 1:
        out.append("Too noisy to say that it is faster: run it again with a larger --budget.")
    late = sum(step["outcome"] == "not tried" for step in found["steps"])
    if late:
        out.append(f"{amount(str(late), 'setting was', 'settings were')} not tried for lack of time: "
                   "a larger --budget tries them.")  # fmt: skip
    return out


def _figures(found: Json) -> list[KeyFigure]:
    """Start and winner measured alternately, what tuning cost, and when it is paid back."""
    both, back, out = found["side_by_side"] if found["total"] else None, found["payback"], []
    if both:
        rate = f"{tenth(both['start_samples_per_s'])} to {tenth(both['winner_samples_per_s'])}"
        out.append(KeyFigure("Samples per second", rate, "", "start and winner, measured alternately"))
        if both["start_mfu_pct"] is not None:
            share = f"{percent(both['start_mfu_pct'])} to {percent(both['winner_mfu_pct'])}"
            out.append(KeyFigure("MFU", share, "", "model FLOPs utilization, start and winner"))
    cost = "" if found["tuning_usd"] is None else f"{usd(float(found['tuning_usd']))}; {found['price_words']}"
    out.append(KeyFigure("Tuning cost", span(found["tuning_s"]), "", cost))
    if back:
        note = f"{span(back['hours'] * HOUR_S)} of tuned training; saves {span(back['saved_per_epoch_s'])} per epoch"
        out.append(KeyFigure("Paid back after", f"{back['epochs']:.3g} epochs", "", note))
    return out


def _ladder(rungs: Sequence[Json]) -> Table:
    """Every kept step; a figure measured at no step has no column."""
    shown = [(head, name, form) for head, name, form in CELLS if any(r[name] is not None for r in rungs)]
    rows = [[r["name"], *(form(r[name]) for _, name, form in shown)] for r in rungs]
    heads = ("Step", *(head for head, _, _ in shown))
    words = "w" + "".join({"gain": "w", "peak_bytes": "N"}.get(name, "n") for _, name, _ in shown)
    return make_table(
        "ladder", "Step by step, gains with 95 % intervals", heads, words, rows, screen_rows=len(rows)
    )  # fmt: skip


def _not_kept(steps: Sequence[Json]) -> Table:
    rows = [
        [s["name"] + (f" (round {s['round']})" if s["round"] > 1 else ""), s["outcome"], s["why"]] for s in steps
    ]  # fmt: skip
    return make_table("not-kept", "Not kept", ("Step", "Outcome", "Why"), "www", rows, screen_rows=len(rows))


def _rest(found: Json) -> list[tuple[str, str]]:
    """Notes, and what is unknown by its reason; what the headline says is left out."""
    reasons: dict[str, list[str]] = {}
    for missing in found["not_known"]:
        name = missing["figure"].rpartition(".")[2]
        if name not in IN_OWN_WORDS and name not in reasons.setdefault(missing["why"], []):
            reasons[missing["why"]].append(name)
    return [
        *(("Note", line) for line in found["notes"]),
        *(("Unknown", f"{', '.join(names)}: {why}") for why, names in reasons.items() if names),
    ]


def times(gain: Json) -> str:
    """ "1.52x (1.49 to 1.55)"."""
    ends = "" if gain["low"] is None else f" ({gain['low']:.2f} to {gain['high']:.2f})"
    return f"{gain['ratio']:.2f}x{ends}"


def span(seconds: float) -> str:
    """A length of time in the unit that suits it."""
    if seconds >= HOUR_S:
        return f"{tenth(seconds / HOUR_S)} h"
    return f"{tenth(seconds / MINUTE_S)} min" if seconds >= 2 * MINUTE_S else f"{tenth(seconds)} s"


def _size(value: float) -> str:
    return f"{tenth(value / GB)} GB" if value >= GB else f"{tenth(value / MB)} MB"


def _or(form: Callable[[Any], str], missing: str = "unknown") -> Callable[[Any], Cell]:
    return lambda value: Cell(missing, unknown=bool(missing)) if value is None else cell(form(value))


CELLS: tuple[tuple[str, str, Callable[[Any], Cell]], ...] = (
    ("Samples/s", "samples_per_s", _or(tenth)),
    ("Gain", "gain", _or(times, "")),
    ("Util", "utilization_pct", _or(round_percent)),
    ("MFU", "mfu_pct", _or(percent)),
    ("In use", "mfu_in_use_pct", _or(percent)),
    ("Memory", "peak_bytes", _or(_size)),
    ("Epoch", "epoch_s", _or(span)),
    ("Loss off", "parity", _or(lambda v: f"{number(100 * v['deviation_ratio'], 2)}\u202f%", "")),
)

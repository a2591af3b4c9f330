"""How is a score shown: on a terminal, and as Markdown in a document?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recording import BadRecording

Found = Mapping[str, Mapping[str, Any]]
SHORT = {
    "utilization x peak": "util",
    "power / limit x peak": "power",
    "SM active x peak": "SM",
    "tensor active x peak": "tensor",
}


def terminal(found: Found) -> str:
    """Tables for a person at a terminal: rows, scores, bars."""
    lines = []
    for recording, one in found.items():
        titles = list(one["scores"])
        head = ["workload", "precision", "true", titles[0], "error", "low", "high", "class"]
        lines += [f"{recording}: TFLOP/s, and the error of each formula", ""]
        lines += _columns([*head, *(SHORT.get(t, t) for t in titles[1:])], _rows(one, " !"), text=(0, 1, 7))
        lines += ["", *_columns(SCORE_HEAD, _scores(one), text=(0, 3)), ""]
        lines += [f"{'holds' if holds else 'FAILS'}  {bar}" for bar, holds in one["bars"].items()]
        first = one["scores"][titles[0]]
        lines += [
            f"{what}: {', '.join(first[key])}"
            for key, what in (("ranges_missed", "ranges that miss"), ("classes_missed", "classes not accepted"))
            if first[key]
        ]
        lines += [f"no rows recorded: {', '.join(one['left_out'])}"] if one["left_out"] else []
        lines.append("")
    return "\n".join(lines).rstrip()


def markdown(found: Found) -> str:
    """Both tables of every recording."""
    parts = []
    for recording, one in found.items():
        parts += [f"### {recording}", summary(one), detail(one)]
    return "\n\n".join(parts)


def summary(one: Mapping[str, Any]) -> str:
    """A row per method."""
    return "\n".join(_markdown(SCORE_HEAD, _scores(one)))


def detail(one: Mapping[str, Any]) -> str:
    """A row per workload."""
    titles = list(one["scores"])
    head = ["workload", "precision", "true TFLOP/s", titles[0], "error", "low", "high", "class", *titles[1:]]
    return "\n".join(_markdown(head, _rows(one, " (not accepted)")))


def update(path: Path, found: Found) -> None:
    """Replace what lies between `<!-- truth KIND RECORDING -->` and `<!-- /truth -->`; KIND is summary or detail."""
    text = path.read_text(encoding="utf-8")

    def fresh(mark: re.Match[str]) -> str:
        kind, recording = mark[2], mark[3]
        if recording not in found:
            return mark[0]
        table = {"summary": summary, "detail": detail}[kind](found[recording])
        return f"{mark[1]}\n{table}\n<!-- /truth -->"

    pattern = r"(<!-- truth (summary|detail) (\S+) -->)\n.*?<!-- /truth -->"
    changed, count = re.subn(pattern, fresh, text, flags=re.DOTALL)
    if not count:
        raise BadRecording(f"{path}: no marks to replace; add <!-- truth summary RECORDING --> and <!-- /truth -->")
    path.write_text(changed, encoding="utf-8")


SCORE_HEAD = ["method", "worst error", "median", "worst on", "ranges that hold the truth", "classes accepted"]


def _scores(one: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for title, s in one["scores"].items():
        middle = "-" if s["median_pct"] is None else f"{s['median_pct']:.1f} %"
        ranges, classes = (f"{p[0]} of {p[1]}" if p else "-" for p in (s["ranges_held"], s["classes_accepted"]))
        rows.append([title, _percent(s["worst_pct"]), middle, s["worst_workload"] or "-", ranges, classes])
    return rows


def _rows(one: Mapping[str, Any], wrong: str) -> list[list[str]]:
    titles, rows = list(one["scores"]), []
    for name, w in one["workloads"].items():
        accepted = not w["accepted_classes"] or w["class"] in w["accepted_classes"]
        errors = [_percent(w["error_pct"].get(title)) for title in titles]
        figures = [_number(w[key]) for key in ("true_tflops", "tflops", "low_tflops", "high_tflops")]
        klass = f"{w['class'] or '-'}{'' if accepted else wrong}"
        start = [name, w["precision"] or "-", figures[0], figures[1], errors[0], *figures[2:], klass]
        rows.append([*start, *errors[1:]])
    return rows


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f} %" if abs(value) < 100 else f"{value:+.0f} %"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1f}"


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[int]) -> list[str]:
    wide = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return [
        "  ".join(
            c.ljust(w) if i in text else c.rjust(w) for i, (c, w) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]

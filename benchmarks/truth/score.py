"""How near does a tool come to the FLOPs that really ran, and does it call each workload what it is?

    python benchmarks/truth/score.py FOLDER... [--answers FILE.json] [--json | --markdown] [--update FILE.md...]
    python benchmarks/truth/score.py FOLDER... --without COLUMN...
    python benchmarks/truth/score.py FOLDER... --export OUT

FOLDER is a recording (README.md has the format). gpuledger is asked as its users ask it: `import`, `analyze --json` and
`audit --json` on the recorded rows. Scored on the same rows: the field's formulas, and with --answers another tool.
--without scores gpuledger as if columns had not been recorded: it may then decline a point, and those it gives count.
Exit code 1 where gpuledger (or, with --answers, that tool) is below a bar. --export writes the rows as telemetry for
another tool to read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import score_tables
from answers import Answer, by_file, by_formula, by_gpuledger, precision_of, recorded, tracks
from front_door import CommandFailed

from recording import BadRecording, Recording, read_recording, write_telemetry

# The pipe is active for padding too, and an add counts as a fused multiply-add: held to the range only.
RANGE_ONLY = ("convolution", "vector")
# Products of a few rows, as in decoding for few users; a hardly used pipe; short kernels with gaps between them:
# a tool may give a range and no point, and a wide one.
FEW_ROWS = "few_rows"
MAY_DECLINE = (FEW_ROWS, "sparse", "short_kernels")
MATRIX = ("bf16", "fp16", "tf32", "fp32", "fp64")
ABOVE_TFLOPS = 5.0
WORST_PCT, RANGES_PCT, WIDEST = 15.0, 95.0, 4.0
NO_ANSWER_PCT = -100.0


@dataclass(frozen=True)
class Score:
    """One method on one recording; None where it gives no range or no class."""

    errors_pct: Mapping[str, float]
    ranges_held: tuple[int, int] | None = None
    ranges_missed: tuple[str, ...] = ()
    widest: float | None = None
    classes: tuple[int, int] | None = None
    classes_missed: tuple[str, ...] = ()

    @property
    def worst(self) -> tuple[str, float] | None:
        """The row that is furthest off."""
        return max(self.errors_pct.items(), key=lambda item: abs(item[1]), default=None)

    @property
    def median_pct(self) -> float | None:
        """The median error, without its sign."""
        return median(map(abs, self.errors_pct.values())) if self.errors_pct else None

    def bars(self) -> dict[str, bool]:
        """What must hold, and whether it does."""
        found = {f"worst error within {WORST_PCT:.0f} %": self.worst is None or abs(self.worst[1]) <= WORST_PCT}
        if self.ranges_held is not None:
            held, of = self.ranges_held
            found[f"at least {RANGES_PCT:.0f} % of the ranges contain the truth"] = 100 * held >= RANGES_PCT * of
            found[f"no range around a point wider than {WIDEST:.0f}x"] = (self.widest or 0.0) <= WIDEST * 1.01
        return found


def score(recording: Recording, answers: Mapping[str, Answer], *, may_decline: bool = False) -> Score:
    """A method's answers against the truth; `may_decline`: no point is no error."""
    facts, names = recording.facts, recorded(recording)
    errors = {
        name: NO_ANSWER_PCT if answers[name].tflops is None else 100 * (answers[name].tflops / true - 1)
        for name in names
        if precision_of(facts[name]) in MATRIX
        and facts[name].get("family") not in RANGE_ONLY
        and (answers[name].tflops is not None or not (may_decline or facts[name].get("family") in MAY_DECLINE))
        and (true := facts[name].get("tflop_per_s") or 0.0) > ABOVE_TFLOPS
    }
    counted = [name for name in names if facts[name].get("tflop_per_s") is not None]
    if any(answers[name].low_tflops is not None for name in names):
        held = [name for name in counted if _holds(answers[name], facts[name]["tflop_per_s"])]
        missed = tuple(name for name in counted if name not in held)
        # Loads made of several, as schedules are, have no precision of their own.
        pointed = [answers[n] for n in names if precision_of(facts[n]) and answers[n].tflops is not None]
        widths = [a.high_tflops / a.low_tflops for a in pointed if a.low_tflops and a.high_tflops]
        ranges, widest = (len(held), len(counted)), None if may_decline else max(widths, default=None)
    else:
        ranges, missed, widest = None, (), None
    classes, wrong = None, ()
    if any(answers[name].klass is not None for name in names):
        judged = [name for name in names if facts[name].get("accepted_classes")]
        wrong = tuple(name for name in judged if answers[name].klass not in facts[name]["accepted_classes"])
        classes = (len(judged) - len(wrong), len(judged))
    return Score(errors, ranges, missed, widest, classes, wrong)


def _holds(answer: Answer, true: float) -> bool:
    if answer.low_tflops is None or answer.high_tflops is None:
        return False
    return answer.low_tflops <= true <= answer.high_tflops


def judge(recording: Recording, answers: Path | None, without: Sequence[str] = ()) -> dict[str, Any]:
    """Every method on one recording; the first one is held to the bars."""
    recording = recording.without(without)
    first = {answers.stem: by_file(answers, recording)} if answers else {"gpuledger": by_gpuledger(recording)}
    methods = first | by_formula(recording)
    scores = {title: score(recording, found, may_decline=bool(without)) for title, found in methods.items()}
    rows = {}
    for name in recorded(recording):
        facts, one = recording.facts[name], next(iter(first.values()))[name]
        rows[name] = {
            "precision": precision_of(facts),
            "true_tflops": facts.get("tflop_per_s"),
            "tflops": one.tflops,
            "low_tflops": one.low_tflops,
            "high_tflops": one.high_tflops,
            "class": one.klass,
            "accepted_classes": facts.get("accepted_classes"),
            "bucket_pct": one.bucket_pct,
            "error_pct": {title: s.errors_pct[name] for title, s in scores.items() if name in s.errors_pct},
        }
    return {
        "workloads": rows,
        "left_out": [name for name in recording.facts if name not in rows],
        "scores": {title: _plain(s) for title, s in scores.items()},
        "bars": next(iter(scores.values())).bars(),
    }


def _plain(s: Score) -> dict[str, Any]:
    worst = s.worst
    return {
        "rows": len(s.errors_pct),
        "worst_pct": worst[1] if worst else None,
        "worst_workload": worst[0] if worst else None,
        "median_pct": s.median_pct,
        "ranges_held": s.ranges_held,
        "ranges_missed": s.ranges_missed,
        "widest_range": s.widest,
        "classes_accepted": s.classes,
        "classes_missed": s.classes_missed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--answers", type=Path, help="score another tool by its answers")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--update", nargs="*", type=Path, default=[], help="replace the tables in these Markdown files")
    parser.add_argument("--without", nargs="*", default=[], metavar="COLUMN", help="as if these were not recorded")
    parser.add_argument("--export", type=Path, help="write the rows as telemetry for another tool, score nothing")
    args = parser.parse_args()
    try:
        recordings = [read_recording(folder) for folder in args.folders]
        if args.export:
            return export(recordings, args.export)
        found = {recording.name: judge(recording, args.answers, args.without) for recording in recordings}
        if args.json:
            print(json.dumps({"recordings": found}, indent=1))
        else:
            print(score_tables.markdown(found) if args.markdown else score_tables.terminal(found))
        for path in args.update:
            score_tables.update(path, found)
    except (BadRecording, CommandFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if all(holds for one in found.values() for holds in one["bars"].values()) else 1


def export(recordings: list[Recording], out: Path) -> int:
    """The settled rows of each recording as DCGM-named CSV, with and without the precision label."""
    out.mkdir(parents=True, exist_ok=True)
    for recording in recordings:
        for labels in (True, False):
            path = out / f"{recording.name}{'' if labels else '_no_precision'}.csv"
            print(f"{path}: {write_telemetry(path, tracks(recording, labels))} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())

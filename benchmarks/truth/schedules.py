"""Does a job of known parts cost what its parts cost, and does folding old ledger data leave the audit as it was?

    python benchmarks/truth/schedules.py [FOLDER...] [--only NAME...] [--json]

Each schedule of schedules/*.toml is built from recorded rows with new time stamps: no value is made up. The whole
schedule is one job on one GPU; each of its parts, the very same rows, is also a job alone on a GPU of its own. Every
bucket of the whole must come within 10 % or 2 points of the sum of its parts, and `audit --json` must be the same to
the last digit after `tidy --fold-older-than`. A pause alone is idle time; between two pieces of work less than 30 s
apart it is a wait, so it is due as underused time. FOLDER: recordings to take rows from. Exit code 1 where a schedule
misses.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front_door import CommandFailed, ask, gpuledger, take_in

from recording import BadRecording, Row, Track, read_recording, write_telemetry

HERE = Path(__file__).parent
RECORDINGS = (Path(os.environ.get("GPULEDGER_OUTSIDE", "outside")) / "h200_truth", HERE / "recordings" / "heldout_h200")
STEP_S = 0.1
# 3 March 2025, 15 s before the full hour: every schedule crosses an edge where the ledger cuts its lines.
START_S = 1_741_000_000 // 3600 * 3600 + 3600 - 15
WITHIN_PCT, WITHIN_POINTS = 10.0, 2.0
# Recorded without any work, and how long a pause between work may be to count as a wait.
PAUSES = ("idle", "idle_holding_memory")
WAIT_BELOW_S = 30.0

Pool = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Part:
    """So many seconds of one recorded workload."""

    workload: str
    seconds: float


@dataclass(frozen=True)
class Schedule:
    """Parts one after the other, as one job."""

    name: str
    title: str
    parts: tuple[Part, ...]


def load_schedules(folder: Path = HERE / "schedules") -> list[Schedule]:
    """The schedules of a folder, the random ones drawn."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        if "random" in given:
            found += [draw(f"{path.stem}_{n:02d}", n, given) for n in range(given["random"]["count"])]
        else:
            parts = tuple(Part(**part) for part in given["parts"])
            found.append(Schedule(path.stem, given["title"], parts * given["repeat"]))
    return found


def draw(name: str, seed: int, given: Mapping[str, Any]) -> Schedule:
    """A random schedule; the lengths are spread evenly over their logarithm."""
    dice, limits = random.Random(seed), given["random"]  # a test's dice, not a secret's
    low, high = limits["seconds"]
    parts = [
        Part(dice.choice(given["workloads"]), round(low * (high / low) ** dice.random(), 1))
        for _ in range(dice.randint(*limits["parts"]))
    ]
    return Schedule(name, f"{len(parts)} parts, {sum(p.seconds for p in parts):.0f} s", tuple(parts))


def pool_of(folders: Sequence[Path]) -> dict[str, list[Row]]:
    """The settled rows of every workload; of two recordings of one name the first."""
    found: dict[str, list[Row]] = {}
    for recording in map(read_recording, folders):
        for name in recording.rows:
            found.setdefault(name, recording.settled(name))
    return found


def splice(parts: Sequence[Part], pool: Pool) -> list[tuple[str, Row]]:
    """The rows of the parts in order, with their workload. A workload goes on where it stopped, from the start again
    at its end."""
    tapes = {part.workload: itertools.cycle(_rows(pool, part.workload)) for part in parts}
    return [
        (part.workload, row)
        for part in parts
        for row in itertools.islice(tapes[part.workload], round(part.seconds / STEP_S))
    ]


def _rows(pool: Pool, workload: str) -> Sequence[Row]:
    if workload not in pool:
        raise BadRecording(f"no recording holds {workload}; give the folder of one that does")
    return pool[workload]


def stamped(rows: Sequence[Row], start_s: float = START_S, step_s: float = STEP_S) -> list[Row]:
    """The same readings at even times; the energy counter runs on with the recorded power."""
    energy_j, out = 1000.0, []
    for number, row in enumerate(rows):
        energy_j += row["power_w"] * step_s
        out.append({**row, "t": start_s + number * step_s, "energy_j": energy_j})
    return out


def tracks_of(schedule: Schedule, pool: Pool) -> tuple[Track, list[Track]]:
    """The whole as one job, and each workload of it alone: the same rows, one after the other."""
    spliced = splice(schedule.parts, pool)
    whole = Track(schedule.name, f"GPU-{schedule.name}", stamped([row for _, row in spliced]))
    alone = []
    for name in dict.fromkeys(name for name, _ in spliced):
        rows = stamped([row for mine, row in spliced if mine == name])
        alone.append(Track(f"{schedule.name}.{name}", f"GPU-{schedule.name}.{name}", rows))
    return whole, alone


def bucket_hours(audit: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Hours in each bucket by GPU."""
    return {row["gpu_uuid"]: row["bucket_h"] for row in audit["by_gpu"]}


def waits_h(parts: Sequence[Part]) -> float:
    """Hours of pauses between two pieces of work that are short enough to be waits."""
    total, runs = 0.0, [(k, list(v)) for k, v in itertools.groupby(parts, key=lambda p: p.workload in PAUSES)]
    for number, (pause, members) in enumerate(runs):
        length = sum(round(p.seconds / STEP_S) * STEP_S for p in members)
        if pause and 0 < number < len(runs) - 1 and length < WAIT_BELOW_S:
            total += length
    return total / 3600


def due_of(schedule: Schedule, parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The parts added up; what is a wait in the whole is underused time there."""
    due = {
        bucket: sum(part.get(bucket, 0.0) for part in parts) for bucket in dict.fromkeys(b for p in parts for b in p)
    }
    moving = waits_h(schedule.parts)
    for bucket in ("idle_held", "idle"):
        part = min(moving, due.get(bucket, 0.0))
        due[bucket], due["underused"] = due.get(bucket, 0.0) - part, due.get("underused", 0.0) + part
        moving -= part
    return due


def compare(whole: Mapping[str, float], parts: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Each bucket of the whole next to the sum of its parts, in percent of the whole."""
    total = sum(whole.values())
    found = {}
    for bucket in dict.fromkeys([*whole, *parts]):
        got, due = whole.get(bucket, 0.0), parts.get(bucket, 0.0)
        near = abs(got - due) <= max(WITHIN_PCT / 100 * due, WITHIN_POINTS / 100 * total)
        found[bucket] = {"whole_pct": 100 * got / total, "parts_pct": 100 * due / total, "near": near}
    return found


def judge(schedules: Sequence[Schedule], pool: Pool, folder: Path) -> dict[str, dict[str, Any]]:
    """Every schedule through import and audit, whole and in parts; then folded."""
    made = {schedule.name: tracks_of(schedule, pool) for schedule in schedules}
    whole = audit_of([one for one, _ in made.values()], folder / "whole")
    parts = bucket_hours(audit_of([track for _, alone in made.values() for track in alone], folder / "parts"))
    hours, classes = bucket_hours(whole), {row["workload"]: row for row in whole["behaviours"]}
    changed = list(differences(whole, folded(folder / "whole")))
    found = {}
    for schedule in schedules:
        one, alone = made[schedule.name]
        buckets = compare(hours[one.uuid], due_of(schedule, [parts[track.uuid] for track in alone]))
        found[schedule.name] = {
            "title": schedule.title,
            "class": classes[schedule.name]["class"],
            "buckets": buckets,
            "holds": all(b["near"] for b in buckets.values()),
        }
    return {"schedules": found, "folding_changes": changed}


def audit_of(tracks: Sequence[Track], folder: Path) -> dict[str, Any]:
    """Tracks through import and audit; the lake stays in `folder`."""
    folder.mkdir(parents=True)
    write_telemetry(folder / "telemetry.csv", tracks)
    take_in(folder / "lake", folder / "telemetry.csv")
    return ask("audit", "--lake", str(folder / "lake"), "--price", "1")


def folded(folder: Path) -> dict[str, Any]:
    """The audit of a lake whose hour lines were folded into day lines."""
    done = json.loads(
        gpuledger("tidy", "--lake", str(folder / "lake"), "--fold-older-than", "1d", "--keep-samples", "--json")
    )
    if not done["days_folded"]:
        raise CommandFailed("gpuledger tidy folded no day")
    return ask("audit", "--lake", str(folder / "lake"), "--price", "1")


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from differences(a, b, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {one!r} became {other!r}"


def show(found: Mapping[str, Any]) -> str:
    """Buckets of each schedule, those that miss marked."""
    lines = ["percent of the time: the whole schedule | the sum of its parts; ! where they are too far apart", ""]
    for name, one in found["schedules"].items():
        lines.append(f"{'holds' if one['holds'] else 'FAILS'}  {name} ({one['title']}), called {one['class']}")
        for bucket, b in one["buckets"].items():
            if b["whole_pct"] or b["parts_pct"]:
                mark = "" if b["near"] else "  !"
                lines.append(f"         {bucket:12s} {b['whole_pct']:6.2f} | {b['parts_pct']:6.2f}{mark}")
    held = sum(one["holds"] for one in found["schedules"].values())
    lines += ["", f"{held} of {len(found['schedules'])} schedules hold"]
    changed = found["folding_changes"]
    lines.append(f"{'FAILS' if changed else 'holds'}  the audit is the same to the last digit after folding")
    return "\n".join([*lines, *(f"         {line}" for line in changed[:10])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="*", default=[], help="only the schedules whose names begin so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    try:
        wanted = [s for s in load_schedules() if not args.only or s.name.startswith(tuple(args.only))]
        pool = pool_of(args.folders or [folder for folder in RECORDINGS if folder.is_dir()])
        with tempfile.TemporaryDirectory() as folder:
            found = judge(wanted, pool, Path(folder))
    except (BadRecording, CommandFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1) if args.json else show(found))
    held = all(one["holds"] for one in found["schedules"].values())
    return 0 if held and not found["folding_changes"] else 1


if __name__ == "__main__":
    sys.exit(main())

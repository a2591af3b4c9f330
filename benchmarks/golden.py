"""Did a change move a figure? Save every statement as JSON before it, save them again after it, compare the two.

    python benchmarks/golden.py save before FILE...
    python benchmarks/golden.py save after FILE...
    python benchmarks/golden.py compare before after

`save` builds the demo's lake and one lake per telemetry file, runs every command that makes a statement, and keeps its
JSON. `compare` looks at figures (numbers, also those written as text) and at what is unknown; wording may differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UNKNOWN = "unknown"
LAKE_STATEMENTS: dict[str, tuple[str, ...]] = {
    "analyze": ("analyze",),
    "analyze-cut": ("analyze", "--last", "5h"),
    "audit": ("audit",),
    "audit-priced": ("audit", "--price", "2.5"),
    "audit-cut": ("audit", "--last", "90m", "--price", "3"),
    "move": ("plan", "migrate", "--price", "3.1"),
}
STATEMENTS: dict[str, tuple[str, ...]] = {
    "fit": ("plan", "fit", "--model", "llama-3.1-70b", "--gpu", "h100-sxm5-80gb", "--count", "8", "--mode", "train"),
    "fit-serve": ("plan", "fit", "--model", "llama-3.1-8b", "--gpu", "l4", "--mode", "serve", "--context", "8192"),
    "throughput": ("plan", "throughput", "--model", "llama-3.1-8b", "--gpu", "h100-sxm5-80gb", "--mode", "serve"),
    "migrate": ("plan", "migrate", "--instance", "P5", "--workload", "training", "--model", "llama-3.1-70b"),
    "migrate-guide": ("plan", "migrate", "--config", "reference", "--set", "comprehensive_suite"),
    "prices": ("prices",),
    "prices-compare": ("prices", "compare", "--gpu", "h100-sxm5-80gb"),
    "catalog-gpus": ("catalog", "gpus"),
    "catalog-gpu": ("catalog", "gpu", "h200-sxm-141gb"),
    "catalog-models": ("catalog", "models"),
    "mfu": ("train", "mfu", "--model", "llama-3.1-8b", "--gpu", "h100-sxm5-80gb", "--tokens-per-s", "9000"),
    "scaling": ("scaling", "tests/data/s2/results.jsonl", "--claims", "tests/data/s2/claims.json"),
}  # fmt: skip


def run(out: Path, args: tuple[str, ...]) -> str:
    """Run one command with --json, keep what it printed; the error where it failed."""
    done = subprocess.run(
        [sys.executable, "-m", "gpuledger", *args, "--json"], capture_output=True, text=True, check=False
    )
    out.write_text(done.stdout if done.returncode in (0, 1) else json.dumps({"exit": done.returncode}))
    return "" if done.returncode in (0, 1) else done.stderr.strip().splitlines()[-1]


def save(folder: Path, telemetry: list[Path]) -> None:
    """All statements of the demo and of a lake per file."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        problems = {"demo": run(folder / "demo.json", ("demo", "--out", str(work / "demo")))}
        lakes = {"demo": demo_lake(work)}
        for file in telemetry:
            name = f"{file.parent.name}-{file.name.partition('.')[0]}"
            lakes[name] = work / name
            taken = ("import", str(file), "--lake", str(lakes[name]), "--map", "dcgm")
            problems[name] = run(folder / f"{name}.import.json", taken)
        for name, lake in lakes.items():
            for kind, args in LAKE_STATEMENTS.items():
                problems[f"{name} {kind}"] = run(folder / f"{name}.{kind}.json", (*args, "--lake", str(lake)))
        for kind, args in STATEMENTS.items():
            problems[kind] = run(folder / f"{kind}.json", args)
    for name, problem in problems.items():
        print(f"{name:45s} {problem or 'ok'}")


def demo_lake(work: Path) -> Path:
    """The folder of the demo's lake."""
    return next(p for p in (work / "demo").iterdir() if (p / "samples").is_dir())


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, float | str]]:
    """Every figure with its path; lists of named rows by place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{at}]")
    elif value is None:
        yield path, UNKNOWN
    elif isinstance(value, bool):
        yield path, str(value)
    else:
        try:
            yield path, float(value)
        except (TypeError, ValueError):
            return


def compare(before: Path, after: Path) -> int:
    """Print what differs, by file; the exit code."""
    wrong = 0
    for file in sorted(before.glob("*.json")):
        old = dict(leaves(json.loads(file.read_text() or "{}")))
        new = dict(leaves(json.loads((after / file.name).read_text() or "{}")))
        moved = [p for p in old if p in new and old[p] != new[p]]
        gone, added = [p for p in old if p not in new], [p for p in new if p not in old]
        counts = f"{len(moved):5,d} differ, {len(gone):5,d} gone, {len(added):5,d} new"
        print(f"{file.name:45s} {len(old):7,d} figures, {counts}")
        for path in moved[:5]:
            print(f"    {path}: {old[path]} -> {new[path]}")
        for path in gone[:5]:
            print(f"    {path}: gone ({old[path]})")
        wrong += len(moved) + len(gone)
    return 1 if wrong else 0


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    saving, comparing = parts.add_parser("save"), parts.add_parser("compare")
    saving.add_argument("folder", type=Path)
    saving.add_argument("telemetry", type=Path, nargs="*")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.part == "save":
        save(given.folder, given.telemetry)
        return 0
    return compare(given.before, given.after)


if __name__ == "__main__":
    sys.exit(main())

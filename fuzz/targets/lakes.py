"""Files of a lake that was tampered with: manifests, parts, lines, counts, notes, rates, calibrations."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import gpuledger
from gpuledger.efficiency.calibration_files import read_board
from gpuledger.units import MS_PER_DAY
from targets import ROOT, Seed, Target, files_of

NOW_MS = 1_772_000_000_000


@functools.cache
def whole() -> Path:
    """A small posted lake, made once in a process, with counts, notes, jobs and rates."""
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-fuzz-lake-"))
    lake = gpuledger.open(folder / "lake")
    lake.ingest(ROOT / "fuzz/seeds/csv/plain.csv")
    lake.jobs(ROOT / "fuzz/seeds/jobs/sacct.txt", tz="UTC")
    lake.analyze()
    for place in ("counted", "runs", "prices", "calibration"):
        (folder / "lake" / place).mkdir(exist_ok=True)
        for seed in files_of(f"fuzz/seeds/lake/{place}")():
            (folder / "lake" / place / seed.name).write_bytes(seed.data)
    return folder / "lake"


def found(pattern: str) -> Callable[[], list[Seed]]:
    """The files of that lake under a pattern."""
    return lambda: [Seed(str(f.relative_to(whole())), f.read_bytes()) for f in sorted(whole().glob(pattern))]


def _tampered(place: str, ask: Callable[[gpuledger.OpenLake], object]) -> Callable[[Path], object]:
    def run(path: Path) -> object:
        with tempfile.TemporaryDirectory(prefix="gpuledger-fuzz-") as folder:
            root = Path(folder) / "lake"
            shutil.copytree(whole(), root)
            (target,) = list(root.glob(place))[:1]
            shutil.copyfile(path, target)
            return ask(gpuledger.open(root))

    return run


def _samples_and_lines(lake: gpuledger.OpenLake) -> object:
    return lake.samples().arrow(), repr(lake), lake.lines().arrow()


def _taken_in(lake: gpuledger.OpenLake) -> object:
    lake.ingest(ROOT / "fuzz/seeds/csv/later.csv")
    ages = gpuledger.Ages(now_ms=NOW_MS, fold_ms=MS_PER_DAY, drop_ms=30 * MS_PER_DAY)
    return gpuledger.tidy_lake(lake.lake, gpuledger.load_thresholds(), ages)


def _statement(lake: gpuledger.OpenLake) -> object:
    return lake.analyze()


LINES, PART = "ledger/*/*.lines.parquet", "samples/*/*.parquet"
TARGETS = [
    Target("lake manifest", _tampered("manifest.json", _samples_and_lines), found("manifest.json"), 0.25),
    Target("lake manifest, written", _tampered("manifest.json", _taken_in), found("manifest.json"), 0.1),
    Target("ledger manifest", _tampered("ledger/manifest.json", _statement), found("ledger/manifest.json"), 0.2),
    Target("part of a lake", _tampered(PART, _samples_and_lines), found(PART), 0.2),
    Target("lines of a ledger", _tampered(LINES, _statement), found(LINES), 0.15),
    Target("jobs of a lake", _tampered("jobs/manifest.json", _statement), found("jobs/*"), 0.1),
    Target("counted run", _tampered("counted/*.json", lambda lake: lake.audit()), found("counted/*"), 0.05),
    Target("recorded run", _tampered("runs/*.json", _statement), found("runs/*"), 0.08),
    Target("rates of a lake", _tampered("prices/yours.json", lambda lake: lake.audit()), found("prices/*"), 0.08),
    Target("calibration", read_board, found("calibration/*"), 3.0),
]

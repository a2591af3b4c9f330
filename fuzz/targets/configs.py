"""Files of settings: gpuledger.toml, thresholds, limits, mapping files, catalog files, a replayed recording."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from gpuledger import settings
from gpuledger.advice.limits import load_limits
from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.teams import set_teams
from gpuledger.cost.user_settings import set_budgets, set_prices
from gpuledger.devices.replay.doors import load_tapes
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.scaling.grades import load_scaling_thresholds
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.mapping import load_mapping
from gpuledger.training.tune.choices import load_plan
from targets import ROOT, Target, files_of

LOG = ROOT / "fuzz/seeds/csv/plain.csv"


def in_force(path: Path) -> object:
    """gpuledger.toml, with all of its sections asked for."""
    settings.use(path)
    try:
        readers = (load_thresholds, load_limits, load_scaling_thresholds, load_plan, set_teams, set_prices, set_budgets)
        return [*(read() for read in readers), load_alerts()]
    finally:
        settings.use(None)


def mapped(path: Path) -> object:
    """A mapping file over a log, as `import --map FILE --explain` reads it."""
    return explain(LOG, mapping=load_mapping(str(path)))


def catalog(path: Path) -> object:
    """A folder with one file of GPUs, each time another folder: a catalog is read once."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(path, Path(folder) / "own.toml")
        return load_gpus(Path(folder))


TARGETS = [
    Target("gpuledger.toml", in_force, files_of("fuzz/seeds/settings"), 2.0),
    Target("thresholds", load_thresholds, files_of("src/gpuledger/catalog/data/thresholds.toml"), 2.0),
    Target("mapping file", mapped, files_of("fuzz/seeds/maps", "src/gpuledger/telemetry/maps/dcgm.toml"), 1.5),
    Target("GPU catalog file", catalog, files_of("fuzz/seeds/gpus"), 0.5),
    Target("replayed recording", load_tapes, files_of("fuzz/seeds/csv", "fuzz/seeds/replay"), 1.0),
]

"""Fleets written as DCGM exports, and the statements a user gets of them: import, post, audit, analyze."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpuledger.advice.build import audit_statement
from gpuledger.advice.statement import to_json as audit_json
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import cost_statement
from gpuledger.cost.statement import CostStatement
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import to_json as efficiency_json
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
from gpuledger.units import day_start_ms, utc

Row = dict[str, Any]

DAY = day_start_ms("2026-03-02")
MINUTE = 60_000
A100 = "NVIDIA A100-SXM4-40GB"
H100 = "NVIDIA H100 80GB HBM3"
B300 = "B300-SXM"

UTIL, POWER, LIMIT = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"
ENERGY, CLOCK, MEMORY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_FB_USED"
ENGINE, TENSOR, FP32 = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
)  # fmt: skip
DRAM, BITS = "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"


def samples(minutes: Iterable[int], gpu: str = "GPU-a", model: str = A100, **values: Any) -> list[Row]:
    """A sample at each of these minutes after the start; `values` are its other columns."""
    return [
        {"timestamp": f"{utc(DAY + m * MINUTE):%Y-%m-%dT%H:%M:%SZ}", "UUID": gpu, "modelName": model, **values}
        for m in minutes
    ]


def mig(instance: str, profile: str) -> Row:
    """The labels of a slice."""
    return {"GPU_I_ID": instance, "GPU_I_PROFILE": profile}


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Rows as a CSV file; cells a row does not have are empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, names, restval="")
        out.writeheader()
        out.writerows(rows)
    return path


def lake_of(folder: Path, rows: Sequence[Row]) -> Lake:
    """A lake of these rows, posted."""
    folder.mkdir(parents=True, exist_ok=True)
    lake = Lake(folder / "lake")
    import_files(lake, [write(folder / "fleet.csv", rows)])
    post_lake(lake, load_thresholds())
    return lake


def bill(lake: Lake, scope: Scope | None = None, **given: Any) -> CostStatement:
    """What the lake cost at $1 for a GPU-hour, or as given."""
    return cost_statement(lake, scope, **({"price": 1} | given))


def owed(made: CostStatement) -> dict[str, float]:
    """Dollars by namespace."""
    return {row.name: float(row.dollars.paid_usd) for row in made.by_namespace}  # type: ignore[union-attr]


def audit(lake: Lake, **given: Any) -> Row:
    """The audit at $1 for a GPU-hour, or as given, as the JSON that users get."""
    made = audit_statement(lake, given.pop("scope", None), **({"price": 1} | given))
    found: Row = json.loads(json.dumps(audit_json(made)))
    return found


def analyze(lake: Lake, scope: Scope | None = None) -> Row:
    """The efficiency statement as the JSON that users get."""
    window = scope or Scope()
    made = efficiency_statement(lake, Scope(window.since_ms, window.until_ms))
    found: Row = json.loads(json.dumps(efficiency_json(made)))
    return found


_MODELS = (A100, H100, B300, "Banana 9000")
_PROFILES = ("1g.5gb", "2g.10gb", "3g.20gb")
_COUNTERS = ((), (ENGINE, TENSOR, DRAM), (ENGINE, TENSOR, FP32, DRAM), (TENSOR,))


def random_fleet(seed: int, days: int = 2, step: int = 6, models: Sequence[str] = _MODELS) -> list[Row]:
    """Boards whole and sliced, slices that change size, owners that take turns, minute clocks, power limits."""
    dice = random.Random(seed)
    rows: list[Row] = []
    for board in range(dice.randint(2, 4)):
        rows += _board(dice, f"GPU-{board}", dice.choice(models), days * 24 * 60, step)
    return rows


def _board(dice: random.Random, gpu: str, model: str, minutes: int, step: int) -> Iterator[Row]:
    counters = dice.choice(_COUNTERS)
    known = {
        name
        for name in (POWER, MEMORY, CLOCK, UTIL, LIMIT, BITS, ENERGY)
        if dice.random() < (0.85 if name in (POWER, MEMORY, CLOCK, UTIL) else 0.5)
    } | set(counters)
    coarse, energy = dice.random() < 0.3, 0
    start, profiles = dice.randrange(0, 300), dice.choice((0, 0, 2, 3))
    at = start
    while at < minutes - dice.randrange(0, 120):
        length = dice.choice((30, 90, 240, 500))
        sliced = profiles and dice.random() < 0.6
        holders = [mig(str(i + 1), dice.choice(_PROFILES)) for i in range(profiles)] if sliced else [{}]
        owners = [_owner(dice) for _ in holders]
        load = dice.choice(("idle", "steady", "steady", "bursts", "gap"))
        for minute in range(at, min(at + length, minutes), step):
            energy += 300_000 * step * 60 // 1000
            if load == "gap":
                continue
            for holder, owner in zip(holders, owners, strict=True):
                for _ in range(3 if coarse else 1):
                    values = _values(dice, load, model, energy)
                    kept = {n: v for n, v in values.items() if n in known and (n in _LEVEL or dice.random() < 0.98)}
                    yield samples([minute], gpu, model, **holder, **owner, **kept)[0]
        at += length


_LEVEL = (ENERGY, LIMIT)


def _owner(dice: random.Random) -> Row:
    name = dice.choice(("train", "serve", "", UNALLOCATED))
    return {"cluster": "c1", "namespace": name, "pod": f"{name}-{dice.randint(0, 2)}" if name else ""}


def _values(dice: random.Random, load: str, model: str, energy: int) -> Row:
    still = load == "idle" or (load == "bursts" and dice.random() < 0.5)
    use = 0.0 if still else dice.choice((0.3, 0.8, 1.0))
    watts = 60 + use * dice.choice((200, 280, 330))
    return {
        UTIL: round(100 * use), POWER: round(watts, 1), LIMIT: dice.choice((300, 390)) if model == A100 else 400,
        BITS: dice.choice((0, 4)), ENERGY: energy, CLOCK: dice.choice((1200, 1410)),
        MEMORY: 100 if still and dice.random() < 0.5 else 20_000, ENGINE: use, TENSOR: round(use * dice.random(), 3),
        FP32: round(use * dice.random() / 2, 3), DRAM: round(use * dice.random(), 3),
    }  # fmt: skip

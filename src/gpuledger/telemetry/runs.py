"""What do runs say whose energy a tool summed up itself? GPU-hours, energy and mean power, and no series of samples.

A run covers a time and a number of GPUs. How busy they were in between is not in such a file: no utilization, no idle
time, no month.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuledger.units import Unknown, known, ratio

S_PER_H, W_PER_KW = 3600.0, 1000.0
NO_COUNT = Unknown("the file does not say how many GPUs a run had")
NO_ENERGY = Unknown("the file has no energy of GPUs")
NO_GPU = Unknown("no GPU was measured")
OVERLAP_S = 2.0  # stamps are whole seconds


@dataclass(frozen=True)
class Run:
    """One run. `ended`: local time, as the file has it; the energy is of all of its GPUs, the power of one."""

    project: str
    run_id: str
    ended: str
    run_hours: float
    gpus: int | Unknown
    gpu_model: str
    energy_kwh: float | Unknown

    @property
    def gpu_hours(self) -> float | Unknown:
        """Its hours times its GPUs."""
        return self.gpus if isinstance(self.gpus, Unknown) else self.run_hours * self.gpus

    @property
    def power_w(self) -> float | Unknown:
        """Mean power of one GPU."""
        return _power_w([self])

    def as_json(self) -> dict[str, object]:
        """With what follows from its figures."""
        return {**vars(self), "gpu_hours": self.gpu_hours, "power_w": self.power_w}


@dataclass(frozen=True)
class Runs:
    """The runs of a file. `gpus`: the most that one run had; `run_hours`: of the runs with GPUs; sums leave out runs
    whose figure is unknown. `overlapping`: runs that began before another had ended.
    """

    tool: str
    versions: tuple[str, ...]
    runs: int
    runs_with_gpus: int
    runs_without_gpus: int
    gpus: int | Unknown
    gpu_models: tuple[str, ...]
    run_hours: float
    gpu_hours: float | Unknown
    energy_kwh: float | Unknown
    power_w: float | Unknown
    overlapping: int
    rows: int
    rows_not_read: int
    by_run: tuple[Run, ...]


def runs_of(tool: str, versions: Iterable[str], runs: Sequence[Run], rows: int, rows_not_read: int) -> Runs:
    """The runs added up."""
    counts = [gpus for run in runs if (gpus := known(run.gpus)) is not None]
    with_gpus = [run for run in runs if isinstance(run.gpus, Unknown) or run.gpus]
    return Runs(
        tool=tool,
        versions=tuple(sorted(set(versions) - {""})),
        runs=len(runs),
        runs_with_gpus=sum(1 for gpus in counts if gpus),
        runs_without_gpus=sum(1 for gpus in counts if not gpus),
        gpus=max(counts) if counts else NO_COUNT,
        gpu_models=tuple(sorted({run.gpu_model for run in runs} - {""})),
        run_hours=sum(run.run_hours for run in with_gpus),
        gpu_hours=_sum([run.gpu_hours for run in runs], NO_COUNT),
        energy_kwh=_sum([run.energy_kwh for run in runs], NO_ENERGY if with_gpus else NO_GPU),
        power_w=_power_w(runs),
        overlapping=_overlapping(runs),
        rows=rows,
        rows_not_read=rows_not_read,
        by_run=tuple(runs),
    )


def _sum(figures: Sequence[float | Unknown], without: Unknown) -> float | Unknown:
    """The sum of those that are known; unknown where none is."""
    values = [value for figure in figures if (value := known(figure)) is not None]
    return sum(values) if values else without


def _power_w(runs: Iterable[Run]) -> float | Unknown:
    """Mean power of a GPU, over the runs that say both their energy and their GPUs."""
    both = [(known(run.energy_kwh), known(run.gpu_hours)) for run in runs]
    pairs = [(kwh, hours) for kwh, hours in both if kwh is not None and hours]
    return ratio(sum(kwh for kwh, _ in pairs) * W_PER_KW, sum(hours for _, hours in pairs), _NO_POWER)


_NO_POWER = "no run has both an energy and a number of GPUs"


def _overlapping(runs: Iterable[Run]) -> int:
    """How many runs began before an earlier one had ended, by the stamps that are dates."""
    spans = sorted((end - run.run_hours * S_PER_H, end) for run in runs if (end := _seconds(run.ended)) is not None)
    latest, count = float("-inf"), 0
    for start, end in spans:
        count += start < latest - OVERLAP_S
        latest = max(latest, end)
    return count


def _seconds(stamp: str) -> float | None:
    try:
        return dt.datetime.fromisoformat(stamp).replace(tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None

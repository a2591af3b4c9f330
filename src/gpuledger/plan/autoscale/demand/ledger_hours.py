"""What is the demand by the ledger's own hours? The GPUs that were busy in each hour, as a rate of requests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.autoscale.demand.reading import Gaps
from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.service import Service
from gpuledger.units import MS_PER_HOUR, MS_PER_S, PPM, count

HOUR_S = 3600.0


def busy_gpus(lake: Lake, scope: Scope) -> tuple[np.ndarray, np.ndarray]:
    """Hours that were observed (as milliseconds, in order), and the mean number of busy GPUs in each."""
    books = Books(lake, scope)
    starts: list[np.ndarray] = []
    busy: list[np.ndarray] = []
    for _, rows in books.blocks((), ("busy_ppm_ms", "observed_ms"), hourly=True):
        if (rows["grain_ms"] > MS_PER_HOUR).any():
            hint = "choose a window with hours: days that were folded do not show when GPUs were busy"
            raise InputError(f"{lake.root}: the window has days without hours", hint=hint)
        starts.append(rows["hour_ms"])
        busy.append(rows["busy_ppm_ms"] / PPM / MS_PER_HOUR)
    if not starts:
        raise books.nothing_found()
    hours, place = np.unique(np.concatenate(starts), return_inverse=True)
    return hours, np.bincount(place.reshape(-1), np.concatenate(busy))


def ledger_trace(path: Path, namespaces: tuple[str, ...], service: Service, gaps: Gaps) -> Trace:
    """The ledger's hours as a trace: a replica with all its GPUs busy is one with all its slots busy."""
    lake = Lake(path)
    hours, gpus = busy_gpus(lake, Scope(namespaces=namespaces))
    slot = ((hours - hours[0]) // MS_PER_HOUR).astype(np.int64)
    if len(hours) < 2:
        raise InputError(f"{path}: one hour is not a trace", hint="import more samples: a day or more")
    all_hours = np.full(int(slot[-1]) + 1, np.nan)
    all_hours[slot] = gpus
    clock = hours[0] / MS_PER_S + HOUR_S * np.arange(len(all_hours))
    notes = [f"requests are busy GPUs of the ledger, each counted as requests of {service.service_s:g} s"]
    missing = np.isnan(all_hours)
    if missing.any():
        words = f"{count(int(missing.sum()), 'hour')} without samples"
        if gaps == "refuse":
            hint = "choose gaps=skip (cut the time out) or gaps=hold (carry the last hour forward)"
            raise InputError(f"{path}: the ledger has gaps: {words}", hint=hint)
        if gaps == "hold":
            all_hours = all_hours[np.maximum.accumulate(np.where(missing, 0, np.arange(len(all_hours))))]
        else:
            all_hours, clock = all_hours[~missing], clock[~missing]
        notes.append(f"{words}: {'filled with the hour before' if gaps == 'hold' else 'cut out'}")
    if not all_hours.any():
        raise InputError(f"{path}: no GPU was busy in these hours", hint="choose another namespace")
    rates = all_hours * (service.slots / service.gpus) / service.service_s
    what = f"{path.name}, {', '.join(namespaces)}" if namespaces else path.name
    return Trace(what, rates, HOUR_S, clock, True, read_as=("busy GPUs in each hour",), notes=tuple(notes))

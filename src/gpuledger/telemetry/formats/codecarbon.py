"""What does CodeCarbon write to emissions.csv?

A row is a run: its stamp is the end, local, and its sums are of all GPUs. A run that flushed has several rows with
growing sums: the last counts; a file of tasks has a row for each task of a run. Releases since 2.0 say the GPUs and
their energy, those before only the energy of the whole machine. `gpu_count` alone says how many GPUs there are: empty
or 0 for none, 1 for the graphics of a Mac.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Seen, sure
from gpuledger.telemetry.formats.logs import csv_cells
from gpuledger.telemetry.runs import NO_COUNT, NO_ENERGY, NO_GPU, S_PER_H, Run, Runs, runs_of
from gpuledger.telemetry.unpacking import text_lines
from gpuledger.units import Unknown

_MARKS = frozenset(["duration", "emissions", "energy_consumed"])
# Of a file of the tracker, and of an export of its dashboard.
_KEYS = ("run_id", "runId")
# `2 x NVIDIA L4`; several models follow each other without a blank: `1 x NVIDIA A301 x NVIDIA A10`.
_TIMES = re.compile(r"^\d+ x |\d x ")
_NOT_MEASURED = Unknown("the file gives 0 kWh for its GPUs: their energy was not measured")


def _score(head: Head) -> Seen:
    """By the header."""
    return sure(_is_header(csv_cells(head.lines[0])) and "the columns duration, emissions, energy_consumed"
                if head.lines else None)  # fmt: skip


def _is_header(cells: list[str]) -> bool:
    return set(cells) >= _MARKS


def _read(path: Path) -> Runs:
    found, versions = dict[tuple[str, ...], Run](), set[str]()
    rows = wrong = 0
    for row in _rows(path):
        seconds = None if row is None else _number(row["duration"])
        if row is None or seconds is None:
            wrong += 1
            continue
        rows += 1
        versions.add(row.get("codecarbon_version", ""))
        run_id = next((row[key] for key in _KEYS if row.get(key)), f"row {rows}")
        found[run_id, row.get("task_name", "")] = _run(row, run_id, seconds / S_PER_H)
    if not rows:
        raise FileFault(
            path, "it is an emissions.csv of CodeCarbon without a whole row", hint="stop the tracker: tracker.stop()"
        )
    return runs_of("CodeCarbon", versions, list(found.values()), rows, wrong)


def _rows(path: Path) -> Iterator[Mapping[str, str] | None]:
    """The rows by column; None for a line that has not all cells. Several files in one have several headers."""
    header: list[str] = []
    try:
        for cells in csv.reader(text_lines(path)):
            if _is_header(cells := [cell.strip() for cell in cells]):
                header = cells
            elif cells:
                yield dict(zip(header, cells, strict=True)) if len(cells) == len(header) else None
    except csv.Error:  # a cell of more than 128 KiB
        yield None


def _run(row: Mapping[str, str], run_id: str, hours: float) -> Run:
    kwh, model = _number(row.get("gpu_energy", "")), row.get("gpu_model", "")
    gpus = _gpus(row, kwh)
    energy: float | Unknown = kwh or (NO_ENERGY if kwh is None else _NOT_MEASURED)
    return Run(
        project=" ".join(word for word in (row.get("project_name", ""), row.get("task_name", "")) if word),
        run_id=run_id,
        ended=row.get("timestamp", ""),
        run_hours=hours,
        gpus=gpus,
        gpu_model=" + ".join(filter(None, _TIMES.split(model))) if gpus != 0 else "",
        energy_kwh=NO_GPU if not kwh and gpus == 0 else energy,
    )


def _gpus(row: Mapping[str, str], kwh: float | None) -> int | Unknown:
    """How many GPUs a run measured."""
    if (count := _number(row.get("gpu_count", ""))) is not None:
        return int(count)
    none = kwh == 0 or "gpu_count" in row
    return 0 if none and not row.get("gpu_model") else NO_COUNT


def _number(text: str) -> float | None:
    """A number of the file, none of which is negative; None where it has none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


FORMATS.register("codecarbon")(Format("emissions.csv of CodeCarbon", Kind.RUNS, _score, _read))

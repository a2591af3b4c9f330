"""What did a job count itself while it ran: FLOPs, tokens and steps, and what its own loop measured?

DIR/counted/<run>-r<rank>.json: one file per run and rank, versioned. Writing it again replaces it, whole or not at all,
so a meter may write as often as it likes and a job that was killed leaves what it wrote last.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.lake.json_files import file_name, read_json, write_json
from gpuledger.lake.layout import Lake

FILE_VERSION = 1
FOLDER = "counted"


class CountedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Work done in one stretch of time within one hour; None where it could not be counted.

    `tflop` is all the device did (recomputation too), `model_tflop` what the model needs.
    """

    start_ms: int
    end_ms: int
    steps: int
    tflop: float | None = None
    model_tflop: float | None = None
    tokens: int | None = None
    samples: int | None = None


class MeasuredFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that slows a loop, measured on it. `rule` is the advice it supports.

    `low`, `middle` and `high` are the shares of the step's time that the change can save, never more than was measured.
    """

    topic: str
    rule: str
    title: str
    why: str
    change: str
    low: float
    middle: float
    high: float
    gain_words: str
    source: str = ""
    figures: dict[str, float] = {}


class CountedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank of one run counted. `report` is the meter's whole report as JSON."""

    version: int = FILE_VERSION
    run_id: str
    rank: int = 0
    world_size: int = 1
    state: str = "running"
    gpu_uuid: str | None = None
    gpu_instance_id: str | None = None
    gpu_model: str | None = None
    precision: str | None = None
    labels: dict[str, str] = {}
    spans: tuple[CountedSpan, ...] = ()
    findings: tuple[MeasuredFinding, ...] = ()
    report: dict[str, Any] = {}

    @property
    def device(self) -> tuple[str | None, str | None]:
        """The device as the ledger names it."""
        return self.gpu_uuid, self.gpu_instance_id


def counted_file(lake: Lake, run_id: str, rank: int) -> Path:
    """Where one rank's counts rest."""
    return lake.root / FOLDER / f"{file_name(run_id)}-r{rank}.json"


def write_counted(lake: Lake, run: CountedRun) -> Path:
    """Write or replace what one rank counted."""
    return write_json(counted_file(lake, run.run_id, run.rank), run, "the counts of a job")


def read_counted(lake: Lake) -> list[CountedRun]:
    """All runs that counted their own work, oldest first; [] where none did."""
    files = sorted((lake.root / FOLDER).glob("*.json"))
    found = [read_json(file, CountedRun, FILE_VERSION, "the counts of a job") for file in files]
    return sorted(found, key=lambda r: (r.spans[0].start_ms if r.spans else 0, r.run_id, r.rank))


def covered_ms(spans: Iterable[CountedSpan]) -> int:
    """How much time the spans cover together; time that two of them share counts once."""
    total, reached = 0, -1
    for span in sorted(spans, key=lambda s: s.start_ms):
        begin = max(span.start_ms, reached)
        if span.end_ms > begin:
            total += span.end_ms - begin
            reached = span.end_ms
    return total

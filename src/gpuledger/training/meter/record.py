"""How does what a meter saw get into the lake, under whose name, and back out of it?"""

from __future__ import annotations

import datetime as dt
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from gpuledger.devices.attribution import attribute, command_name
from gpuledger.efficiency.calibration_files import BoardCalibration, calibration_file, read_board
from gpuledger.lake.counted import CountedRun, CountedSpan, write_counted
from gpuledger.lake.layout import Lake
from gpuledger.training.meter.observed import Identity
from gpuledger.training.meter.report import MeterReport, to_json
from gpuledger.units import Unknown

# What launchers call a run that all its ranks share.
_SHARED_ID = ("TORCHELASTIC_RUN_ID", "MASTER_PORT")


def identify(
    run_id: str | None, labels: Mapping[str, str] | None, rank: int, size: int, environ: Mapping[str, str] | None = None
) -> Identity:
    """Who runs: the same labels a recording beside the job finds, and one run id for all ranks."""
    around = os.environ if environ is None else environ
    host = socket.gethostname()
    found = attribute(around, host=host, command=command_name(sys.orig_argv), given=labels)
    own = dict(found.labels)
    name = run_id or own.get("run_id") or _shared(around, size) or _new()
    own["run_id"] = name
    return Identity(name, rank, size, host, own)


def _shared(environ: Mapping[str, str], size: int) -> str | None:
    """Ranks cannot agree on a random name without waiting for each other: take what their launcher gave them all."""
    given = next((environ[k] for k in _SHARED_ID if environ.get(k, "none") not in {"", "none"}), None)
    return f"{dt.datetime.now(tz=dt.UTC):%Y%m%d}-{given}" if given and size > 1 else None


def _new() -> str:
    return f"{dt.datetime.now(tz=dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def store(lake: Lake, report: MeterReport, spans: tuple[CountedSpan, ...]) -> Path:
    """Write or replace what one rank counted."""
    seen = report.seen
    return write_counted(
        lake,
        CountedRun(
            run_id=seen.who.run_id,
            rank=seen.who.rank,
            world_size=seen.who.world_size,
            state=seen.state,
            gpu_uuid=seen.place.gpu_uuid,
            gpu_instance_id=seen.place.gpu_instance_id,
            gpu_model=seen.place.name if seen.place.kind == "cuda" else None,
            precision=None if isinstance(seen.precision, Unknown) else seen.precision,
            labels=dict(seen.who.labels),
            spans=spans,
            findings=report.findings,
            report=to_json(report),
        ),
    )


def boards_of(lake: Lake | None, gpu_uuid: str | None) -> list[BoardCalibration]:
    """What a calibration of this very board found; none where it was not calibrated."""
    if lake is None or gpu_uuid is None:
        return []
    file = calibration_file(lake, gpu_uuid)
    return [read_board(file)] if file.is_file() else []

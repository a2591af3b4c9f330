"""gpuledger keeps the books of a GPU fleet: what every GPU-second really did, who it was for and what to change.

The rooms, each of which uses only those above it:

    errors, bounds, units, times, registry, settings, encode, answers   the ground floor: errors, units, plugins, JSON
    native        sums over many rows, compiled where they were built
    catalog       facts as files: GPUs, models, offers, thresholds, each figure with its source
    telemetry     what a GPU reports: columns, sources, a synthetic fleet
    physics       what readings mean: states, work by pipe, behavior, causes
    devices       live GPUs: NVML, AMD, a replayed recording, the sampler
    testing       what is not there: a scripted model server, processes that hold a GPU
    lake          where samples rest: import, atomic commits, retention
    recording     a recording around a command or a host: ownership, notes, child processes
    ledger        one line per device, hour, owner and state: whole numbers, no dollars
    efficiency    what the hardware did: the efficiency statement
    cost          what it cost: prices, seven buckets that always sum, honest savings
    anomalies     which GPUs do worse than their past or their peers
    advice        what to change: one rule a file, and the audit
    training      what a job can count itself: FLOPs, MFU, the meter, the tuner, calibrate
    plan          where to run: memory fit, throughput, moves
    bench         how a service does under load: the runner, targets, results
    scaling       how N GPUs do as one: analysis, verdicts on claims
    live          what other systems take: metrics, rules, dashboards, FOCUS rows
    report        the document model, documents, charts, renderers
    web           the dashboard: pages, JSON and events of a growing lake
    tui           the terminal view: GPUs right now
    agent         how every host ships to one lake
    api, train    the Python face
    cli           the command line

    import gpuledger

    lake = gpuledger.open("gpuledger-data")
    lake.ingest("export.parquet")
    lake.analyze(last="7d").findings
    lake.audit(prices=2.5).save("report")

Importing this package loads none of the rooms; a name loads its room when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.version import __version__

if TYPE_CHECKING:
    from gpuledger import plan as plan
    from gpuledger import scaling as scaling
    from gpuledger import train as train
    from gpuledger.advice.build import audit_statement
    from gpuledger.answers import Answer
    from gpuledger.api import OpenLake
    from gpuledger.api import ReadFiles as read  # noqa: N813
    from gpuledger.api import open_lake as open  # noqa: A004
    from gpuledger.catalog.gpus import Gpu, find_gpu, get_gpu, load_gpus
    from gpuledger.catalog.thresholds import Thresholds, load_thresholds
    from gpuledger.cost.build import cost_report, cost_statement
    from gpuledger.cost.savings import Bill, Lever, combine
    from gpuledger.devices.replay.clock import QuickClock
    from gpuledger.devices.replay.doors import simulated
    from gpuledger.devices.replay.script import Ramp, Scenario, Segment, Square
    from gpuledger.efficiency.build import efficiency_statement
    from gpuledger.efficiency.statement import EfficiencyStatement, to_json
    from gpuledger.errors import GpuledgerError
    from gpuledger.lake.importing import ImportResult, import_files
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.engine import PostingResult, post_lake
    from gpuledger.ledger.tidying import Ages, tidy_lake
    from gpuledger.recording.command import CommandRun, run_command
    from gpuledger.recording.record import Recording, record, recorded
    from gpuledger.report.write import write_report
    from gpuledger.telemetry.mapping import load_mapping
    from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
    from gpuledger.training.meter.meter import Meter, metered
    from gpuledger.units import Unknown


# Where each public name lives; the imports above say the same to type checkers, and a test holds the two together.
_HOMES = {
    "advice.build": ("audit_statement",),
    "answers": ("Answer",),
    "api": ("OpenLake",),
    "catalog.gpus": ("Gpu", "find_gpu", "get_gpu", "load_gpus"),
    "catalog.thresholds": ("Thresholds", "load_thresholds"),
    "cost.build": ("cost_report", "cost_statement"),
    "cost.savings": ("Bill", "Lever", "combine"),
    "devices.replay.clock": ("QuickClock",),
    "devices.replay.doors": ("simulated",),
    "devices.replay.script": ("Ramp", "Scenario", "Segment", "Square"),
    "efficiency.build": ("efficiency_statement",),
    "efficiency.statement": ("EfficiencyStatement", "to_json"),
    "errors": ("GpuledgerError",),
    "recording.command": ("CommandRun", "run_command"),
    "lake.importing": ("ImportResult", "import_files"),
    "lake.layout": ("Lake",),
    "recording.record": ("Recording", "record", "recorded"),
    "ledger.engine": ("PostingResult", "post_lake"),
    "ledger.tidying": ("Ages", "tidy_lake"),
    "report.write": ("write_report",),
    "telemetry.mapping": ("load_mapping",),
    "telemetry.synthetic": ("FleetSpec", "write_fleet"),
    "training.meter.meter": ("Meter", "metered"),
    "units": ("Unknown",),
}
# Rooms with functions of their own.
_ROOMS = ("plan", "scaling", "train")

__all__ = [
    "Ages", "Answer", "Bill", "CommandRun", "EfficiencyStatement", "FleetSpec", "Gpu", "GpuledgerError",
    "ImportResult", "Lake", "Lever", "Meter", "OpenLake", "PostingResult", "QuickClock", "Ramp", "Recording",
    "Scenario", "Segment", "Square", "Thresholds", "Unknown", "__version__", "audit_statement", "combine",
    "cost_report", "cost_statement", "efficiency_statement", "find_gpu", "get_gpu", "import_files", "load_gpus",
    "load_mapping", "load_thresholds", "metered", "open", "post_lake", "read", "record", "recorded", "run_command",
    "simulated", "tidy_lake", "to_json", "write_fleet", "write_report",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load the room a public name lives in."""
    if name in ("open", "read"):
        from gpuledger.api import ReadFiles, open_lake

        return open_lake if name == "open" else ReadFiles
    if name in _ROOMS:
        import importlib

        return importlib.import_module(f"gpuledger.{name}")
    for home, names in _HOMES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(f"gpuledger.{home}"), name)
    raise AttributeError(f"module 'gpuledger' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

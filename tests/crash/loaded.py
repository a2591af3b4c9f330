"""What does a process have loaded before it becomes a gpuledger command?

A command spends most of its time loading modules, which changes nothing on disk. Commands under test are forked from a
process that has imported this module: ten times as many kills hit the work itself. Some are started afresh.
"""

from __future__ import annotations

import importlib
import pkgutil

from gpuledger.catalog.prices.offers import load_offers
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.ledger.facts import rules_fingerprint

ROOMS = ("lake", "ledger", "recording", "telemetry", "efficiency", "cost", "anomalies", "advice", "devices.replay",
         "report.charts.audit", "report.charts.efficiency")  # fmt: skip
COMMANDS = ("analyze", "audit", "import_", "jobs", "record", "tidy")


def load() -> None:
    """Import what commands import when they run, and read the catalog, which is the same for all of them."""
    for room in (importlib.import_module(f"gpuledger.{name}") for name in ROOMS):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    for name in ("app", "auditing", "job_tables", "showing", *(f"commands.{c}" for c in COMMANDS)):
        importlib.import_module(f"gpuledger.cli.{name}")
    for name in ("jobs", "efficiency", "audit"):
        importlib.import_module(f"gpuledger.report.documents.{name}")
    rules_fingerprint(load_thresholds())
    load_offers()


load()

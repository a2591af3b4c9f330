"""What does a command load before it works? Only what it needs: a short command is mostly its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from core_install import WITHOUT_PANDAS

# What analyze of a Parquet file has no use for. The first part of a name stands for all below it.
NOT_FOR_JSON = (
    "altair", "rich", "pydoc", "importlib.metadata", "email", "gpuledger.report", "gpuledger.advice",
    "gpuledger.catalog.prices", "gpuledger.cost.build", "gpuledger.cost.statement", "gpuledger.cost.pricing",
    "gpuledger.cost.user_settings", "gpuledger.cost.inventories", "gpuledger.lake.jobs.adding",
    "gpuledger.lake.jobs.reading", "gpuledger.ledger.engine", "gpuledger.ledger.day", "gpuledger.telemetry.series",
    "gpuledger.telemetry.formats.metric_text", "gpuledger.telemetry.formats.zeus",
    "gpuledger.telemetry.formats.csv_file", "gpuledger.telemetry.servers", "pyarrow.csv", "pyarrow._s3fs",
    "pyarrow._azurefs", "pyarrow._gcsfs", "numpy._typing", "numpy.ma", "numpy._core._add_newdocs", "zoneinfo",
    "importlib.resources", "http",
)  # fmt: skip
NOT_FOR_IMPORT = (
    "altair", "pydoc", "email", "http", "gpuledger.lake.jobs", "gpuledger.ledger.jobs.joining",
    "gpuledger.telemetry.servers.web", "gpuledger.telemetry.servers.prometheus", "gpuledger.telemetry.formats.csv_file",
    "pyarrow._s3fs", "numpy._typing", "numpy.ma", "zoneinfo",
)  # fmt: skip
NOT_FOR_TEXT = tuple(name for name in NOT_FOR_JSON if name not in {"rich", "gpuledger.report"})
NOT_FOR_A_WORKER = (
    "rich", "click", "pydoc", "importlib.metadata", "gpuledger.cost", "gpuledger.efficiency",
    "gpuledger.ledger", "gpuledger.report", "gpuledger.telemetry.formats.metric_text",
)  # fmt: skip
SHOW = """
import json, sys
from gpuledger.{module} import main
assert not main(), "it failed"
gpus = sys.modules["gpuledger.catalog.gpus"]._read_gpus.cache_info().currsize
print("\\n" + json.dumps([sorted(sys.modules), gpus]))
"""


def loaded(module: str, *args: str) -> tuple[set[str], int]:
    """The modules a process has loaded at its end, and how many files of GPUs it read.

    Where pandas is installed, Arrow imports it with the first array, whatever a command loads.
    """
    code = WITHOUT_PANDAS + SHOW.replace("{module}", module)
    environ = os.environ | {"GPULEDGER_CONFIG": ""}
    run = [sys.executable, "-c", code, *args]
    done = subprocess.run(run, check=True, capture_output=True, text=True, input="", env=environ)
    names, gpus = json.loads(done.stdout.splitlines()[-1])
    return set(names), gpus


def among(unwanted: tuple[str, ...], names: set[str]) -> list[str]:
    return sorted(n for n in names if any(n == u or n.startswith(f"{u}.") for u in unwanted))


def test_analyze_as_json_loads_what_it_needs(fleet_parquet):
    names, gpus = loaded("cli", "analyze", str(fleet_parquet), "--json")
    assert "gpuledger.efficiency.build" in names
    assert among(NOT_FOR_JSON, names) == []
    assert gpus <= 5, "the facts of GPUs that the file does not name were read"


def test_analyze_on_the_terminal_loads_what_it_needs(fleet_parquet):
    names, _ = loaded("cli", "analyze", str(fleet_parquet))
    assert "gpuledger.report.documents.efficiency" in names
    assert among(NOT_FOR_TEXT, names) == []


def test_import_loads_what_it_needs(fleet_parquet, tmp_path):
    names, _ = loaded("cli", "import", str(fleet_parquet), "--lake", str(tmp_path / "lake"))
    assert "gpuledger.lake.writing" in names
    assert among(NOT_FOR_IMPORT, names) == []


def test_a_worker_loads_what_it_needs():
    names, gpus = loaded("lake.processes")
    assert "gpuledger.lake.taking" in names
    assert among(NOT_FOR_A_WORKER, names) == []
    assert gpus == 0


def test_the_rule_can_fail(fleet_parquet):
    names, _ = loaded("cli", "audit", str(fleet_parquet), "--json")
    assert "gpuledger.cost.statement" in among(NOT_FOR_JSON, names)

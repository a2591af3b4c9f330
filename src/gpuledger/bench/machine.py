"""On what machine, with which GPUs, driver and versions did a worker run?"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import socket
from collections.abc import Sequence
from typing import Any

from gpuledger.devices.device import Device

_NAMED = ("gpuledger", "torch", "vllm", "transformers", "ray")


def machine_facts() -> dict[str, Any]:
    """Host, processor, operating system and versions; nothing is loaded for it."""
    return {
        "host": socket.gethostname(),
        "os": platform.platform(),
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version for name in _NAMED if (version := _version(name))},
    }


def facts_of(driver: str, devices: Sequence[Device]) -> dict[str, Any]:
    """The driver and its devices, as the driver names them."""
    return {"driver": driver, "gpus": [d.facts.gpu_model or "no model name" for d in devices]}


def _version(name: str) -> str:
    if name == "gpuledger":
        # By name: the package's first module draws in every room, and this one may not know them all.
        return str(importlib.import_module("gpuledger").__version__)
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a file of the kernel
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()

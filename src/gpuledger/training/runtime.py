"""What does training need from its surroundings: torch, processors, and errors of code that is not ours?"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from gpuledger.errors import MissingExtra

MOST_CHARACTERS = 200


def need_torch(what: str) -> Any:
    """torch, or the next step where it is not installed; `what` needs it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        missing = MissingExtra(what, "train")
        missing.hint = "install PyTorch (pip install torch), on a GPU with CUDA, then run the same command again"
        raise missing from error


def need_class(name: str, what: str, install: str, *homes: str) -> Any:
    """A class of a library, which `what` needs; where it has several names, of the one the job has loaded."""
    for home in sorted(homes, key=lambda home: home not in sys.modules):
        try:
            return getattr(importlib.import_module(home), name)
        except ImportError:
            continue
    missing = MissingExtra(what, "train")
    missing.hint = f"pip install {install}"
    raise missing


def gpu_uuid(torch: Any, device: Any) -> str:
    """The GPU of a torch device as the driver names it."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"


def cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def first_line(error: BaseException) -> str:
    """The first line of an error's text, else its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:MOST_CHARACTERS]


def in_words(error: BaseException) -> str:
    """An error of code that is not ours: its type, the first line of its text, and where it happened."""
    trace, last = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "site-packages" not in file.parts and "gpuledger" not in file.parts and file.suffix == ".py":
            last = f" at {file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    text = f": {first_line(error)}" if str(error).strip() else ""
    return f"{type(error).__name__}{text}{last}"

"""Where is the compiled library, and does it fit this version?

`hatch_build.py` compiles the C files here when the package is built or installed from source and a C compiler is there.
Without the library everything runs in numpy and pyarrow, with the same digits.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

NAME = "_kernels.so"
VERSION = 12  # as kernels.c says
_OFF = "GPULEDGER_NATIVE"


@cache
def library() -> ctypes.CDLL | None:
    """The library; None where it was not built, is of another version, or GPULEDGER_NATIVE=off says so."""
    if os.environ.get(_OFF) == "off":
        return None
    try:
        found = ctypes.CDLL(str(Path(__file__).with_name(NAME)))
        return found if found.gpuledger_version() == VERSION else None
    except (OSError, AttributeError):  # not built, built for another machine, or of another time
        return None


def call(name: str, *arguments: Any) -> int | None:
    """What a function of the library counts, called with arrays, numbers and None; None without a library."""
    found = library()
    if found is None:
        return None
    function = getattr(found, name)  # kept there once it was looked up
    function.restype = ctypes.c_int64
    return int(function(*(_argument(value) for value in arguments)))


def address(values: np.ndarray | None) -> int:
    """Where the numbers of an array lie; 0 for None."""
    return 0 if values is None else int(values.__array_interface__["data"][0])


def _argument(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(address(value))
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)

"""What need not be loaded, and not be fetched anew, for a process to do its work?"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any


class _NoPandas:
    """Finds no pandas."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Hide pandas; leave every other name to the usual finders."""
        if name == "pandas":
            raise ImportError("gpuledger does without pandas")


@contextmanager
def without_pandas() -> Iterator[None]:
    """Arrow imports pandas wherever it is installed; whoever has no use for it would wait half a second."""
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


_HELP = "pyarrow.vendored.docscrape"


class _NoHelp(dict[str, list[str]]):
    """A help text that is not taken apart."""

    def __init__(self, _text: str) -> None:
        super().__init__()

    def __missing__(self, _part: str) -> list[str]:
        return []


def _real_help(name: str) -> Any:
    """What else Arrow may want of the module that takes help texts apart."""
    sys.modules.pop(_HELP, None)
    return getattr(importlib.import_module(_HELP), name)


@contextmanager
def without_help_texts() -> Iterator[None]:
    """Arrow takes the help texts of its options apart when it is loaded: half of what loading its functions takes."""
    if _HELP in sys.modules:
        yield
        return
    module = ModuleType(_HELP)
    vars(module).update(NumpyDocString=_NoHelp, __getattr__=_real_help)
    sys.modules[_HELP] = module
    try:
        yield
    finally:
        sys.modules.pop(_HELP, None)


_MMAP_FROM, _TRIM_ABOVE = -3, -1  # as malloc.h names them
_LARGE = (1 << 31) - 1


def collect_seldom() -> None:
    """Look for unused cycles of objects a two-hundredth as often: loading modules makes many objects and no such cycle.

    One search while a command loads what it needs took 15 ms.
    """
    gc.set_threshold(150_000, 20, 50)


def leave_as_is() -> None:
    """Spare the search for unused cycles at the end of the process, among all objects there are: their memory goes back
    to the system as a whole.
    """
    gc.freeze()


def keep_memory() -> None:
    """Keep what is freed for the next array of its size, as `lake.processes.ALONE` has workers do.

    Given back to the system in between, pages are zeroed and mapped anew each time: a tenth of a short run.
    """
    import ctypes

    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    with suppress(AttributeError, OSError, TypeError):  # another C library, or none that can be named
        for option in (_MMAP_FROM, _TRIM_ABOVE):
            ctypes.CDLL(None).mallopt(option, _LARGE)


# Libraries of linear algebra start a thread per core when they are loaded, which waits for work by spinning.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


# A process without other threads may be copied (`lake.processes`): Arrow's second allocator, which it seldom uses,
# starts one that gives memory back.
_NO_BACKGROUND = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


def calculate_alone() -> None:
    """Let libraries that are loaded later have no threads of their own, unless the user set them."""
    for name, value in (ONE_THREAD | _NO_BACKGROUND).items():
        os.environ.setdefault(name, value)


class Later:
    """Stands for a module that is loaded when something of it is first used, not before."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)

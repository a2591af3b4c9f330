"""What need not be loaded, and not be fetched anew, for a process to do its work?"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import typing
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn


class _StandIn(ModuleType):
    """A module of which next to nothing is used; once more of it is wanted, the real one takes its place."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by whatever imports it
            raise AttributeError(name)
        for finder in sys.meta_path:
            if isinstance(finder, _Spared):
                finder.instead.pop(self.__name__, None)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = importlib.import_module(self.__name__)
        vars(self).update(vars(real))  # for whoever imported this one before
        return getattr(real, name)


class _Spared:
    """Finds modules that are not worth loading: by name, what stands in for each; None hides it."""

    def __init__(self, instead: dict[str, dict[str, object] | None]) -> None:
        self.instead = instead

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """Answer for these modules; leave every other name to the usual finders."""
        if name not in self.instead:
            return None
        if self.instead[name] is None:
            raise ImportError(f"gpuledger does without {name}")
        spec = ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        spec.submodule_search_locations = [f"{folder}/{name.rpartition('.')[2]}" for folder in path or ()]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that stands in."""
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give it what is used of it."""
        vars(module).update(self.instead[module.__name__] or {})


@contextmanager
def _without(instead: dict[str, dict[str, object] | None]) -> Iterator[None]:
    """What is imported in the meantime does without these modules; what is imported later finds them."""
    finder = _Spared(dict(instead))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in instead:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]


class _NoHelp(dict[str, list[str]]):
    """A help text that is not taken apart."""

    def __init__(self, _text: str) -> None:
        super().__init__()

    def __missing__(self, _part: str) -> list[str]:
        return []


def without_help_texts() -> AbstractContextManager[None]:
    """Arrow and numpy take help texts apart when they are loaded, and numpy lists its types for checkers of code:
    a third of what loading both takes.
    """
    return _without(
        {
            "pyarrow.vendored.docscrape": {"NumpyDocString": _NoHelp},
            "numpy._core._add_newdocs": {},
            "numpy._core._add_newdocs_scalars": {},
            "numpy._typing": {"NDArray": list},  # of linear algebra, which says what its functions return
        }
    )


class _Masked:
    """No array is one of these."""


def without_extras() -> AbstractContextManager[None]:
    """Arrow loads its clients of cloud storage with its Parquet reader, and certificates with its file systems. Arrow
    and numpy ask of an array whether it is masked: none is, unless what makes such arrays is loaded. msgspec takes from
    an extra package what Python's own has too.
    """
    clients = ("pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs")
    masked = {"MaskedArray": _Masked, "is_masked": lambda _array: False}
    hints = {name: getattr(typing, name) for name in ("get_type_hints", "NotRequired", "Required")}
    return _without({"numpy.ma": masked, "ssl": {}, "typing_extensions": hints, **dict.fromkeys(clients)})


_MMAP_FROM, _TRIM_ABOVE = -3, -1  # as malloc.h names them
_LARGE = (1 << 31) - 1
# What arrays of numpy are put into, in pages of 2 MiB where the system has such: a fault each, not one for 4 KiB.
_ROOM, _HUGE_PAGE, _IN_HUGE_PAGES = 96 << 20, 2 << 20, 14


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


def end_now(code: int) -> NoReturn:
    """End the process without taking apart what it holds, once what waits for its end is done.

    Python would free every object and library one by one: 10 ms for memory that the system takes back as a whole.
    """
    atexit._run_exitfuncs()  # noqa: SLF001  (what Python itself calls; it has no other name)
    with suppress(AttributeError, OSError, ValueError):  # no output, one that takes nothing more, or a closed one
        sys.stdout.flush()
    os._exit(code)


def keep_memory() -> None:
    """Keep what is freed for the next array of its size, as `lake.processes.ALONE` has workers do.

    Given back to the system in between, pages are zeroed and mapped anew each time: a tenth of a short run.
    """
    import ctypes

    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    with suppress(AttributeError, OSError, TypeError):  # another C library, or none that can be named
        library = ctypes.CDLL(None)
        for option in (_MMAP_FROM, _TRIM_ABOVE):
            library.mallopt(option, _LARGE)
        library.malloc.restype = ctypes.c_void_p
        room = ctypes.c_void_p(library.malloc(ctypes.c_size_t(_ROOM)))
        first = -(-(room.value or 0) // _HUGE_PAGE) * _HUGE_PAGE
        library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(_ROOM - _HUGE_PAGE), _IN_HUGE_PAGES)
        library.free(room)  # stays with the process, and takes memory once it is used


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

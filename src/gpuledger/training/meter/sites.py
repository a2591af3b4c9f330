"""At which lines of the user's code does the host wait for the GPU?

The calls that wait (data/sync_calls.toml) are watched while the loop runs: each is counted by file and line, and the
time the host spent in it is added up. Watching costs a function call, however many watch; it adds no waits. Waits that
are not calls (indexing by a mask, some copies) are found by torch's own warnings (`set_sync_debug_mode`), for a few
steps: they are caught before the user sees them and kept as lines of the user's code.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NamedTuple

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.training.meter.observed import Site
from gpuledger.training.meter.rest import Own

WINDOW_STEPS = 3
_OWN = str(Path(__file__).parents[1])
# Without a GPU a read and a wait look alike: batches are made while data is waited for, and torch's own optimizers
# keep their step count on the processor, on a GPU too.
NOT_THERE = frozenset({"data_wait", "optimizer"})
_MOST_LOOKED_AT = 64
_WAITED = "called a synchronizing"
_PROTOTYPE = "Synchronization debug mode"


class WaitingCalls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The calls that are watched: methods of torch.Tensor, and functions by their path."""

    version: int
    as_of: str
    tensor: tuple[str, ...]
    module: tuple[str, ...]


@cache
def waiting_calls() -> WaitingCalls:
    """As the data file lists them."""
    return load_toml(data_dir("gpuledger.training", "data", "sync_calls.toml"), WaitingCalls)


class Sites:
    """How often and how long each line waited."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int, str], tuple[int, float]] = {}

    def add(self, file: str, line: int, call: str, seconds: float) -> None:
        """One more wait."""
        times, held_s = self.found.get((file, line, call), (0, 0.0))
        self.found[file, line, call] = times + 1, held_s + seconds

    def all(self) -> tuple[Site, ...]:
        """The longest held first, then the most frequent."""
        made = [Site(*place, *waited) for place, waited in self.found.items()]
        return tuple(sorted(made, key=lambda s: (-s.host_s, -s.times, s.where)))


def user_line(frame: FrameType | None, skip: tuple[str, ...]) -> tuple[str, int] | None:
    """The innermost line outside torch and this package: the user's own, or their trainer's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(skip) and not file.startswith("<"):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


class _Put(NamedTuple):
    """What was put in place of one call; `own`: the owner itself held the call, not a class above it."""

    owner: Any
    name: str
    original: Any
    own: bool
    ours: Any


def _keeps(outer: Any, ours: Any) -> bool:
    """Whether another function still leads to ours: by what it wraps, holds in its closure, or calls by name."""
    seen, left = set[int](), deque([outer])
    while left and len(seen) < _MOST_LOOKED_AT:
        this = left.popleft()
        if this is ours:
            return True
        if isinstance(this, FunctionType) and id(this) not in seen:
            seen.add(id(this))
            left.append(getattr(this, "__wrapped__", None))
            with suppress(ValueError):  # one that is not filled yet
                left.extend(cell.cell_contents for cell in this.__closure__ or ())
            left.extend(this.__globals__.get(name) for name in this.__code__.co_names)
    return False


class _Around:
    """The wrappers around torch's calls, once for all watches: from the start of the first to the end of the last.

    Watches are held weakly: a collected one counts as closed. Python may collect one at any moment, also in the middle
    of a method here, so `on` is copied before it is iterated.
    """

    def __init__(self) -> None:
        self.on: dict[weakref.ref[SyncWatch], None] = {}
        self._started: dict[weakref.ref[SyncWatch], None] = {}
        self._put: list[_Put] = []
        self._lock = threading.RLock()

    def starts(self, torch: Any, watch: weakref.ref[SyncWatch]) -> None:
        """One more watch; calls of modules loaded since are wrapped too."""
        if watch in self._started:
            return
        with self._lock:
            self._started[watch] = None  # first: from here on nothing is taken away
            for name in waiting_calls().tensor:
                self._wrap(torch, torch.Tensor, name, f".{name}()", of_tensor=True)
            for call in waiting_calls().module:
                path, _, name = call.rpartition(".")
                if hasattr(owner := sys.modules.get(path), name):
                    self._wrap(torch, owner, name, f"{call}()", of_tensor=False)

    def ends(self, watch: weakref.ref[SyncWatch]) -> None:
        """A watch was closed or collected: after the last one everything is restored."""
        self.on.pop(watch, None)
        self._started.pop(watch, None)
        # Without waiting for the lock: its holder is removing already, or starts a watch that will end itself.
        while not self._started and self._lock.acquire(blocking=False):
            try:
                if not self._started:
                    self._take_away()
                    return
            finally:
                self._lock.release()

    def _wrap(self, torch: Any, owner: Any, name: str, words: str, *, of_tensor: bool) -> None:
        original, on, compiling = getattr(owner, name), self.on, torch.compiler.is_compiling
        if any(_keeps(original, put.ours) for put in self._put if put.owner is owner and put.name == name):
            return

        @functools.wraps(original)
        def waits(*args: Any, **kwargs: Any) -> Any:
            # While it is compiled nothing else is read: a value that changes later would compile it again.
            if compiling() or not on:
                return original(*args, **kwargs)
            watches = [watch for ref in on.copy() if (watch := ref()) is not None and not watch.inside]
            seen_by = [watch for watch in watches if not of_tensor or watch.waits_for(args[0])]
            return _waited(seen_by, original, words, args, kwargs) if seen_by else original(*args, **kwargs)

        self._put.append(_Put(owner, name, original, name in vars(owner), waits))
        setattr(owner, name, waits)

    def _take_away(self) -> None:
        # Other code may have wrapped ours since: then it keeps what it holds, and ours passes every call through.
        for put in reversed(tuple(self._put)):
            if vars(put.owner).get(put.name) is put.ours:
                setattr(put.owner, put.name, put.original) if put.own else delattr(put.owner, put.name)
                self._put.remove(put)


_AROUND = _Around()


class SyncWatch:
    """Sees the waiting calls of torch while the loop runs; when it is closed or forgotten, nothing of it is left.

    `on_wait` is called before (True) and after (False) a wait; `phase` returns where the loop is.
    """

    def __init__(self, torch: Any, own: Own, cuda: bool, phase: Callable[[], str], on_wait: Any) -> None:
        self._torch, self._own, self.cuda, self.phase, self._on_wait = torch, own, cuda, phase, on_wait
        self.sites = Sites()
        self.inside = False
        self.skip = (str(Path(torch.__file__).parent), _OWN)
        self._ref = weakref.ref(self, _AROUND.ends)

    def start(self) -> None:
        """Begin to watch."""
        # Wrappers stay until `close`: Python gives up its caches for a class that changes often, as torch.Tensor would.
        _AROUND.starts(self._torch, self._ref)
        _AROUND.on[self._ref] = None

    def stop(self) -> None:
        """Do not look for a while."""
        _AROUND.on.pop(self._ref, None)

    def close(self) -> None:
        """Restore everything, unless another watch is still there."""
        _AROUND.ends(self._ref)

    def waits_for(self, tensor: Any) -> bool:
        """Whether reading this tensor makes the host wait; without a GPU, whether it would on one."""
        return bool(tensor.is_cuda) if self.cuda else self.phase() not in NOT_THERE

    def begins(self) -> None:
        """A wait begins."""
        own, at = self._own, self._own.clock()
        self.inside = True
        self._on_wait(True)
        own.seconds += own.clock() - at

    def ended(self, frame: FrameType, words: str, seconds: float) -> None:
        """It is over; `frame` is where it was called."""
        own, at = self._own, self._own.clock()
        self._on_wait(False)
        self.inside = False
        place = user_line(frame, self.skip)
        if place is not None:
            self.sites.add(*place, words, seconds)
        own.seconds += own.clock() - at


def _waited(seen_by: list[SyncWatch], original: Callable[..., Any], words: str, args: Any, kwargs: Any) -> Any:
    begun = time.perf_counter()
    try:
        for watch in seen_by:
            watch.begins()
        begun = time.perf_counter()
        return original(*args, **kwargs)
    finally:
        seconds = time.perf_counter() - begun
        frame = sys._getframe(2)  # noqa: SLF001 - the caller of the wrapper
        for watch in reversed(seen_by):
            if watch.inside:  # unless it was interrupted before
                watch.ended(frame, words, seconds)


class SyncDebug:
    """Keeps torch's warnings of waits. `skip`: folders of libraries; `watched`: a known call waits now."""

    def __init__(self, cuda: Any, skip: tuple[str, ...], watched: Callable[[], bool]) -> None:
        shows = warnings.__file__, str(Path(warnings.__file__).with_name("_py_warnings.py"))  # the latter from 3.14 on
        self._cuda, self._skip, self._watched = cuda, (*skip, *shows), watched
        self._sites, self._steps, self.done = Sites(), 0, False
        self._undo: list[Callable[[], None]] = []

    def begins(self) -> None:
        """A step begins: open the window, or close it."""
        self._steps += bool(self._undo)
        if self._steps >= WINDOW_STEPS:
            self.close()
        elif not self._undo and not self.done:
            self._open()

    def _open(self) -> None:
        shown, mode = warnings.showwarning, self._cuda.get_sync_debug_mode()

        def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
            text = str(message)
            if _WAITED in text:
                self._saw()
            elif _PROTOTYPE not in text:
                shown(message, category, filename, lineno, file, line)

        kept = list(warnings.filters)
        for known in (_WAITED, _PROTOTYPE):
            warnings.filterwarnings("always", message=f".*{known}.*")
        warnings.showwarning = show

        def undo() -> None:
            self._cuda.set_sync_debug_mode(mode)
            if warnings.showwarning is show:
                warnings.showwarning = shown
            warnings.filters[:] = kept  # type: ignore[index]
            warnings.simplefilter("default", append=True)  # so that Python notices the change
            warnings.filters[:] = kept  # type: ignore[index]

        self._undo.append(undo)
        self._cuda.set_sync_debug_mode("warn")

    def _saw(self) -> None:
        if self._watched():
            return
        place = user_line(sys._getframe(2), self._skip)  # noqa: SLF001 - the only cheap way to the caller
        if place is not None:
            self._sites.add(*place, "an operation that waits", 0.0)

    def close(self) -> None:
        """Restore everything."""
        self.done = True
        while self._undo:
            self._undo.pop()()

    def sites(self, steps: int) -> tuple[Site, ...]:
        """The lines found, as often as they would be seen in this many steps; how long they wait is unknown."""
        window = max(self._steps, 1)
        return tuple(replace(s, times=max(1, round(s.times * steps / window))) for s in self._sites.all())

"""At which lines of the user's code does the host wait for the GPU?

The calls that wait (data/sync_calls.toml) are watched while the loop runs: each is counted by file and line, and the
time the host spent in it is added up. Watching costs a function call, however many watch; nothing is added that waits.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.training.meter.rest import Own

_OWN = str(Path(__file__).parents[1])
# On a processor nothing tells a wait from a look: batches are made while data is waited for, and torch's own optimizers
# keep their step count on the processor, on a GPU too.
NOT_THERE = frozenset({"data_wait", "optimizer"})
_MOST_LOOKED_AT = 64


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: Literal["tensor", "module"]
    name: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    as_of: str
    calls: tuple[_Call, ...]


@cache
def waiting_calls() -> tuple[_Call, ...]:
    """The calls that are watched."""
    return load_toml(data_dir("gpuledger.training", "data", "sync_calls.toml"), _File).calls


@dataclass(frozen=True)
class Site:
    """One line at which the host waits: what is called there, how often, and how long the host was held."""

    file: str
    line: int
    call: str
    times: int
    host_s: float

    @property
    def where(self) -> str:
        """As an editor takes it."""
        return f"{self.file}:{self.line}"


@dataclass
class Sites:
    """How often and how long each line waited."""

    found: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)

    def add(self, file: str, line: int, call: str, seconds: float) -> None:
        """One more wait."""
        held = self.found.setdefault((file, line, call), [0, 0.0])
        held[0] += 1
        held[1] += seconds

    def all(self) -> tuple[Site, ...]:
        """The longest held first, then the most frequent."""
        made = [Site(f, n, c, int(times), s) for (f, n, c), (times, s) in self.found.items()]
        return tuple(sorted(made, key=lambda s: (-s.host_s, -s.times, s.where)))


def user_line(frame: FrameType | None, skip: tuple[str, ...]) -> tuple[str, int] | None:
    """The innermost line outside torch and this package: the user's own, or that of the trainer they use."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(skip) and not file.startswith("<"):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


@dataclass(frozen=True)
class _Put:
    """What was put in place of one call; `own` tells whether the owner itself held the call, or a class above it."""

    owner: Any
    name: str
    original: Any
    own: bool
    ours: Any


def _keeps(outer: Any, ours: Any) -> bool:
    """Whether a function of somebody else's still leads to ours: what it says it wraps, or keeps, or calls by name."""
    seen: set[int] = set()
    left = deque([outer])
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
    """What stands around torch's calls, once for all watches: from the start of the first to the end of the last.

    Watches are held weakly: one that nobody holds any more is as one that was closed. Python may find that at any
    moment, also in the middle of what is done here, so whoever asks who is on asks a copy.
    """

    def __init__(self) -> None:
        self.on: dict[weakref.ref[SyncWatch], None] = {}
        self._started: dict[weakref.ref[SyncWatch], None] = {}
        self._put: list[_Put] = []
        self._lock = threading.RLock()

    def starts(self, torch: Any, watch: weakref.ref[SyncWatch]) -> None:
        """One more watch; what a module loaded since holds is put in place with it."""
        if watch in self._started:
            return
        with self._lock:
            self._started[watch] = None  # first: from here on nothing is taken away
            for call in waiting_calls():
                if call.on == "tensor":
                    self._wrap(torch, torch.Tensor, call.name, f".{call.name}()", of_tensor=True)
                else:
                    path, _, name = call.name.rpartition(".")
                    owner = sys.modules.get(path)
                    if owner is not None and hasattr(owner, name):
                        self._wrap(torch, owner, name, f"{call.name}()", of_tensor=False)

    def ends(self, watch: weakref.ref[SyncWatch]) -> None:
        """A watch was closed or collected: after the last one everything is as it was."""
        self.on.pop(watch, None)
        self._started.pop(watch, None)
        # Nobody is waited for here: who is at it now takes away already, or starts a watch that will end itself.
        done = False
        while not done and not self._started and self._lock.acquire(blocking=False):
            try:
                done = not self._started
                if done:
                    self._take_away()
            finally:
                self._lock.release()

    def _wrap(self, torch: Any, owner: Any, name: str, words: str, *, of_tensor: bool) -> None:
        original, on, compiling = getattr(owner, name), self.on, torch.compiler.is_compiling
        if any(_keeps(original, put.ours) for put in self._put if put.owner is owner and put.name == name):
            return

        @functools.wraps(original)
        def waits(*args: Any, **kwargs: Any) -> Any:
            # While it is compiled nothing else is asked: what it asks for would compile it again when it changes.
            if compiling() or not on:
                return original(*args, **kwargs)
            seen_by = []
            for ref in on.copy():
                watch = ref()
                # Without a GPU, what would wait on one is counted.
                if (
                    watch is None
                    or watch.inside
                    or (of_tensor and not (args[0].is_cuda if watch.cuda else watch.phase() not in NOT_THERE))
                ):
                    continue
                seen_by.append(watch)
            return _waited(seen_by, original, words, args, kwargs) if seen_by else original(*args, **kwargs)

        self._put.append(_Put(owner, name, original, name in vars(owner), waits))
        setattr(owner, name, waits)

    def _take_away(self) -> None:
        # Somebody may have put themselves around ours since: then they keep what they hold, and ours is silent.
        for put in reversed(tuple(self._put)):
            if vars(put.owner).get(put.name) is put.ours:
                setattr(put.owner, put.name, put.original) if put.own else delattr(put.owner, put.name)
                self._put.remove(put)


_AROUND = _Around()


class SyncWatch:
    """Sees the waiting calls of torch while the loop runs; when it is closed or forgotten, nothing of it is left.

    `on_wait` is called before (True) and after (False) a wait; `phase` tells where the loop is.
    """

    def __init__(
        self, torch: Any, own: Own, cuda: bool, phase: Callable[[], str], on_wait: Callable[[bool], None]
    ) -> None:
        self._torch, self._own, self.cuda, self.phase, self._on_wait = torch, own, cuda, phase, on_wait
        self.sites = Sites()
        self.inside = False
        self.skip = (str(Path(torch.__file__).parent), _OWN)
        self._ref = weakref.ref(self, _AROUND.ends)

    def start(self) -> None:
        """Begin to watch. What is put in place stays until `close`: Python gives up its caches for a class that is
        changed again and again, and this one is torch.Tensor.
        """
        _AROUND.starts(self._torch, self._ref)
        _AROUND.on[self._ref] = None

    def stop(self) -> None:
        """Do not look for a while."""
        _AROUND.on.pop(self._ref, None)

    def close(self) -> None:
        """Everything as it was, unless another watch is still there."""
        _AROUND.ends(self._ref)

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
        frame = sys._getframe(2)  # noqa: SLF001 - who called it: this function and what stands around it left out
        for watch in reversed(seen_by):
            if watch.inside:  # unless it was interrupted before
                watch.ended(frame, words, seconds)

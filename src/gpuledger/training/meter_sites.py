"""At which lines of the user's code does the host wait for the GPU?

The calls that wait (data/sync_calls.toml) are watched while the loop runs: each is counted by file and line, and the
time the host spent in it is added up. Watching costs a function call; nothing is added that waits.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.training.meter_rest import Own

_OWN = str(Path(__file__).parents[1])
# On a processor nothing tells a wait from a look: batches are made while data is waited for, and torch's own optimizers
# keep their step count on the processor, on a GPU too.
NOT_THERE = frozenset({"data_wait", "optimizer"})


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
    """Counts by line; `calls` tells how many in all."""

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


class SyncWatch:
    """Puts itself around the waiting calls of torch while the loop runs, and takes itself away again.

    `on_wait` is called before (True) and after (False) a wait; `phase` tells where the loop is.
    """

    def __init__(
        self, torch: Any, own: Own, cuda: bool, phase: Callable[[], str], on_wait: Callable[[bool], None]
    ) -> None:
        self._torch, self._own, self._cuda, self._phase, self._on_wait = torch, own, cuda, phase, on_wait
        self.sites = Sites()
        self._undo: list[Callable[[], None]] = []
        self.inside = self._on = False
        self.skip = (str(Path(torch.__file__).parent), _OWN)

    def start(self) -> None:
        """Begin to watch. What is put in place stays until `close`: Python gives up its caches for a class that is
        changed again and again, and this one is torch.Tensor.
        """
        self._on = True
        if self._undo:
            return
        for call in waiting_calls():
            if call.on == "tensor":
                self._wrap(self._torch.Tensor, call.name, f".{call.name}()", of_tensor=True)
            else:
                path, _, name = call.name.rpartition(".")
                owner = sys.modules.get(path)
                if owner is not None and hasattr(owner, name):
                    self._wrap(owner, name, f"{call.name}()", of_tensor=False)

    def stop(self) -> None:
        """Do not look for a while."""
        self._on = False

    def close(self) -> None:
        """Everything as it was."""
        self._on = False
        while self._undo:
            self._undo.pop()()

    def _wrap(self, owner: Any, name: str, words: str, *, of_tensor: bool) -> None:
        original, own = getattr(owner, name), name in vars(owner)
        watch, compiling, cuda, phase = self._waited, self._torch.compiler.is_compiling, self._cuda, self._phase

        @functools.wraps(original)
        def waits(*args: Any, **kwargs: Any) -> Any:
            # While it is compiled nothing else is asked: what it asks for would compile it again when it changes.
            if compiling() or not self._on or self.inside:
                return original(*args, **kwargs)
            # Without a GPU, what would wait on one is counted.
            if of_tensor and not (args[0].is_cuda if cuda else phase() not in NOT_THERE):
                return original(*args, **kwargs)
            return watch(original, words, args, kwargs)

        def undo() -> None:
            # Another meter may have put itself around this one since; then it keeps what it holds, and this is silent.
            if vars(owner).get(name) is waits:
                setattr(owner, name, original) if own else delattr(owner, name)

        setattr(owner, name, waits)
        self._undo.append(undo)

    def _waited(self, original: Callable[..., Any], words: str, args: Any, kwargs: Any) -> Any:
        own, at = self._own, self._own.clock()
        self.inside = True
        self._on_wait(True)
        own.seconds += own.clock() - at
        begun = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            seconds = time.perf_counter() - begun
            at = own.clock()
            self._on_wait(False)
            self.inside = False
            place = user_line(sys._getframe(2), self.skip)  # noqa: SLF001
            if place is not None:
                self.sites.add(*place, words, seconds)
            own.seconds += own.clock() - at

"""Which waits for the GPU does no list of calls hold: indexing by a mask, copies that are waited for, and the like?

torch itself warns of every operation that waits, when asked to (`set_sync_debug_mode`). It is asked for a few steps
only; its warnings are taken before the user sees them and kept as lines of the user's code.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from gpuledger.training.meter.sites import Site, Sites, user_line

WINDOW_STEPS = 3
_WAITED = "called a synchronizing"
_PROTOTYPE = "Synchronization debug mode"
WORDS = "an operation that waits"


class SyncDebug:
    """Open for some steps; `skip` are folders of libraries, `watched` tells whether a known call waits just now."""

    def __init__(self, cuda: Any, skip: tuple[str, ...], watched: Callable[[], bool]) -> None:
        self._cuda, self._skip, self._watched = cuda, (*skip, warnings.__file__), watched
        self._sites, self._steps = Sites(), 0
        self._undo: list[Callable[[], None]] = []
        self.done = False

    def begins(self) -> None:
        """A step begins: open the window, or close it again."""
        if self.done:
            return
        if self._undo:
            self._steps += 1
        if self._steps >= WINDOW_STEPS:
            self.close()
        elif not self._undo:
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
            warnings.simplefilter("default", append=True)  # tells Python that its filters changed
            warnings.filters[:] = kept  # type: ignore[index]

        self._undo.append(undo)
        self._cuda.set_sync_debug_mode("warn")

    def _saw(self) -> None:
        if self._watched():
            return
        place = user_line(sys._getframe(2), self._skip)  # noqa: SLF001 - the only cheap way to the caller
        if place is not None:
            self._sites.add(*place, WORDS, 0.0)

    def close(self) -> None:
        """Everything as it was."""
        self.done = True
        while self._undo:
            self._undo.pop()()

    def sites(self, steps: int) -> tuple[Site, ...]:
        """The lines found, as often as they would be seen in so many steps; how long they wait is not known."""
        window = max(self._steps, 1)
        return tuple(
            Site(s.file, s.line, s.call, max(1, round(s.times * steps / window)), s.host_s) for s in self._sites.all()
        )

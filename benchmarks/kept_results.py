"""What is left of a long measurement that is told to end, or whose time is up? Everything it had written down.

Results lie in one JSON file that is replaced whole at each change, so it can be read at any moment. SIGTERM, SIGINT and
the time limit end the measurement as an exception in the main thread, wherever it is.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
# Told again so often: an exception that falls into a destructor is swallowed there.
AGAIN_S = 5.0


class Ended(BaseException):
    """Told to end; not an Exception, so that no trial takes it for a fault of its own."""


class Results(dict[str, Any]):
    """Results by part, and the file they are kept in; a file that is there already is added to."""

    def __init__(self, file: Path) -> None:
        super().__init__(json.loads(file.read_text(encoding="utf-8")) if file.exists() else {})
        self._file = file

    def keep(self, part: str, found: Any, *, cut_short: str = "") -> None:
        """One part as far as it is known. A part that was whole before is not given up for a piece of one."""
        unfinished = self.setdefault("unfinished", {})
        if cut_short and part in self and part not in unfinished:
            self.setdefault("pieces", {})[part] = found
        else:
            self[part] = found
            unfinished.pop(part, None)
            if cut_short:
                unfinished[part] = cut_short
        if not cut_short:
            self.get("pieces", {}).pop(part, None)
        self.write()

    def write(self) -> None:
        """The file anew, never half of it."""
        beside = self._file.with_name(f"{self._file.name}.new")
        beside.write_text(json.dumps(self, indent=1, default=str) + "\n", encoding="utf-8")
        beside.replace(self._file)


@contextmanager
def ending(limit_s: float) -> Iterator[None]:
    """Within it a signal or the limit raises Ended, until it is left."""
    mine, why = os.getpid(), list[str]()

    def told(number: int, _frame: Any) -> None:
        if os.getpid() != mine:  # a loader's worker, forked from here
            os._exit(128 + number)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        why.append("the time is up" if number == signal.SIGALRM else f"told to end by {signal.Signals(number).name}")
        raise Ended(why[0])

    before = {one: signal.signal(one, told) for one in SIGNALS}
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for one, handler in before.items():
            signal.signal(one, handler)

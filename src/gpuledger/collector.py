"""When does Python look for objects that only hold each other?"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Not while many rows are made: they hold no circles, and each search walks over all of them, a tenth of the time.

    Several may overlap, also on threads: the first to have paused it starts it again.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

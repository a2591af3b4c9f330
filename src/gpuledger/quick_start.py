"""What need not be loaded for a process to do its work?"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


class Later:
    """Stands for a module that is loaded when something of it is first used, not before."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)

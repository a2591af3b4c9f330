"""What need not be loaded for a process to do its work?"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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


def load_later(name: str) -> None:
    """Let a module be loaded when something of it is first used, not when it is imported."""
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)

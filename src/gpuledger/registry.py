"""Who can do this job? Sources, rules, planners and charts register themselves here by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from gpuledger.errors import UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to things of one kind; the modules of `package` are imported once, when first asked."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._things: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: make the thing known under `name`."""

        def keep(thing: T) -> T:
            if name in self._things and self._things[name] is not thing:
                raise ValueError(f"two things of kind {self.kind} are called {name!r}")
            self._things[name] = thing
            return thing

        return keep

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(package.__path__, prefix=f"{self._package}."):
                importlib.import_module(module.name)

    def get(self, name: str) -> T:
        """The thing called `name`, or an error that suggests the nearest names."""
        self._load()
        try:
            return self._things[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._things) from None

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._things)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self._load()
        return iter(sorted(self._things.items(), key=lambda pair: pair[0]))

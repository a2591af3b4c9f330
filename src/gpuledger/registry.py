"""Who can do this job? Sources, devices, rules, planners and charts register themselves here by name.

A thing registers itself by being in a module of the registry's package, or in another installed package through an
entry point. The entry point names the thing, or a module that registers things itself:

    [project.entry-points."gpuledger.sources"]
    my-format = "my_package.my_format"

Nothing is imported before a name is asked for. A plugin that cannot be loaded is left out with a warning.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.machinery import PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar

from gpuledger.errors import UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class PluginWarning(UserWarning):
    """A plugin was left out."""


class Registry(Generic[T]):
    """Names to things of one kind. `group`: the entry points of other packages, by default `gpuledger.<kind>s`."""

    def __init__(self, kind: str, package: str, group: str = "") -> None:
        self.kind = kind
        self.group = group or f"gpuledger.{kind.replace(' ', '_')}s"
        self._package = package
        self._things: dict[str, T] = {}
        self._loaded = self._loading = self._plugged_in = False
        self._lock = RLock()

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: make the thing known under `name`."""

        def keep(thing: T) -> T:
            if name in self._things and self._things[name] is not thing:
                raise ValueError(f"two things of kind {self.kind} are called {name!r}")
            self._things[name] = thing
            return thing

        return keep

    def _load(self, part: str = "") -> None:
        """Import the modules of the package, or only those of one of its folders, and the plugins."""
        if self._loaded:
            return
        with self._lock:  # another thread must not see half of the things; this one may come back from an import
            if self._loading or self._loaded:
                return
            self._loading = True
            try:
                self._import(self._package, part)
                if not self._plugged_in:
                    self._plugged_in = True
                    for point in self._plugins:
                        self._plug_in(point)
            finally:
                self._loading, self._loaded = False, not part

    def _import(self, package: str, part: str = "") -> None:
        folder = importlib.import_module(package)
        for module in pkgutil.iter_modules(folder.__path__, prefix=f"{package}."):
            if not module.ispkg:
                importlib.import_module(module.name)
            elif not part or module.name == f"{package}.{part}":
                self._import(module.name)

    def of(self, part: str) -> list[tuple[str, T]]:
        """The things of one folder of the package, and those that lie in no folder or come from plugins."""
        self._load(part)
        return sorted(self._things.items(), key=lambda pair: pair[0])

    def some(self, modules: Sequence[str]) -> list[tuple[str, T]]:
        """The things of a few modules of the package and what was loaded before; all of them where there are plugins,
        whose names must be free among all.
        """
        if self._plugins:
            self._load()
        with self._lock:
            for name in () if self._loaded else modules:
                importlib.import_module(f"{self._package}.{name}")
            return sorted(self._things.items(), key=lambda pair: pair[0])

    @cached_property
    def _plugins(self) -> list[EntryPoint]:
        if not plugins_possible(self.group):
            return []
        from importlib.metadata import entry_points  # takes 20 ms or more

        return sorted(entry_points(group=self.group), key=lambda p: (p.name, p.value))

    def _plug_in(self, point: EntryPoint) -> None:
        """Load one plugin; whatever goes wrong in it must not stop the rest."""
        try:
            thing = point.load()
            if not isinstance(thing, ModuleType):
                self.register(point.name)(thing)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            package = point.dist.name if point.dist else point.module
            problem = f"{self.kind} {point.name!r} of package {package} is left out: {type(error).__name__}: {error}"
            warnings.warn(problem, PluginWarning, stacklevel=2)

    def get(self, name: str) -> T:
        """The thing called `name`, or an error that suggests the nearest names."""
        if name not in self._things and not self._loaded:
            alone = f"{self._package}.{name}"
            # A module called like the thing is enough; otherwise all of them are asked.
            if name.isidentifier() and importlib.util.find_spec(alone):
                importlib.import_module(alone)
            if name not in self._things:
                self._load()
        try:
            return self._things[name]
        except KeyError:
            raise UnknownName(self.kind, name, self.names()) from None

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._things)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self._load()
        return iter(sorted(self._things.items(), key=lambda pair: pair[0]))


def plugins_possible(group: str) -> bool:
    """Whether an installed package may name the group; reading the files is a tenth of the work of asking Python."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    return any(hasattr(finder, "find_distributions") for finder in others) or any(
        _may_name(group.encode(), path) for path in sys.path
    )


def _may_name(group: bytes, path: str) -> bool:
    """Whether a package installed in a folder names the group; yes where it is not a folder that can be listed."""
    if path.lower().endswith(".egg"):
        return True
    try:
        with os.scandir(path or ".") as entries:
            packages = [e.path for e in entries if e.name.lower().endswith((".dist-info", ".egg-info"))]
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(group in _content(f"{package}/entry_points.txt") for package in packages)


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  (a path object for each package takes longer than its file)
            return opened.read()
    except OSError:
        return b""

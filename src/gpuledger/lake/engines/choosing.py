"""Which engine is in use: the one a command or a call names, else that of GPULEDGER_ENGINE, else this machine?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from gpuledger.errors import InputError, UnknownName
from gpuledger.lake.engines.engine import Engine, Local

VARIABLE = "GPULEDGER_ENGINE"
LOCAL = "local"
RAY = "ray"
NAMES = (LOCAL, RAY, "ray://HOST:PORT")
P = ParamSpec("P")
R = TypeVar("R")
_chosen: ContextVar[Engine | None] = ContextVar("gpuledger engine", default=None)


@cache
def engine_named(name: str) -> Engine:
    """The engine of that name; nothing is connected yet."""
    if name == LOCAL:
        return Local()
    if name == RAY or name.startswith(f"{RAY}://"):
        from gpuledger.lake.engines.cluster import port_of
        from gpuledger.lake.engines.on_ray import OnRay

        if name != RAY and port_of(name) is None:
            raise InputError(f"engine {name!r} is not ray://HOST:PORT", hint="for example ray://10.0.0.5:10001")
        return OnRay(name)
    raise UnknownName("engine", name, NAMES)


@contextmanager
def using(name: str | None) -> Iterator[None]:
    """Run what follows on that engine, connected before any work begins; None: on the one in use."""
    if name is None:
        yield
        return
    engine = engine_named(name)
    engine.ready()
    before = _chosen.set(engine)
    try:
        yield
    finally:
        _chosen.reset(before)


def in_use(processes: int | None = None) -> Engine:
    """The engine to run on; a number of processes asks for those of this machine."""
    if processes:
        return Local(processes)
    return _chosen.get() or engine_named(os.environ.get(VARIABLE) or LOCAL)


class HasEngine(Protocol):
    """Something that was opened with an engine; None: the one in use."""

    engine: str | None


S = TypeVar("S", bound=HasEngine)


def on_its_engine(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorator: run a method on the engine its object was opened with."""

    @wraps(method)
    def inner(self: S, /, *given: P.args, **named: P.kwargs) -> R:
        with using(self.engine):
            return method(self, *given, **named)

    return inner

"""How is one question asked of many things, such as a rule of many starts, on the engine in use?

Here, one after the other, on this machine; in shares on a cluster. Whatever a question needs and answers is pickled:
both sides are this version of gpuledger, and what runs is what this process sent.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from gpuledger.lake.engines.choosing import in_use
from gpuledger.lake.engines.engine import Local
from gpuledger.lake.processes import Progress

C = TypeVar("C")
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
# Shares per task that can run at once: the last ones to end leave little idle.
_SHARES = 4
_MANY = 1 << 40  # every item is worth a task


class Share(msgspec.Struct, frozen=True):
    """Some of the things: the function by its module and name, what they have in common, and the things."""

    ask: str
    pickled: bytes


class Answers(msgspec.Struct, frozen=True):
    """What came of them, in their order."""

    pickled: bytes


def mapped(
    ask: Callable[[C, I], R], common: C, items: Sequence[I], tick: Callable[[int], None] = lambda _n: None
) -> list[R]:
    """The answers of a function of a module, in the order of the items."""
    engine = in_use()
    if isinstance(engine, Local) or len(items) < 2:
        out = []
        for item in items:
            out.append(ask(common, item))
            tick(1)
        return out
    several = engine.at_once(_MANY, 0)
    size = -(-len(items) // (several * _SHARES))
    shares = [items[i : i + size] for i in range(0, len(items), size)]
    name = f"{ask.__module__}:{ask.__qualname__}"
    tasks = [Share(name, pickle.dumps((common, list(share)))) for share in shares]
    with engine.runner(min(several, len(tasks))) as runner:
        done = dict(runner.run(ask_share, tasks, lambda _stage, asked: tick(asked)))
    return [answer for number in sorted(done) for answer in pickle.loads(done[number].pickled)]  # noqa: S301


def ask_share(task: Share, progress: Progress) -> Answers:
    """Ask the function of each thing of a share."""
    module, function = task.ask.split(":")
    ask: Callable[[Any, Any], Any] = getattr(import_module(module), function)
    common, items = pickle.loads(task.pickled)  # noqa: S301
    out = []
    for item in items:
        out.append(ask(common, item))
        progress("ask", 1)
    return Answers(pickle.dumps(out))

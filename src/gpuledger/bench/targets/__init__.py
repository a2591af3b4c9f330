"""What can be benchmarked? One file per kind of target; each registers itself.

openai_http        an OpenAI-compatible endpoint; sse: its stream of events
python_callable    a function of the user's own
local_model        a model in torch on this machine's GPU
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpuledger.bench.load import Order
from gpuledger.registry import Registry
from gpuledger.units import Unknown

NOT_REACHED = Unknown("the request did not get that far")


@dataclass(frozen=True)
class Answer:
    """The outcome of one order."""

    ok: bool
    latency_s: float
    ttft_s: float | Unknown = NOT_REACHED
    input_tokens: int | Unknown = NOT_REACHED
    output_tokens: int | Unknown = NOT_REACHED
    error: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """Facts about a target when opened, for the node, and its problem if there is one.

    `unreachable`: why no request can be sent there at all; empty where one can.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    unreachable: str = ""


class Target(Protocol):
    """One thing to benchmark. `remote`: the work is elsewhere, so the CPU time used here is the client's own."""

    remote: bool

    async def open(self) -> Opened:
        """Prepare before the common start."""

    async def ask(self, order: Order) -> Answer:
        """Carry out one order within its time; never raises for a fault of the target."""

    def found(self) -> Mapping[str, Any]:
        """What it learned by the end, for the node."""
        return {}

    async def close(self) -> None:
        """Release everything."""


# A target is made from the node's settings, the seed and the timeout of an answer in seconds.
Maker = Callable[[Mapping[str, Any], str, float], Target]
TARGETS: Registry[Maker] = Registry("target", __name__)

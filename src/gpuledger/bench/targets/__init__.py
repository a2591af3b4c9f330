"""What can be benchmarked? One file a kind of target; each registers itself.

openai_http        an OpenAI-compatible endpoint; sse: reading its stream; address: where it is
python_callable    a function of the user's own
local_model        a model in torch on this machine's GPU
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpuledger.bench.load import Order
from gpuledger.registry import Registry


@dataclass(frozen=True)
class Answer:
    """What came of one order; None where it is not known, with the reason in `unknown`."""

    ok: bool
    latency_s: float | None = None
    ttft_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    error: str = ""
    unknown: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """What a target says of itself when opened: facts for the node, and words where something is not right.

    `unreachable`: why nothing can be asked there at all; empty where something can.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    unreachable: str = ""


class Target(Protocol):
    """One thing to ask. `remote`: the work is elsewhere, so the CPU used here is the client's own."""

    remote: bool

    async def open(self) -> Opened:
        """Make ready before the common start."""
        ...

    async def ask(self, order: Order) -> Answer:
        """Carry out one order within its time; never raises for what the target did wrong."""
        ...

    def found(self) -> Mapping[str, Any]:
        """What it learned by the end, for the node."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


# A target is made from the node's settings, the seed and the seconds an answer may take.
Maker = Callable[[Mapping[str, Any], str, float], Target]
TARGETS: Registry[Maker] = Registry("target", __name__)

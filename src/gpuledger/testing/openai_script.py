"""What will a pretended OpenAI server do: how fast, how many tokens, and what goes wrong?

A script is a TOML file or a `ServerScript`. Which requests a fault hits is drawn by the seed and the order in which
they come, so a run can be repeated.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import UnknownName

FaultKind = Literal["refuse", "drop", "malformed_json", "malformed_sse", "http_500", "http_429", "stall"]


class ServerFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong with a share of the requests; the first `after` ones are spared, at most `times` are hit.

    refuse: the connection is closed without an answer. drop: closed after half of the tokens. malformed_json and
    malformed_sse: the answer, or its third event, cannot be read. stall: after half of the tokens nothing more comes.
    """

    kind: FaultKind
    share: float = 1.0
    after: int = 0
    times: int | None = None


class ServerScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the server behaves.

    `tokens`: how many it gives where the request sets no limit. `cold_s` is added to the first `cold_requests`.
    `slots`: how many it serves at once, the others wait in line. `usage`: whether it counts tokens itself.
    """

    model: str = "pretended"
    ttft_s: float = 0.0
    per_token_s: float = 0.0
    tokens: int = 32
    cold_requests: int = 0
    cold_s: float = 0.0
    slots: int | None = None
    usage: bool = True
    seed: int = 0
    faults: tuple[ServerFault, ...] = ()


class Decisions:
    """Decides, request by request, what goes wrong and how much longer it takes."""

    def __init__(self, script: ServerScript) -> None:
        self._script, self._dice = script, random.Random(script.seed)  # noqa: S311 - no secret
        self._left = [f.times for f in script.faults]
        self.asked = 0

    def next(self) -> tuple[FaultKind | None, float]:
        """The fault of the next request, and the seconds a cold server adds to it."""
        number, found = self.asked, None
        self.asked += 1
        for i, fault in enumerate(self._script.faults):
            # Drawn for every fault of every request, so that one fault does not move the others.
            hit = self._dice.random() < fault.share and number >= fault.after and self._left[i] != 0
            if hit and found is None:
                found = fault.kind
                left = self._left[i]
                self._left[i] = None if left is None else left - 1
        return found, self._script.cold_s if number < self._script.cold_requests else 0.0


@cache
def shipped() -> dict[str, Path]:
    """The scripts that come with gpuledger, by name."""
    folder = data_dir("gpuledger.testing", "data", "servers")
    return {Path(f.name).stem: Path(str(f)) for f in folder.iterdir() if f.name.endswith(".toml")}


def load_script(name: str | Path) -> ServerScript:
    """A script by its shipped name, or from a file."""
    path = Path(name)
    if path.suffix == ".toml":
        return load_toml(path, ServerScript)
    if str(name) not in shipped():
        raise UnknownName("server script", str(name), shipped())
    return load_toml(shipped()[str(name)], ServerScript)

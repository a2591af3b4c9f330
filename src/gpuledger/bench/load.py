"""When is each request sent: as fast as answers come, at random times, as in a trace, or in growing batches?"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpuledger.bench.record_fields import LATEST_S
from gpuledger.catalog.files import data_dir
from gpuledger.errors import FileFault, InputError, map_os_error
from gpuledger.settings import convert, read_toml


class Order(msgspec.Struct, frozen=True):
    """One request to send. `due_s`: seconds after the common start; None: as soon as there is room."""

    request: int | str
    input_tokens: int
    output_tokens: int
    due_s: float | None = None
    batch: int | None = None
    warmup: bool = False


class Phase(msgspec.Struct, frozen=True):
    """Orders sent one way. `concurrency` None: each when it is due, however many are in flight."""

    concurrency: int | None
    orders: tuple[Order, ...]
    warmup: tuple[Order, ...] = ()


@dataclass(frozen=True)
class Load:
    """What each node is asked for. A rate or a trace makes an open loop, batches a sweep; otherwise a closed loop.

    `requests`, `concurrency`, `rate_per_s` and `warmup` are per node; the requests of a trace are dealt out to the
    nodes one by one. A sweep sends each batch `rounds` times.
    """

    requests: int = 100
    concurrency: int = 8
    rate_per_s: float | None = None
    trace: str | None = None
    speed: float = 1.0
    batches: tuple[int, ...] = ()
    rounds: int = 8
    input_tokens: int = 128
    output_tokens: int = 32
    warmup: int = 0
    seed: int = 0

    @property
    def kind(self) -> str:
        """closed, poisson, trace or sweep."""
        if self.batches:
            return "sweep"
        return "trace" if self.trace else "poisson" if self.rate_per_s is not None else "closed"


class _Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    at: str
    input_tokens: str
    output_tokens: str
    source: str


def check_load(load: Load) -> None:
    """Refuse impossible figures, by name."""
    least = {"requests": 1, "concurrency": 1, "rounds": 1, "input_tokens": 1, "output_tokens": 1, "warmup": 0}
    for name, low in least.items():
        if (value := getattr(load, name)) < low:
            raise InputError(f"{name} is {value}", hint=f"give a whole number from {low} up")
    if load.rate_per_s is not None and not 0 < load.rate_per_s < math.inf:
        raise InputError(f"the rate is {load.rate_per_s:g}", hint="give requests per second above 0")
    if not 0 < load.speed < math.inf:
        raise InputError(f"the speed is {load.speed:g}", hint="give a factor above 0; 2 plays a trace twice as fast")
    if any(b < 1 for b in load.batches):
        raise InputError(f"a batch of {min(load.batches)} was given", hint="give whole numbers from 1 up: 1,2,4,8")
    if sum((load.rate_per_s is not None, load.trace is not None, bool(load.batches))) > 1:
        raise InputError("a rate, a trace and batches are three kinds of load", hint="give one of them")


def plan(load: Load, nodes: int) -> list[tuple[Phase, ...]]:
    """The phases of each node; the same for the same load and seed."""
    check_load(load)
    if load.trace:
        return _from_trace(load, nodes)
    return [_of_node(load, node) for node in range(nodes)]


def _of_node(load: Load, node: int) -> tuple[Phase, ...]:
    def orders(names: range, batch: int | None = None) -> tuple[Order, ...]:
        return tuple(Order(i, load.input_tokens, load.output_tokens, batch=batch) for i in names)

    if load.batches:
        ends = list(itertools.accumulate((b * load.rounds for b in load.batches), initial=0))
        return tuple(
            Phase(batch, orders(range(first, end), batch), _warmup(load, load.warmup * batch, batch))
            for batch, (first, end) in zip(load.batches, itertools.pairwise(ends), strict=True)
        )
    made = orders(range(load.requests))
    if load.rate_per_s is None:
        return (Phase(load.concurrency, made, _warmup(load, load.warmup)),)
    dice = random.Random(f"{load.seed}/{node}")  # noqa: S311 - arrivals, not secrets
    due = itertools.accumulate(dice.expovariate(load.rate_per_s) for _ in made)
    timed = tuple(msgspec.structs.replace(o, due_s=d) for o, d in zip(made, due, strict=True))
    return (Phase(None, timed, _warmup(load, load.warmup)),)


def _warmup(load: Load, count: int, batch: int | None = None) -> tuple[Order, ...]:
    name = "warmup" if batch is None else f"warmup-{batch}"
    return tuple(
        Order(f"{name}-{i}", load.input_tokens, load.output_tokens, batch=batch, warmup=True) for i in range(count)
    )


def _from_trace(load: Load, nodes: int) -> list[tuple[Phase, ...]]:
    """The first requests of the trace, dealt out to the nodes, at the instants of the trace."""
    dealt: list[list[Order]] = [[] for _ in range(nodes)]
    begun: float | None = None
    for i, (at_s, tokens_in, tokens_out) in enumerate(itertools.islice(read_trace(load.trace), load.requests * nodes)):
        begun = at_s if begun is None else begun
        hand = dealt[i % nodes]
        hand.append(Order(len(hand), tokens_in, max(1, tokens_out), due_s=max(0.0, at_s - begun) / load.speed))
    return [(Phase(None, tuple(hand), _warmup(load, load.warmup)),) for hand in dealt]


def read_trace(path: str | Path | None) -> Iterator[tuple[float, int, int]]:
    """Arrival in seconds, tokens in and tokens out of each request of a trace, in file order."""
    assert path is not None
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            layout = _layout(path, rows.fieldnames or [])
            for number, row in enumerate(rows, 2):
                try:
                    yield _seconds(row[layout.at]), int(row[layout.input_tokens]), int(row[layout.output_tokens])
                except (ValueError, TypeError) as error:
                    hint = "remove the row, or fix it"
                    raise FileFault(path, f"line {number} is not a request: {error}", hint=hint) from error
    except csv.Error as error:
        hint = "shorten the value, or close its quote"
        raise FileFault(path, f"cannot be read as CSV: {error}", hint=hint) from error
    except (OSError, UnicodeDecodeError) as error:
        raise map_os_error(error if isinstance(error, OSError) else OSError(str(error)), path, "read") from error


def _layout(path: str | Path, columns: Sequence[str]) -> _Layout:
    file = data_dir("gpuledger.bench", "data", "traces.toml")
    known = convert(read_toml(file)["layouts"], tuple[_Layout, ...], str(file))
    for layout in known:
        if {layout.at, layout.input_tokens, layout.output_tokens} <= set(columns):
            return layout
    wanted = " or ".join(f"{k.at}, {k.input_tokens}, {k.output_tokens}" for k in known)
    raise FileFault(path, f"not a trace: it has the columns {', '.join(columns) or 'none'}", hint=f"name them {wanted}")


def _seconds(text: str) -> float:
    try:
        at_s = float(text)
    except ValueError:
        # Seven digits of a second are more than Python's instants hold.
        whole, _, part = text.strip().partition(".")
        at_s = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.UTC).timestamp() + (float(f"0.{part}") if part else 0)
    if not abs(at_s) < LATEST_S:
        raise ValueError(f"{text.strip()!r} is not an instant")
    return at_s

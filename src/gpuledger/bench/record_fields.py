"""What does each field of a line of results hold, and what if it is missing or impossible?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuledger.bench.records import NOT_GIVEN, LineFault, Node, Request
from gpuledger.units import Unknown

MOST_S = 1e9  # thirty years
LEAST_S = 1e-9
MOST_COUNT = 10**15
LATEST_S = 1e10  # an instant of a clock that counts seconds since 1970, some centuries on
SECONDS = ("start_s", "ttft_s", "latency_s")
COUNTS = ("input_tokens", "output_tokens", "batch")
REQUEST_FIELDS = {"v", "kind", "node", "request", "ok", "error", "warmup", "lost", "unknown", *SECONDS, *COUNTS}
_RUN = {"v", "kind", "planned", "nodes", "baseline", "wall_s", "telemetry", "client", "problems", "unknown"}


def shown(value: Any) -> str:
    """A value as the file has it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Fields:
    """The fields of one line; what cannot be used becomes unknown and a fault."""

    def __init__(self, line: Mapping[str, Any], number: int, node: str) -> None:
        self._line, self._number, self._node = line, number, node
        told = line.get("unknown")
        self._whys: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
        self.faults: list[LineFault] = []

    def missing(self, name: str) -> Unknown:
        why = self._whys.get(name)
        return Unknown(why if isinstance(why, str) and why else NOT_GIVEN)

    def refuse(self, name: str, allowed: str) -> Unknown:
        why = f"{name} is {shown(self._line.get(name))}; {allowed}"
        self.faults.append(LineFault(self._number, self._node, why))
        return Unknown(why)

    def seconds(self, name: str, *, below_zero: bool = False) -> float | Unknown:
        value = self._line.get(name)
        if value is None:
            return self.missing(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self.refuse(name, "a number of seconds is allowed")
        if not abs(value) <= (LATEST_S if name == "start_s" else MOST_S):  # so that not-a-number is refused too
            return self.refuse(name, "no run lasts that many seconds")
        if 0 < abs(value) < LEAST_S:
            return self.refuse(name, "no clock shows less than a nanosecond")
        return float(value) if value >= 0 or below_zero else self.refuse(name, "it cannot be below 0")

    def count(self, name: str) -> int | Unknown:
        value = self._line.get(name)
        if value is None:
            return self.missing(name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= MOST_COUNT or value != int(value):
            return self.refuse(name, f"a whole number from 0 to {MOST_COUNT:,} is allowed")
        return int(value)


def request_of(line: Mapping[str, Any], number: int) -> tuple[Request | None, list[LineFault]]:
    """A line of kind request, and what is wrong with it; None where it does not say which request it is or its end."""
    node, name, ok = line.get("node"), line.get("request"), line.get("ok")
    label = node if isinstance(node, str) else ""
    if not isinstance(node, str) or not node:
        return None, [LineFault(number, label, f"node is {node!r}; a name is wanted")]
    if isinstance(name, bool) or not isinstance(name, int | str):
        return None, [LineFault(number, label, f"request is {name!r}; a number or a name is wanted")]
    if not isinstance(ok, bool):
        return None, [LineFault(number, label, f"ok is {ok!r}; true or false is wanted")]
    fields = _Fields(line, number, node)
    warmup, error = line.get("warmup") is True, line.get("error")
    start = fields.seconds("start_s", below_zero=warmup)
    ttft, latency = fields.seconds("ttft_s"), fields.seconds("latency_s")
    if not isinstance(ttft, Unknown) and not isinstance(latency, Unknown) and ttft > latency:
        ttft = fields.refuse("ttft_s", f"it cannot be above latency_s, {latency:g}")
    request = Request(
        node=node,
        request=name,
        ok=ok,
        start_s=start,
        ttft_s=ttft,
        latency_s=latency,
        input_tokens=fields.count("input_tokens"),
        output_tokens=fields.count("output_tokens"),
        error="" if error is None else str(error),
        warmup=warmup,
        lost=line.get("lost") is True,
        batch=fields.count("batch"),
        more={k: v for k, v in line.items() if k not in REQUEST_FIELDS},
    )
    return request, fields.faults


def from_the_first(requests: tuple[Request, ...]) -> tuple[tuple[Request, ...], list[LineFault]]:
    """Starts that are instants of a clock, thirty years on and more, counted from the first of them."""
    starts = [s for r in requests if not r.warmup and not isinstance(s := r.start_s, Unknown)]
    if not starts or min(starts) <= MOST_S:
        return requests, []
    first = min(starts)
    moved = tuple(
        r if isinstance(r.start_s, Unknown) else replace(r, start_s=round(r.start_s - first, 6)) for r in requests
    )
    why = "start_s are instants of a clock, not seconds from the common start: they are counted from the first"
    return moved, [LineFault(1, "", why)]


def line_of(request: Request) -> dict[str, Any]:
    """The line of a request, as the file holds it."""
    line: dict[str, Any] = {"v": 1, "kind": "request", "node": request.node, "request": request.request}
    whys = {}
    for name in (*SECONDS, *COUNTS):
        value = getattr(request, name)
        if not isinstance(value, Unknown):
            line[name] = value
            continue
        if name != "batch":
            line[name] = None
        if value.why != NOT_GIVEN:
            whys[name] = value.why
    line |= {"ok": request.ok, "error": request.error or None}
    line |= {"warmup": True} if request.warmup else {}
    line |= {"lost": True} if request.lost else {}
    return {**line, **({"unknown": whys} if whys else {}), **request.more}


def run_fields(
    header: Mapping[str, Any], end: Mapping[str, Any], requests: Sequence[Request]
) -> tuple[dict[str, Any], list[LineFault]]:
    """The fields of a run from its header and its end line; what the end says wins."""
    both = {**header, **{k: v for k, v in end.items() if v is not None}}
    fields = _Fields(both, 1, "")
    if not header:
        fields.faults.append(LineFault(1, "", "the run has no usable header line: what was planned is not known"))
    wall = both.get("wall_s")
    found_s = fields.seconds("wall_s") if wall is not None else None
    load = both.get("load")
    if isinstance(load, Mapping) and not isinstance(load.get("kind"), str | None):
        why = f"load.kind is {shown(load['kind'])}; a word is wanted: whether requests came at a set rate is not known"
        fields.faults.append(LineFault(1, "", why))
    client, telemetry, baseline = both.get("client"), both.get("telemetry"), both.get("baseline")
    planned = _planned(header.get("planned"), fields)
    made: dict[str, Any] = {
        "planned": planned,
        "nodes": _nodes(both.get("nodes"), both.get("found"), fields),
        "baseline": baseline if isinstance(baseline, str) and baseline else None,
        "wall_s": found_s,
        "telemetry": telemetry if isinstance(telemetry, str) and telemetry else fields.missing("telemetry"),
        "client": client if isinstance(client, Mapping) else Unknown(NOT_GIVEN),
        "problems": _problems(both.get("problems")),
        "more": {k: v for k, v in both.items() if k not in _RUN},
    }
    if baseline is not None and not isinstance(baseline, str):
        made["more"]["baseline_typed_in"] = baseline  # a number is no measurement, and the report says so
    strange = set() if isinstance(planned, Unknown) else {r.node for r in requests} - set(planned)
    for node, wanted in ({} if isinstance(planned, Unknown) else planned).items():
        there = sum(r.node == node and not r.warmup for r in requests)
        if there > wanted:
            why = f"{there} requests have a line, {wanted} were planned: all are counted as planned"
            fields.faults.append(LineFault(1, node, why))
    for node in sorted(strange):
        fields.faults.append(LineFault(1, node, "requests of this node were not planned in the header"))
    return made, fields.faults


def _planned(raw: Any, fields: _Fields) -> Mapping[str, int] | Unknown:
    if raw is None:
        return Unknown(NOT_GIVEN)
    good = isinstance(raw, Mapping) and all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MOST_COUNT for n in raw.values()
    )
    return dict(raw) if good else fields.refuse("planned", "a mapping of node to number of requests is allowed")


def _nodes(raw: Any, later: Any, fields: _Fields) -> dict[str, Node]:
    """Every node; what it found out while it ran (`later`) stands beside what it said at the start."""
    if not isinstance(raw, Mapping):
        return {}
    ends = later if isinstance(later, Mapping) else {}
    out = {}
    for name, found in raw.items():
        if not isinstance(found, Mapping):
            fields.faults.append(LineFault(1, str(name), f"the node is {found!r}; a mapping is wanted"))
            continue
        gpu, gpus = found.get("gpu"), found.get("gpus")
        whole = isinstance(gpus, int) and not isinstance(gpus, bool) and 0 <= gpus <= MOST_COUNT
        whys = found.get("unknown") if isinstance(found.get("unknown"), Mapping) else {}
        out[str(name)] = Node(
            gpu=gpu if isinstance(gpu, str) and gpu else Unknown(str((whys or {}).get("gpu") or NOT_GIVEN)),
            gpus=int(gpus) if whole and gpus is not None else Unknown(str((whys or {}).get("gpus") or NOT_GIVEN)),
            more={
                k: v for k, v in {**found, **_mapping(ends.get(name))}.items() if k not in {"gpu", "gpus", "unknown"}
            },
        )
    return out


def _mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _problems(raw: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(raw, Mapping):
        return {}
    return {str(k): tuple(map(str, v)) if isinstance(v, list | tuple) else (str(v),) for k, v in raw.items()}

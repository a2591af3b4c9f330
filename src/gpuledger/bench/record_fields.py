"""What does each field of a line of results hold, and what if it is missing or impossible?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuledger.bench.records import NO_END, NOT_GIVEN, LineFault, Node, Request, Run, present
from gpuledger.units import Unknown

MOST_S = 1e9  # thirty years
LEAST_S = 1e-9
MOST_COUNT = 10**15
LATEST_S = 1e10  # an instant of a clock that counts seconds since 1970, some centuries on
SECONDS = ("start_s", "ttft_s", "latency_s")
COUNTS = ("input_tokens", "output_tokens", "batch")
REQUEST_FIELDS = {"v", "kind", "node", "request", "ok", "error", "warmup", "lost", "unknown", *SECONDS, *COUNTS}
_RUN = {"v", "kind", "planned", "nodes", "baseline", "wall_s", "telemetry", "client", "problems", "unknown"}


def _shown(value: Any) -> str:
    """A value as the file has it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT


class _Fields:
    """The fields of one line; what cannot be used becomes unknown and a fault."""

    def __init__(self, line: Mapping[str, Any], number: int, node: str = "") -> None:
        self._line, self._number, self._node = line, number, node
        self._whys = _mapping(line.get("unknown"))
        self.faults: list[LineFault] = []

    def fault(self, why: str, node: str | None = None) -> Unknown:
        self.faults.append(LineFault(self._number, self._node if node is None else node, why))
        return Unknown(why)

    def missing(self, name: str) -> Unknown:
        why = self._whys.get(name)
        return Unknown(why if isinstance(why, str) and why else NOT_GIVEN)

    def refuse(self, name: str, allowed: str) -> Unknown:
        return self.fault(f"{name} is {_shown(self._line.get(name))}; {allowed}")

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
    """A line of kind request and its faults; None where it does not name the request or how it ended."""
    node, name, ok = line.get("node"), line.get("request"), line.get("ok")
    fields = _Fields(line, number, node if isinstance(node, str) else "")
    if not isinstance(node, str) or not node:
        fields.refuse("node", "a name is expected")
    elif isinstance(name, bool) or not isinstance(name, int | str):
        fields.refuse("request", "a number or a name is expected")
    elif not isinstance(ok, bool):
        fields.refuse("ok", "true or false is expected")
    else:
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
    return None, fields.faults


def from_the_first(requests: tuple[Request, ...]) -> tuple[tuple[Request, ...], list[LineFault]]:
    """Starts that are instants of a clock, thirty years or more, counted from the first of them."""
    starts = present(r.start_s for r in requests if not r.warmup)
    if not starts or (first := min(starts)) <= MOST_S:
        return requests, []
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


def run_of(
    file: str, header: Mapping[str, Any], end: Mapping[str, Any] | None, given: tuple[Request, ...],
    faults: Sequence[LineFault],
) -> Run:  # fmt: skip
    """A run from its header, its end line, which wins, and its requests; `faults` are those of its lines."""
    requests, moved = from_the_first(given)
    both = {**header, **{k: v for k, v in (end or {}).items() if v is not None}}
    fields = _Fields(both, 1)
    if not header:
        fields.fault("the run has no usable header line: what was planned is not known")
    wall = Unknown(NO_END) if both.get("wall_s") is None else fields.seconds("wall_s")
    kind = _mapping(both.get("load")).get("kind")
    if not isinstance(kind, str | None):
        why = f"load.kind is {_shown(kind)}; a word is expected: whether requests came at a set rate is not known"
        fields.fault(why)
    client, telemetry, baseline = both.get("client"), both.get("telemetry"), both.get("baseline")
    planned, more = _planned(header.get("planned"), fields), {k: v for k, v in both.items() if k not in _RUN}
    nodes = _nodes(both.get("nodes"), _mapping(both.get("found")), fields)
    if baseline is not None and not isinstance(baseline, str):
        more["baseline_typed_in"] = baseline  # a number was not measured, and the report says so
    if not isinstance(planned, Unknown):
        _check_planned(planned, requests, fields)
    return Run(
        file=file,
        planned=planned,
        nodes=nodes,
        baseline=baseline if isinstance(baseline, str) and baseline else None,
        wall_s=wall,
        requests=requests,
        ended=end is not None or both.get("wall_s") is not None,
        telemetry=telemetry if isinstance(telemetry, str) and telemetry else fields.missing("telemetry"),
        client=client if isinstance(client, Mapping) else Unknown(NOT_GIVEN),
        problems={
            str(k): tuple(map(str, v)) if isinstance(v, list | tuple) else (str(v),)
            for k, v in _mapping(both.get("problems")).items()
        },
        faults=(*faults, *moved, *fields.faults),
        more=more,
    )


def _check_planned(planned: Mapping[str, int], requests: Sequence[Request], fields: _Fields) -> None:
    measured = Counter(r.node for r in requests if not r.warmup)
    for node, wanted in planned.items():
        if measured[node] > wanted:
            why = f"{measured[node]} requests have a line, {wanted} were planned: all are counted as planned"
            fields.fault(why, node)
    for node in sorted({r.node for r in requests} - set(planned)):
        fields.fault("requests of this node were not planned in the header", node)


def _planned(raw: Any, fields: _Fields) -> Mapping[str, int] | Unknown:
    if raw is None:
        return Unknown(NOT_GIVEN)
    if isinstance(raw, Mapping) and all(map(_whole, raw.values())):
        return dict(raw)
    return fields.refuse("planned", "a mapping of node to number of requests is allowed")


def _nodes(raw: Any, later: Mapping[str, Any], fields: _Fields) -> dict[str, Node]:
    """Every node; what it found out while it ran (`later`) goes over what it said at the start."""
    out = {}
    for name, found in _mapping(raw).items():
        if not isinstance(found, Mapping):
            fields.fault(f"the node is {found!r}; a mapping is expected", str(name))
            continue
        gpu, gpus, whys = found.get("gpu"), found.get("gpus"), _mapping(found.get("unknown"))
        all_found = {**found, **_mapping(later.get(name))}
        out[str(name)] = Node(
            gpu=gpu if isinstance(gpu, str) and gpu else Unknown(str(whys.get("gpu") or NOT_GIVEN)),
            gpus=int(gpus) if _whole(gpus) else Unknown(str(whys.get("gpus") or NOT_GIVEN)),  # type: ignore[arg-type]
            more={k: v for k, v in all_found.items() if k not in {"gpu", "gpus", "unknown"}},
        )
    return out

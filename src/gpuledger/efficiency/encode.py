"""How does the statement read as JSON?

Unknown figures are null, and named in `not_known` with the reason; a range keeps its ends, evidence and note; an
instant stands in milliseconds and as ISO text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.units import Unknown, utc

_MS = "_ms"
# What a field is called, and which words stand for it.
_CALLED = {
    "klass": (("klass", "class"),),
    "cause": (("likely_cause", "likely_cause"), ("cause_evidence", "cause_evidence")),
}
_LEAVES = frozenset({float, int, str, bool, type(None)})


def to_json(statement: EfficiencyStatement) -> dict[str, Any]:
    """The statement as plain data: the headline at the top, then every analysis under its own name."""
    missing: Counter[tuple[str, str]] = Counter()
    body: dict[str, Any] = _plain(statement, "", missing)
    named = body.pop("not_known")
    if statement.counted is None:
        del body["counted"]
    fleet, counted = body["fleet"], body["fleet"]["rfu_counters_pct"]
    head = {name: body.pop(name) for name in ("samples", "gpus", "clusters", "namespaces", "conflicts")}
    head |= {name: fleet[name] for name in ("gpu_util_pct", "pif", "rfu_power_pct", "rfu_power_idle_corrected_pct")}
    head["rfu_counters_pct"] = counted["middle"] if counted else None
    head["rfu_counters"] = counted
    head |= {name: fleet[name] for name in ("efficiency_gap_pp", "memory_pct", "power_w", "energy_kwh")}
    head["bottlenecked_pct_of_active"] = body["active"]["bottlenecked_pct_of_active"]
    head["bottlenecked_gpus"] = [
        gpu.gpu_uuid if gpu.gpu_instance_id is None else f"{gpu.gpu_uuid}/{gpu.gpu_instance_id}"
        for gpu in statement.bottlenecked_gpus
    ]
    head["roi"] = body.pop("roi")
    found = [{"figure": path, "why": why, "count": count} for (path, why), count in missing.items()]
    return head | body | {"not_known": [*({**n, "count": 1} for n in named), *found]}


def _plain(value: object, path: str, missing: Counter[tuple[str, str]]) -> Any:
    """Plain data; a figure that is not known becomes None and is counted by its path, list places left out."""
    if isinstance(value, Unknown):
        missing[path, value.why] += 1
        return None
    if isinstance(value, tuple | list):
        return [_plain(item, f"{path}[]", missing) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item, f"{path}.{key}", missing) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value, path, missing)
    return value


def _fields(value: Any, path: str, missing: Counter[tuple[str, str]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for attribute, name in _names(value.__class__):
        found = getattr(value, attribute)
        if type(found) not in _LEAVES:  # most are, and then need no path
            found = _plain(found, f"{path}.{name}" if path else name, missing)
        out[name] = found
        if name.endswith(_MS):
            out[f"{name.removesuffix(_MS)}_utc"] = None if found is None else f"{utc(found):%Y-%m-%dT%H:%M:%SZ}"
    return out


@cache
def _names(kind: Any) -> list[tuple[str, str]]:
    """Fields and what they are called: "class" is the word everywhere else, but Python reserves it."""
    return [pair for f in fields(kind) for pair in _CALLED.get(f.name, ((f.name, f.name),))]

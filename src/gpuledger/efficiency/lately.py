"""What was each GPU mostly doing in a short window, who owned it, and how warm, fast and full was it?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuledger.lake.batch import device_name
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows
from gpuledger.ledger.read.scope import UNALLOCATED, Scope, owner_name
from gpuledger.physics.states import State
from gpuledger.telemetry import schema
from gpuledger.units import MIB, Unknown, ratio

Mode = Literal["matrix", "vector", "memory", "light", "capped", "busy", "waiting", "idle", "held", "unknown"]
# What a state is called in one word; a GPU without work that holds memory is "held".
_MODES: dict[str, Mode] = {
    State.IDLE.label: "idle", State.WAIT.label: "waiting", State.PLAIN.label: "busy", State.UNSTATED.label: "unknown",
}  # fmt: skip
_WORK: tuple[Mode, ...] = ("matrix", "vector", "memory", "light", "capped")
_PLACE = ("gpu_model", "host", "gpu_index")
_LABELS = (*_PLACE, "state", "namespace", "workload", "user")
_SUMS = ("observed_ms", "idle_held_ms", "clock_ms", "clock_mhz_ms", "fb_ms", "fb_mib_ms", "power_ms", "power_uj")
_MOST = ("card_bytes", "gpu_temp_max_c", "limit_mw")
NOT_RECORDED = Unknown("not recorded")


@dataclass(frozen=True)
class Lately:
    """One device over a window. `owners`: those it worked for, the one with the most time first."""

    device: str
    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    mode: Mode
    memory_used_bytes: float | Unknown
    memory_bytes: float | Unknown
    clock_mhz: float | Unknown
    temp_max_c: float | Unknown
    limit_w: float | Unknown
    owners: tuple[str, ...]


@dataclass
class _Sums:
    """A device while its lines are added up."""

    labels: dict[str, str | None] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    most: dict[str, float] = field(default_factory=dict)
    modes: dict[Mode, float] = field(default_factory=lambda: defaultdict(float))
    owners: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def mode_of(state: str | None) -> Mode:
    """The one word for a state as lines write it."""
    if state is None:
        return "unknown"
    first = state.split("-", 1)[0]
    return next((mode for mode in _WORK if mode == first), _MODES.get(state, "unknown"))


def lately(lake: Lake, scope: Scope) -> Mapping[str, Lately]:
    """The devices with lines in scope, by name; the ledger must be posted."""
    books = Books(lake, scope)
    found: dict[str, _Sums] = defaultdict(_Sums)
    for _, rows in books.blocks(_LABELS, _SUMS, _MOST):
        texts = {name: books.names[name].text(rows[name]) for name in (*schema.DEVICE, *_LABELS)}
        for at in range(len(rows["hour_ms"])):
            labels = {name: texts[name][at] for name in texts}
            _add(found[device_name(labels["gpu_uuid"] or "", labels["gpu_instance_id"])], labels, rows, at)
    return {device: _made(device, sums) for device, sums in found.items()}


def _add(into: _Sums, labels: dict[str, str | None], rows: Rows, at: int) -> None:
    into.labels |= {name: labels[name] for name in (*schema.DEVICE, *_PLACE) if labels[name] is not None}
    for name in _SUMS:
        into.sums[name] += float(rows[name][at])
    for name in _MOST:
        value = float(rows[name][at])
        if value == value and value > into.most.get(name, 0.0):  # noqa: PLR0124  (NaN: not recorded)
            into.most[name] = value
    observed, held = float(rows["observed_ms"][at]), float(rows["idle_held_ms"][at])
    into.modes["held"] += held
    into.modes[mode_of(labels["state"])] += observed - held
    name = owner_name(labels["namespace"], labels["workload"] or labels["user"])
    if name != UNALLOCATED:
        into.owners[name] += observed


def _made(device: str, found: _Sums) -> Lately:
    labels, sums, why = found.labels, found.sums, NOT_RECORDED.why
    used = ratio(sums["fb_mib_ms"] * MIB, sums["fb_ms"], why)
    limit = found.most.get("limit_mw")
    return Lately(
        device, labels.get("gpu_uuid") or "", labels.get("gpu_instance_id"), labels.get("gpu_model"),
        labels.get("host"), labels.get("gpu_index"), max(found.modes, key=lambda mode: found.modes[mode]),
        used, found.most.get("card_bytes", NOT_RECORDED), ratio(sums["clock_mhz_ms"], sums["clock_ms"], why),
        found.most.get("gpu_temp_max_c", NOT_RECORDED), NOT_RECORDED if limit is None else limit / 1e3,
        tuple(sorted(found.owners, key=lambda name: (-found.owners[name], name))),
    )  # fmt: skip

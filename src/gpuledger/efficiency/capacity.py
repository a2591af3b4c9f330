"""How many TFLOPS are installed, achievable and realized, in the fleet, by model and by cluster?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.calibration import Calibration
from gpuledger.efficiency.means import Groups
from gpuledger.efficiency.statement import Capacity, CapacityAnalysis, Figure, NotKnown, Range
from gpuledger.units import Unknown


@dataclass(frozen=True)
class DeviceCapacity:
    """One device: what it is, and its TFLOPS. Realized figures are means over the window."""

    board: int
    model: str
    cluster: str
    peak_tflops: Figure
    achievable_tflops: Figure
    realized_power_tflops: Figure
    realized_counters_tflops: Range | Unknown


def main_rows(accounts: Accounts) -> list[int]:
    """For each device the account that holds most of its time: it names the device's owner, model and cluster."""
    best: dict[int, int] = {}
    observed = accounts.sums["observed_ms"]
    for row, device in enumerate(accounts.device.tolist()):
        if device not in best or observed[row] > observed[best[device]]:
            best[device] = row
    return [best[d] for d in range(accounts.devices)]


def device_capacities(
    accounts: Accounts, devices: Groups, main: Sequence[int], source: str, calibration: Calibration | None
) -> list[DeviceCapacity]:
    """Every device's TFLOPS; a MIG instance has its share of the board's."""
    out = []
    label, boards, shares = accounts.labels, accounts.board.tolist(), accounts.slice_ratio.tolist()
    peaks = {name: facts.peak_tflops for name, facts in accounts.models.items()}
    listed = {name: facts.achievable_tflops(source) for name, facts in accounts.models.items()}
    for row, pif, counters in zip(main, devices.pif, devices.counters_pct, strict=True):
        model = label["gpu_model"][row]
        peak = _times(peaks[model], shares[row])
        measured = calibration.of(label["gpu_uuid"][row] or "") if calibration and source == "measured" else None
        own = measured.achievable_tflops if measured else None
        achievable = _times(listed[model] if own is None else own, shares[row])
        by_power = pif if isinstance(pif, Unknown) else _times(achievable, pif)
        by_counters: Range | Unknown = peak if isinstance(peak, Unknown) else counters
        if isinstance(by_counters, Range) and not isinstance(peak, Unknown):
            low, middle, high = (k * peak / 100 for k in (by_counters.low, by_counters.middle, by_counters.high))
            by_counters = Range(low, middle, high, by_counters.evidence, by_counters.note)
        names = model or "no model name", label["cluster"][row] or "no cluster"
        out.append(DeviceCapacity(boards[row], *names, peak, achievable, by_power, by_counters))
    return out


def _times(figure: Figure, factor: float) -> Figure:
    if isinstance(figure, Unknown):
        return figure
    if math.isnan(factor):
        return Unknown("the share of the board this MIG instance holds is not known")
    return figure * factor


def capacity_analysis(devices: Sequence[DeviceCapacity], source: str) -> CapacityAnalysis:
    """Analysis 1. A total stands on the GPUs whose figures are known, and says on how many."""
    by_model: dict[str, list[DeviceCapacity]] = defaultdict(list)
    by_cluster: dict[str, list[DeviceCapacity]] = defaultdict(list)
    for device in devices:
        by_model[device.model].append(device)
        by_cluster[device.cluster].append(device)
    return CapacityAnalysis(
        _capacity("fleet", devices, source),
        tuple(_capacity(name, group, source) for name, group in sorted(by_model.items())),
        tuple(_capacity(name, group, source) for name, group in sorted(by_cluster.items())),
    )


def _capacity(name: str, devices: Sequence[DeviceCapacity], source: str) -> Capacity:
    gpus = len({d.board for d in devices})
    figures = {
        "peak": [d.peak_tflops for d in devices],
        "achievable": [d.achievable_tflops for d in devices],
        "realized by power": [d.realized_power_tflops for d in devices],
    }
    ranges = [d.realized_counters_tflops for d in devices]
    stands = {what: _boards(devices, values) for what, values in figures.items()}
    stands["realized by counters"] = _boards(devices, ranges)
    parts = [f"{what} over {n} of {gpus} GPUs" for what, n in stands.items() if 0 < n < gpus]
    return Capacity(
        name=name,
        gpus=gpus,
        peak_tflops=_total(figures["peak"]),
        achievable_tflops=_total(figures["achievable"]),
        achievable_source=source,
        realized_power_tflops=_total(figures["realized by power"]),
        realized_counters_tflops=_total_range(ranges),
        achievable_gpus=stands["achievable"],
        note="; ".join(parts),
    )


def _boards(devices: Sequence[DeviceCapacity], values: Iterable[object]) -> int:
    return len({d.board for d, v in zip(devices, values, strict=True) if not isinstance(v, Unknown)})


def _total(figures: Sequence[Figure]) -> Figure:
    known = [f for f in figures if not isinstance(f, Unknown)]
    return sum(known) if known else _first_reason(figures)


def _total_range(ranges: Sequence[Range | Unknown]) -> Range | Unknown:
    known = [r for r in ranges if isinstance(r, Range)]
    if not known:
        return _first_reason(ranges)
    notes = sorted({part for text in {r.note for r in known} for part in text.split("; ") if part})
    low, middle, high = (sum(values) for values in zip(*((r.low, r.middle, r.high) for r in known), strict=True))
    return Range(low, middle, high, known[0].evidence, "; ".join(notes))


def _first_reason(figures: Sequence[object]) -> Unknown:
    return next((f for f in figures if isinstance(f, Unknown)), Unknown("no GPU"))


def unknown_capacity(devices: Sequence[DeviceCapacity]) -> list[NotKnown]:
    """What is not known, once per model and reason, with the number of GPUs it concerns."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for d in devices:
        for figure in ("peak_tflops", "achievable_tflops", "realized_power_tflops", "realized_counters_tflops"):
            value = getattr(d, figure)
            if isinstance(value, Unknown):
                found.setdefault((d.model, figure, value.why), set()).add(d.board)
    return [
        NotKnown(f"capacity.{figure} of {model} ({len(boards)} GPU{'s' * (len(boards) != 1)})", why)
        for (model, figure, why), boards in sorted(found.items())
    ]

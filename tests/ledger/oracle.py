"""Posting the slow and obvious way, one sample at a time in plain Python, for tests to compare with."""

from __future__ import annotations

import itertools
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.physics.evidence import PipeRates, pipe_rates
from gpuledger.units import Unknown

HOUR = 3_600_000
OWNER = ("cluster", "namespace", "team", "user", "account", "workload", "run_id")
SERIES = (*OWNER, "pod", "container")
FIRST = ("host", "gpu_index")  # labels a line has of its first sample
TENSOR_KINDS = ("hmma", "imma", "dfma")
PIPES = ("tensor", *TENSOR_KINDS, "fp64", "fp32", "fp16")
ACTIVITY = ("engine", "sm", "occupancy", "integer", *PIPES)
PCIE = ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s")
RATES = ("dram_ratio", *PCIE, "nvlink_bytes_per_s")
RESTING = ("idle", "wait", "unstated")
POWER_CAPS, HEAT = (0x4, 0x80), (0x20, 0x40)
PIPE_RULES = tomllib.loads((files("gpuledger.physics") / "data" / "pipes.toml").read_text(encoding="utf-8"))
RULES = tomllib.loads((files("gpuledger.physics") / "data" / "states.toml").read_text(encoding="utf-8"))

Row = dict[str, Any]


@dataclass
class Instant:
    """One reading of a device: the rows that share it, the time it stands for, the next one, and its state."""

    at: int
    rows: list[Row]
    span: int
    after: int | None
    state: str = ""
    wait: str | None = None
    opens: bool = False

    @property
    def hole(self) -> bool:
        return self.after is not None and self.at + self.span < self.after


def post(samples: list[Row], limits: Thresholds, edges: dict[str, int] | None = None) -> dict[tuple, dict[str, int]]:
    """Lines by key of samples without conflicts, of one day. `edges`: the device's first instant of the next day."""
    lines: dict[tuple, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for device, instants in by_device([credible(row) for row in samples], edges or {}).items():
        mend(instants)
        for one in instants:
            one.state = state_of(one.rows[0], limits)
        find_waits(instants, limits.idle.waits_below_s * 1000)
        still = stands_still(instants)
        for i, one in enumerate(instants):
            gained = gains(one, instants[i + 1] if i + 1 < len(instants) else None)
            if still:
                gained["energy_mj"] = None
            for place, row in enumerate(one.rows):
                _add_row(lines, device, one, place, row, limits, gained)
    return {k: dict(v) for k, v in lines.items()}


def credible(row: Row) -> Row:
    """The row without readings that cannot be."""
    out = dict(row)
    limit, power = row.get("power_limit_w"), row.get("power_w")
    if power is not None and power <= 0:  # no device that answers draws nothing
        out["power_w"] = None
    if limit is not None and (limit <= 0 or (power is not None and power > RULES["capped"]["exceeded_ratio"] * limit)):
        out["power_limit_w"] = None
    if row.get("sm_clock_mhz") is not None and row["sm_clock_mhz"] <= 0:
        out["sm_clock_mhz"] = None
    if row.get("fb_used_bytes") == 0 and row.get("fb_free_bytes") == 0:
        out["fb_used_bytes"] = out["fb_free_bytes"] = None
    return out


def by_device(samples: list[Row], edges: dict[str, int]) -> dict[tuple, list[Instant]]:
    """The instants of each device with the time they stand for."""
    found: dict[tuple, list[Instant]] = defaultdict(list)
    for s in sorted(samples, key=lambda s: (s["at_ms"], [s.get(c) or "" for c in SERIES])):
        instants = found[s["gpu_uuid"], s.get("gpu_instance_id")]
        if not instants or instants[-1].at != s["at_ms"]:
            instants.append(Instant(s["at_ms"], [], 0, None))
        instants[-1].rows.append(dict(s))
    for (board, instance), instants in found.items():
        edge = edges.get(f"{board}/{instance}" if instance else board)
        for i, one in enumerate(instants):
            one.after = instants[i + 1].at if i + 1 < len(instants) else edge
            run = one.rows[0].get("run_id")
            same = [o.at for o in instants if o.rows[0].get("run_id") == run]
            steps = sorted(b - a for a, b in itertools.pairwise(same))
            usual = steps[(len(steps) - 1) // 2] if steps else (one.after - one.at if one.after is not None else 0)
            one.span = usual if one.after is None else min(one.after - one.at, usual * 5 // 2)
    # A board is whole or cut into instances: what is seen of one form ends the other.
    for (board, instance), instants in found.items():
        others = [
            o.at for (b, i), list_ in found.items() if b == board and (i is None) != (instance is None) for o in list_
        ]
        for one in instants:
            later = [at for at in others if at > one.at]
            if later and (one.hole or one.after is None):
                one.span = min(one.span, min(later) - one.at)
    return found


READINGS = (*(f"{a}_ratio" for a in ACTIVITY), *RATES)


def mend(instants: list[Instant]) -> None:
    """Counter windows that were missed are filled from the next reading, which covers them too."""
    missed: list[Instant] = []
    for one in instants:
        if one.span <= 500 and _missed(one.rows[0]):
            missed.append(one)
            continue
        if missed:
            covered = one.span + sum(m.span for m in missed)
            factor = {name: one.span / max(covered, 1) for name in RATES}
            _fill([*missed, one], {n: v and v * factor.get(n, 1) for n, v in _reading(one).items()})
        missed = []
    _fill(missed, dict.fromkeys(READINGS))  # nothing comes after them


def _reading(one: Instant) -> Row:
    return {name: one.rows[0].get(name) for name in READINGS}


def _fill(instants: list[Instant], reading: Row) -> None:
    for one in instants:
        for row in one.rows:
            row.update(reading)


def _missed(row: Row) -> bool:
    if all(row.get(f"{c}_ratio") is None for c in ACTIVITY) or all(row.get(c) is None for c in PCIE):
        return False
    return not any(row.get(n) for n in READINGS)


def find_waits(instants: list[Instant], below_ms: int) -> None:
    """Pauses shorter than the limit with work right before and right after."""
    first = 0
    while first < len(instants):
        last, state = first, instants[first].state
        while last + 1 < len(instants) and instants[last + 1].state == state and not instants[last].hole:
            last += 1
        length = instants[last].at + instants[last].span - instants[first].at
        before = first > 0 and not instants[first - 1].hole and instants[first - 1].state not in RESTING
        after = last + 1 < len(instants) and not instants[last].hole and instants[last + 1].state not in RESTING
        if state == "idle" and before and after and length < below_ms:
            for one in instants[first : last + 1]:
                one.wait = "wait_1s_ms" if length < 1000 else "wait_10s_ms" if length < 10_000 else "wait_30s_ms"
            instants[first].opens = True
        first = last + 1


def gpu_of(row: Row) -> Gpu | None:
    found = find_gpu(row["gpu_model"]) if row.get("gpu_model") else None
    return None if found is None or isinstance(found, Unknown) else found


def limit_of(row: Row) -> float | None:
    """The power limit in force, else the board's own."""
    gpu = gpu_of(row)
    return row["power_limit_w"] if row.get("power_limit_w") is not None else gpu.board_power_w.value if gpu else None


def busy_of(row: Row) -> tuple[float | None, bool]:
    """The busy share of the time, and whether activity counters tell it."""
    for name in ("engine_ratio", "sm_ratio"):
        if row.get(name) is not None:
            return row[name], True
    return row.get("gpu_util_ratio"), False


def state_of(row: Row, limits: Thresholds) -> str:
    """The state of a row by itself, by the rules in states.toml; whether it is a wait its neighbors decide."""
    busy, counted = busy_of(row)
    if busy is None:
        return "unstated"
    if counted:
        # Activity is stored in 32 bits: 0.01 as read must count as 0.01.
        still = busy < float(np.float32(limits.idle.activity_below_ratio))
    else:
        still = busy < limits.idle.util_below_ratio and not _draws_power(row)
    # Copies over PCIe run without a kernel.
    if still and sum(row.get(c) or 0 for c in PCIE) < RULES["copies"]["pcie_from_bytes_per_s"]:
        return "idle"
    if _capped(row):
        return "capped"
    return _by_pipes(row)


def _draws_power(row: Row) -> bool:
    gpu, power = gpu_of(row), row.get("power_w")
    if power is None or gpu is None or gpu.idle_power_w is None:
        return False
    idle, most = gpu.idle_power_w.value, limit_of(row)
    assert most is not None
    return power >= idle + RULES["bursts"]["power_above_idle_from_ratio"] * (most - idle)


def _capped(row: Row) -> bool:
    limit, power, bits, gpu = row.get("power_limit_w"), row.get("power_w"), row.get("throttle_bits"), gpu_of(row)
    if limit is None or power is None:
        return False
    rule = RULES["capped"]
    if gpu is None or limit >= rule["limit_below_board_ratio"] * gpu.board_power_w.value:
        return False
    return power >= rule["power_from_limit_ratio"] * limit and (bits is None or any(bits & b for b in POWER_CAPS))


def _by_pipes(row: Row) -> str:
    matrix, vector = shares(row)
    if matrix is None and vector is None:
        return "plain"
    compute, memory = (matrix or 0) + (vector or 0), row.get("dram_ratio") or 0
    if max(compute, memory) < RULES["light"]["share_below_ratio"]:
        state = "light"
    elif memory > compute:
        state = "memory"
    else:
        state = "matrix" if (matrix or 0) >= (vector or 0) else "vector"
    if matrix is None or (vector is None and not _vector_ruled_out(row)):
        return f"{state}-unseen"
    return f"{state}{_slim(row)}" if state in ("matrix", "memory") else state


def _slim(row: Row) -> str:
    gpu, names = gpu_of(row), ("tensor_ratio", "sm_ratio", "occupancy_ratio", "fp32_ratio")
    rule = PIPE_RULES["thin"].get(gpu.architecture) if gpu else None
    known = [row.get(n) for n in names]
    if rule is None or None in known or not known[0]:
        return ""
    (tensor, sm, slots, vector), integer = known, row.get("integer_ratio")
    if tensor >= rule["saturation_below_ratio"] * sm or slots >= rule["slots_below_ratio"] * sm:
        return ""
    vector = vector if integer is None else min(vector, rule["fp32_per_integer"] * integer)
    return "-alone" if vector < rule["alone_below_ratio"] * tensor else "-thin"


def shares(row: Row) -> tuple[float | None, float | None]:
    """Share of the dense peak by tensor and by vector work, middle estimate; None where it is not known."""
    gpu = gpu_of(row)
    rates = pipe_rates(gpu, row.get("tensor_precision")) if gpu else None
    clock = row.get("sm_clock_mhz")
    if clock is None and gpu is not None:
        rated = gpu.tensor_rated_mhz or gpu.fp32_rated_mhz
        clock = rated.value if rated else None
    if not isinstance(rates, PipeRates) or clock is None:
        return None, None

    def share(pipe: str) -> float | None:
        worth = rates.per_activity.get("matrix" if pipe in ("tensor", "hmma") else pipe)
        activity = row.get(f"{pipe}_ratio")
        return None if activity is None or worth is None else activity * clock * float(worth[1]) * 1e6

    def together(main: str, *others: str) -> float | None:
        found = share(main)
        return None if found is None else found + sum(share(p) or 0 for p in others)

    # The kinds of tensor work where all are recorded, else the pipe as a whole, if it is.
    kinds, whole = together("hmma", "imma", "dfma"), share("tensor")
    apart = all(row.get(f"{p}_ratio") is not None for p in ("hmma", "imma", "dfma"))
    matrix = kinds if kinds is not None and (apart or whole is None) else whole
    return matrix, together("fp32", "fp16", "fp64")


def _vector_ruled_out(row: Row) -> bool:
    gpu, known = gpu_of(row), [row.get(n) for n in ("power_w", "tensor_ratio", "dram_ratio")]
    budget = RULES["budgets"].get(gpu.key) if gpu else None
    if budget is None or None in known:
        return False
    power, tensor, dram = known
    return power - budget["idle_w"] - budget["tensor_w"] * tensor - budget["dram_w"] * dram < budget["vector_from_w"]


def stands_still(instants: list[Instant]) -> bool:
    """Whether the energy counter never moves, for a minute or more: then it does not count for this device."""
    read = [one.rows[0].get("energy_mj") for one in instants]
    moved = any(None not in pair and pair[0] != pair[1] for pair in pairwise(read))
    return not moved and sum(one.span for one in instants) >= 60_000


def gains(one: Instant, after: Instant | None) -> dict[str, int | None]:
    """What the counters of a device gained until the next instant; energy is None where power must do."""
    out: dict[str, int | None] = {"energy_mj": None}
    if after is None:
        return out
    now, then = one.rows[0], after.rows[0]
    for name, column in (("pcie_replays", "pcie_replays"), ("row_remap_failures", "row_remap_failures"),
                         ("remapped_correctable_rows", "rows_remapped"),
                         ("remapped_uncorrectable_rows", "rows_remapped")):  # fmt: skip
        if now.get(name) is not None and then.get(name) is not None:
            out[column] = (out.get(column) or 0) + max(then[name] - now[name], 0)
    if now.get("xid") is not None and (then.get("xid") or 0) > 0 and then["xid"] != now["xid"]:
        out["xid_events"] = 1
    counted = [r.get("energy_mj") for r in (now, then)]
    if None not in counted and counted[1] >= counted[0] and not one.hole:
        out["energy_mj"] = counted[1] - counted[0]
    return out


def part(amount: int, low: int, high: int, whole: int) -> int:
    """A whole amount's part from low to high; the parts add up to it."""
    return amount * high // max(whole, 1) - amount * low // max(whole, 1)


def _add_row(lines, device, one: Instant, place: int, row: Row, limits: Thresholds, gained) -> None:
    n, state = len(one.rows), state_of(row, limits)
    if one.wait and state == "idle":
        state = "wait"
    own = one.span // n + (place < one.span % n)
    energy = None if gained["energy_mj"] is None else part(gained["energy_mj"], place, place + 1, n)
    slice_ppm = None if row.get("slice_ratio") is None else round(row["slice_ratio"] * 1e6)
    limit = limit_of(row)
    limit_mw = None if limit is None else round(limit * 1e3)
    hour, first = one.at // HOUR, True
    while first or hour * HOUR < one.at + one.span:
        low, high = max(one.at, hour * HOUR) - one.at, min(one.at + one.span, (hour + 1) * HOUR) - one.at
        ms = part(own, low, high, one.span)
        key = (*device, hour * HOUR, *(row.get(o) for o in (*OWNER, "pod")), row.get("tensor_precision"))
        line = lines[*key, state, slice_ppm, limit_mw]
        for label in FIRST:
            line.setdefault(label, row.get(label))
        line["samples"] += first and not row.get("_copy")  # of holders that share an instant one has its sample
        line["observed_ms"] += ms
        line["shared_ms"] += ms * (len({tuple(r.get(o) for o in OWNER) for r in one.rows}) > 1)
        _add_state(line, row, state, ms, one, first, limits)
        _add_energy(line, row, ms, None if energy is None else part(energy, low, high, one.span))
        if first and place == 0:
            for column in gained.keys() - {"energy_mj"}:
                line[column] += gained[column]
        _add_efficiency(line, row, ms, limit)
        _add_counters(line, row, ms)
        hour, first = hour + 1, False


def _add_state(line, row: Row, state: str, ms: int, one: Instant, first: bool, limits: Thresholds) -> None:
    line["unstated_ms"] += ms if state == "unstated" else 0
    if state == "wait":
        line[one.wait] += ms
        line["waits"] += first and one.opens
    elif state == "idle":
        used, free = row.get("fb_used_bytes"), row.get("fb_free_bytes")
        card = 0 if free is None or used is None else used + free
        held = used is not None and used > max(limits.idle.held_above_bytes, limits.idle.held_above_card_ratio * card)
        line["idle_unknown_ms" if used is None else "idle_held_ms" if held else "idle_ms"] += ms
    elif state != "unstated":
        line["busy_ppm_ms"] += round(busy_of(row)[0] * 1e6) * ms


def _add_energy(line, row: Row, ms: int, counted: int | None) -> None:
    power = row.get("power_w")
    if counted is not None:
        line["energy_mj"] += counted
    elif power is not None:
        line["energy_mj"] += round(round(power * 1e3) * ms * 1e-3)
    line["energy_ms"] += ms if counted is not None or power is not None else 0


def _add_efficiency(line, row: Row, ms: int, limit: float | None) -> None:
    util, power = row.get("gpu_util_ratio"), row.get("power_w")
    active = util is not None and util > 0.01
    if util is not None:
        line["util_ms"] += ms
        line["util_ppm_ms"] += round(util * 1e6) * ms
        line["active_ms"] += ms * active
        line["active_util_ppm_ms"] += round(util * 1e6) * ms * active
        phase = (
            "idle" if util < 0.1 else "underutilized" if util < 0.7 else "productive" if util < 0.9 else "compute_bound"
        )
        line[f"phase_{phase}_ms"] += ms
        line[f"util_h{min(int(util * 20), 19):02d}"] += ms
    if power is not None:
        line["power_ms"] += ms
        line["power_uj"] += round(power * 1e3) * ms
        if limit is not None:
            pif = min(power / limit, 1.0)
            clipped = min(round(power * 1e3), round(limit * 1e3)) * ms
            line["pif_ms"] += ms
            line["pif_uj"] += clipped
            line["active_pif_ms"] += ms * active
            line["active_pif_uj"] += clipped * active
            if util is not None:
                line[f"class_{_class(util, pif)}_ms"] += ms
                line["bottleneck_ms"] += ms if util > 0.7 and pif < 0.6 else 0


def _add_counters(line, row: Row, ms: int) -> None:
    for name, column in {"engine": "engine_ratio", "sm": "sm_ratio", "occupancy": "occupancy_ratio",
                         "integer": "integer_ratio", "dram": "dram_ratio", "mem_copy": "mem_copy_util_ratio",
                         **{p: f"{p}_ratio" for p in PIPES}}.items():  # fmt: skip
        if row.get(column) is not None:
            line[f"{name}_ms"] += ms
            line[f"{name}_ppm_ms"] += round(row[column] * 1e6) * ms
    for name in ("pcie_rx", "pcie_tx", "nvlink"):
        if (rate := row.get(f"{name}_bytes_per_s")) is not None:
            line[f"{name}_ms"] += ms
            line[f"{name}_bytes"] += round(rate * 1e-3) * ms
    if row.get("fb_used_bytes") is not None:
        line["fb_ms"] += ms
        line["fb_mib_ms"] += round(row["fb_used_bytes"] / 2**20) * ms
    if (bits := row.get("throttle_bits")) is not None:
        capped = any(bits & b for b in POWER_CAPS)
        line["throttle_ms"] += ms
        line["power_capped_ms"] += ms * capped
        line["thermal_ms"] += ms * any(bits & b for b in HEAT)
        line["tensor_capped_ppm_ms"] += round((row.get("tensor_ratio") or 0) * 1e6) * ms * capped
    _add_clock(line, row, ms)


def _add_clock(line, row: Row, ms: int) -> None:
    clock, gpu = row.get("sm_clock_mhz"), gpu_of(row)
    known = [p for p in PIPES if row.get(f"{p}_ratio") is not None]
    if clock is not None:
        line["clock_ms"] += ms
        line["clock_mhz_ms"] += round(clock) * ms
    elif known:
        line["unclocked_ms"] += ms
        rated = (gpu.tensor_rated_mhz or gpu.fp32_rated_mhz) if gpu else None
        clock = rated.value if rated else 0
    for pipe in known:
        line[f"{pipe}_ppm_mhz_ms"] += round(row[f"{pipe}_ratio"] * 1e6) * round(clock) * ms


def _class(util: float, pif: float) -> str:
    if util < 0.10:
        return "idle"
    if util >= 0.70 and pif >= 0.75:
        return "efficient"
    if util >= 0.70 and pif < 0.60:
        return "bottlenecked"
    if util >= 0.40 and pif >= 0.50:
        return "moderate"
    return "inefficient"

"""What do the counters of the synthetic fleet read, scrape by scrape?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.errors import InputError
from gpuledger.telemetry.fleet import Assignment, FleetSpec, Makeup, Pair, Scenario, makeup, random_words
from gpuledger.units import MIB, MS_PER_HOUR

Array = npt.NDArray[Any]

BLOCK_ROWS = 250_000
_STEADY_STREAM = 2**64 - 2
# Chance comes as 16 bits per draw, nine draws per sample.
_DRAWS = 9
_DRAW_STEPS = 1 << 16
_NORMAL_BITS = 12
_MW_PER_W = 1000


def block_scrapes(gpus: int) -> int:
    """Scrapes in a block: as many as fit in BLOCK_ROWS, at least one."""
    return max(1, BLOCK_ROWS // gpus)


class FleetValues:
    """Makes the readings of a fleet, one block of scrapes after the other; counters carry over from block to block."""

    def __init__(self, spec: FleetSpec, fleet: tuple[Assignment, ...]) -> None:
        self._spec, self._made = spec, makeup()
        self._scrapes = block_scrapes(spec.gpus)
        names = [s.name for s in self._made.scenarios]
        models = [m.name for m in self._made.models]
        self._scenario = np.array([names.index(a.scenario) for a in fleet])
        self._model = np.array([models.index(a.model) for a in fleet])
        # A cell is a pair of model and scenario: one index finds every figure a sample needs.
        self._cells = _cell_tables(self._made)
        self._tiled_scenario = np.tile(self._scenario, self._scrapes)
        self._tiled_model = np.tile(self._model * len(names), self._scrapes)
        steady = random_words(spec.seed, _STEADY_STREAM, (3, spec.gpus)) / 2.0**64
        self._slot_c = np.tile((steady[0] * self._made.temperature.slot_spread_c).astype(np.float32), self._scrapes)
        self._memory_place = np.tile((steady[1] * self._made.memory_steady_ratio).astype(np.float32), self._scrapes)
        board_mw = self._cells["board_mw"].reshape(len(models), -1)[self._model, 0]
        # The driver has been loaded for a while: up to 500 hours at half power.
        self._energy_uj = (steady[2] * board_mw * 250).astype(np.int64) * MS_PER_HOUR
        self._counts = np.zeros((3, spec.gpus), np.int32)

    def block(self, number: int) -> dict[str, Array]:
        """The readings of block `number` by column of the export; to be asked for in order, from 0."""
        scrapes = min(self._scrapes, self._spec.scrapes - number * self._scrapes)
        rows = scrapes * self._spec.gpus
        full = self._scrapes * self._spec.gpus
        # A full block of words is drawn even where fewer rows are left: a longer run begins like a shorter one.
        words = random_words(self._spec.seed, number, -(-full * (2 * _DRAWS + 4) // 8))
        rare = words.view(np.uint32)[:full][:rows]
        draws = iter(words.view(np.uint16)[2 * full : (2 + _DRAWS) * full].reshape(_DRAWS, full)[:, :rows])
        cell = self._cell(next(draws), rows)
        out = self._load(cell, draws)
        out["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] = self._energy(out.pop("power_mw").reshape(scrapes, -1))
        out |= self._rare(rare, scrapes)
        return out

    def _cell(self, draw: Array, rows: int) -> Array:
        """Each sample's cell: the GPU's own scenario, or with the mix's chance one of the others."""
        scenarios = len(self._made.scenarios)
        scenario = self._tiled_scenario[:rows].copy()
        limit = round(self._spec.mix_ratio * _DRAW_STEPS)
        strays = np.flatnonzero(draw < limit)
        step = draw[strays].astype(np.int64) * (scenarios - 1) // max(1, limit)
        scenario[strays] = (scenario[strays] + 1 + step) % scenarios
        scenario += self._tiled_model[:rows]
        return scenario

    def _load(self, cell: Array, draws: Iterator[Array]) -> dict[str, Array]:
        """What the load decides: utilization, power, activity, memory, clocks, traffic, temperatures."""
        made, rows = self._made, len(cell)

        def between(name: str, place: Array) -> Array:
            value = self._cells[name + ".width"][cell]
            value *= place
            value += self._cells[name][cell]
            return value

        def follow(draw: Array) -> Array:
            return np.float32(made.coupling_ratio) * place + np.float32(1 - made.coupling_ratio) * _uniform(draw)

        util = between("util_pct", _uniform(next(draws))).astype(np.int32)
        place = _uniform(next(draws))
        board_mw = self._cells["board_mw"][cell].astype(np.float32)
        noise = _normal_table()[next(draws) >> (16 - _NORMAL_BITS)] * np.float32(self._spec.noise_ratio)
        power_mw = np.rint(np.clip(between("power_mw", place) + noise * board_mw, 0, board_mw))
        wobble = np.float32(1 - made.memory_steady_ratio) * _uniform(next(draws))
        total_mib = self._cells["memory_mib"][cell]
        used_ratio = between("memory_ratio", self._memory_place[:rows] + wobble)
        used_mib = np.rint(total_mib.astype(np.float32) * used_ratio).astype(np.int32)
        engine = between("engine_of_util_ratio", follow(next(draws))) * (util.astype(np.float32) * np.float32(0.01))
        tensor, dram = between("tensor_ratio", follow(next(draws))), between("dram_ratio", follow(next(draws)))
        np.minimum(tensor, engine * np.float32(made.tensor_of_engine_max_ratio), out=tensor)
        np.minimum(dram, engine * np.float32(made.dram_of_engine_max_ratio), out=dram)
        traffic = follow(next(draws))
        copy_pct = np.minimum(dram * np.float32(100 * made.mem_copy_per_dram), 100)
        step_mhz = np.float32(made.sm_clock_step_mhz)
        heat, pif, slot_c = made.temperature, power_mw / board_mw, self._slot_c[:rows]
        gpu_c = np.float32(heat.gpu_c) + np.float32(heat.gpu_per_power_c) * pif + slot_c
        memory_c = np.float32(heat.memory_c) + np.float32(heat.memory_per_power_c) * pif + slot_c
        memory_c += np.float32(heat.memory_per_dram_c) * dram
        return {
            "power_mw": power_mw.astype(np.int64),
            "DCGM_FI_DEV_GPU_UTIL": util,
            "DCGM_FI_DEV_POWER_USAGE": power_mw.astype(np.float64) / _MW_PER_W,
            "DCGM_FI_DEV_FB_USED": used_mib,
            "DCGM_FI_DEV_FB_FREE": total_mib - used_mib,
            "DCGM_FI_DEV_SM_CLOCK": (np.floor(between("sm_clock_mhz", place) / step_mhz) * step_mhz).astype(np.int32),
            "DCGM_FI_DEV_MEM_CLOCK": self._cells["mem_clock_mhz"][cell],
            "DCGM_FI_DEV_MEM_COPY_UTIL": copy_pct.astype(np.int32),
            "DCGM_FI_DEV_GPU_TEMP": gpu_c.astype(np.int32),
            "DCGM_FI_DEV_MEMORY_TEMP": memory_c.astype(np.int32),
            "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": between("nvlink_mib_per_s", traffic).astype(np.int32),
            "DCGM_FI_PROF_PCIE_RX_BYTES": between("pcie_rx_bytes_per_s", traffic).astype(np.int64),
            "DCGM_FI_PROF_PCIE_TX_BYTES": between("pcie_tx_bytes_per_s", traffic).astype(np.int64),
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _four_decimals(engine),
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _four_decimals(tensor),
            "DCGM_FI_PROF_DRAM_ACTIVE": _four_decimals(dram),
        }

    def _energy(self, power_mw: Array) -> Array:
        """The energy counter in mJ: each sample's power stands until the next scrape."""
        spent_uj = power_mw * self._spec.step_ms
        after_uj = np.cumsum(spent_uj, axis=0)
        after_uj += self._energy_uj
        self._energy_uj = after_uj[-1].copy()
        after_uj -= spent_uj
        after_uj //= 1000
        return after_uj.ravel()

    def _rare(self, draw: Array, scrapes: int) -> dict[str, Array]:
        """Driver errors, and the counters of PCIe replays and remapped rows."""
        events = self._made.events
        counters = (events.pcie_replay, events.correctable_row, events.uncorrectable_row)
        per_sample = self._spec.step_ms / MS_PER_HOUR / 1000
        limits = np.cumsum([*counters, events.xid]) * per_sample * 2.0**32
        counts = np.repeat(self._counts[:, None, :], scrapes, axis=1)
        xid = np.zeros(len(draw), np.int32)
        for row in np.flatnonzero(draw < limits[-1]):
            kind = int(np.searchsorted(limits, draw[row], side="right"))
            if kind < len(counters):
                counts[kind, row // self._spec.gpus :, row % self._spec.gpus] += 1
            else:
                xid[row] = events.xid_codes[int(draw[row]) % len(events.xid_codes)]
        self._counts = counts[:, -1].copy()
        return {
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": counts[0].ravel(),
            "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": counts[1].ravel(),
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": counts[2].ravel(),
            "DCGM_FI_DEV_XID_ERRORS": xid,
        }


def _cell_tables(made: Makeup) -> dict[str, Array]:
    """Each figure for every pair of model and scenario, models first; `.width` is the way from low to high end."""
    ranges: dict[str, list[Pair]] = {}
    levels: dict[str, list[int]] = {}
    for model in made.models:
        gpu = get_gpu(model.name)
        for scenario in made.scenarios:
            for name, pair in _ranges(gpu, scenario):
                ranges.setdefault(name, []).append(pair)
            levels.setdefault("board_mw", []).append(int(gpu.stated("board_power_w") * _MW_PER_W))
            levels.setdefault("memory_mib", []).append(int(gpu.stated("memory_bytes")) // MIB)
            levels.setdefault("mem_clock_mhz", []).append(model.mem_clock_mhz)
    tables: dict[str, Array] = {name: np.array(values, np.int32) for name, values in levels.items()}
    for name, pairs in ranges.items():
        low, high = np.array(pairs).T
        tables[name], tables[name + ".width"] = low.astype(np.float32), (high - low).astype(np.float32)
    return tables


def _ranges(gpu: Gpu, scenario: Scenario) -> Iterator[tuple[str, Pair]]:
    """The ranges of a scenario on this GPU, in the unit of the column they fill."""
    if gpu.idle_power_w is None or gpu.fp32_rated_mhz is None or gpu.tensor_rated_mhz is None:
        raise InputError(f"the catalog has no idle power or clocks for {gpu.name}", hint="add them to its file")
    idle_mw, board_mw = gpu.idle_power_w.value * _MW_PER_W, gpu.stated("board_power_w") * _MW_PER_W
    top_mhz = max(gpu.fp32_rated_mhz.value, gpu.tensor_rated_mhz.value)
    nvlink = gpu.link is not None and gpu.link.kind.startswith("NVLink")
    link_mib_per_s = gpu.link.bytes_per_s.value / MIB if gpu.link and nvlink else 0.0
    # Whole percents from low to high, both included: the draw is cut down to the percent below it.
    yield "util_pct", (scenario.util_pct[0], scenario.util_pct[1] + 1)
    yield "power_mw", _scaled(scenario.power_ratio, board_mw - idle_mw, idle_mw)
    yield "memory_ratio", scenario.memory_ratio
    yield "engine_of_util_ratio", scenario.engine_of_util_ratio
    yield "tensor_ratio", scenario.tensor_ratio
    yield "dram_ratio", scenario.dram_ratio
    yield "sm_clock_mhz", _scaled(scenario.sm_clock_ratio, top_mhz)
    yield "nvlink_mib_per_s", _scaled(scenario.nvlink_ratio, link_mib_per_s)
    yield "pcie_rx_bytes_per_s", _scaled(scenario.pcie_rx_mb_per_s, 1e6)
    yield "pcie_tx_bytes_per_s", _scaled(scenario.pcie_tx_mb_per_s, 1e6)


def _scaled(pair: Pair, factor: float, offset: float = 0.0) -> Pair:
    return offset + pair[0] * factor, offset + pair[1] * factor


def _uniform(draw: Array) -> Array:
    """16-bit draws as places between 0 and 1, never on either end."""
    place = draw.astype(np.float32)
    place += np.float32(0.5)
    place *= np.float32(1 / _DRAW_STEPS)
    return place


def _four_decimals(ratio: Array) -> Array:
    ratio *= np.float32(10_000)
    np.rint(ratio, out=ratio)
    ratio /= np.float32(10_000)
    return ratio


@cache
def _normal_table() -> Array:
    """Quantiles of the normal distribution, each as likely as the next; cut to 6 digits, where every machine agrees."""
    steps = 1 << _NORMAL_BITS
    return np.array([round(NormalDist().inv_cdf((i + 0.5) / steps), 6) for i in range(steps)], np.float32)

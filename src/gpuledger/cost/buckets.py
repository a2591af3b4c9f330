"""How does the paid time of each line divide into the six buckets?

Worked out line by line in whole milliseconds, because productive = min(busy, r x active) does not add up over lines.
A line is cut where a price or the window begins or ends, each piece taking its part of every sum in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpuledger.efficiency.activity import PIPES
from gpuledger.efficiency.calibration import Calibration
from gpuledger.efficiency.evidence import ModelFacts, PipeRates
from gpuledger.efficiency.scope import SOURCE, Scope, open_books
from gpuledger.lake.layout import Lake
from gpuledger.units import PPM, Unknown

_PIECE_SUMS = (
    "observed_ms", "unstated_ms", "idle_ms", "idle_held_ms", "underused_ms", "productive_ms", "stalled_ms",
    "phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms", "phase_compute_bound_ms",
    "by_counters_ms", "by_power_ms", "by_none_ms", "tensor_only_ms", "counted_ms", "low_gflop",
    "middle_gflop", "high_gflop", "energy_ms", "energy_mj",
)  # fmt: skip
OWNER = ("cluster", "namespace", "workload")


@dataclass(frozen=True)
class Device:
    """What the lines in the window say of one device, whoever owned it."""

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    cluster: str | None
    region: str | None
    slice_ppm: int | None
    first_ms: int
    last_ms: int
    samples: int = 0

    @property
    def name(self) -> str:
        """As an inventory names it."""
        return f"{self.gpu_uuid}/{self.gpu_instance_id}" if self.gpu_instance_id else self.gpu_uuid


@dataclass(frozen=True)
class Segment:
    """A stretch of a device's time that is priced alike; `number` ties its sums to its price."""

    number: int
    gpu_uuid: str
    gpu_instance_id: str | None
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Piece:
    """The sums of one owner's lines within one segment."""

    segment: int
    cluster: str | None
    namespace: str | None
    workload: str | None
    wanted: bool
    sums: dict[str, int]


class Lines:
    """The lines of a window, whoever owns them: paid time without an owner needs them all."""

    def __init__(self, lake: Lake, scope: Scope) -> None:
        self.scope = scope
        self._db, self._files = open_books(lake, scope)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _ask(self, sql: str, **given: object) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, {"files": self._files, **given}).fetchall()

    def _window(self) -> tuple[str, dict[str, object]]:
        """Lines that reach into the window, also where it begins or ends within their hour."""
        tests = {"since_ms": "last_ms > $since_ms", "until_ms": "first_ms < $until_ms"}
        given = {name: getattr(self.scope, name) for name in tests if getattr(self.scope, name) is not None}
        return " AND ".join(tests[name] for name in given) or "true", given

    def devices(self) -> list[Device]:
        """Every device seen in the window, in order."""
        test, given = self._window()
        sql = f"""SELECT gpu_uuid, gpu_instance_id, arg_max(gpu_model, last_ms), arg_max(cluster, last_ms),
            arg_max(region, last_ms), max(slice_ppm), min(first_ms), max(last_ms), sum(samples)::BIGINT
            FROM {SOURCE} WHERE {test} GROUP BY 1, 2 ORDER BY 1, 2 NULLS FIRST"""  # noqa: S608
        return [Device(*row) for row in self._ask(sql, **given)]

    def pieces(self, segments: Sequence[Segment], calibration: Calibration | None = None) -> list[Piece]:
        """The sums of every owner within every segment."""
        self._db.register("segments", _segment_table(segments))
        self._db.register("rates", self._rates())
        self._db.register("boards", _board_table(calibration))
        test, given = self._window()
        wanted, owners = _owner_test(self.scope)
        sums = ", ".join(f"sum({_part(name)})::BIGINT" for name in _PIECE_SUMS)
        sql = f"""WITH lines AS (SELECT *, coalesce({wanted}, false) AS wanted FROM {SOURCE} WHERE {test}), {_LINE_SQL}
            SELECT number, cluster, namespace, workload, wanted, {sums} FROM divided d JOIN segments s
            ON d.gpu_uuid = s.gpu_uuid AND coalesce(d.gpu_instance_id, '') = s.gpu_instance_id
            AND s.start_ms < d.last_ms AND s.end_ms > d.first_ms
            GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4 NULLS FIRST, 5"""  # noqa: S608
        rows = self._ask(sql, **given, **owners)
        return [_piece(row) for row in rows]

    def told(self) -> list[tuple[str | None, str | None]]:
        """The models whose tensor pipe worked for somebody in scope, each with the precisions told; None: none was."""
        (test, given), (wanted, owners) = self._window(), _owner_test(self.scope)
        sql = f"""SELECT DISTINCT gpu_model, tensor_precision FROM {SOURCE} WHERE {test} AND ({wanted})
            AND greatest(tensor_ppm_ms, hmma_ppm_ms) > 0 ORDER BY ALL"""  # noqa: S608
        return [(model, precision) for model, precision in self._ask(sql, **given, **owners)]

    def _rates(self) -> pa.Table:
        """What each pipe's activity is worth, per model and precision in the books; NULL where it cannot be rated."""
        test, given = self._window()
        pairs = self._ask(f"SELECT DISTINCT gpu_model, tensor_precision FROM {SOURCE} WHERE {test}", **given)  # noqa: S608
        return rate_table([(model, precision) for model, precision in pairs])


def _piece(row: Sequence[Any]) -> Piece:
    number, cluster, namespace, workload, wanted, *sums = row
    return Piece(number, cluster, namespace, workload, wanted, dict(zip(_PIECE_SUMS, sums, strict=True)))


def rate_table(pairs: Sequence[tuple[str | None, str | None]]) -> pa.Table:
    """Share of the dense peak per ppm x MHz x ms of each pipe, low, middle and high; idle power and peak beside."""
    facts = {model: ModelFacts(model) for model, _ in pairs}
    columns: dict[str, list[float | None]] = {f"{p}_{c}": [] for p in PIPES for c in ("low", "middle", "high")}
    for model, precision in pairs:
        rates = facts[model].rates(precision)
        for pipe in PIPES:
            worth = rates.per_activity.get(pipe, (0.0,) * 3) if isinstance(rates, PipeRates) else (None,) * 3
            for case, value in zip(("low", "middle", "high"), worth, strict=True):
                columns[f"{pipe}_{case}"].append(value)
    idle = [None if isinstance(w := facts[m].idle_mw, Unknown) else w for m, _ in pairs]
    peak = [None if isinstance(t := facts[m].peak_tflops, Unknown) else t for m, _ in pairs]
    arrays = {"model": pa.array([m for m, _ in pairs], pa.string())}
    arrays["precision"] = pa.array([p for _, p in pairs], pa.string())
    gpus = [facts[m].gpu for m, _ in pairs]
    wide = [None if isinstance(g, Unknown) else g.memory_bandwidth_bytes_per_s.value for g in gpus]
    numbers = columns | {"idle_mw": idle, "peak_tflops": peak, "bytes_per_s": wide}
    return pa.table(arrays | {name: pa.array(values, pa.float64()) for name, values in numbers.items()})


def _segment_table(segments: Sequence[Segment]) -> pa.Table:
    return pa.table(
        {
            "number": pa.array([s.number for s in segments], pa.int64()),
            "gpu_uuid": pa.array([s.gpu_uuid for s in segments], pa.string()),
            "gpu_instance_id": pa.array([s.gpu_instance_id or "" for s in segments], pa.string()),
            "start_ms": pa.array([s.start_ms for s in segments], pa.int64()),
            "end_ms": pa.array([s.end_ms for s in segments], pa.int64()),
        }
    )


def _board_table(calibration: Calibration | None) -> pa.Table:
    """Measured idle power and bandwidth, by board."""
    found = list(calibration.gpus.values()) if calibration else []
    idle = [None if g.idle_power_w is None else g.idle_power_w * 1e3 for g in found]
    return pa.table(
        {
            "board": pa.array([g.gpu_uuid for g in found], pa.string()),
            "measured_idle_mw": pa.array(idle, pa.float64()),
            "measured_bytes_per_s": pa.array([g.bandwidth_bytes_per_s for g in found], pa.float64()),
        }
    )


def _owner_test(scope: Scope) -> tuple[str, dict[str, object]]:
    where, given = Scope(None, None, scope.clusters, scope.namespaces, scope.owners).where()
    return where.removeprefix("WHERE ") or "true", given


def _part(name: str) -> str:
    """A sum's part within a segment: all of it where the segment holds the line, else by time, to the digit."""
    low, high = "greatest(s.start_ms - d.first_ms, 0)", "least(s.end_ms, d.last_ms) - d.first_ms"
    within = "s.start_ms <= d.first_ms AND s.end_ms >= d.last_ms"
    cut = f"d.{name}::HUGEINT * ({high}) // d.span_ms - d.{name}::HUGEINT * {low} // d.span_ms"
    return f"CASE WHEN {within} THEN d.{name}::HUGEINT ELSE {cut} END"


def _worked(case: str) -> str:
    return " + ".join(f"({expr}) * {pipe}_{case}" for pipe, expr in PIPES.items())


_KNOWN_MS = (
    "CASE WHEN hmma_ms > 0 AND hmma_ms >= tensor_ms THEN hmma_ms WHEN tensor_ms > 0 THEN tensor_ms "
    "ELSE greatest(fp32_ms, fp16_ms, fp64_ms) END"
)
# r x active in milliseconds. Idle time does no work, so work over all stated time is work over the active time.
# counters: pipes rated by the catalog, else the tensor pipe's bare activity; memory counts where it is the larger.
# power: idle-corrected while active, where no pipe was recorded. Neither: NULL, and all busy time counts as productive.
_LINE_SQL = f"""
judged AS (
    SELECT l.*, observed_ms - unstated_ms AS stated_ms,
        greatest(observed_ms - unstated_ms - idle_ms - idle_held_ms, 0) AS engaged_ms,
        {_KNOWN_MS} AS known_ms, {_worked("low")} AS worked_low, {_worked("middle")} AS worked_middle,
        {_worked("high")} AS worked_high, peak_tflops, coalesce(measured_idle_mw, idle_mw, 0.0) AS rest_mw,
        coalesce(bytes_per_s / measured_bytes_per_s, 1.0) AS attainable
    FROM lines l LEFT JOIN rates r ON l.gpu_model IS NOT DISTINCT FROM r.model
        AND l.tensor_precision IS NOT DISTINCT FROM r.precision
        LEFT JOIN boards b ON l.gpu_uuid = b.board
), proven AS (
    SELECT *, least(engaged_ms, (busy_ppm_ms + {PPM // 2}) // {PPM}) AS busy_ms,
        CASE WHEN known_ms > 0 THEN coalesce(worked_middle, tensor_ppm_ms / {PPM}.0) / known_ms END AS pipe_ratio,
        CASE WHEN dram_ms > 0 THEN dram_ppm_ms / {PPM}.0 / dram_ms * attainable END AS memory_ratio,
        CASE WHEN board_mw > rest_mw AND active_pif_ms > 0
            THEN greatest(active_pif_uj / active_pif_ms - rest_mw, 0.0) / (board_mw - rest_mw) END AS power_ratio
    FROM judged
), rated AS (
    SELECT *, CASE WHEN pipe_ratio IS NOT NULL THEN greatest(pipe_ratio, coalesce(memory_ratio, 0.0)) * stated_ms
        WHEN power_ratio IS NOT NULL
            THEN greatest(power_ratio * engaged_ms, coalesce(memory_ratio, 0.0) * stated_ms) END AS real_ms
    FROM proven
), settled AS (
    SELECT *, least(busy_ms, coalesce(round(real_ms)::BIGINT, busy_ms)) AS used_ms FROM rated
), divided AS (
    SELECT gpu_uuid, gpu_instance_id, cluster, namespace, workload, wanted, first_ms, last_ms,
        greatest(last_ms - first_ms, 1) AS span_ms, observed_ms, unstated_ms, idle_ms, idle_held_ms,
        engaged_ms - busy_ms AS underused_ms, used_ms AS productive_ms, busy_ms - used_ms AS stalled_ms,
        phase_idle_ms, phase_underutilized_ms, phase_productive_ms, phase_compute_bound_ms,
        CASE WHEN pipe_ratio IS NOT NULL THEN engaged_ms ELSE 0 END AS by_counters_ms,
        CASE WHEN pipe_ratio IS NOT NULL AND fp32_ms = 0 THEN engaged_ms ELSE 0 END AS tensor_only_ms,
        CASE WHEN pipe_ratio IS NULL AND power_ratio IS NOT NULL THEN engaged_ms ELSE 0 END AS by_power_ms,
        CASE WHEN pipe_ratio IS NULL AND power_ratio IS NULL THEN engaged_ms ELSE 0 END AS by_none_ms,
        CASE WHEN worked_middle IS NOT NULL AND peak_tflops IS NOT NULL THEN known_ms ELSE 0 END AS counted_ms,
        coalesce(round(worked_low * peak_tflops)::BIGINT, 0) AS low_gflop,
        coalesce(round(worked_middle * peak_tflops)::BIGINT, 0) AS middle_gflop,
        coalesce(round(worked_high * peak_tflops)::BIGINT, 0) AS high_gflop, energy_ms, energy_mj
    FROM settled
)"""  # noqa: S608

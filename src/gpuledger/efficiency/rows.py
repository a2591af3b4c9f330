"""What does one statement read from the ledger, added up just far enough?

Sums of whole numbers are exact in DuckDB and become floats at the very end, so two runs give the same digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.efficiency.scope import SOURCE, Scope, nothing_found, open_books
from gpuledger.errors import LakeError
from gpuledger.lake.batch import device_name
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.store import DAYS, Ledger
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, day_start_ms

Rows = dict[str, np.ndarray]
_NAN = "coalesce({0}::DOUBLE, 'nan'::DOUBLE) AS {0}"
# Accounts: one row for each of these.
LABELS = ("gpu_uuid", "gpu_instance_id", "cluster", "namespace", "gpu_model", "tensor_precision")
KEYS = (*LABELS, "board_mw", "slice_ppm")
HISTOGRAM = tuple(f"util_h{i:02d}" for i in range(lines.bins()))
_SUMS = (
    "samples", "observed_ms", "idle_ms", "idle_held_ms", "util_ms", "util_ppm_ms", "active_ms", "active_util_ppm_ms",
    "power_ms", "power_uj", "pif_ms", "pif_uj", "active_pif_ms", "active_pif_uj", "energy_ms", "energy_mj",
    "class_idle_ms", "class_efficient_ms", "class_bottlenecked_ms", "class_moderate_ms", "class_inefficient_ms",
    "bottleneck_ms", "phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms", "phase_compute_bound_ms",
    "engine_ms", "engine_ppm_ms", "dram_ms", "dram_ppm_ms", "pcie_rx_ms", "pcie_rx_bytes", "pcie_tx_ms",
    "pcie_tx_bytes", "nvlink_ms", "nvlink_bytes", "tensor_ms", "tensor_ppm_ms", *HISTOGRAM,
)  # fmt: skip
# The kinds of tensor work are counted apart where the source tells them apart for all of the line.
_SPLIT = "hmma_ms > 0 AND hmma_ms >= tensor_ms"
PIPES = {
    "matrix": f"CASE WHEN {_SPLIT} THEN hmma_ppm_mhz_ms ELSE tensor_ppm_mhz_ms END",
    "imma": f"CASE WHEN {_SPLIT} THEN imma_ppm_mhz_ms ELSE 0 END",
    "dfma": f"CASE WHEN {_SPLIT} THEN dfma_ppm_mhz_ms ELSE 0 END",
    "fp32": "fp32_ppm_mhz_ms",
    "fp16": "fp16_ppm_mhz_ms",
    "fp64": "fp64_ppm_mhz_ms",
}
_SELDOM = ("hmma", "imma", "dfma", "fp32", "fp16", "fp64")
_KNOWN = {
    "counters_ms": f"CASE WHEN {_SPLIT} THEN hmma_ms WHEN tensor_ms > 0 THEN tensor_ms "
    "ELSE greatest(fp32_ms, fp16_ms, fp64_ms) END",
    "matrix_ms": f"CASE WHEN {_SPLIT} THEN hmma_ms ELSE tensor_ms END",
    "vector_ms": "fp32_ms",
}
_DEVICE_HOUR = (
    "hour_ms", "grain_ms", "board_mw", "samples", "observed_ms", "util_ppm_ms", "util_ms", "pif_uj", "pif_ms",
    "power_uj", "power_ms",
)  # fmt: skip


_NUMBERED = """JOIN numbered n ON l.gpu_uuid = n.gpu_uuid
    AND l.gpu_instance_id IS NOT DISTINCT FROM n.gpu_instance_id"""


class Books:
    """The lines in scope, open for queries."""

    def __init__(self, lake: Lake, scope: Scope) -> None:
        self.scope = scope
        self._lake = lake
        self._db, self._files = open_books(lake, scope)
        ledger = Ledger(lake)
        # Whole days are read from the lines added up by day: a twentieth of the rows, the same sums.
        daily = scope.whole_days and ledger.has_days(scope.days())
        self.account_files = ledger.files(DAYS, scope.days()) if daily else self._files

    def __enter__(self) -> Books:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _ask(self, sql: str, *, owners: bool = True, files: list[str] | None = None) -> pa.Table:
        """The answer to a query over the lines in scope; `files` in place of all of the window's."""
        where, given = self.scope.where(owners=owners)
        return self._answer(
            sql.replace("FROM lines", f"FROM {SOURCE} {where}"), {"files": files or self._files, **given}
        )

    def _answer(self, sql: str, given: dict[str, Any]) -> pa.Table:
        try:
            return self._db.sql(sql, params=given).to_arrow_table()
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> LakeError:
        return LakeError(
            f"{self._lake.ledger_dir}: the books cannot be read: {str(error).splitlines()[0]}",
            hint="if samples were just posted, run it again; else delete the ledger folder: it is made again",
        )

    @cached_property
    def _pipe_sums(self) -> dict[str, str]:
        """What to add up of the pipes. Those nobody recorded are written as 0: reading them would cost a quarter."""
        columns = ", ".join(f"max({pipe}_ms) > 0 AS {pipe}" for pipe in _SELDOM)
        (recorded,) = self._ask(f"SELECT {columns} FROM lines", files=self.account_files).to_pylist()  # noqa: S608
        silent = "|".join(pipe for pipe in _SELDOM if not recorded[pipe])
        sums = _KNOWN | PIPES
        return {
            name: re.sub(rf"\b({silent})_(ppm_mhz_)?ms\b", "0", expr) if silent else expr for name, expr in sums.items()
        }

    def accounts(self) -> pa.Table:
        """Sums per device and owner, in order of device; an error where there is not one line."""
        sums = {c: c for c in _SUMS} | self._pipe_sums
        columns = [
            *LABELS,
            _NAN.format("board_mw"),
            _NAN.format("slice_ppm"),
            *(f"coalesce(sum({expr}), 0)::DOUBLE AS {name}" for name, expr in sums.items()),
        ]
        columns += ["min(first_ms) AS first_ms", "max(last_ms) AS last_ms"]
        order = ", ".join(f"{i + 1} NULLS FIRST" for i in range(len(KEYS)))
        query = f"SELECT {', '.join(columns)} FROM lines GROUP BY ALL ORDER BY {order}"  # noqa: S608
        table = self._ask(query, files=self.account_files)
        if not table.num_rows:
            raise nothing_found(self._lake, self.scope)
        return table

    def devices(self) -> pa.Table:
        """Per device, numbered from 0: latest host, active days, days bottlenecked for over half their active time."""
        daily = f"""SELECT gpu_uuid, gpu_instance_id, hour_ms // {MS_PER_DAY} AS day, sum(active_ms) AS active_ms,
            sum(bottleneck_ms) AS bottleneck_ms, sum(active_pif_ms) AS judged_ms, arg_max(host, last_ms) AS host,
            max(last_ms) AS last_ms FROM lines GROUP BY ALL"""  # noqa: S608
        found = self._ask(
            f"""SELECT gpu_uuid, gpu_instance_id, arg_max(host, last_ms) AS host,
            count(*) FILTER (active_ms > 0) AS active_days,
            count(*) FILTER (2 * bottleneck_ms > judged_ms) AS bottlenecked_days,
            row_number() OVER (ORDER BY gpu_uuid, gpu_instance_id NULLS FIRST) - 1 AS device
            FROM ({daily}) GROUP BY 1, 2 ORDER BY device""",  # noqa: S608
            files=self.account_files,
        )
        self._db.register("numbered", found.select(["gpu_uuid", "gpu_instance_id", "device"]))
        names = zip(found["gpu_uuid"].to_pylist(), found["gpu_instance_id"].to_pylist(), strict=True)
        self._numbers = {device_name(board, instance): i for i, (board, instance) in enumerate(names)}
        self._last: tuple[pa.Array | None, np.ndarray] = (None, np.zeros(0, np.int64))
        return found

    def coverage(self) -> pa.Table:
        """Per device in the window, whoever owned it: time observed, first and last instant."""
        return self._ask(
            """SELECT gpu_uuid, gpu_instance_id, sum(observed_ms)::BIGINT AS observed_ms, min(first_ms) AS first_ms,
            max(last_ms) AS last_ms FROM lines GROUP BY ALL ORDER BY 1, 2 NULLS FIRST""",
            owners=False,
            files=self.account_files,
        )

    def by_hour(self) -> pa.Table:
        """Utilization and pipe activity per period, model, precision and namespace."""
        sums = {"util_ppm_ms": "util_ppm_ms", "util_ms": "util_ms"} | self._pipe_sums
        columns = ", ".join(f"coalesce(sum({expr}), 0)::DOUBLE AS {name}" for name, expr in sums.items())
        keys = "hour_ms, grain_ms, gpu_model, tensor_precision, namespace"
        order = "1, 2, 3 NULLS FIRST, 4 NULLS FIRST, 5 NULLS FIRST"
        return self._ask(f"SELECT {keys}, {columns} FROM lines GROUP BY ALL ORDER BY {order}")  # noqa: S608

    def device_hours(self) -> Iterator[Rows]:
        """Sums per device and period, a day's file at a time. Ask for `devices` first: it numbers them."""
        later: Rows = {}
        for file in self._files:
            rows = self._some_owners(file) if self.scope.names_owners else self._all_owners(file)
            if later:
                rows = {c: np.concatenate([later[c], values]) for c, values in rows.items()}
            # A span over midnight is posted with the day before: what is of the next day waits for its file.
            done = rows["hour_ms"] < day_start_ms(Path(file).parent.name) + MS_PER_DAY
            later = {} if done.all() else {c: values[~done] for c, values in rows.items()}
            yield _one_row_each({c: values[done] for c, values in rows.items()} if later else rows)
        if later:
            yield _one_row_each(later)

    def _some_owners(self, file: str) -> Rows:
        """A file's lines of the owners asked for, devices numbered."""
        wanted = ", ".join(_NAN.format(c) if c == "board_mw" else c for c in _DEVICE_HOUR)
        inner = f"SELECT gpu_uuid, gpu_instance_id, {wanted} FROM lines"  # noqa: S608
        query = f"SELECT device, {', '.join(_DEVICE_HOUR)} FROM ({inner}) l {_NUMBERED}"  # noqa: S608
        table = self._ask(query, files=[file])
        return {c: numbers(table[c]) for c in ("device", *_DEVICE_HOUR)}

    def _all_owners(self, file: str) -> Rows:
        """A file's lines, devices numbered. Nothing to pick or join: read straight from the file."""
        table = self._read(file, [*schema.DEVICE, *_DEVICE_HOUR], list(schema.DEVICE))
        rows = {c: column(table[c]) for c in _DEVICE_HOUR}
        rows["device"] = self._numbered(table.select(schema.DEVICE).unify_dictionaries().combine_chunks())
        inside = rows["device"] >= 0
        for edge, keep in ((self.scope.since_ms, np.greater_equal), (self.scope.until_ms, np.less)):
            if edge is not None:
                inside &= keep(rows["hour_ms"], edge)
        return rows if inside.all() else {c: values[inside] for c, values in rows.items()}

    def _numbered(self, devices: pa.Table) -> np.ndarray:
        """Each row's device as a number, -1 for one that is not in scope."""
        if not devices.num_rows:
            return np.zeros(0, np.int64)
        board, instance = (devices[c].chunk(0) for c in schema.DEVICE)
        boards, number = numbers32(board.indices), self._numbers.get
        if not len(instance.dictionary):  # no MIG: a board is a device
            known, numbered = self._last
            if known is None or not known.equals(board.dictionary):  # files of one lake mostly name the same boards
                numbered = np.array([number(name, -1) for name in board.dictionary.to_pylist()], dtype=np.int64)
                self._last = board.dictionary, numbered
            return numbered[boards]
        names = board.dictionary.to_pylist()
        words = [*instance.dictionary.to_pylist(), None]  # -1 is NULL and takes the last word
        table = [[number(device_name(name, word), -1) for word in words] for name in names]
        return np.array(table, dtype=np.int64)[boards, numbers32(instance.indices)]

    def quiet_spells(self) -> Rows:
        """Idle and idle-held spells of the devices on the days of the window. Ask for `devices` first."""
        names, found = ("start_ms", "end_ms"), list[Rows]()
        for file in Ledger(self._lake).files("spells", self.scope.days()):
            table = self._read(file, [*schema.DEVICE, "kind", *names], [*schema.DEVICE, "kind"])
            coded = table.select([*schema.DEVICE, "kind"]).unify_dictionaries().combine_chunks()
            device = self._numbered(coded)
            kept = device >= 0
            if len(device):
                kind = coded["kind"].chunk(0)
                gaps = [i for i, word in enumerate(kind.dictionary.to_pylist()) if word == "gap"]
                kept &= ~np.isin(numbers32(kind.indices), gaps)
            found.append({"device": device[kept]} | {n: numbers(table[n])[kept] for n in names})
        return {n: np.concatenate([rows[n] for rows in found]) for n in ("device", *names)}

    def _read(self, file: str, columns: list[str], labels: list[str]) -> pa.Table:
        """Columns of one file of the books, labels by number."""
        try:
            with pq.ParquetFile(file, read_dictionary=labels) as part:
                return part.read(columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from error


def column(values: pa.ChunkedArray) -> np.ndarray:
    """A column of whole numbers; as floats with NaN for NULL where there are any."""
    if not values.null_count:
        return numbers(values)
    parts = [
        np.where(_known(c), np.frombuffer(c.buffers()[1], np.int64, len(c), c.offset * 8), np.nan)
        for c in values.chunks
    ]
    return np.concatenate(parts)


def numbers32(codes: pa.Array) -> np.ndarray:
    """The numbers of a dictionary's entries, -1 for NULL; from the buffer, as below."""
    if codes.null_count == len(codes):
        return np.full(len(codes), -1, np.int32)
    found = np.frombuffer(codes.buffers()[1], np.int32, len(codes), codes.offset * 4)
    return np.where(_known(codes), found, -1) if codes.null_count else found


def _known(values: pa.Array) -> np.ndarray:
    """Which values are not NULL."""
    if not values.null_count:
        return np.ones(len(values), dtype=bool)
    bits = np.unpackbits(np.frombuffer(values.buffers()[0], np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].astype(bool)


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column of 64-bit numbers without NULL, read from its buffers: Arrow's own way imports pandas if it is there."""
    kind = np.float64 if pa.types.is_floating(column.type) else np.int64
    parts = [np.frombuffer(c.buffers()[1], kind, len(c), c.offset * 8) for c in column.chunks if len(c)]
    if column.null_count or column.type not in (pa.int64(), pa.float64()):
        raise ValueError(f"a column of {column.type} with {column.null_count} NULLs has no plain numbers")
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _one_row_each(rows: Rows) -> Rows:
    """Owners of a device within one period added up. Whole numbers below 2**63, so the order does not matter."""
    key = (rows["device"] << 32) + (rows["hour_ms"] // 1_800_000) + (rows["grain_ms"] == MS_PER_DAY)
    step = np.diff(key)
    if (step < 0).any():
        order = np.argsort(key, kind="stable")
        rows, key = {name: values[order] for name, values in rows.items()}, key[order]
        step = np.diff(key)
    if (step > 0).all():
        return rows
    starts = np.flatnonzero(np.append(1, step))
    first = {name: rows[name][starts] for name in ("device", "hour_ms", "grain_ms")}
    first["board_mw"] = np.fmax.reduceat(rows["board_mw"], starts)
    return first | {n: np.add.reduceat(v, starts) for n, v in rows.items() if n not in first}

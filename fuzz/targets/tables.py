"""CSV and Parquet with columns of any kind, read as `gpuledger.read` reads them."""

from __future__ import annotations

import datetime as dt
import decimal
import io
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from mutate import TOKENS

from targets import Seed, Target, files_of
from targets.telemetry import read

_NAMES = [
    "timestamp", "Hostname", "gpu", "UUID", "modelName", "namespace", "pod", "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_GPU_TEMP", "container",
    "cluster",
]  # fmt: skip
_TYPES = [
    pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"),
    pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin"), pa.time32("s"), pa.time64("ns"),
    pa.duration("ms"), pa.decimal128(38, 9), pa.null(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]),
    pa.dictionary(pa.int32(), pa.string()), pa.map_(pa.string(), pa.int64()),
]  # fmt: skip


def _cells(rng: Random, kind: pa.DataType, count: int) -> pa.Array:  # noqa: PLR0911 - one kind of value after another
    """Values of a type, at its edges more often than not."""
    if pa.types.is_null(kind):
        return pa.nulls(count)
    if pa.types.is_binary(kind):
        return pa.array([rng.randbytes(4) for _ in range(count)], kind)
    if pa.types.is_nested(kind):
        value: object = [1] if pa.types.is_list(kind) else [("a", 1)] if pa.types.is_map(kind) else {"a": 1}
        return pa.array([rng.choice((value, None)) for _ in range(count)], kind)
    if pa.types.is_decimal(kind):
        return pa.array([decimal.Decimal(rng.choice(("1.5", "-9e28", "0", "1768867200"))) for _ in range(count)], kind)
    if pa.types.is_floating(kind):
        edges = (0.0, 1.0, 55.5, -1.0, float("nan"), float("inf"), 1e300, 9.2e18, 1768867200.0)
        return pa.array([rng.choice(edges) for _ in range(count)], pa.float64()).cast(kind, safe=False)
    if (
        pa.types.is_dictionary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or kind == pa.string_view()
    ):
        texts = [
            rng.choice((None, "node-1", "GPU-1", "2026-01-20 10:00:00", "55", *rng.sample(TOKENS, 3)))
            for _ in range(count)
        ]
        made = pa.array([t if t is None else t.encode("utf-8", "replace").decode() for t in texts])
        return made.dictionary_encode() if pa.types.is_dictionary(kind) else made.cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([rng.choice((True, False, None)) for _ in range(count)], kind)
    if pa.types.is_date(kind):
        return pa.array(
            [rng.choice((dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2026, 1, 20))) for _ in range(count)], kind
        )
    width = kind.bit_width
    edges = (
        0,
        1,
        55,
        2 ** (width - 1) - 1,
        -1 if pa.types.is_unsigned_integer(kind) is False else 2,
        1768867200 % 2 ** (width - 1),
    )
    whole = pa.array(
        [rng.choice(edges) for _ in range(count)],
        getattr(pa, f"{'u' * pa.types.is_unsigned_integer(kind)}int{width}")(),
    )
    return whole.cast(kind) if pa.types.is_integer(kind) else whole.view(kind)


def table(rng: Random) -> Seed:
    """A Parquet file with telemetry's names over columns of any type."""
    count, names = rng.choice((0, 1, 3, 20)), rng.sample(_NAMES, rng.randint(4, len(_NAMES)))
    usual = {"timestamp": pa.timestamp("ms", "UTC"), "gpu": pa.string(), "UUID": pa.string(), "Hostname": pa.string()}
    columns = [_cells(rng, usual[n] if n in usual and rng.random() < 0.7 else rng.choice(_TYPES), count) for n in names]
    if rng.random() < 0.05:
        names[0] = names[-1]
    how, coded = rng.choice(("none", "snappy", "zstd", "gzip")), rng.random() < 0.5
    while True:
        sink = io.BytesIO()
        try:
            pq.write_table(pa.Table.from_arrays(columns, names), sink, compression=how, use_dictionary=coded)
        except pa.ArrowException:  # a value Parquet cannot hold: without that column
            place = rng.randrange(len(names))
            del names[place], columns[place]
        else:
            return Seed("made.parquet", sink.getvalue())


def csv(rng: Random) -> Seed:
    """A CSV file with telemetry's names over cells of any kind."""
    names, separator = rng.sample(_NAMES, rng.randint(4, len(_NAMES))), rng.choice(",,,;\t|")
    plain = {
        "timestamp": "2026-01-20 10:00:00",
        "gpu": "0",
        "UUID": "GPU-1",
        "Hostname": "n1",
        "modelName": "NVIDIA H100 80GB HBM3",
    }
    rows = [names]
    for _ in range(rng.choice((0, 1, 5, 30))):
        cells = (rng.choice(TOKENS) if rng.random() < 0.12 else plain.get(n, str(rng.randint(0, 100))) for n in names)
        rows.append(list(cells))
    text = "\n".join(separator.join(row) for row in rows)
    return Seed("made.csv", text.encode("utf-8", "replace"))


def _parquet_seeds() -> list[Seed]:
    return [table(Random(n)) for n in range(8)]


TARGETS = [
    Target("CSV", read, files_of("fuzz/seeds/csv"), 2.0, csv),
    Target("Parquet", read, _parquet_seeds, 2.0, table),
]

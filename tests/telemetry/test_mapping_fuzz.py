"""Does any mapping file over any table end in rows or in an error that says what to do, never in a traceback?"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.errors import GpuledgerError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.plain_text import json_text
from gpuledger.telemetry import schema
from gpuledger.telemetry.explain import Explanation, explain
from gpuledger.telemetry.mapping import load_mapping
from gpuledger.telemetry.starter import write_starter

SOURCES = ["t", "d", "c", "card", "w", "power [W]", "gpu0_w", "gpu1_w", "gpu1_util [%]", "box", "x y", "", "é"]
names = st.sampled_from(SOURCES)
columns = st.sampled_from([*schema.columns(), "powr_w", ""])
units = st.sampled_from(["W", "mW", "%", "MiB", "mw", "C", "F", "furlong", "s", "ms", ""])
cells = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.sampled_from(["", "N/A", "5 W", "45 %", "3g.40gb", "0x4", "2026-01-20", "10:00", "GPU-1", "1e400", "0 GB/s"]),
    st.text(max_size=8),
    st.just(1_768_867_260),
)
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats())
patterns = st.sampled_from(["gpu{gpu_index}_{reading}", "{host}.{reading}", "{reading}", "gpu{x}{reading}", "{", ""])
time_rules = st.fixed_dictionaries(
    {},
    optional={
        "sources": st.one_of(names, st.lists(names, max_size=2)),
        "formats": st.lists(st.sampled_from(["%Y-%m-%d %H:%M", "%H:%M", "%Q", "%", "%d.%m.%Y"]), max_size=2),
        "join": st.lists(names, max_size=3),
        "unit": units,
    },
)
value_rules = st.fixed_dictionaries(
    {"column": columns, "sources": st.one_of(names, st.lists(names, max_size=3))},
    optional={
        "multiply": numbers,
        "divide": numbers,
        "unit": units,
        "parse": st.sampled_from(["hex", "mig_profile", "z"]),
    },
)
sane = st.fixed_dictionaries(
    {
        "time": st.sampled_from([{"sources": "t"}, {"join": ["d", "c"]}, {"sources": "t", "unit": "s"}]),
        "labels": st.just({"gpu_uuid": "card", "host": "box"}),
        "values": st.lists(
            st.sampled_from(
                [
                    {"column": "power_w", "sources": ["w", "power [W]"]},
                    {"column": "power_w", "sources": "w", "multiply": 1e300},
                    {"column": "fb_used_bytes", "sources": "x y", "unit": "MiB"},
                    {"column": "throttle_bits", "sources": "é", "parse": "hex"},
                    {"column": "slice_ratio", "sources": "é", "parse": "mig_profile"},
                    {"column": "gpu_util_ratio", "sources": "util [%]"},
                ]
            ),
            min_size=1,
            max_size=4,
        ),
    },
    optional={
        "wide": st.just({"pattern": "gpu{gpu_index}_{reading}"}),
        "constants": st.sampled_from([{"power_limit_w": "700 W"}, {"gpu_uuid": "G"}, {"gpu_index": 1}]),
        "blank_from": numbers,
        "blank_text": st.lists(st.sampled_from(["", "N/A"]), max_size=2),
    },
)
wild = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=5),
        "includes": st.sampled_from(["", "dcgm", "m.toml", "dcmg", "."]),
        "required": st.lists(names, max_size=2),
        "asks": st.lists(st.sampled_from(["time", "host", "gpu_model", "zzz"]), max_size=2),
        "time": time_rules,
        "labels": st.dictionaries(columns, st.one_of(names, st.lists(names, max_size=2)), max_size=3),
        "values": st.lists(value_rules, max_size=4),
        "constants": st.dictionaries(columns, st.one_of(st.text(max_size=6), numbers), max_size=2),
        "wide": st.fixed_dictionaries({"pattern": patterns}),
        "blank_from": numbers,
        "blank_text": st.lists(st.text(max_size=3), max_size=2),
        "zzz": st.integers(0, 3),
    },
)
GOOD = {
    "t": st.sampled_from([1_768_867_260, 1_768_867_320, 1_768_867_380]),
    "d": st.just("2026-01-20"),
    "c": st.sampled_from(["10:00", "10:01", "10:02"]),
    "card": st.sampled_from(["GPU-1", "GPU-2", "0"]),
    "box": st.sampled_from(["a", "b"]),
    "w": st.one_of(st.floats(0, 400), st.just("5 W"), cells),
    "x y": st.one_of(st.integers(0, 9), st.just("5 GB")),
    "é": st.sampled_from(["3g.40gb", "0x4", "4", None]),
}
good_tables = st.integers(1, 5).flatmap(
    lambda rows: st.fixed_dictionaries(
        {n: st.lists(one, min_size=rows, max_size=rows) for n, one in GOOD.items()},
        optional={
            n: st.lists(cells, min_size=rows, max_size=rows) for n in ("gpu0_w", "gpu1_w", "gpu1_util [%]", "power [W]")
        },
    )
)
tables = st.lists(names, min_size=1, unique=True).flatmap(
    lambda chosen: st.integers(1, 4).flatmap(
        lambda rows: st.fixed_dictionaries({n: st.lists(cells, min_size=rows, max_size=rows) for n in chosen})
    )
)


def toml(value: object) -> str:
    """A value as TOML writes it, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_text(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json_text(value) if isinstance(value, str) else repr(value)


def write_table(table: dict[str, list], file: Path, typed: bool) -> None:
    if typed:
        made = {n: pa.array(vs if _one_type(vs) else list(map(str, vs))) for n, vs in table.items()}
        pq.write_table(pa.table(made), file)
    else:
        quoted = [[f'"{n}"', *('""' if v is None else '"' + str(v).replace('"', '""') + '"' for v in vs)]
                  for n, vs in table.items()]  # fmt: skip
        file.write_text("\n".join(",".join(row) for row in zip(*quoted, strict=True)) + "\n", encoding="utf-8")


def _one_type(values: list) -> bool:
    return len({type(v) for v in values if v is not None}) <= 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(case=st.one_of(st.tuples(sane, good_tables), st.tuples(st.one_of(sane, wild), tables)), typed=st.booleans())
def test_no_map_and_no_table_ends_in_a_traceback(case, typed):
    mapping, table = case
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file = place / ("f.parquet" if typed else "f.csv")
        write_table(table, file, typed)
        (place / "m.toml").write_text("\n".join(f"{json_text(k)} = {toml(v)}" for k, v in mapping.items()), "utf-8")
        try:
            loaded = load_mapping(str(place / "m.toml"))
        except GpuledgerError:
            return
        try:
            import_files(Lake(place / "lake"), [file], mapping=loaded)
        except GpuledgerError:
            imported = False
        else:
            imported = True
        try:
            found = explain(file, mapping=loaded)
        except GpuledgerError:
            assert not imported
            return
        assert not (imported and found.problem)
        written(found, place / "starter.toml")


def written(found: Explanation, file: Path) -> None:
    """The starter map is written and is sound, or is not written and the reason given."""
    try:
        write_starter(found, file)
    except GpuledgerError:
        assert not file.exists()
    else:
        load_mapping(str(file))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(table=tables, typed=st.booleans())
def test_any_table_can_be_explained_and_its_starter_map_is_sound(table, typed):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file = place / ("f.parquet" if typed else "f.csv")
        write_table(table, file, typed)
        try:
            found = explain(file)
        except GpuledgerError:
            return
        written(found, place / "starter.toml")

"""Does a label taken from a part's note say what its rows say?"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.lake.batch import CODED
from gpuledger.lake.parts import PartWriter, open_part
from gpuledger.lake.sorting.order import in_order
from gpuledger.lake.steady_labels import STEADY, read_group, steady_groups, steady_of
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, day_start_ms

DAY = day_start_ms("2026-01-20")
_texts = st.sampled_from([None, "a", "b", "ä"])


def rows_of(said: list[dict]) -> pa.Table:
    columns: dict[str, pa.Array] = {"at_ms": pa.array([s["at_ms"] for s in said], pa.int64())}
    for name in ("gpu_uuid", "gpu_instance_id", "host", "namespace", "pod", "gpu_model"):
        if any(s.get(name) for s in said):
            columns[name] = pa.array([s.get(name) for s in said], pa.string()).dictionary_encode().cast(CODED)
    columns["power_w"] = pa.array([float(s["at_ms"] % 7) for s in said])
    return in_order(pa.table(columns))


@st.composite
def devices(draw) -> list[dict]:
    said = []
    for name in draw(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True)):
        for slice_ in draw(st.sampled_from([[None], ["1", "2"]])):
            own = {n: draw(_texts) for n in ("host", "namespace", "pod")}
            for i in range(draw(st.integers(1, 4))):
                changed = {"namespace": draw(_texts)} if draw(st.booleans()) else {}
                at = {"at_ms": DAY + 1000 * i, "gpu_uuid": name, "gpu_instance_id": slice_}
                said.append(at | own | changed)
    return said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=st.lists(devices(), min_size=1, max_size=2))
def test_a_note_says_what_the_rows_say(tmp_path_factory, groups):
    writer = PartWriter(tmp_path_factory.mktemp("part") / "p.parquet", DAY // MS_PER_DAY)
    for number, group in enumerate(groups):
        writer.add(rows_of([s | {"gpu_uuid": f"{number}{s['gpu_uuid']}"} for s in group]))
    writer.close()
    with open_part(writer.file) as file:
        noted = steady_groups(file)
        assert len(noted) == file.num_row_groups == len(groups)
        for group, note in enumerate(noted):
            wanted = ["at_ms", *schema.labels(), "power_w"]
            table, fixed = read_group(file, group, wanted, note)
            assert table.to_pylist() == file.read_row_group(group, columns=wanted).select(wanted).to_pylist()
            assert table.schema.field("host").type == CODED
            for name in fixed:
                by_device: dict[tuple, set] = {}
                for row in table.to_pylist():
                    by_device.setdefault((row["gpu_uuid"], row["gpu_instance_id"]), set()).add(row[name])
                assert all(len(found) == 1 for found in by_device.values())


def test_what_changes_within_a_device_is_read():
    said = [{"at_ms": DAY + i, "gpu_uuid": d, "host": d.lower(), "namespace": "x"} for d in "AB" for i in range(3)]
    said[4]["namespace"] = "y"
    note = steady_of(rows_of(said))
    assert note.rows == [3, 3]
    assert note.values == {"gpu_uuid": ["A", "B"], "host": ["a", "b"]}
    assert note.places["host"] == [0, 1]


def test_a_part_without_a_note_is_read_as_before(tmp_path):
    writer = PartWriter(tmp_path / "p.parquet", DAY // MS_PER_DAY)
    writer.add(rows_of([{"at_ms": DAY, "gpu_uuid": "A", "host": "h"}]))
    writer.close()
    table = pq.read_table(writer.file)
    kept = {k: v for k, v in (table.schema.metadata or {}).items() if k != STEADY.encode()}
    pq.write_table(table.replace_schema_metadata(kept), writer.file)
    with open_part(writer.file) as file:
        assert steady_groups(file) == []
        read, fixed = read_group(file, 0, ["at_ms", "host"], None)
    assert read.to_pylist() == [{"at_ms": DAY, "host": "h"}]
    assert fixed == frozenset()

"""Are the rows that a lake holds of some devices found, all of them, whichever parts are left unread?"""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.lake.batch import CODED
from gpuledger.lake.holding import rows_held
from gpuledger.lake.layout import Lake
from gpuledger.lake.manifest import Part, marks_of
from gpuledger.lake.parts import PartWriter, samples_table
from gpuledger.lake.sorting.order import in_order
from gpuledger.units import MS_PER_DAY, day_start_ms

DAY = day_start_ms("2026-01-20")
BOARDS = st.text("0123456789abcdef", min_size=1, max_size=3).map("GPU-{}".format)
DEVICES = st.tuples(BOARDS, st.sampled_from([None, "1", "2"]))
# Each part: devices and the seconds at which they have a row.
PARTS = st.lists(
    st.dictionaries(DEVICES, st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=6), min_size=1, max_size=4
)


def name_of(board: str, instance: str | None) -> str:
    return f"{board}/{instance}" if instance else board


def rows_of(found: dict[tuple[str, str | None], set[int]]) -> pa.Table:
    rows = [(board, instance, DAY + 1000 * s) for (board, instance), at in found.items() for s in at]
    labels = [pa.array([r[i] for r in rows], pa.string()).dictionary_encode().cast(CODED) for i in (0, 1)]
    at_ms = pa.array([r[2] for r in rows], pa.int64())
    return in_order(pa.table([*labels, at_ms], names=["gpu_uuid", "gpu_instance_id", "at_ms"]))


def keys(table: pa.Table | None) -> set[tuple[str, str | None, int]]:
    names = ("gpu_uuid", "gpu_instance_id", "at_ms")
    return set() if table is None else set(zip(*(table[n].to_pylist() for n in names), strict=True))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=PARTS, more=st.sets(DEVICES, max_size=3), since=st.integers(0, 9), data=st.data())
def test_every_row_of_the_devices_is_found(tmp_path_factory, parts, more, since, data):
    lake = Lake(tmp_path_factory.mktemp("lake") / "lake")
    with lake.locked(), lake.staging() as folder:
        staged = []
        for number, part in enumerate(parts):
            writer = PartWriter(folder / f"{number}.parquet", DAY // MS_PER_DAY)
            writer.add(rows_of(part))
            staged.append((writer.file, writer.close()))
        lake.commit(staged)
    there = sorted({device for part in parts for device in part}, key=str)
    wanted = data.draw(st.sets(st.sampled_from(there), min_size=1)) | more
    names = sorted(name_of(*device) for device in wanted)
    near = [p for p in lake.manifest().parts if p.may_hold(names)]
    truth = {k for k in keys(samples_table(lake)) if k[:2] in wanted}
    assert keys(rows_held(lake, near, names)) == truth
    since_ms = DAY + 1000 * since
    assert {k for k in truth if k[2] >= since_ms} <= keys(rows_held(lake, near, names, since_ms)) <= truth


@given(st.sets(BOARDS, min_size=1, max_size=100), st.sets(BOARDS, min_size=1))
def test_a_part_never_denies_a_device_it_holds(inside, asked):
    held = sorted(inside)
    part = Part(1, "2026-01-20", "", 1, 0, 1, held[0], held[-1], marks=marks_of(held))
    assert part.may_hold(sorted(asked)) or not inside & asked
    assert Part(1, "2026-01-20", "", 1, 0, 1, held[0], held[-1]).may_hold(held)


def test_hosts_with_random_names_are_kept_apart():
    """By the first and the last name alone, nearly every part of another host would be read."""
    hosts = [sorted(f"GPU-{(7919 * (8 * h + g)) % 100_003:05d}" for g in range(8)) for h in range(200)]
    parts = [Part(1, "2026-01-20", "", 1, 0, 1, h[0], h[-1], marks=marks_of(h)) for h in hosts]
    assert all(part.may_hold(own) for part, own in zip(parts, hosts, strict=True))
    assert sum(part.may_hold(hosts[0]) for part in parts) <= 3

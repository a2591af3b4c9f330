"""Does posting agree with the slow and obvious way, and with itself when cut into pieces?"""

from __future__ import annotations

import numpy as np
import oracle
import pyarrow as pa
import samples as make
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.lake.batch import Batch
from gpuledger.lake.parts import first_of
from gpuledger.lake.steady import steady_of
from gpuledger.ledger import lines, spells
from gpuledger.ledger.posting import post
from gpuledger.ledger.spans import Edge, median_step
from gpuledger.telemetry import schema

KEYS = ("gpu_uuid", "gpu_instance_id", "hour_ms", *schema.OWNER, "tensor_precision")


def as_dict(table: pa.Table) -> dict[tuple, dict]:
    rows = {tuple(r[k] for k in KEYS): r for r in table.to_pylist()}
    assert len(rows) == table.num_rows, "two lines share a key"
    return rows


@given(make.series(shared=True))
@settings(max_examples=40, deadline=None)
def test_posting_agrees_with_the_oracle(limits, samples):
    made = as_dict(post(make.table(samples), limits).lines)
    kept = make.table(samples).to_pylist()
    expected = oracle.post(kept, limits)
    assert set(made) == set(expected)
    for key, line in expected.items():
        for column, value in line.items():
            assert made[key][column] == value, (key, column)


@given(make.series())
@settings(max_examples=30, deadline=None)
def test_labels_known_to_be_fixed_change_nothing(limits, samples):
    own = [s | {"namespace": s["gpu_uuid"].lower(), "cluster": "c", "pod": f"p-{s['gpu_uuid']}"} for s in samples]
    table = make.table(own)
    fixed = frozenset(steady_of(table).values)
    assert {"namespace", "cluster", "pod"} <= fixed
    plain, known = post(table, limits), post(table, limits, fixed=fixed)
    for name in ("lines", "spells", "pods"):
        assert getattr(plain, name).to_pylist() == getattr(known, name).to_pylist()


@given(make.series(shared=True), st.data())
@settings(max_examples=40, deadline=None)
def test_contiguous_pieces_merge_to_the_whole(limits, samples, data):
    whole = make.table(samples)
    posted = post(whole, limits)
    batch = Batch(whole)
    at, starts = batch.at_ms, batch.device_starts
    steps = {}
    for device, a, b in zip(batch.devices, starts, [*starts[1:], batch.n], strict=True):
        opens = [i for i in range(a, b) if i == a or not batch.same_instant[i - 1]]
        runs = whole["run_id"].to_pylist()
        for run in {runs[i] for i in opens}:
            steps[device, run] = median_step(np.array([at[i] for i in opens if runs[i] == run]))
    # Cut between instants only: rows that share an instant are one reading of the device.
    places = [i for i in range(1, batch.n) if not batch.same_instant[i - 1]]
    cuts = sorted(data.draw(st.sets(st.sampled_from(places), max_size=4))) if places else []
    pieces = [whole.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, batch.n], strict=True)]
    parts = []
    for i, piece in enumerate(pieces):
        rest = pa.concat_tables(pieces[i + 1 :]) if pieces[i + 1 :] else piece.slice(0, 0)
        edges = {d: Edge(at, known) for d, (at, known) in first_of(rest).items()}
        parts.append(post(piece, limits, edges, steps))
    merged = lines.merge([p.lines for p in parts])
    assert merged.equals(lines.merge([posted.lines]))
    joined = spells.join(pa.concat_tables([p.spells for p in parts]))
    assert joined.equals(spells.join(posted.spells))


@given(make.series(), st.randoms())
@settings(max_examples=25, deadline=None)
def test_merging_is_the_same_in_any_order(limits, samples, random):
    table = make.table(samples)
    at = Batch(table).device_starts
    parts = [post(table.slice(a, b - a), limits).lines for a, b in zip(at, [*at[1:], table.num_rows], strict=True)]
    straight = lines.merge(parts)
    random.shuffle(parts)
    assert lines.merge(parts).equals(straight)
    assert lines.merge([lines.merge(parts[:1]), *parts[1:]]).equals(straight)


@given(make.series(shared=True))
@settings(max_examples=40, deadline=None)
def test_every_observed_millisecond_is_in_one_state_class_and_phase(limits, samples):
    for line in post(make.table(samples), limits).lines.to_pylist():
        active = line["observed_ms"] - line["idle_ms"] - line["idle_held_ms"] - line["unstated_ms"]
        assert active >= 0
        assert line["busy_ppm_ms"] <= active * 1_000_000
        assert (
            sum(line[f"phase_{p}_ms"] for p in ("idle", "underutilized", "productive", "compute_bound"))
            == line["util_ms"]
        )
        assert sum(line[f"util_h{i:02d}"] for i in range(20)) == line["util_ms"]
        classes = ("idle", "efficient", "bottlenecked", "moderate", "inefficient")
        assert sum(line[f"class_{c}_ms"] for c in classes) <= line["pif_ms"]


def test_a_minute_series_by_pencil(limits):
    """Three samples, 60 s apart, one H100 (700 W): 60 + 60 + 60 s; 100 %, 50 % and 0 % of utilization."""
    rows = [
        {"at_ms": make.DAY, "gpu_util_ratio": 1.0, "power_w": 350.0, "fb_used_bytes": 0},
        {"at_ms": make.DAY + 60_000, "gpu_util_ratio": 0.5, "power_w": 700.0, "fb_used_bytes": 0},
        {"at_ms": make.DAY + 120_000, "gpu_util_ratio": 0.0, "power_w": 70.0, "fb_used_bytes": 3 * 2**30},
    ]
    posted = post(make.table([r | {"gpu_uuid": "G", "gpu_model": "NVIDIA H100 80GB HBM3"} for r in rows]), limits)
    (line,) = posted.lines.to_pylist()
    assert line["samples"] == 3
    assert line["observed_ms"] == 180_000
    assert line["util_ppm_ms"] == 90_000 * 1_000_000
    assert line["pif_uj"] == (350_000 + 700_000 + 70_000) * 60_000
    assert line["energy_mj"] == (350 + 700 + 70) * 60 * 1000
    assert line["energy_counter_ms"] == 0
    assert (line["class_bottlenecked_ms"], line["class_moderate_ms"], line["class_idle_ms"]) == (60_000,) * 3
    assert (line["idle_ms"], line["idle_held_ms"]) == (0, 60_000)
    assert line["busy_ppm_ms"] == 90_000 * 1_000_000
    assert posted.spells.to_pylist() == [
        {
            "gpu_uuid": "G",
            "gpu_instance_id": None,
            "start_ms": make.DAY + 120_000,
            "end_ms": make.DAY + 180_000,
            "kind": "idle_held",
        }
    ]


def test_a_gap_is_a_spell_and_not_observed(limits):
    """Steps 60, 60, 60, 600 s: the sample before the hole stands for 2.5 x 60 = 150 s, the rest is a gap."""
    at = [0, 60, 120, 180, 780]
    rows = [{"at_ms": make.DAY + t * 1000, "gpu_uuid": "G", "gpu_util_ratio": 0.9} for t in at]
    posted = post(make.table(rows), limits)
    (line,) = posted.lines.to_pylist()
    assert line["observed_ms"] == (60 + 60 + 60 + 150 + 60) * 1000
    (gap,) = posted.spells.to_pylist()
    assert (gap["kind"], gap["start_ms"], gap["end_ms"]) == ("gap", make.DAY + 330_000, make.DAY + 780_000)


def test_runs_of_another_rate_keep_their_own_step(limits):
    """Ten readings 0.1 s apart in one run, then four 1 s apart in another: 1 s and 4 s are observed, none is a gap."""
    quick = [{"at_ms": make.DAY + 100 * i, "run_id": "quick"} for i in range(10)]
    slow = [{"at_ms": make.DAY + 1000 + 1000 * i, "run_id": "slow"} for i in range(4)]
    posted = post(make.table([r | {"gpu_uuid": "G", "gpu_util_ratio": 0.9} for r in quick + slow]), limits)
    assert {r["run_id"]: r["observed_ms"] for r in posted.lines.to_pylist()} == {"quick": 1000, "slow": 4000}
    assert posted.spells.num_rows == 0


def test_energy_comes_from_the_counter_and_is_cut_at_the_hour(limits):
    """10 kJ over 60 s that begin 15 s before the hour: 2.5 kJ and 7.5 kJ; a restart falls back to power."""
    start = make.DAY + 3_600_000 - 15_000
    rows = [
        {"at_ms": start, "energy_mj": 5_000_000, "power_w": 1.0},
        {"at_ms": start + 60_000, "energy_mj": 15_000_000, "power_w": 100.0},
        {"at_ms": start + 120_000, "energy_mj": 20, "power_w": 10.0},
    ]
    first, second = post(
        make.table([r | {"gpu_uuid": "G", "gpu_util_ratio": 0.9} for r in rows]), limits
    ).lines.to_pylist()
    assert first["energy_mj"] == 2_500_000
    assert second["energy_mj"] == 7_500_000 + 100 * 60 * 1000 + 10 * 60 * 1000
    assert first["energy_counter_ms"] + second["energy_counter_ms"] == 60_000


def test_owners_at_one_instant_split_its_time(limits):
    """Three owners, 100 ms: 34 + 33 + 33, flagged as shared; energy split likewise."""
    rows = [
        {"at_ms": make.DAY + t, "gpu_uuid": "G", "namespace": n, "gpu_util_ratio": 0.5, "energy_mj": t * 10}
        for t in (0, 100)
        for n in ("a", "b", "c")
    ]
    made = {r["namespace"]: r for r in post(make.table(rows), limits).lines.to_pylist()}
    assert [made[n]["observed_ms"] for n in "abc"] == [68, 66, 66]
    assert [made[n]["shared_ms"] for n in "abc"] == [68, 66, 66]
    assert [made[n]["energy_mj"] for n in "abc"] == [333, 333, 334]


def test_mig_instances_are_devices_of_their_own(limits):
    rows = [
        {"at_ms": make.DAY + t, "gpu_uuid": "G", "gpu_instance_id": i, "slice_ratio": 3 / 7, "engine_ratio": 0.5}
        for t in (0, 1000)
        for i in ("1", "2")
    ]
    made = post(make.table(rows), limits).lines.to_pylist()
    assert [(r["gpu_instance_id"], r["observed_ms"], r["shared_ms"]) for r in made] == [("1", 2000, 0), ("2", 2000, 0)]
    assert {r["slice_ppm"] for r in made} == {428_571}


def test_pods_are_kept_apart(limits):
    rows = [
        {"at_ms": make.DAY + t * 1000, "gpu_uuid": "G", "namespace": "n", "pod": p, "gpu_util_ratio": 0.5}
        for t, p in enumerate(["p1", "p1", "p2", "p1"])
    ]
    posted = post(make.table(rows), limits)
    assert posted.lines.num_rows == 1
    held = {
        r["pod"]: (r["first_ms"] - make.DAY, r["last_ms"] - make.DAY, r["observed_ms"]) for r in posted.pods.to_pylist()
    }
    assert held == {"p1": (0, 4000, 3000), "p2": (2000, 3000, 1000)}


def test_errors_are_counted_when_they_appear(limits):
    rows = [
        {"at_ms": make.DAY + t * 1000, "gpu_uuid": "G", "gpu_util_ratio": 0.5, "xid": x, "pcie_replays": r}
        for t, (x, r) in enumerate([(0, 5), (31, 5), (31, 9), (0, 9), (79, 2)])
    ]
    (line,) = post(make.table(rows), limits).lines.to_pylist()
    assert line["xid_events"] == 2
    assert line["pcie_replays"] == 4  # 5 -> 9; the fall to 2 is a restart

"""Does posting agree with the slow and obvious way, and with itself when cut into pieces?"""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec
import oracle
import pyarrow as pa
import pytest
import samples as make
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import merge

from gpuledger.lake.batch import Batch
from gpuledger.lake.steady_labels import steady_of
from gpuledger.ledger import lines, posting, spells
from gpuledger.ledger.posting import post
from gpuledger.ledger.spans import Clip, Edge
from gpuledger.telemetry import schema

BY_SAMPLE = ("state", "slice_ppm", "limit_mw")
KEYS = ("gpu_uuid", "gpu_instance_id", "hour_ms", *schema.OWNER, "pod", "tensor_precision", *BY_SAMPLE)


def as_dict(table: pa.Table) -> dict[tuple, dict]:
    rows = {tuple(r[k] for k in KEYS): r for r in table.to_pylist()}
    assert len(rows) == table.num_rows, "two lines share a key"
    return rows


@given(make.series(shared=True))
@settings(max_examples=80, deadline=None)
def test_posting_agrees_with_the_oracle(limits, samples):
    rows = make.table(samples)
    made = as_dict(post(rows, limits).lines)
    expected = oracle.post(rows.to_pylist(), limits)
    assert set(made) == set(expected)
    for key, line in expected.items():
        found = {c: made[key][c] for c in (*lines.names("sum"), *oracle.FIRST) if made[key][c]}
        assert found == {c: v for c, v in line.items() if v}, key


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


@given(make.series(max_devices=4, shared=True), st.randoms())
@settings(max_examples=30, deadline=None)
def test_any_set_of_boards_posted_apart_merges_to_the_whole(limits, samples, random):
    whole = post(make.table(samples), limits)
    boards = sorted({s["gpu_uuid"] for s in samples})
    random.shuffle(boards)
    cut = random.randrange(len(boards) + 1)
    parts = [[s for s in samples if s["gpu_uuid"] in some] for some in (boards[:cut], boards[cut:])]
    posted = [post(make.table(part), limits) for part in parts if part]
    assert merge([p.lines for p in posted]) == merge([whole.lines])
    joined = spells.join(pa.concat_tables([p.spells for p in posted]))
    assert joined.equals(spells.join(whole.spells))
    held = [{tuple(r.items()) for r in p.pods.to_pylist()} for p in posted]
    assert set().union(*held) == {tuple(r.items()) for r in whole.pods.to_pylist()}


@given(make.series(max_devices=4, shared=True))
@settings(max_examples=30, deadline=None)
def test_small_blocks_change_nothing(limits, samples):
    rows = make.table(samples)
    whole = post(rows, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posting, "BLOCK_ROWS", 1)
        blocks = post(rows, limits)
        clipped = post(rows, limits, clip=Clip(make.DAY + 3_600_000, make.DAY + 7_200_000))
    assert blocks.lines.to_pylist() == whole.lines.to_pylist()
    assert blocks.spells.equals(whole.spells)
    assert blocks.pods.equals(whole.pods)
    assert set(clipped.lines["hour_ms"].to_pylist()) <= {make.DAY + 3_600_000}


@given(make.series(), st.randoms())
@settings(max_examples=12, deadline=None)
def test_merging_is_the_same_in_any_order(limits, samples, random):
    boards = sorted({s["gpu_uuid"] for s in samples})
    parts = [post(make.table([s for s in samples if s["gpu_uuid"] == b]), limits).lines for b in boards]
    straight = merge(parts)
    random.shuffle(parts)
    assert merge(parts) == straight
    first = pa.Table.from_pylist(merge(parts[:1]), schema=lines.arrow_schema())
    assert merge([first, *parts[1:]]) == straight


def _total(rows: list[dict], *columns: str) -> int:
    return sum(r[c] for r in rows for c in columns)


IDLE = ("idle_ms", "idle_held_ms", "idle_unknown_ms")
WAITS = ("wait_1s_ms", "wait_10s_ms", "wait_30s_ms")


@given(make.series(shared=True))
@settings(max_examples=30, deadline=None)
def test_every_observed_millisecond_is_in_one_state_class_and_phase(limits, samples):
    for line in post(make.table(samples), limits).lines.to_pylist():
        observed, state = line["observed_ms"], line["state"]
        assert _total([line], *IDLE) == (observed if state == "idle" else 0)
        assert _total([line], *WAITS) == (observed if state == "wait" else 0)
        assert line["unstated_ms"] == (observed if state == "unstated" else 0)
        assert line["busy_ppm_ms"] <= (0 if state in ("idle", "wait", "unstated") else observed * 1_000_000)
        assert state == "wait" or line["waits"] == 0
        phases = ("idle", "underutilized", "productive", "compute_bound")
        assert _total([line], *(f"phase_{p}_ms" for p in phases)) == line["util_ms"]
        assert _total([line], *(f"util_h{i:02d}" for i in range(20))) == line["util_ms"]
        classes = ("idle", "efficient", "bottlenecked", "moderate", "inefficient")
        assert _total([line], *(f"class_{c}_ms" for c in classes)) <= line["pif_ms"]
        assert max(line[f"{p}_ms"] for p in ("util", "power", "energy", "tensor", "dram", "clock")) <= observed


def by_owner(table: pa.Table) -> dict[tuple, list[dict]]:
    """Lines by device, hour and owner, whatever their state, power limit and slice."""
    out = defaultdict(list)
    for row in table.to_pylist():
        out[tuple(row[k] for k in KEYS[: -len(BY_SAMPLE)])].append(row)
    return out


@given(make.series(shared=True))
@settings(max_examples=30, deadline=None)
def test_states_only_take_apart_what_an_hour_added_up_to(limits, samples):
    """Summed over states, the hours are what they are without waits; a wait is idle time under another name."""
    table = make.table(samples)
    made = by_owner(post(table, limits).lines)
    idle = msgspec.structs.replace(limits.idle, waits_below_s=0)
    plain = by_owner(post(table, msgspec.structs.replace(limits, idle=idle)).lines)
    assert set(made) == set(plain)
    for key, rows in made.items():
        assert _total(plain[key], *WAITS, "waits") == 0
        assert _total(rows, *IDLE, *WAITS) == _total(plain[key], *IDLE)
        for name in lines.names("sum"):
            if name not in (*IDLE, *WAITS, "waits"):
                assert _total(rows, name) == _total(plain[key], name), name


def added(*tables: pa.Table) -> dict[tuple, dict[str, int]]:
    out: dict[tuple, dict[str, int]] = defaultdict(lambda: dict.fromkeys(lines.names("sum"), 0))
    for row in (r for t in tables for r in t.to_pylist()):
        for name in lines.names("sum"):
            out[tuple(row[k] for k in KEYS)][name] += row[name]
    return {k: v for k, v in out.items() if any(v.values())}


@given(make.series(shared=True), st.data())
@settings(max_examples=40, deadline=None)
def test_adjoining_windows_add_up(limits, samples, data):
    """Posted up to an instant and from it on: together the lines of the whole; energy rounds once for each cut row."""
    table = make.table(samples)
    at = sorted({s["at_ms"] for s in samples})
    instant = st.sampled_from(at) | st.integers(at[0] - 1000, at[-1] + 100_000)
    since, cut, until = sorted(data.draw(st.tuples(instant, instant, instant)))
    both = added(*(post(table, limits, clip=Clip(a, b)).lines for a, b in ((since, cut), (cut, until))))
    whole = added(post(table, limits, clip=Clip(since, until)).lines)
    assert set(both) == set(whole)
    rows = max(Counter((s["gpu_uuid"], s.get("gpu_instance_id"), s["at_ms"]) for s in samples).values())
    for key, line in whole.items():
        assert abs(both[key].pop("energy_mj") - line.pop("energy_mj")) <= rows
        assert both[key] == line
    everything = post(table, limits)
    assert added(post(table, limits, clip=Clip(at[0], at[-1] + 2 * 86_400_000)).lines) == added(everything.lines)


def test_a_sample_that_stands_for_no_time_is_in_one_window(limits):
    table = make.table([{"at_ms": make.DAY + 5, "gpu_uuid": "G", "gpu_util_ratio": 0.5}])
    found = [post(table, limits, clip=Clip(make.DAY + a, make.DAY + b)).lines for a, b in ((0, 5), (5, 9))]
    assert [sum(t["samples"].to_pylist()) for t in found] == [0, 1]


@given(make.series())
@settings(max_examples=30, deadline=None)
def test_the_next_days_first_sample_ends_the_last_span(limits, samples):
    table = make.table(samples)
    edges = {d: Edge(make.DAY + 86_400_000 + 1000 * i) for i, d in enumerate(Batch(table).devices) if i % 2 == 0}
    made = as_dict(post(table, limits, edges).lines)
    expected = oracle.post(table.to_pylist(), limits, {d: e.at_ms for d, e in edges.items()})
    assert {k: v["observed_ms"] for k, v in made.items()} == {k: v["observed_ms"] for k, v in expected.items()}


def test_a_minute_series_by_pencil(limits):
    """Three samples, 60 s apart, one H100 (700 W): 60 + 60 + 60 s; 100 %, 50 % and 0 % of utilization."""
    rows = [
        {"at_ms": make.DAY, "gpu_util_ratio": 1.0, "power_w": 350.0, "fb_used_bytes": 0},
        {"at_ms": make.DAY + 60_000, "gpu_util_ratio": 0.5, "power_w": 700.0, "fb_used_bytes": 0},
        {"at_ms": make.DAY + 120_000, "gpu_util_ratio": 0.0, "power_w": 70.0, "fb_used_bytes": 3 * 2**30},
    ]
    posted = post(make.table([r | {"gpu_uuid": "G", "gpu_model": "NVIDIA H100 80GB HBM3"} for r in rows]), limits)
    busy, still = sorted(posted.lines.to_pylist(), key=lambda r: r["state"], reverse=True)
    assert (busy["state"], busy["samples"], busy["observed_ms"]) == ("plain", 2, 120_000)
    assert (still["state"], still["samples"], still["observed_ms"]) == ("idle", 1, 60_000)
    assert busy["limit_mw"] == still["limit_mw"] == 700_000
    assert busy["util_ppm_ms"] == busy["busy_ppm_ms"] == 90_000 * 1_000_000
    assert (busy["pif_uj"], still["pif_uj"]) == ((350_000 + 700_000) * 60_000, 70_000 * 60_000)
    assert (busy["energy_mj"], still["energy_mj"]) == ((350 + 700) * 60 * 1000, 70 * 60 * 1000)
    assert (busy["class_bottlenecked_ms"], busy["class_moderate_ms"], still["class_idle_ms"]) == (60_000,) * 3
    assert (still["idle_ms"], still["idle_held_ms"], still["idle_unknown_ms"]) == (0, 60_000, 0)
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
    assert first["energy_ms"] + second["energy_ms"] == 180_000


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
    assert {r["pod"]: r["observed_ms"] for r in posted.lines.to_pylist()} == {"p1": 3000, "p2": 1000}
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


BUSY, STILL = {"engine_ratio": 0.8}, {"engine_ratio": 0.0, "fb_used_bytes": 0}


def loop(*readings: dict, step_ms: int = 1000, start: int = make.DAY, **more: object) -> list[dict]:
    """Readings at even steps."""
    given = {"gpu_uuid": "G", "gpu_model": make.H200} | more
    return [given | {"at_ms": start + i * step_ms} | r for i, r in enumerate(readings)]


def test_waits_by_length(limits):
    """Sampled at 1 s: pauses of 3 s and 12 s are waits, one of 40 s and those at the edges are idle."""
    rows = loop(*[STILL] * 5, BUSY, *[STILL] * 3, BUSY, *[STILL] * 12, BUSY, *[STILL] * 40, BUSY, *[STILL] * 2)
    posted = post(make.table(rows), limits)
    made = {r["state"]: r for r in posted.lines.to_pylist()}
    assert set(made) == {"plain", "wait", "idle"}
    assert [made["wait"][c] for c in (*WAITS, "waits")] == [0, 3_000, 12_000, 2]
    assert made["plain"]["observed_ms"] == 4_000
    assert made["idle"]["idle_ms"] == (5 + 40 + 2) * 1000
    assert [s["end_ms"] - s["start_ms"] for s in posted.spells.to_pylist()] == [5_000, 40_000, 2_000]


def test_a_pause_of_30_s_is_idle_and_one_below_a_second_is_counted_apart(limits):
    rows = loop(BUSY, *[STILL] * 29, BUSY, *[STILL] * 30, BUSY)
    made = {r["state"]: r for r in post(make.table(rows), limits).lines.to_pylist()}
    assert (made["wait"]["wait_30s_ms"], made["idle"]["idle_ms"]) == (29_000, 30_000)
    quick = loop(BUSY, STILL, STILL, BUSY, step_ms=400)
    made = {r["state"]: r for r in post(make.table(quick), limits).lines.to_pylist()}
    assert (made["wait"]["wait_1s_ms"], made["wait"]["waits"]) == (800, 1)


def test_a_hole_beside_a_pause_leaves_it_idle(limits):
    """A pause that a hole ends, and one that time without a reading begins: whether work went on is not known."""
    rows = loop(BUSY, BUSY, BUSY, STILL) + loop(BUSY, BUSY, start=make.DAY + 60_000)
    assert {r["state"] for r in post(make.table(rows), limits).lines.to_pylist()} == {"plain", "idle"}
    rows = loop(BUSY, {"power_w": 80.0}, STILL, BUSY)
    assert {r["state"] for r in post(make.table(rows), limits).lines.to_pylist()} == {"plain", "idle", "unstated"}


def test_a_wait_over_the_hour_opens_once(limits):
    rows = loop(BUSY, *[STILL] * 4, BUSY, start=make.DAY + 3_600_000 - 2_500)
    waits = [r for r in post(make.table(rows), limits).lines.to_pylist() if r["state"] == "wait"]
    # The first starts 1.5 s before the hour: 1.5 s and 2.5 s of one pause of 4 s.
    assert [(r["wait_10s_ms"], r["waits"]) for r in waits] == [(1_500, 1), (2_500, 0)]


def test_owners_who_take_turns_keep_their_states_apart(limits):
    """Each owner's line holds one state, also where another owner stood between its samples."""
    rows = [r | {"namespace": "ab"[i % 2]} for i, r in enumerate(loop(BUSY, BUSY, STILL, STILL, step_ms=60_000))]
    made = {(r["namespace"], r["state"]): r["observed_ms"] for r in post(make.table(rows), limits).lines.to_pylist()}
    assert made == {(n, s): 60_000 for n in "ab" for s in ("plain", "idle")}


def test_limits_and_slices_that_change_make_lines_of_their_own(limits):
    """300 W, then 400 W for the same state; a slice of 1/7, then of 3/7 beside one that is not known."""
    watts = [300.0, 300.0, 400.0, 400.00003]
    rows = [r | {"power_limit_w": w} for r, w in zip(loop(*[BUSY] * 4), watts, strict=True)]
    made = post(make.table(rows), limits).lines.to_pylist()
    assert sorted((r["limit_mw"], r["samples"]) for r in made) == [(300_000, 2), (400_000, 2)]
    shares = [None, 1 / 7, 3 / 7, 3 / 7]
    rows = [r | {"slice_ratio": s, "gpu_instance_id": "1"} for r, s in zip(loop(*[BUSY] * 4), shares, strict=True)]
    made = post(make.table(rows), limits).lines.to_pylist()
    assert [(r["slice_ppm"], r["samples"]) for r in made] == [(None, 1), (142_857, 1), (428_571, 2)]


def test_power_above_its_limit_counts_up_to_it_in_whole_milliwatts(limits):
    """A limit of 300.1 W is 300.1000061 W in 32 bits; 350 W drawn for 2 s count as 300.1 W."""
    rows = loop(*[{"gpu_util_ratio": 0.9, "power_w": 350.0, "power_limit_w": 300.1}] * 2)
    (line,) = post(make.table(rows), limits).lines.to_pylist()
    assert (line["limit_mw"], line["pif_uj"], line["power_uj"]) == (300_100, 300_100 * 2_000, 350_000 * 2_000)
    assert (line["active_pif_uj"], line["state"]) == (line["pif_uj"], "capped")


def test_pipes_without_a_clock_count_at_the_rated_one(limits):
    """Half of the tensor pipe for 2 s, of which 1 s at 1500 MHz and 1 s without a clock: the H200 is rated at 1830."""
    rows = loop(*[BUSY | {"tensor_ratio": 0.5, "sm_clock_mhz": mhz} for mhz in (1500.0, None)])
    (line,) = post(make.table(rows), limits).lines.to_pylist()
    assert (line["tensor_ms"], line["clock_ms"], line["unclocked_ms"]) == (2_000, 1_000, 1_000)
    assert line["clock_mhz_ms"] == 1500 * 1000
    assert line["tensor_ppm_mhz_ms"] == 500_000 * (1500 + 1830) * 1000
    unnamed = [r | {"gpu_model": None} for r in rows]
    (line,) = post(make.table(unnamed), limits).lines.to_pylist()
    assert (line["tensor_ms"], line["tensor_ppm_mhz_ms"]) == (2_000, 500_000 * 1500 * 1000)


def test_pods_of_one_owner_share_an_instant_but_not_with_others(limits):
    """Two pods of one namespace at one instant: each has its part of the time, none of it shared with other owners."""
    rows = [
        r | {"namespace": n, "pod": p}
        for r, others in zip(loop(BUSY, BUSY), ([("n", "p1"), ("n", "p2")], [("n", "p1"), ("m", "p3")]), strict=True)
        for n, p in others
    ]
    posted = post(make.table(rows), limits)
    made = {
        r["pod"]: (r["namespace"], r["samples"], r["observed_ms"], r["shared_ms"]) for r in posted.lines.to_pylist()
    }
    # The sample of an instant counts once, for its holders in turn.
    assert made == {"p1": ("n", 2, 1_000, 500), "p2": ("n", 0, 500, 0), "p3": ("m", 0, 500, 500)}
    assert {r["pod"]: r["observed_ms"] for r in posted.pods.to_pylist()} == {"p1": 1_000, "p2": 500, "p3": 500}


def test_a_missed_window_is_filled_for_every_owner(limits):
    """Read every 100 ms, one window missed: the next reading covers 200 ms, so memory read at 0.6 over them is 0.3."""
    good = {"engine_ratio": 0.8, "sm_ratio": 0.5, "dram_ratio": 0.6, "pcie_rx_bytes_per_s": 4e6}
    rows = loop(good, dict.fromkeys(good, 0.0), good, step_ms=100)
    (line,) = post(make.table(rows), limits).lines.to_pylist()
    assert (line["state"], line["engine_ppm_ms"], line["dram_ppm_ms"]) == ("plain", 240_000_000, 120_000_000)
    assert line["pcie_rx_bytes"] == 4000 * 100 + 2000 * 200
    both = [r | {"namespace": n} for r in rows for n in "ab"]
    made = post(make.table(both), limits).lines.to_pylist()
    # Half of the time each, and the same readings in it.
    assert [(r["engine_ppm_ms"], r["dram_ppm_ms"]) for r in made] == [(120_000_000, 60_000_000)] * 2
    # Read every 10 s, all zero is an idle GPU.
    slow = post(make.table(loop(good, dict.fromkeys(good, 0.0), good, step_ms=10_000)), limits).lines.to_pylist()
    assert {r["state"]: r["observed_ms"] for r in slow} == {"plain": 20_000, "wait": 10_000}


def test_a_fine_device_beside_a_coarse_one_changes_nothing_of_it(limits):
    good = {"engine_ratio": 0.8, "dram_ratio": 0.6, "pcie_rx_bytes_per_s": 4e6}
    coarse = loop(good, dict.fromkeys(good, 0.0), good, step_ms=60_000)
    fine = loop(good, dict.fromkeys(good, 0.0), good, step_ms=100, gpu_uuid="F")
    alone = post(make.table(coarse), limits).lines.to_pylist()
    beside = post(make.table(coarse + fine), limits).lines.to_pylist()
    assert [r for r in beside if r["gpu_uuid"] == "G"] == alone
    assert {r["state"] for r in alone} == {"plain", "idle"}


def test_what_a_neighbor_records_does_not_change_a_state(limits):
    """hmma alone on one GPU, hmma and imma on another: the first is judged by its whole tensor pipe either way."""
    one = loop(*[BUSY | {"tensor_ratio": 0.9, "hmma_ratio": 0.001, "sm_clock_mhz": 1500.0}] * 2)
    other = [r | {"gpu_uuid": "H", "imma_ratio": 0.5} for r in one]
    alone = post(make.table(one), limits).lines.to_pylist()
    beside = post(make.table(one + other), limits).lines.to_pylist()
    assert [r for r in beside if r["gpu_uuid"] == "G"] == alone
    assert {r["state"] for r in alone} == {"matrix-unseen"}

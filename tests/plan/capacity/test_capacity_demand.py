"""Is demand read right: from lines of the ledger, and from tables as people write them?"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from gpuledger.errors import FileFault
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.capacity.demand_file import read_demand
from gpuledger.plan.capacity.ledger_demand import read_fleet_hours
from gpuledger.plan.capacity.need import Asked
from gpuledger.plan.capacity.rightsize import achievable, of_namespaces, of_pods
from gpuledger.units import MS_PER_HOUR, Unknown, day_start_ms

START = day_start_ms("2026-01-20")
ASKED = Asked(168, 0.95, 0.9)
IDLE = {"state": "idle", "busy_ppm_ms": 0, "idle_ms": MS_PER_HOUR}


def read(lake, by="cluster"):
    return read_fleet_hours(lake, Scope(), by=by, calibration=None)


def test_hours_of_a_fleet_by_pencil(books, hour):
    """Two GPUs, one half busy and one idle for three hours: both are held, one is at work, half a GPU busy."""
    rows = [hour(at, "GPU-a") for at in range(3)] + [hour(at, "GPU-b", **IDLE) for at in range(3)]
    pool = read(books(*rows)).pools[0]
    assert (pool.name, pool.gpus_now) == ("c1", 2)
    assert pool.held.values.tolist() == [2, 2, 2]
    assert pool.working.values.tolist() == [1, 1, 1]
    assert pool.used.values.tolist() == [1, 1, 1]
    assert (pool.productive.values <= 0.5).all()
    assert pool.idle_gpus == 1


def test_an_hour_without_samples_is_a_gap_and_a_half_seen_one_is_scaled_up(books, hour):
    rows = [hour(at, "GPU-a") for at in (0, 2, 3)] + [hour(at, "GPU-b") for at in (0, 2)] + [hour(4, "GPU-b"), hour(4)]
    pool = read(books(*rows)).pools[0]
    assert np.isnan(pool.held.values[1])
    assert pool.held.values[[0, 2, 3, 4]].tolist() == [2, 2, 2, 2]


def test_a_gpu_without_owner_and_memory_is_not_held(books, hour):
    nobody = {"namespace": None, **IDLE}
    held = {"namespace": None, "state": "idle_held", "busy_ppm_ms": 0, "idle_held_ms": MS_PER_HOUR}
    pool = read(books(hour(0, "GPU-a", **nobody), hour(0, "GPU-b", **held))).pools[0]
    assert pool.held.values.tolist() == [1]


def test_a_namespace_that_stops_holds_nothing_and_not_a_gap(books, hour):
    rows = [hour(at, "GPU-a") for at in range(4)] + [hour(at, "GPU-b", namespace="batch") for at in range(2)]
    rows += [hour(at, "GPU-b") for at in range(2, 4)]
    pools = {p.name: p for p in read(books(*rows), "namespace").pools}
    assert pools["batch"].held.values.tolist() == [1, 1, 0, 0]
    assert pools["serving"].held.values.tolist() == [1, 1, 2, 2]


def test_one_namespace_of_a_cluster_is_not_taken_for_a_gap_in_it(books, hour):
    rows = [hour(at, "GPU-a") for at in range(2)]
    rows += [hour(at, f"GPU-{i}", namespace="batch") for at in range(2) for i in range(3)]
    found = read_fleet_hours(books(*rows), Scope(namespaces=("serving",)), by="cluster", calibration=None)
    assert found.pools[0].held.values.tolist() == [1, 1]
    assert found.pools[0].gpus_now == 1
    assert {p.space for p in found.pods} == {"serving"}


def test_a_slice_counts_its_share_of_the_board(books, hour):
    """Three of seven parts at work on a board: 3/7 of a GPU is held, and the board is seen all of the time."""
    part = {"model": "NVIDIA A100-SXM4-40GB", "gpu_instance_id": "1", "slice_ppm": 428_571}
    pool = read(books(*(hour(at, "GPU-a", **part) for at in range(2)))).pools[0]
    assert pool.held.values == pytest.approx([3 / 7] * 2, rel=1e-4)
    assert pool.gpus_now == 1


def test_slices_of_unknown_share_are_counted_apart_and_not_as_gpus(books, hour):
    found = read(books(hour(0), hour(0, "GPU-b", gpu_instance_id="1")))
    assert found.unshared_h == 1
    assert found.pools[0].held.values.tolist() == [1]


def test_what_can_be_given_back_by_pencil(books, hour):
    """Serving holds three GPUs and never works on more than one at a time; one pod never uses its second GPU."""
    rows = []
    for at in range(4):
        rows += [
            hour(at, "GPU-a", pod="web"),
            hour(at, "GPU-b", pod="web", **IDLE),
            hour(at, "GPU-c", pod="idle", **IDLE),
        ]
    found = read(books(*rows), "namespace")
    rate = lambda _name: Unknown("no price")  # noqa: E731
    space = of_namespaces(found.pools, found.pods, ASKED, rate)[0]
    assert (space.held_gpus, space.used_gpus, space.give_back, space.give_back_shared) == (3, 1, 2, 1 + 1)
    pods = {p.name: p for p in of_pods(found.pods, ASKED, rate)}
    assert (pods["serving/web"].held_gpus, pods["serving/web"].give_back) == (2, 1)
    assert pods["serving/idle"].give_back == 1
    assert pods["serving/web"].memory_max_bytes == pytest.approx(8e9)


def test_a_pod_that_worked_in_one_hour_only_uses_its_gpu_as_its_namespace_does(books, hour):
    """One busy hour of thirty is less than 5 % of its life, yet its namespace needs the GPU in that hour."""
    rows = [hour(at, "GPU-a", pod="rare", **({} if at == 7 else IDLE)) for at in range(30)]
    found = read(books(*rows), "namespace")
    free = lambda _uuid: Unknown("no price")  # noqa: E731
    space, pod = of_namespaces(found.pools, found.pods, ASKED, free)[0], of_pods(found.pods, ASKED, free)[0]
    assert (space.used_gpus, space.give_back) == (pod.used_gpus, pod.give_back) == (1, 0)
    assert pod.give_back_shared == 0


def test_what_goes_back_is_priced_as_the_gpus_that_work_least(books, hour):
    """Two GPUs at $1 and $5: the pod gives back the idle one, and so does the namespace, at $5 x 720 h."""
    rows = [hour(at, "GPU-a", pod="web") for at in range(4)]
    rows += [hour(at, "GPU-b", pod="web", **IDLE) for at in range(4)]
    found = read(books(*rows), "namespace")
    prices = {"GPU-a": Decimal(1), "GPU-b": Decimal(5)}
    assert of_pods(found.pods, ASKED, prices.__getitem__)[0].usd_per_month == 3600
    assert of_namespaces(found.pools, found.pods, ASKED, prices.__getitem__)[0].usd_per_month == 3600


def test_a_small_pod_on_a_large_gpu_is_shown_a_slice_only_where_all_is_known(books, hour):
    a100 = "NVIDIA A100-SXM4-40GB"
    rows = [hour(at, "GPU-a", pod="small", model=a100, busy=0.1, used_bytes=4e9) for at in range(3)]
    rows += [hour(at, "GPU-b", pod="blind", model=a100, busy=0.1, fb_ms=0, fb_max_bytes=None) for at in range(3)]
    rows += [hour(at, "GPU-c", pod="busy", model=a100, busy=0.9, used_bytes=4e9) for at in range(3)]
    found = read(books(*rows), "namespace")
    pods = {p.name: p.slice_name for p in of_pods(found.pods, ASKED, lambda _n: Unknown("no price"))}
    assert pods["serving/small"] == "1g.5gb"
    assert isinstance(pods["serving/blind"], Unknown)
    assert isinstance(pods["serving/busy"], Unknown)


def test_what_the_better_gpus_reach_needs_enough_of_them(books, hour):
    rows = [hour(at, f"GPU-{i}", busy=0.9, tensor=0.1 * i) for i in range(1, 6) for at in range(5)]
    uses = read(books(*rows)).pods
    low, high = achievable(uses, None)
    assert 0 < low <= high <= 1
    assert isinstance(achievable(uses[:2], None), Unknown)
    assert achievable((), 0.4) == (0.4, 0.4)


def table(tmp_path, text, name="d.csv"):
    file = tmp_path / name
    file.write_text(text)
    return file


def test_a_table_of_gpus_by_time(tmp_path):
    rows = "".join(f"2026-01-20 {at},{n},a\n" for at, n in (("00:00", 4), ("00:30", 8), ("01:00", 2), ("01:30", 2)))
    found = read_demand(table(tmp_path, "Timestamp,GPUs,cluster\n" + rows))
    assert found.series[0].name == "a"
    assert found.series[0].start_ms == START
    assert found.series[0].values.tolist() == [6, 2]
    assert "timestamp is the time" in found.notes[0]


def test_months_of_hours_are_read_back_as_they_were_written(tmp_path):
    random = np.random.default_rng(5)
    values = np.round(random.gamma(2.0, 40.0, 2400), 3) * (random.random(2400) > 0.1)
    file = tmp_path / "demand.csv"
    file.write_text("time,gpus\n" + "\n".join(f"{1_700_000_000 // 3600 * 3600 + 3600 * h},{v!r}" for h, v in
                                              enumerate(values.tolist())))  # fmt: skip
    (found,) = read_demand(file).series
    assert found.values == pytest.approx(values, rel=1e-12, abs=1e-11)


def test_times_in_many_forms_mean_the_same(tmp_path):
    seconds = START // 1000
    forms = [(seconds, seconds + 3600), (START, START + MS_PER_HOUR), ("2026-01-20", "2026-01-20 01:00")]
    for first, second in [*forms, ("2026-01-20T00:00:00Z", "2026-01-20T02:00:00+01:00")]:
        made = read_demand(table(tmp_path, f"time,num_gpus\n{first},1\n{second},3\n")).series[0]
        assert (made.start_ms, made.values.tolist()) == (START, [1, 3])


def test_gpu_hours_of_days_become_gpus(tmp_path):
    found = read_demand(table(tmp_path, "date,gpu_hours\n2026-01-20,48\n2026-01-21,24\n")).series[0]
    assert found.values.tolist() == [2] * 24 + [1] * 24


def test_a_hole_in_a_table_is_a_gap(tmp_path):
    rows = "".join(f"2026-01-20 {h:02d}:00,5\n" for h in (0, 1, 2, 8, 9))
    values = read_demand(table(tmp_path, "time,gpus\n" + rows)).series[0].values
    assert np.isnan(values[4:8]).all()
    assert values[[0, 1, 2, 8, 9]].tolist() == [5] * 5


def test_jobs_take_their_gpus_for_their_length(tmp_path):
    """Two GPUs for 90 minutes from 00:00, four for half an hour from 01:30; the last start ends the table."""
    text = "submit_time,duration,num_gpus\n2026-01-20 00:00,5400,2\n2026-01-20 01:30,1800,4\n2026-01-20 03:00,60,1\n"
    assert read_demand(table(tmp_path, text)).series[0].values == pytest.approx([2, 3, 0])
    ends = "start,end,gpus\n2026-01-20 00:00,2026-01-20 01:30,2\n2026-01-20 02:00,2026-01-20 02:15,8\n"
    assert read_demand(table(tmp_path, ends)).series[0].values == pytest.approx([2, 1])


def test_lengths_are_in_the_unit_of_their_column_and_refused_without_one(tmp_path):
    """Four GPUs for 6 hours every half hour: 48 GPUs from the sixth hour on."""
    starts = [f"2026-01-20 {h:02d}:{m:02d}" for h in range(12) for m in (0, 30)]
    rows = "".join(f"{at},4,6\n" for at in starts)
    for name in ("duration", "runtime", "elapsed"):
        with pytest.raises(FileFault, match=f"unit of the column {name} is not known") as refused:
            read_demand(table(tmp_path, f"submit_time,num_gpus,{name}\n{rows}"))
        assert f"{name}_h" in refused.value.hint
    for name in ("duration_h", "runtime_hours", "hours"):
        found = read_demand(table(tmp_path, f"submit_time,num_gpus,{name}\n{rows}"))
        assert found.series[0].values[6:] == pytest.approx([48] * 5)
        assert f"{name} is the length in hours" in found.notes
    minutes = rows.replace(",4,6\n", ",4,360\n")
    found = read_demand(table(tmp_path, f"submit_time,num_gpus,duration_min\n{minutes}"))
    assert found.series[0].values[6:] == pytest.approx([48] * 5)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("40,5", "41"), [40.5, 41]),
        (("1.040,5", "1.041"), [1040.5, 1041]),
        (("40,5", "1,125"), [40.5, 1.125]),
        (("1,040.5", "1,041"), [1040.5, 1041]),
        (("0,125", "2,250"), [0.125, 2.25]),
    ],
)
def test_decimal_commas_and_commas_of_thousands_are_read_as_the_column_shows_them(tmp_path, cells, values):
    rows = "".join(f"2026-01-20 {h:02d}:00;{cell}\n" for h, cell in enumerate(cells))
    found = read_demand(table(tmp_path, f"time;gpus\n{rows}"))
    assert found.series[0].values.tolist() == values
    assert any("commas of gpus mark" in note for note in found.notes)


def test_a_rate_needs_what_one_gpu_carries(tmp_path):
    file = table(tmp_path, "window_start_s,req_per_s\n0,100\n3600,50\n")
    with pytest.raises(FileFault, match="not a number of GPUs"):
        read_demand(file)
    found = read_demand(file, per_gpu=50.0, today_ms=START)
    assert found.series[0].values.tolist() == [2, 1]
    assert found.series[0].start_ms == START - 24 * MS_PER_HOUR
    assert any("taken to end today" in note for note in found.notes)


def test_rows_of_one_time_and_name_are_added_and_capacity_is_read(tmp_path):
    text = "time,gpus,cluster,namespace,capacity\n2026-01-20,1,a,x,9\n2026-01-20,2,a,y,9\n2026-01-20 01:00,4,a,x,9\n"
    found = read_demand(table(tmp_path, text))
    assert found.series[0].values.tolist() == [3, 4]
    assert found.capacity == {"a": 9}
    assert any("1 row added to an earlier row" in note for note in found.notes)
    apart = read_demand(tmp_path / "d.csv", by="namespace")
    assert [s.name for s in apart.series] == ["x", "y"]
    assert not any("added" in note for note in apart.notes)


def test_other_separators_a_gpu_model_column_and_empty_cells_are_understood(tmp_path):
    text = "time;gpu;n_gpus\n2026-01-20 00:00;A100;2\n2026-01-20 01:00;A100;\n2026-01-20 02:00;A100;4\n"
    found = read_demand(table(tmp_path, text))
    assert found.series[0].values[[0, 2]].tolist() == [2, 4]
    assert any("1 row without a value" in note for note in found.notes)


def test_a_job_without_an_end_runs_to_the_end_of_the_table(tmp_path):
    text = "start,end,gpus\n2026-01-20 00:00,,2\n2026-01-20 03:00,2026-01-20 04:00,1\n"
    assert read_demand(table(tmp_path, text)).series[0].values == pytest.approx([2, 2, 2])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no row"),
        ("time,gpus\n", "no row"),
        ("when_ever,gpus\n1,2\n", "no column with the time"),
        ("time,cows\n2026-01-20,2\n", "no column with the demand"),
        ("time,gpus\n2026-01-20,-2\n", "line 2: gpus is '-2'"),
        ("time,gpus\n2026-01-20,nan\n", "line 2: gpus is 'nan'"),
        ("time,gpus\n2026-01-20,inf\n", "line 2"),
        ("time,gpus\n2026-01-20,1\nsoon,1\n", "line 3: 'soon' is not a time"),
        ("time,gpus\n1970-01-02,1\n2026-01-20,1\n", "five years"),
        ("start,end,gpus\n2026-01-20,2026-01-19,2\n", "before"),
        ("time;gpus\n2026-01-20;1,125\n", "decimals or thousands"),
        ("time;gpus\n2026-01-20;1,5\n2026-01-21;1.5\n", "decimals or thousands"),
        ("time,gpus\n2026-01-20,many\n", "the column gpus has 'many'"),
        ("time,gpus\n2026-01-20,1e300\n", "line 2: gpus is 1e300: more than 100,000,000 GPUs"),
        ("time,gpus,duration_h\n2026-01-20,2,1e9\n", "more than five years"),
        ("time,gpus\n1e300,1\n", "line 2: time is '1e300'"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_words(tmp_path, text, words):
    with pytest.raises(FileFault, match=words):
        read_demand(table(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(FileFault, match="no such file"):
        read_demand(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\x80\xfe\x00\x81")
    with pytest.raises(FileFault, match="not a CSV"):
        read_demand(tmp_path / "b.csv")
    with pytest.raises(FileFault, match="did you mean cluster"):
        read_demand(table(tmp_path, "time,gpus,cluster\n2026-01-20,1,a\n"), by="clutser")

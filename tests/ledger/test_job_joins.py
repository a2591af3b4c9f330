"""Does every sample get the owner that held its GPU, and never another?"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import job_oracle as oracle
import pytest
import samples as make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from merging import merge
from written import write_samples

from gpuledger.lake.batch import COPY
from gpuledger.lake.importing import import_files
from gpuledger.lake.jobs.adding import add_jobs
from gpuledger.lake.jobs.claims import LABELS, Claim, settled
from gpuledger.lake.jobs.store import read_claims, read_manifest, write_claims
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.jobs.counts import added, words_of
from gpuledger.ledger.jobs.holding import find_holdings
from gpuledger.ledger.jobs.joining import join_jobs
from gpuledger.ledger.jobs.places import FOREVER, Hosts, Place
from gpuledger.ledger.posting import post
from gpuledger.ledger.store import Ledger

MINUTE = 60_000
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def claim(
    job: str | None, start: int, end: int | None, host: str | None = "n1", gpu: str | None = None, **more
) -> Claim:
    """Minutes of the day."""
    end_ms = None if end is None else make.DAY + end * MINUTE
    given = {"gpus": None, **more}
    return Claim(run_id=job, host=host, gpu=gpu, start_ms=make.DAY + start * MINUTE, end_ms=end_ms, **given)


def sampled(minutes: int = 6, boards: int = 2, host: str = "n1", indexed: bool = True, **more: object) -> list[dict]:
    return [
        {"at_ms": make.DAY + t * MINUTE, "gpu_uuid": f"{host}-{b}", "host": host, "gpu_util_ratio": 0.5,
         "gpu_index": str(b) if indexed else None} | more
        for b in range(boards)
        for t in range(minutes)
    ]  # fmt: skip


def joined(samples: list[dict], claims: list[Claim]) -> tuple[list[dict], object]:
    places = sorted({Place(s["gpu_uuid"], s.get("host"), s.get("gpu_index")) for s in samples}, key=str)
    holdings = find_holdings(places, settled(claims)[0], make.DAY, lambda: labelled(samples))
    found = join_jobs(make.table(samples), frozenset(), holdings)
    return found.table.to_pylist(), found.counts


def labelled(samples: list[dict]) -> dict[str, list[tuple[int, int, tuple]]]:
    """By board from when to when its samples carry which labels; a sample's hold until the next."""
    out = defaultdict(list)
    for sample in sorted(samples, key=lambda s: s["at_ms"]):
        runs = out[sample["gpu_uuid"]]
        if runs:
            runs[-1] = (runs[-1][0], sample["at_ms"], runs[-1][2])
        runs.append((sample["at_ms"], FOREVER, tuple(sample.get(name) for name in LABELS)))
    return {board: [run for run in runs if any(run[2])] for board, runs in out.items()}


def jobs_of(rows: list[dict]) -> dict[str, list[str | None]]:
    """By board the job of each row, in order of time."""
    out = defaultdict(list)
    for row in rows:
        out[row["gpu_uuid"]].append(row["run_id"])
    return dict(out)


@st.composite
def tables(draw, counts: tuple[int | None, ...] = (None, 1, 2, 3)) -> list[Claim]:
    """Claims of few jobs on few GPUs: overlaps, open ends, GPUs named by index, by UUID or not at all."""
    out = []
    for _ in range(draw(st.integers(1, 7))):
        job = draw(st.sampled_from(["j1", "j2", "j3", "j4"]))
        start = draw(st.integers(-3, 6))
        end = draw(st.sampled_from([None, start + 1, start + 3, start + 9]))
        gpu = draw(st.sampled_from([None, None, "0", "1", "2", "n1-0", "n1-1", "n2-0", "elsewhere"]))
        user = {"j1": "ann", "j2": "ann", "j3": "bob", "j4": None}[job]
        out.append(
            claim(job, start, end, draw(st.sampled_from(["n1", "n1", "n2", "n3"])), gpu, user=user, account="a",
                  namespace=draw(st.sampled_from([None, "x"])) if job == "j1" else None,
                  pod="p" if job == "j3" else None,
                  gpus=None if gpu else draw(st.sampled_from(counts)))
        )  # fmt: skip
    return out


@st.composite
def fleets(draw) -> list[dict]:
    out = []
    for host in draw(st.sampled_from([["n1"], ["n1", "n2"]])):
        rows = sampled(7, draw(st.integers(1, 3)), host, draw(st.booleans()))
        for row in rows:
            if draw(st.booleans()):
                row.update(
                    draw(
                        st.sampled_from(
                            [{"namespace": "x"}, {"user": "ann"}, {"run_id": "j2"}, {"workload": "w"}, {"pod": "p"}]
                        )
                    )
                )
        out += rows
    return out


@given(fleets(), tables((None, 0, 1, 2, 3)))
@settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
def test_the_join_is_what_asking_for_each_sample_gives(samples, claims):
    rows, counts = joined(samples, claims)
    known, told = settled(claims)[0], defaultdict(int)
    made = defaultdict(set)
    for row in rows:
        if row["run_id"] and row["run_id"].startswith("shared by"):
            row["run_id"] = "shared"
        made[row["gpu_uuid"], row["at_ms"]].add(tuple(row[n] for n in LABELS))
    for sample in samples:
        sure, expected = oracle.owners(sample, samples, known)
        assert made[sample["gpu_uuid"], sample["at_ms"]] == expected, (sure, sample)
        told[sure] += 1
        told["overlapping"] += len(expected) > 1
    for name in ("placed", "assumed", "unplaced", "disagreed", "overlapping"):
        assert getattr(counts, name) == told[name], name
    assert sum(not row.get(COPY) for row in rows) == len(samples)


def test_a_job_holds_its_gpu_from_its_start_up_to_its_end():
    rows, counts = joined(sampled(5, 1), [claim("7", 1, 3, gpu="0", user="ann")])
    assert jobs_of(rows) == {"n1-0": [None, "7", "7", None, None]}
    assert (counts.placed, counts.total) == (2, 2)


def test_jobs_on_one_gpu_share_it_and_the_same_job_twice_does_not():
    twice = [claim("7", 0, 4, gpu="0"), claim("7", 0, 4, gpu="0", user="ann"), claim("7", 0, 4, gpu="n1-0", host=None)]
    rows, counts = joined(sampled(2, 1), twice)
    assert jobs_of(rows) == {"n1-0": ["7", "7"]}
    assert counts.overlapping == 0
    rows, counts = joined(sampled(2, 1), [*twice, claim("8", 1, None, gpu="0")])
    assert jobs_of(rows) == {"n1-0": ["7", "7", "8"]}
    assert counts.overlapping == 1


@pytest.mark.parametrize(
    ("gpus", "others", "expected"),
    [
        (2, [], "7"),  # the whole host
        (None, [], "7"),  # alone, number unknown
        (1, [], "shared by job 7 and free GPUs"),
        (0, [], "shared by job 7 and free GPUs"),  # it has fewer GPUs than hosts
        (1, [claim("8", 0, 9, gpus=1)], "shared by jobs 7, 8"),
        (2, [claim("8", 0, 9, gpus=2)], "7|8"),  # both hold all of it
    ],
)
def test_a_job_without_indices_is_placed_only_where_there_is_one_way(gpus, others, expected):
    rows, counts = joined(sampled(1, 2), [claim("7", 0, 9, gpus=gpus, user="ann"), *others])
    wanted = expected.split("|")
    assert {board: sorted(jobs) for board, jobs in jobs_of(rows).items()} == {"n1-0": wanted, "n1-1": wanted}
    assert bool(counts.unplaced) == ("shared" in expected)
    assert bool(counts.assumed) == (gpus is None)


def test_jobs_that_name_their_gpus_leave_the_rest_to_the_one_that_does_not():
    rows, _ = joined(sampled(1, 4), [claim("7", 0, 9, gpu="0"), claim("7", 0, 9, gpu="3"), claim("8", 0, 9, gpus=2)])
    assert jobs_of(rows) == {"n1-0": ["7"], "n1-1": ["8"], "n1-2": ["8"], "n1-3": ["7"]}


def test_labels_of_some_gpus_leave_the_rest_to_the_other_job(tmp_path, limits):
    jobs = [claim("7", 0, 9, gpus=2, user="ann"), claim("8", 0, 9, gpus=2, user="bob")]
    rows = sampled(4, 4)
    for row in rows:
        if row["gpu_uuid"] in ("n1-0", "n1-1"):
            row["user"] = "ann"
    found, counts = joined(rows, jobs)
    wanted = {"n1-0": "7", "n1-1": "7", "n1-2": "8", "n1-3": "8"}
    assert jobs_of(found) == {board: [job] * 4 for board, job in wanted.items()}
    assert (counts.placed, counts.unplaced) == (16, 0)
    lake = Lake(tmp_path / "lake")  # the same from the files of a lake
    import_files(lake, [write_samples(tmp_path, "s", rows)])
    with lake.locked():
        write_claims(lake, jobs)
    assert added(post_lake(lake, limits).joined).placed == 16
    posted = [r for day in Ledger(lake).manifest().days for r in Ledger(lake).read("lines", day.day).to_pylist()]
    assert {r["gpu_uuid"]: r["run_id"] for r in posted} == wanted


def test_labels_that_fit_no_job_leave_fewer_gpus_to_one():
    rows = sampled(1, 4)
    for row in rows[:2]:
        row["user"] = "carol"
    found, counts = joined(rows, [claim("7", 0, 9, gpus=2, user="ann")])
    assert jobs_of(found) == {"n1-0": [None], "n1-1": [None], "n1-2": ["7"], "n1-3": ["7"]}
    assert (counts.placed, counts.disagreed, counts.unplaced) == (2, 2, 0)


def test_a_label_that_several_jobs_share_places_none_of_them():
    rows = sampled(1, 2, account="lab")
    found, counts = joined(
        rows, [claim(j, 0, 9, gpus=1, user=u, account="lab") for j, u in (("7", "ann"), ("8", "bob"))]
    )
    assert {row["run_id"] for row in found} == {"shared by jobs 7, 8"}
    assert counts.unplaced == 2


def test_jobs_that_share_a_full_host_keep_what_they_have_in_common():
    both = [claim(j, 0, 9, gpus=1, user=u, account="lab") for j, u in (("7", "ann"), ("8", "bob"))]
    rows, _ = joined(sampled(1, 2), both)
    assert {(r["account"], r["user"], r["run_id"]) for r in rows} == {("lab", None, "shared by jobs 7, 8")}
    rows, _ = joined(sampled(1, 3), both)  # one of three GPUs is free: even the account is unknown
    assert {(r["account"], r["run_id"]) for r in rows} == {(None, "shared by jobs 7, 8 and free GPUs")}
    rows, counts = joined(sampled(1, 2, user="bob"), both)  # the label says which of them
    assert {(r["user"], r["run_id"]) for r in rows} == {("bob", "8")}
    assert counts.placed == 2


def test_a_label_of_the_telemetry_wins_and_a_disagreement_is_counted():
    held = [claim("7", 0, 9, gpu="0", user="ann", namespace="ml", account="lab")]
    rows, counts = joined(sampled(2, 1, namespace="other"), held)
    assert {(r["namespace"], r["user"], r["run_id"]) for r in rows} == {("other", None, None)}
    assert (counts.disagreed, counts.placed) == (2, 0)
    assert any("kept" in w for w in words_of(counts))
    rows, counts = joined(sampled(2, 1, namespace="ml"), held)
    assert {(r["namespace"], r["user"], r["account"], r["run_id"]) for r in rows} == {("ml", "ann", "lab", "7")}
    assert (counts.disagreed, counts.placed) == (0, 2)


def test_clusters_that_differ_are_both_named_with_what_to_do():
    held = [claim("7", 0, 9, gpu="0", user="ann", cluster="slurm1")]
    rows, counts = joined(sampled(2, 1, cluster="prod-eu"), held)
    assert {(r["cluster"], r["user"]) for r in rows} == {("prod-eu", None)}
    assert counts.clusters == (("prod-eu", "slurm1"),)
    (said,) = words_of(added([counts, counts]))
    assert "prod-eu in the samples, slurm1 in the job tables" in said
    assert "omit Cluster" in said
    _, counts = joined(sampled(2, 1, cluster="prod-eu", user="eve"), held)  # another user too: the name is not all
    assert (counts.disagreed, counts.clusters) == (2, ())


def test_a_pod_is_the_same_pod_under_another_run_id():
    held = [claim("flyte-1", 0, 9, gpu="0", pod="p", namespace="ml", team="nlp")]
    rows, counts = joined(sampled(1, 1, pod="p", namespace="ml", run_id="recorded"), held)
    assert [(r["run_id"], r["team"]) for r in rows] == [("recorded", "nlp")]
    assert counts.placed == 1
    rows, counts = joined(sampled(1, 1, pod="q", namespace="ml"), held)
    assert [(r["pod"], r["team"]) for r in rows] == [("q", None)]
    assert counts.disagreed == 1


def test_an_open_end_stops_where_the_job_starts_again():
    rows, counts = joined(sampled(4, 1), [claim("7", 0, None, gpu="0"), claim("7", 2, 3, gpu="0")])
    assert jobs_of(rows) == {"n1-0": ["7", "7", "7", None]}
    assert counts.overlapping == 0


@pytest.mark.parametrize("again", [{"host": "n1"}, {"host": "n2"}, {"host": "n2", "pod": "p", "namespace": "x"}])
def test_a_job_that_started_again_and_ended_does_not_go_on_the_day_after(tmp_path, again):
    """The first table has it running; the later one has its second start only, and its end."""
    day, named = 24 * 60, {n: t for n, t in again.items() if n != "host"}
    lake = Lake(tmp_path)
    claims = [claim("7", 0, None, gpus=2, **named), claim("7", day + 5, day + 9, again["host"], gpus=2, **named)]
    write_claims(lake, settled(claims)[0])
    first, second, third = ("2026-01-20", "2026-01-21", "2026-01-22")
    assert [c.end_ms for c in read_claims(lake, first)] == [make.DAY + (day + 5) * MINUTE]
    assert len(read_claims(lake, second)) == 2
    assert read_claims(lake, third) == []
    assert [c.end_ms for c in read_claims(lake)].count(None) == 1  # what the tables said stays as it is
    assert read_manifest(lake).of_day(third) == ""


def test_hosts_are_found_without_their_domain_where_that_is_clear():
    hosts = Hosts(["gpu01.lab.edu", "gpu02", "x.a.com", "x.b.com", "10.0.0.1"], ["gpu01", "gpu02.lab.edu", "x"])
    assert [hosts.find(h) for h in ("gpu01", "GPU01.lab.edu", "gpu02.lab.edu")] == ["gpu01.lab.edu"] * 2 + ["gpu02"]
    assert [hosts.find(h) for h in ("x", "x.a.com", "gpu01.other.org", "10.0.0.2", "10")] == [
        None,
        "x.a.com",
        None,
        None,
        None,
    ]
    assert hosts.unclear == {"x"}
    two = Hosts(["n1"], ["n1.a.com", "n1.b.com"])
    assert (two.find("n1.a.com"), two.unclear) == (None, {"n1.a.com"})


def books(lake: Lake) -> list[dict]:
    ledger = Ledger(lake)
    return merge([ledger.read("lines", d.day) for d in ledger.manifest().days])


@given(fleets(), tables(), st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=QUIET)
def test_neither_order_nor_repetition_of_files_changes_the_books(tmp_path_factory, limits, samples, claims, data):
    folder = tmp_path_factory.mktemp("jobs")
    files = [write_samples(folder, f"f{i}", rows) for i in (0, 1) if (rows := samples[i::2])]
    tables_ = [write_jobs(folder / f"j{i}.csv", part) for i in (0, 1) if (part := claims[i::2])]
    straight = Lake(folder / "straight")
    import_files(straight, files)
    add_jobs(straight, tables_)
    post_lake(straight, limits)
    other = Lake(folder / "other")
    for file in data.draw(st.permutations([*files, *tables_, tables_[0]])):
        if file in files:
            import_files(other, [file])
        else:
            add_jobs(other, [file])
        if other.exists() and data.draw(st.booleans()):
            post_lake(other, limits)
    post_lake(other, limits)
    with_jobs = books(straight)
    assert books(other) == with_jobs
    without = Lake(folder / "without")
    import_files(without, files)
    post_lake(without, limits)
    # Jobs say who held a GPU, never for how long or what it did.
    plain = books(without)
    for column in ("observed_ms", "samples", "util_ppm_ms", "idle_ms"):
        assert sum(r[column] for r in with_jobs) == sum(r[column] for r in plain)
    (day,) = Ledger(straight).manifest().days
    assert (day.samples, day.conflicts) == (len(samples), 0)


def write_jobs(path, claims: list[Claim]):
    """Claims as a CSV of jobs, times in UTC."""
    names = ("run_id", "user", "account", "namespace", "pod", "host", "gpu", "gpus", "start", "end")
    rows = [",".join(names)]
    for c in claims:
        made = {n: getattr(c, n, None) for n in names} | {"start": c.start_ms, "end": c.end_ms}
        rows.append(",".join("" if made[n] is None else str(made[n]) for n in names))
    path.write_text("\n".join(rows) + "\n")
    return path


def test_shared_time_is_split_equally(tmp_path, limits):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "s", sampled(10, 1))])
    write_claims(lake, [claim("7", 0, 5, gpu="0", user="ann"), claim("8", 0, 99, gpu="0", user="bob")])
    post_lake(lake, limits)
    time = defaultdict(int)
    for row in books(lake):
        time[row["user"]] += row["observed_ms"]
    assert Fraction(time["ann"], sum(time.values())) == Fraction(1, 4)
    assert sum(r["shared_ms"] for r in books(lake)) == 5 * MINUTE


def test_adding_jobs_posts_the_days_they_touch_again(tmp_path, limits):
    lake = Lake(tmp_path / "lake")
    days = [sampled(3, 1), [r | {"at_ms": r["at_ms"] + 2 * 86_400_000} for r in sampled(3, 1)]]
    import_files(lake, [write_samples(tmp_path, "s", [*days[0], *days[1]])])
    assert len(post_lake(lake, limits).days_posted) == 2
    table = write_jobs(tmp_path / "j.csv", [claim("7", 0, 2, gpu="0", user="ann")])
    result = add_jobs(lake, [table])
    assert (result.jobs, result.claims_new, len(result.days)) == (1, 1, 1)
    posted = post_lake(lake, limits)
    assert posted.days_posted == result.days
    assert added(posted.joined).placed == 2
    assert add_jobs(lake, [table]).days == []
    assert post_lake(lake, limits).days_posted == []
    assert len(read_claims(lake)) == 1
    assert read_claims(lake, "2031-01-01") == []


def test_rows_of_the_books_carry_the_job(tmp_path, limits):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "s", sampled(3, 1))])
    write_claims(lake, [claim("7", 0, None, gpu="0", user="ann", account="lab", team="t", workload="train")])
    post_lake(lake, limits)
    assert {tuple(r[n] for n in ("user", "account", "team", "workload", "run_id")) for r in books(lake)} == {
        ("ann", "lab", "t", "train", "7")
    }


def test_a_job_that_one_table_places_is_not_spread_by_another():
    """sacct knows host and number, a prolog the UUID alone."""
    both = [claim("7", 0, 9, gpus=1, host="n1.lab.edu"), claim("7", 0, 9, gpu="n1-0", host=None)]
    rows, counts = joined(sampled(1, 2), both)
    assert jobs_of(rows) == {"n1-0": ["7"], "n1-1": [None]}
    assert counts.unplaced == 0


def test_owners_stay_apart_however_many_labels_have_however_many_values(limits):
    """The product of all label sizes passes 2**63 here: two owners must not become one number."""
    many = 600
    rows = [
        {"at_ms": make.DAY + i * 1000, "gpu_uuid": "G", "gpu_util_ratio": 0.5}
        | dict.fromkeys(LABELS, f"v{i % many:04d}")
        for i in range(many * 2)
    ]
    made = post(make.table(rows), limits).lines.to_pylist()
    assert len({tuple(r[n] for n in LABELS) for r in made}) == many
    assert {len({r[n] for n in LABELS}) for r in made} == {1}


@pytest.mark.parametrize("processes", [1, 2])
def test_days_posted_in_processes_carry_the_same_jobs(tmp_path, limits, processes):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "s", sampled(minutes=90, boards=6))])
    with lake.locked():
        write_claims(lake, [claim("a", 10, 70, gpu="1"), claim("b", 0, 80, gpu="4"), claim("c", 5, 6, gpu="5")])
    result = post_lake(lake, limits, processes=processes)
    assert added(result.joined).placed == 60 + 80 + 1
    rows = [r for day in Ledger(lake).manifest().days for r in Ledger(lake).read("lines", day.day).to_pylist()]
    held = defaultdict(int)
    for row in rows:
        held[row["gpu_uuid"], row["run_id"]] += row["samples"]
    assert {k: n for k, n in held.items() if k[1]} == {("n1-1", "a"): 60, ("n1-4", "b"): 80, ("n1-5", "c"): 1}


def posted_words(tmp_path, limits, rows: list[dict], claims: list[Claim]) -> list[str]:
    """What is said about the jobs of a lake once it is posted."""
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write_samples(tmp_path, "s", rows)])
    with lake.locked():
        write_claims(lake, claims)
    return words_of(added(post_lake(lake, limits).joined))


def test_jobs_of_gpus_without_samples_are_named_next_to_jobs_that_match(tmp_path, limits):
    claims = [claim("a", 0, 6, gpu="0"), claim("b", 0, 6, host="n9"), claim("c", 0, 6, gpu="7")]
    claims.append(claim("d", 0, 6, host=None, gpu="GPU-gone"))
    found = posted_words(tmp_path, limits, sampled(), claims)
    (note,) = [words for words in found if "no sample of their days" in words]
    assert "(GPU-gone, n1/7, n9)" in note
    assert any(words.startswith("job tables gave 6 samples") for words in found)


def test_nothing_is_missed_where_every_job_has_samples(tmp_path, limits):
    found = posted_words(tmp_path, limits, sampled(), [claim("a", 0, 6, gpu="0"), claim("b", 9, 99, gpu="1")])
    assert not any("no sample of their days" in words for words in found)


@pytest.mark.parametrize(("indexed", "words"), [(False, "indices that the samples lack (n1)"), (True, "")])
def test_samples_without_indices_are_named_not_the_jobs_that_have_them(tmp_path, limits, indexed, words):
    claims = [claim("a", 0, 6, gpu="0"), claim("b", 0, 6, gpu="1")]
    found = posted_words(tmp_path, limits, sampled(indexed=indexed), claims)
    assert not any("jobs without GPU indices" in said for said in found)
    assert any(words in said for said in found)

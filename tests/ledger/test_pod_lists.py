"""Is GPU time of a pod that is in one list and not in another ever booked to a pod that did not hold the GPU?"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import samples as make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written import write_samples

from gpuledger.errors import FileFault, InputError
from gpuledger.lake.importing import import_files
from gpuledger.lake.jobs.adding import add_jobs
from gpuledger.lake.jobs.claims import LABELS
from gpuledger.lake.jobs.store import folder, read_claims, read_lists, read_manifest
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.jobs.counts import added, words_of
from gpuledger.ledger.jobs.holding import find_holdings
from gpuledger.ledger.jobs.joining import join_jobs
from gpuledger.ledger.jobs.places import Place
from gpuledger.ledger.store import Ledger
from gpuledger.units import utc

MINUTE = 60_000
DAY = "2026-01-20"
MINUTES = 40
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@dataclass(frozen=True)
class Life:
    """A pod on a board of its own from a minute up to another."""

    name: str
    namespace: str
    board: int
    start: int
    end: int

    def shown(self, taken: int, finished: bool = False) -> dict:
        """As kubectl prints it. The node has one GPU, so that a pod on it is placed."""
        state = {"terminated": {"finishedAt": stamp(self.end)}} if finished else {"running": {}}
        return {
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": f"{self.name}-{self.start}",
                         "labels": {"user": self.owner}},
            "spec": {"nodeName": f"n{self.board}", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": "Succeeded" if finished else "Running", "startTime": stamp(self.start),
                       "containerStatuses": [{"state": state}]},
        }  # fmt: skip

    @property
    def owner(self) -> str:
        return f"{self.name}-on-{self.board}-since-{self.start}"


@dataclass(frozen=True)
class Taken:
    """A list: when it was taken, of which namespace (None: all, with a system pod on each node), and what is known."""

    at: int
    namespace: str | None
    timed: bool = False
    copied: bool = False


def stamp(minute: int) -> str:
    return f"{utc(make.DAY + minute * MINUTE):%Y-%m-%dT%H:%M:%SZ}"


def write_list(path: Path, lives: list[Life], taken: Taken, kept: frozenset[Life] = frozenset()) -> Path:
    """What kubectl prints then; `kept`: pods that finished and were never deleted."""
    pods = [p.shown(taken.at) for p in lives if p.start <= taken.at < p.end]
    pods += [p.shown(taken.at, finished=True) for p in lives if p in kept and p.end <= taken.at]
    if taken.namespace is not None:
        pods = [p for p in pods if p["metadata"]["namespace"] == taken.namespace]
    else:
        pods += [system(f"n{b}") for b in range(2)]
    document = {"kind": "List", "metadata": {"resourceVersion": ""}, "items": pods}
    path.write_text(json.dumps(document | ({"taken_at": stamp(taken.at)} if taken.timed else {})))
    written = (make.DAY + taken.at * MINUTE) / 1000 + (9_000_000 if taken.copied else 0)
    os.utime(path, (written, written))
    return path


def system(node: str) -> dict:
    return {
        "kind": "Pod",
        "metadata": {"name": f"proxy-{node}", "namespace": "kube-system"},
        "spec": {"nodeName": node, "containers": [{}]},
        "status": {"phase": "Running", "startTime": stamp(-1000)},
    }


def owners(lake: Lake) -> dict[tuple[int, int], set[str | None]]:
    """By board and minute the users its sample is booked to; None where that is unknown."""
    rows = [
        {"at_ms": make.DAY + t * MINUTE, "gpu_uuid": f"G{b}", "host": f"n{b}", "gpu_index": "0", "gpu_util_ratio": 0.5}
        for b in range(2)
        for t in range(MINUTES)
    ]
    places = [Place(f"G{b}", f"n{b}", "0") for b in range(2)]
    found = join_jobs(make.table(rows), frozenset(), find_holdings(places, read_claims(lake, DAY), make.DAY))
    out = {}
    for row in found.table.to_pylist():
        key = int(row["gpu_uuid"][1:]), (row["at_ms"] - make.DAY) // MINUTE
        out.setdefault(key, set()).add(row.get("user"))
        if row.get("run_id") is not None:
            assert row["run_id"].startswith("unknown, perhaps ")
            assert not any(row[name] for name in LABELS if name != "run_id")
    return out


@st.composite
def fleets(draw) -> list[Life]:
    """Pods one after the other on each of two GPUs; a name may come again."""
    out = []
    for board in range(2):
        at = draw(st.integers(-5, 5))
        for _ in range(draw(st.integers(1, 4))):
            end = at + draw(st.integers(1, 12))
            out.append(
                Life(draw(st.sampled_from("pq")) + str(board), draw(st.sampled_from(["ml", "web"])), board, at, end)
            )
            at = end + draw(st.integers(1, 5))
    return out


LISTS = st.lists(
    st.builds(
        Taken, at=st.integers(-3, MINUTES), namespace=st.sampled_from([None, None, "ml", "web"]), timed=st.booleans(),
        copied=st.booleans(),
    ), min_size=1, max_size=6,
)  # fmt: skip


@given(fleets(), LISTS, st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
def test_no_time_is_booked_to_a_pod_that_a_list_shows_to_have_ended(tmp_path_factory, lives, lists, data):
    where = tmp_path_factory.mktemp("lists")
    kept = frozenset(data.draw(st.lists(st.sampled_from(lives), max_size=2)))
    files = [write_list(where / f"{i}.json", lives, taken, kept) for i, taken in enumerate(lists)]
    full = [
        i for i, f in enumerate(files) if json.loads(f.read_text())["items"]
    ]  # of an empty one, what it lists is unknown
    files, lists = [files[i] for i in full], [lists[i] for i in full]
    if not files:
        return
    lake = Lake(where / "lake")
    add_jobs(lake, files)
    booked = owners(lake)
    named = {p.owner: p for p in lives}
    for board, minute, pod in ((b, m, named[o]) for (b, m), found in booked.items() for o in found if o):
        if pod.board != board or not pod.start <= minute < pod.end:  # running on, as no list shows that it ended
            later = [t for t in lists if t.at >= pod.end and t.namespace in (None, pod.namespace)]
            assert (pod.board, later) == (board, []), (board, minute, pod)
    for pod in lives:  # a list that has a pod proves it up to what the list shows
        for taken in (t for t in lists if t.timed and t.namespace in (None, pod.namespace)):
            if pod.start <= taken.at < pod.end:
                assert all(pod.owner in booked[pod.board, m] for m in range(max(pod.start, 0), min(taken.at, MINUTES)))
    other = Lake(where / "other")
    for file in data.draw(st.permutations([*files, files[0]])):
        add_jobs(other, [file])
    assert read_claims(other) == read_claims(lake)
    assert read_lists(other) == read_lists(lake)
    assert read_manifest(other).days == read_manifest(lake).days
    assert owners(other) == booked


def added_to(tmp_path, *lists: tuple[list[Life], Taken]) -> tuple[Lake, list[str]]:
    lake, notes = Lake(tmp_path / "lake"), list[str]()
    for i, (lives, taken) in enumerate(lists):
        notes += add_jobs(lake, [write_list(tmp_path / f"{i}.json", lives, taken)]).notes
    return lake, notes


P = Life("p", "ml", 0, 2, 9)
Q = Life("q", "web", 1, 3, 30)


def booked_on(lake: Lake, board: int) -> list[int]:
    """The minutes that are booked to somebody."""
    return [minute for (b, minute), users in owners(lake).items() if b == board and users != {None}]


def test_a_pod_that_is_deleted_between_two_lists_ends_between_them(tmp_path):
    lake, notes = added_to(tmp_path, ([P, Q], Taken(5, None, timed=True)), ([P, Q], Taken(20, None, timed=True)))
    assert booked_on(lake, 0) == [2, 3, 4]
    assert booked_on(lake, 1) == list(range(3, MINUTES))  # in the newest list, so it goes on
    said = next(note for note in notes if "ended between two lists" in note)
    assert "1 pod ended" in said
    assert "p between 2026-01-20 00:05:00Z and 2026-01-20 00:20:00Z" in said
    assert "CSV of pod, namespace, host, start and end" in said
    assert "taken_at" not in said
    (claim,) = [c for c in read_claims(lake) if c.pod == "p"]
    assert (claim.end_ms, claim.sure_ms, claim.gone_ms) == (None, *(make.DAY + m * MINUTE for m in (5, 20)))
    exact = tmp_path / "ends.csv"
    exact.write_text(f"pod,namespace,host,start,end\np,ml,n0,{stamp(2)},{stamp(9)}\n")
    add_jobs(lake, [exact])
    assert booked_on(lake, 0) == list(range(2, 9))


def test_a_list_that_may_be_narrowed_by_a_label_is_named_where_it_ends_a_pod(tmp_path):
    other = Life("q", "ml", 1, 3, 30)
    _, notes = added_to(tmp_path, ([P, other], Taken(5, None, timed=True)), ([other], Taken(20, "ml", timed=True)))
    (said,) = [note for note in notes if "narrowed" in note]
    assert said.startswith("1.json: all of its pods have the label user=")
    assert "(p) did not end there" in said
    assert "without a selector" in said


def test_lists_without_their_time_say_so_where_a_pod_ends(tmp_path):
    lake, notes = added_to(tmp_path, ([P, Q], Taken(5, None)), ([P, Q, Life("r", "ml", 0, 15, 30)], Taken(20, None)))
    said = next(note for note in notes if "ended between two lists" in note)
    assert "p between 2026-01-20 00:03:00Z and 2026-01-20 00:15:00Z" in said  # what the lists show
    assert "taken_at" in said
    again = add_jobs(lake, [tmp_path / "1.json"])
    assert (again.claims_new, again.pods_unsure, again.days) == (0, 1, [])


def test_a_list_of_another_namespace_ends_nothing(tmp_path):
    lake, _ = added_to(tmp_path, ([P, Q], Taken(5, None, timed=True)), ([P, Q], Taken(20, "web", timed=True)))
    assert booked_on(lake, 0) == list(range(2, MINUTES))


def test_a_list_without_a_pod_on_a_gpu_ends_all_of_them(tmp_path):
    lake, _ = added_to(tmp_path, ([P], Taken(5, None, timed=True)), ([P], Taken(20, None, timed=True)))
    assert booked_on(lake, 0) == [2, 3, 4]


def test_a_list_of_another_cluster_ends_nothing(tmp_path):
    lake = Lake(tmp_path / "lake")
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    write_list(here, [P], Taken(5, None, timed=True))
    pod = Q.shown(20)
    pod["spec"]["nodeName"] = "x1"
    there.write_text(json.dumps({"kind": "List", "taken_at": stamp(20), "items": [system("x1"), pod]}))
    add_jobs(lake, [here, there])
    assert booked_on(lake, 0) == list(range(2, MINUTES))


def test_the_same_name_again_is_another_pod(tmp_path):
    again = Life("p", "ml", 0, 15, 30)
    lake, _ = added_to(tmp_path, ([P, again], Taken(5, "ml", timed=True)), ([P, again], Taken(20, "ml", timed=True)))
    found = owners(lake)
    assert [found[0, m] for m in (4, 5, 14, 15)] == [{P.owner}, {None}, {None}, {again.owner}]


def test_a_list_whose_time_is_unknown_may_be_the_newer_one(tmp_path):
    """The newest pod is deleted and nothing else happens: the later list shows older times than the first."""
    lake, notes = added_to(tmp_path, ([P], Taken(5, None)), ([P], Taken(20, None, copied=True)))
    assert booked_on(lake, 0) == []  # the first list shows nothing newer than its start
    assert any("may have ended (p after 2026-01-20 00:02:00Z)" in note and "--taken" in note for note in notes)
    add_jobs(lake, [tmp_path / "0.json"], taken=stamp(5))
    assert booked_on(lake, 0) == [2, 3, 4]
    add_jobs(lake, [tmp_path / "1.json"], taken=stamp(20))
    (claim,) = read_claims(lake)
    assert claim.gone_ms == make.DAY + 20 * MINUTE


def test_a_later_list_may_show_older_times_than_one_that_has_the_pod(tmp_path):
    """Two pods are deleted, the later of which gave the first list its time."""
    lives = [P, Life("x", "ml", 1, 4, 9), Life("cpu", "web", 1, 3, 99)]
    lake, _ = added_to(tmp_path, (lives, Taken(5, None)), (lives, Taken(20, None, copied=True)))
    assert booked_on(lake, 0) == [2, 3]  # up to the start of the other one


def test_two_lists_with_the_same_pods_are_two(tmp_path):
    """Nothing else happened, so that the list before the pod and the one after it are alike; one has its time."""
    lists = [Taken(0, None, timed=True), Taken(5, None), Taken(20, None)]
    lake, _ = added_to(tmp_path, *(([P], taken) for taken in lists))
    assert booked_on(lake, 0) == []


def test_a_list_written_before_a_pod_started_does_not_end_it(tmp_path):
    lake, _ = added_to(tmp_path, ([Q], Taken(1, None)), ([Q], Taken(5, None)))
    assert booked_on(lake, 1) == list(range(3, MINUTES))


def test_the_time_of_a_list_must_fit_what_it_shows(tmp_path):
    file = write_list(tmp_path / "l.json", [P], Taken(5, None))
    with pytest.raises(FileFault, match="shows something of 2026-01-20T00:02:00Z"):
        add_jobs(Lake(tmp_path / "lake"), [file], taken=stamp(1))
    with pytest.raises(InputError, match="not exactly one list of pods"):
        add_jobs(Lake(tmp_path / "lake"), [file, file], taken=stamp(6))
    file.write_text(json.dumps({**json.loads(file.read_text()), "taken_at": "noon"}))
    with pytest.raises(FileFault, match="its taken_at: 'noon' is not a time"):
        add_jobs(Lake(tmp_path / "lake"), [file])
    file.write_text('{"kind": "List", "items": []}')
    with pytest.raises(FileFault, match="empty list of pods"):
        add_jobs(Lake(tmp_path / "lake"), [file])


def test_unknown_time_is_a_job_of_its_own_and_reported(tmp_path, limits):
    lake, _ = added_to(tmp_path, ([P], Taken(5, None, timed=True)), ([P], Taken(20, None, timed=True)))
    rows = [
        {"at_ms": make.DAY + t * MINUTE, "gpu_uuid": "G0", "host": "n0", "gpu_index": "0", "gpu_util_ratio": 0.5}
        for t in range(MINUTES)
    ]
    import_files(lake, [write_samples(tmp_path, "s", rows)])
    counts = added(post_lake(lake, limits).joined)
    assert (counts.placed, counts.unknown, counts.total) == (3, 15, 18)
    assert any("15 samples of GPUs whose pod ended between two lists" in words for words in words_of(counts))
    lines = [r for r in Ledger(lake).read("lines", DAY).to_pylist() if r["run_id"]]
    assert {(r["run_id"], r["user"], r["namespace"], r["samples"]) for r in lines} == {
        ("unknown, perhaps p", None, None, 15)
    }


def test_jobs_stored_before_there_were_lists_are_read(tmp_path):
    """As version 1 wrote them: without what lists of pods show."""
    lake, _ = added_to(tmp_path, ([P], Taken(5, None)))
    (file,), (lists,) = folder(lake).glob("claims-*.parquet"), folder(lake).glob("lists-*.parquet")
    table = pq.read_table(file).drop_columns(["seen_ms", "seen_in", "sure_ms", "gone_ms"])
    pq.write_table(table, file)
    lists.unlink()
    manifest = json.loads((folder(lake) / "manifest.json").read_text())
    days = manifest["days"]
    (folder(lake) / "manifest.json").write_text(
        json.dumps({k: v for k, v in manifest.items() if k != "lists"} | {"version": 1})
    )
    (claim,) = read_claims(lake, DAY)
    assert (claim.pod, claim.seen_ms, claim.end_ms) == ("p", None, None)
    assert add_jobs(lake, [tmp_path / "0.json"]).days == []  # its owners are what they were
    assert read_manifest(lake).days == days
    add_jobs(lake, [write_list(tmp_path / "later.json", [P], Taken(20, None, timed=True))])
    assert [c.gone_ms for c in read_claims(lake)] == [make.DAY + 20 * MINUTE]

"""Is GPU time of a pod that is in one list and not in another ever booked to a pod that did not hold the GPU?"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

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

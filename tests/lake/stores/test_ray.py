"""Does a Ray cluster whose nodes share nothing but a bucket make the same lake and the same figures?"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpuledger
from gpuledger.errors import FileFault, LakeError
from gpuledger.lake import importing, layout, pieces
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.lake.processes import Progress
from gpuledger.lake.stores.desk import at_desk, fetched_once
from gpuledger.lake.stores.path import StorePath, place_of
from gpuledger.ledger import engine as posting
from gpuledger.ledger.day import DayDone, DayTask
from gpuledger.ledger.read import shares
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from s3_server import Server

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.skipif(sys.version_info >= (3, 14), reason="Ray has no wheel there"),
]
TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, s3_process: Any) -> Iterator[list[Path]]:
    """A head that takes no task, and two nodes of one CPU each, each with a folder of copies of its own."""
    from ray.cluster_utils import Cluster

    small = {"include_dashboard": False, "object_store_memory": 80 << 20}
    caches = [tmp_path_factory.mktemp(f"node-{number}") for number in range(2)]
    with pytest.MonkeyPatch.context() as patched:
        for name, value in s3_process.env.items():
            patched.setenv(name, value)
        patched.setenv("PYTHONPATH", os.pathsep.join(str(p) for p in (TESTS.parent / "src", TESTS / "lake")))
        patched.setenv("GPULEDGER_HELD", str(tmp_path_factory.mktemp("held")))
        patched.syspath_prepend(str(TESTS / "lake"))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        for cache in caches:
            cluster.add_node(num_cpus=1, object_store_memory=80 << 20, env_vars={"GPULEDGER_CACHE": str(cache)})
        patched.setenv("RAY_ADDRESS", cluster.address)
        yield caches
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days, halfway through the second in another file; rows that are there twice, contradict, cannot be used."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(FleetSpec(gpus=8, days=3, step_s=60), folder / "all.csv", "csv")
    header, *rows = (folder / "all.csv").read_text().splitlines()
    (folder / "all.csv").unlink()
    half = len(rows) // 2
    wrong = [rows[-1].replace("01/22/26", "22/22/26"), *(row.replace("0.", "0.1", 1) for row in rows[half : half + 3])]
    for name, some in (("a", rows[:half]), ("b", rows[half - 5 :]), ("c", [*wrong, *rows[half - 20_000 : half]])):
        (folder / f"{name}.csv").write_text("\n".join([header, *some]) + "\n")
    return folder


def asked(place: str | Path, fleet: Path, engine: str) -> dict[str, Any]:
    """What a user sees of two imports: samples, rejects, lines, and two statements."""
    lake = gpuledger.open(place, engine=engine)
    found = [lake.ingest(fleet / "a.csv", fleet / "b.csv"), lake.ingest(fleet / "c.csv")]
    rejects = lake.lake.store.local([place_of(r.rejects_file) for r in found if r.rejects_file])
    return {
        "import": [(r.rows_added, r.rows_duplicate, r.rejects, r.notes, r.days) for r in found],
        "rejects": [file.read_text(encoding="utf-8") for file in rejects],
        "samples": samples_table(lake.lake).to_pylist(),
        "lines": lake.lines().arrow().to_pylist(),
        "analyze": lake.analyze().to_dict(),
        "audit": lake.audit(prices=2).to_dict(),
    }


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, fleet: Path) -> dict[str, Any]:
    return asked(tmp_path_factory.mktemp("here") / "lake", fleet, "local")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 10_000)


def on_their_way(place: str) -> list[Path]:
    return list(StorePath(place).glob("staging/*/*/*"))


def test_two_nodes_make_the_same_lake_ledger_and_statements(
    place: str, fleet: Path, here: dict[str, Any], nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "BYTES_WORTH_SHARES", 0)
    found = asked(place, fleet, "ray")
    for what, there in found.items():
        assert there == here[what], what
    assert here["import"][1][2], "no row was refused"
    for cache in nodes:  # each has done some of it
        assert list(cache.rglob("ledger/*/*.lines.parquet"))
    assert not on_their_way(place)


def test_workers_that_are_killed_change_nothing(
    place: str, fleet: Path, here: dict[str, Any], nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has put up all it would: a killed one leaves objects that no manifest names."""
    import ray_held_tasks

    monkeypatch.setattr(importing, "take_piece", ray_held_tasks.take)
    monkeypatch.setattr(importing, "write_day", ray_held_tasks.write)
    monkeypatch.setattr(posting, "post_day", ray_held_tasks.post)
    killers = [killer_of(name) for name in ("take", "write", "post")]
    found = asked(place, fleet, "ray")
    for killer in killers:
        killer.join(10)
        assert not killer.is_alive()
    for what, there in found.items():
        assert there == here[what], what
    assert not on_their_way(place)


def killer_of(name: str) -> threading.Thread:
    """Kills the first task of that name once it has done its work."""
    marker = Path(os.environ["GPULEDGER_HELD"], name)

    def watch() -> None:
        while not marker.exists():
            time.sleep(0.05)
        os.kill(int(marker.read_text().split()[0]), signal.SIGKILL)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_errors_name_files_as_the_user_does(place: str, fleet: Path, nodes: list[Path], tmp_path: Path) -> None:
    """A node reads a copy; the error is about the file that was given."""
    write_fleet(FleetSpec(gpus=8, days=2, step_s=60), tmp_path / "fleet", files="day")
    files = sorted((tmp_path / "fleet").glob("*.parquet"))
    raw = bytearray(files[1].read_bytes())
    raw[len(raw) // 3 : len(raw) // 3 + 4000] = bytes(4000)
    files[1].write_bytes(raw)
    said = []
    for lake, engine in ((tmp_path / "lake", "local"), (place, "ray")):
        with pytest.raises(FileFault, match="broken inside") as fault:
            gpuledger.open(lake, engine=engine).ingest(*files)
        said.append(str(fault.value))
    assert said[0] == said[1]
    assert str(files[1]) in said[0]
    assert not on_their_way(place)
    assert not Lake(place).exists()


def test_a_node_that_sees_another_bucket_says_so(
    place: str, fleet: Path, nodes: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The nodes ask the server they were started with; this process asks another one."""
    other = Server(tmp_path)
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", other.url)
        with pytest.raises(LakeError, match="of the cluster cannot see s3://") as unseen:
            gpuledger.open(place, engine="ray").ingest(fleet / "a.csv", fleet / "b.csv")
    finally:
        other.close()
    assert "in the environment of ray start" in unseen.value.hint


def test_a_node_without_the_server_says_what_the_server_said(
    s3: Server, place: str, fleet: Path, nodes: list[Path]
) -> None:
    s3.fault(path="by-all.json", method="GET", status=403, body="<Error><Code>AccessDenied</Code></Error>")
    with pytest.raises(LakeError, match=r"cannot see s3://.*permission denied") as unseen:
        gpuledger.open(place, engine="ray").ingest(fleet / "a.csv", fleet / "b.csv")
    assert unseen.value.hint.startswith("on every node, ")
    assert not on_their_way(place)


def test_a_node_keeps_the_files_of_imports_at_work_only(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fetched for an import that is over goes with the next task on that node."""
    works = [StorePath(place) / "staging" / f"work-{number:016x}" for number in range(3)]
    for work in works:
        (work / "seen" / "by-all.json").write_bytes(b"{}")
        (work / "0" / "a.csv").write_bytes(b"x")
    copies = [fetched_once(work / "0" / "a.csv") for work in works]
    (works[0] / "seen" / "by-all.json").unlink()
    with at_desk(works[2]) as own:
        assert [copy.exists() for copy in copies] == [False, True, True]
        (name,) = own.hand_over([str(copies[1])])
        (back,) = own.fetched([name])
        assert Path(back).read_bytes() == b"x"
    assert not own.here.exists()


def test_what_a_killed_import_was_handing_over_is_swept_by_age(
    place: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = StorePath(place) / "staging" / "work-0123456789abcdef" / "seen" / "by-all.json"
    left.write_bytes(b"{}")
    gpuledger.open(place).ingest(fleet / "a.csv")
    assert on_their_way(place) == [left], "it may be of an import at work"
    monkeypatch.setattr(layout, "ABANDONED_S", -10)
    gpuledger.open(place).ingest(fleet / "b.csv")
    assert not on_their_way(place)


def test_a_day_that_is_posted_twice_is_the_same_bytes(
    tmp_path: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts of one task write under one name: a reader may get the first half from one and the rest from another."""
    days: list[str] = []

    def twice(task: DayTask, progress: Progress) -> DayDone:
        posting_once(task, progress)
        files = sorted((tmp_path / "lake" / "ledger" / task.day).glob(f"{task.generation:06d}-*.parquet"))
        before = [file.read_bytes() for file in files]
        done = posting_once(task, progress)
        assert [file.read_bytes() for file in files] == before
        days.append(task.day)
        return done

    posting_once = posting.post_day
    monkeypatch.setattr(posting, "post_day", twice)
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(fleet / "a.csv", fleet / "b.csv")
    lake.analyze()
    assert len(days) == 3

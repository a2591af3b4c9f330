"""Does a Ray cluster make the same figures as this machine, whatever dies, and are its faults reported as ours?"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault, InputError, LakeError
from gpuledger.lake import importing
from gpuledger.lake.engines import cluster as clusters
from gpuledger.lake.engines import on_ray
from gpuledger.lake.engines.choosing import engine_named, in_use, using
from gpuledger.lake.engines.mapping import Share, ask_share, mapped
from gpuledger.lake.parts import samples_table
from gpuledger.ledger import engine as posting
from gpuledger.ledger.read import shares
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.skipif(sys.version_info >= (3, 14), reason="Ray has no wheel there"),
]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A head that takes no task, and two nodes of one CPU each."""
    from ray.cluster_utils import Cluster

    small = {"include_dashboard": False, "object_store_memory": 80 << 20}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE)]))
        patched.setenv("GPULEDGER_HELD", str(tmp_path_factory.mktemp("held")))
        patched.syspath_prepend(str(HERE))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
        patched.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days in a file each, with rows that are there twice and rows that cannot be used."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(FleetSpec(gpus=8, days=3, step_s=60), folder / "fleet", files="day")
    file = min((folder / "fleet").glob("*.parquet"))
    table = pq.read_table(file)
    table = pa.concat_tables([table.slice(0, 5_000), table.slice(5_011), table.slice(100, 3)])
    power = table["DCGM_FI_DEV_POWER_USAGE"].to_pylist()
    power[5] = power[700] = 3_000.0
    at = table.column_names.index("DCGM_FI_DEV_POWER_USAGE")
    pq.write_table(table.set_column(at, "DCGM_FI_DEV_POWER_USAGE", [power]), file)
    return folder / "fleet"


def asked(root: Path, fleet: Path, engine: str | None) -> dict[str, Any]:
    """What a user sees: an import, its samples and rejects, the lines, and two statements."""
    lake = gpuledger.open(root, engine=engine)
    found = lake.ingest(fleet)
    return {
        "import": (found.rows_added, found.rows_duplicate, found.rejects, found.notes, found.days),
        "rejects": Path(found.rejects_file or "").read_text(encoding="utf-8"),
        "samples": samples_table(lake.lake).to_pylist(),
        "lines": lake.lines().arrow().to_pylist(),
        "analyze": lake.analyze().to_dict(),
        "audit": lake.audit(prices=2).to_dict(),
    }


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, fleet: Path) -> dict[str, Any]:
    return asked(tmp_path_factory.mktemp("here") / "lake", fleet, "local")


def test_two_nodes_make_the_same_lake_ledger_and_statements(
    tmp_path: Path, fleet: Path, here: dict[str, Any], nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "BYTES_WORTH_SHARES", 0)
    assert asked(tmp_path / "lake", fleet, "ray") == here
    assert len(list((tmp_path / "lake" / "ledger").glob("*/*.lines.parquet"))) > 3  # days were posted in pieces
    assert not list((tmp_path / "lake").glob("**/*~*"))


def test_files_without_a_lake(fleet: Path, nodes: Any, capfd: pytest.CaptureFixture[str]) -> None:
    files, made = [str(f) for f in sorted(fleet.glob("*.parquet"))], []
    for name in ("local", "ray"):
        assert run(["analyze", *files, "--json", "--engine", name]) == 0
        made.append(capfd.readouterr().out)
    assert made[0] == made[1]
    assert len(made[0]) > 1000


def when_held(name: str, act: Callable[[int, str], None]) -> threading.Thread:
    """Do something to the process and node of the task of that name that is held."""
    marker = Path(os.environ["GPULEDGER_HELD"], name)
    for old in (marker, marker.with_suffix(".taken")):
        old.unlink(missing_ok=True)

    def watch() -> None:
        while not marker.exists():
            time.sleep(0.05)
        pid, node = marker.read_text().split()
        act(int(pid), node)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_workers_that_are_killed_change_nothing(
    tmp_path: Path, fleet: Path, here: dict[str, Any], nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One while it takes a piece, one while it writes a day, one while it posts: each has written all it would."""
    import ray_held_tasks

    monkeypatch.setattr(importing, "take_piece", ray_held_tasks.take)
    monkeypatch.setattr(importing, "write_day", ray_held_tasks.write)
    monkeypatch.setattr(posting, "post_day", ray_held_tasks.post)
    killers = [when_held(name, lambda pid, _node: os.kill(pid, signal.SIGKILL)) for name in ("take", "write", "post")]
    found = asked(tmp_path / "lake", fleet, "ray")
    for killer in killers:
        killer.join(10)
        assert not killer.is_alive()
    assert found == here


def test_a_node_that_is_lost_changes_nothing(
    tmp_path: Path, fleet: Path, here: dict[str, Any], nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray_held_tasks

    def lose(_pid: int, node: str) -> None:
        nodes.remove_node(next(n for n in nodes.worker_nodes if n.node_id == node), allow_graceful=False)

    monkeypatch.setattr(importing, "take_piece", ray_held_tasks.take)
    thread = when_held("take", lose)
    try:
        found = asked(tmp_path / "lake", fleet, "ray")
    finally:
        thread.join(30)
        nodes.add_node(num_cpus=1, object_store_memory=80 << 20)
    assert not thread.is_alive()
    assert found == here


def squared(common: int, item: int) -> int:
    return common * item * item


def test_a_task_that_lags_is_given_out_again(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray_held_tasks

    monkeypatch.setattr(on_ray, "LAGS_S", 0.5)
    monkeypatch.setattr("gpuledger.lake.engines.mapping.ask_share", ray_held_tasks.ask)
    thread = when_held("ask", lambda _pid, _node: None)
    ticks: list[int] = []
    with using("ray"):
        assert mapped(squared, 3, range(20), ticks.append) == [3 * i * i for i in range(20)]
    thread.join(5)
    assert not thread.is_alive()
    assert sum(ticks) == 20


def test_work_that_is_given_up_is_stopped(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray_held_tasks

    monkeypatch.setattr("gpuledger.lake.engines.mapping.ask_share", ray_held_tasks.ask)
    held: list[int] = []
    thread = when_held("ask", lambda pid, _node: held.append(pid))

    def stop(_asked: int) -> None:
        thread.join(30)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), using("ray"):
        mapped(squared, 3, range(20), stop)
    until = time.monotonic() + 30
    while Path(f"/proc/{held[0]}").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not Path(f"/proc/{held[0]}").exists()


def test_back_tests_are_the_same(nodes: Any) -> None:
    asked = {"gpu": "a10g", "gpus": 4, "hours": 10.0, "as_of": "2023-01-10", "draws": 5, "backtest": True}
    here, there = (gpuledger.plan.spot(**asked, engine=name).to_dict() for name in ("local", "ray"))
    assert there == here
    assert here["backtest"]["starts"] > 1


def test_errors_of_tasks_are_those_of_this_machine(
    tmp_path: Path, fleet: Path, nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray_held_tasks

    monkeypatch.chdir(tmp_path)
    for file in fleet.glob("*.parquet"):
        raw = bytearray(file.read_bytes())
        if file == max(fleet.glob("*.parquet")):
            raw[len(raw) // 3 : len(raw) // 3 + 4000] = bytes(4000)
        (tmp_path / file.name).write_bytes(raw)
    files = sorted(f.name for f in tmp_path.glob("*.parquet"))
    said = []
    for name in ("local", "ray"):
        with pytest.raises(FileFault, match="broken inside") as fault:
            gpuledger.open("lake", engine=name).ingest(*files)
        said.append(str(fault.value))
    assert said[0] == said[1]
    assert not (tmp_path / "lake").exists()
    with pytest.raises(LakeError, match="a task failed: ValueError: a fault in x:y"), using("ray"):
        list(in_use().runner(2).run(ray_held_tasks.failing, [Share("x:y", b"")], lambda _stage, _rows: None))


def test_a_node_that_cannot_work_says_why(tmp_path: Path, nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*shared: Path, act: Callable[[], object] = lambda: None) -> None:
        runner = in_use().runner(1, shared)
        act()
        list(runner.run(ask_share, [Share("x:y", b"")], lambda _stage, _rows: None))

    file = tmp_path / "manifest.json"
    with using("ray"):
        file.write_text("1")
        with pytest.raises(LakeError, match=f"has another {file} than this machine"):
            ask(file, act=lambda: file.write_text("2"))
        with pytest.raises(LakeError, match=f"cannot see {file}") as unseen:
            ask(file, act=file.unlink)
        assert "shared file system" in unseen.value.hint
        monkeypatch.setattr(on_ray, "__version__", "9.9")
        with pytest.raises(InputError, match=f"has gpuledger {gpuledger.__version__}, and the work was sent by 9.9"):
            ask()
        monkeypatch.setattr(on_ray, "TASK_BYTES", 1 << 60)
        with pytest.raises(InputError, match="no node of the cluster has a CPU and"):
            in_use().at_once(1_000_000, 0)


@pytest.mark.parametrize(("name", "words"), [
    ("spark", "no engine is called 'spark'"),
    ("ray://", "is not ray://HOST:PORT"),
    ("ray://host", "is not ray://HOST:PORT"),
    ("ray://127.0.0.1:1", "Ray at ray://127.0.0.1:1: "),
])  # fmt: skip
def test_a_wrong_engine_is_refused_before_any_work(
    tmp_path: Path,
    fleet: Path,
    name: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # the cluster of another test may be there
    assert run(["import", str(fleet), "--lake", str(tmp_path / "lake"), "--engine", name]) == 2
    said = capfd.readouterr().err
    assert words in said
    assert "next: " in said
    assert not (tmp_path / "lake").exists()


def test_without_ray_or_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(
        ray, "init", lambda *_a, **_k: (_ for _ in ()).throw(ConnectionError("Could not find any running Ray instance"))
    )
    with pytest.raises(InputError, match="no Ray cluster runs on this machine"):
        clusters.connect("auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(gpuledger.GpuledgerError, match="needs a part that is not installed") as missing:
        clusters.connect("auto")
    assert "gpuledger[ray]" in missing.value.hint


def test_the_engine_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPULEDGER_ENGINE", raising=False)
    assert in_use().name == "local"
    monkeypatch.setenv("GPULEDGER_ENGINE", "ray")
    assert in_use().name == "ray"
    assert in_use(processes=2).name == "local"
    with using("local"):
        assert in_use().name == "local"
    assert engine_named("ray") is in_use()

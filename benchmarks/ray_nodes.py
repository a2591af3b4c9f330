"""What do two nodes of a Ray cluster gain over one, and what does the cluster cost next to this machine alone?

    python benchmarks/ray_nodes.py [--gpus 50] [--days 4] [--step 10] [--rounds 3] [--nodes 1 2] [--share 15]
                                   [--update docs/ray.md]

Clusters start on this machine, by default of one and of two nodes, with one CPU each. Where there are cores enough, the
command and the head of a cluster are held to two of them and each node to one of its own, as if they were machines of
their own. Where there are fewer, --share holds each node to that percentage of a core, and the command and the head to
twice as much each (as root, with the CPU groups of Linux, version 1): slow machines of their own, as long as together
they need less than is free. Each round runs the commands a user runs, alternating: import a fleet (a file per day),
then analyze, which posts it. CPU is that of the command and of all processes of its cluster. Busiest: CPU of the
command and of the busiest node, which is how long it takes where each has a core to itself, whatever else runs
meanwhile. The statements must be equal to the last digit.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import psutil
from ray.cluster_utils import Cluster

from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

START, END = "<!-- nodes -->", "<!-- /nodes -->"
OBJECTS = 100 << 20
LOOK_S = 0.1
ENDED_S = 60.0
HERE = "this machine"
WAYS = {1: "one node", 2: "two nodes", 4: "four nodes", 8: "eight nodes"}
COMMAND_CORES = 2
GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US, WEIGHT = 20_000, 4096


class Groups:
    """CPU groups of Linux (version 1), each held to a share of a core; nothing is held where no share is given."""

    def __init__(self, share: int) -> None:
        self._share, self._made = share, list[Path]()
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        own = next((line.split(":")[2] for line in lines if line.split(":")[1] == "cpu"), "/")
        self._own = GROUPS / own.lstrip("/")

    @contextlib.contextmanager
    def held(self, name: str, shares: int = 1) -> Iterator[None]:
        """Hold what this thread starts, and itself, to some shares."""
        if not self._share:
            yield
            return
        group = GROUPS / f"gpuledger-{os.getpid()}-{name}"
        if group not in self._made:
            group.mkdir()
            self._made.append(group)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(PERIOD_US * self._share * shares // 100))
            (group / "cpu.shares").write_text(str(WEIGHT))
        (group / "tasks").write_text("0")  # this thread; what it starts inherits it
        try:
            yield
        finally:
            (self._own / "tasks").write_text("0")

    def close(self) -> None:
        """Remove the groups, as soon as their processes have ended."""
        if self._made:  # threads that Ray has started here while one was held
            (self._own / "cgroup.procs").write_text("0")
        until = time.monotonic() + ENDED_S
        for group in self._made:
            while group.exists() and time.monotonic() < until:
                with contextlib.suppress(OSError):
                    group.rmdir()
                time.sleep(LOOK_S)


@dataclass(frozen=True)
class Took:
    """One run of a command."""

    wall_s: float
    cpu_s: float
    busiest_s: float
    out: str


def started(nodes: int, cores: Sequence[int], groups: Groups) -> Cluster:
    """A cluster whose head takes no task; each node has one of the cores that the command leaves, if there are any."""
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": OBJECTS}
    with groups.held(f"head-of-{nodes}", COMMAND_CORES):
        cluster = Cluster(initialize_head=True, head_node_args=head)
    mine = os.sched_getaffinity(0)
    for number in range(nodes):
        if len(cores) > COMMAND_CORES + nodes:
            os.sched_setaffinity(0, {cores[COMMAND_CORES + number]})  # its processes inherit it
        with groups.held(f"node-{number + 1}-of-{nodes}"):
            cluster.add_node(num_cpus=1, object_store_memory=OBJECTS)
        os.sched_setaffinity(0, mine)
    return cluster


class ClusterCpu(Thread):
    """CPU seconds of the processes of a cluster, looked at often: Ray's workers end without leaving their times."""

    def __init__(self, cluster: Cluster | None) -> None:
        super().__init__(daemon=True)
        nodes = cluster.list_all_nodes() if cluster else ()
        self._roots = [(n.node_id, one.process.pid) for n in nodes for kind in n.all_processes.values() for one in kind]
        self._first, self._last = dict[tuple[str, int], float](), dict[tuple[str, int], float]()
        self._over = Event()
        self._look()
        self._first = dict(self._last)

    def run(self) -> None:
        """Look until asked for the sum."""
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        for node, root in self._roots:
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in (psutil.Process(root), *psutil.Process(root).children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        self._last[node, process.pid] = sum(process.cpu_times()[:2])

    def by_node(self) -> dict[str, float]:
        """The seconds since the start."""
        self._over.set()
        self.join()
        self._look()
        found: dict[str, float] = defaultdict(float)
        for key, seconds in self._last.items():
            found[key[0]] += seconds - self._first.get(key, 0.0)
        return found


def command(arguments: Sequence[str], cluster: Cluster | None, groups: Groups) -> Took:
    """Run a command as a user would."""
    engine = ["--engine", "ray"] if cluster else ["--engine", "local"]
    own = os.environ | ({"RAY_ADDRESS": cluster.address} if cluster else {})
    there = ClusterCpu(cluster)
    there.start()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    line = [sys.executable, "-W", "ignore", "-m", "gpuledger", *arguments, *engine, "--json"]
    with groups.held("command", COMMAND_CORES):
        done = subprocess.run(line, env=own, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    mine = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    nodes = there.by_node().values()
    return Took(wall, mine + sum(nodes), mine + max(nodes, default=0.0), done.stdout)


def rounds(
    fleet: Path, folder: Path, count: int, nodes: Sequence[int], groups: Groups
) -> dict[str, dict[str, list[Took]]]:
    """Every way, alternating, by command."""
    ways = [HERE, *(WAYS[n] for n in nodes)]
    found: dict[str, dict[str, list[Took]]] = {way: {"import": [], "analyze": []} for way in ways}
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[:COMMAND_CORES]))
    clusters: dict[str, Cluster | None] = {HERE: None, **{WAYS[n]: started(n, cores, groups) for n in nodes}}
    try:
        for number in range(count):
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                lake = folder / "lake"
                found[way]["import"].append(command(["import", str(fleet), "--lake", str(lake)], clusters[way], groups))
                found[way]["analyze"].append(command(["analyze", "--lake", str(lake)], clusters[way], groups))
                shutil.rmtree(lake)
                took = {
                    name: f"{runs[-1].wall_s:.1f} s, {runs[-1].cpu_s:.1f} CPU s" for name, runs in found[way].items()
                }
                print(f"round {number + 1}, {way}: {took}", flush=True)
    finally:
        for cluster in filter(None, clusters.values()):
            cluster.shutdown()
        groups.close()
    return found


def table(found: dict[str, dict[str, list[Took]]], rows: int, share: int) -> list[str]:
    """Medians in Markdown, each next to one node."""
    heads = ("where", "import", "analyze with posting", "of one node", "CPU", "busiest", "of one node", "statement")
    out = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|---:|---:|---|"]
    first = found[HERE]["analyze"][0].out

    def middle(way: str, name: str) -> list[float]:
        return [statistics.median(getattr(took, name) for took in runs) for runs in found[way].values()]

    for way in found:
        same = "the same" if all(took.out == first for took in found[way]["analyze"]) else "DIFFERENT"
        walls = " | ".join(f"{seconds:.1f} s" for seconds in middle(way, "wall_s"))
        walls += f" | {100 * sum(middle(way, 'wall_s')) / sum(middle('one node', 'wall_s')):.0f} %"
        busiest, base = sum(middle(way, "busiest_s")), sum(middle("one node", "busiest_s"))
        alone = f"{busiest:.1f} s | {100 * busiest / base:.0f} %" if way != HERE else "|"
        out.append(f"| {way} | {walls} | {sum(middle(way, 'cpu_s')):.1f} s | {alone} | {same} |")
    count, cores, load = len(found[HERE]["import"]), os.cpu_count(), os.getloadavg()[1]
    where = f"{cores} cores with a load of {load:.0f}"
    if share:
        where += f"; each node held to {share} % of a core, the command to {COMMAND_CORES * share} %"
    return [*out, "", f"{rows:,} samples, medians of {count} alternating runs on {where}."]


def main() -> None:
    """Run the rounds; print the table, and write it into a page where one is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--gpus", 50), ("--days", 4), ("--step", 10), ("--rounds", 3)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2], choices=WAYS, help="sizes of the clusters")
    parser.add_argument("--share", type=int, default=0, help="percentage of a core for each node; 0: not held")
    parser.add_argument("--update", type=Path)
    given = parser.parse_args()
    if given.share and not (os.access(GROUPS, os.W_OK) and 0 < given.share <= 100):
        parser.error(f"--share takes 1 to 100, as root, where {GROUPS} is there; without it nodes share all cores")
    with tempfile.TemporaryDirectory(prefix="gpuledger-") as work:
        folder = Path(work)
        write_fleet(FleetSpec(gpus=given.gpus, days=given.days, step_s=given.step), folder / "fleet", files="day")
        rows = given.gpus * given.days * 86_400 // given.step
        found = rounds(folder / "fleet", folder, given.rounds, sorted({1, *given.nodes}), Groups(given.share))
        text = "\n".join(table(found, rows, given.share))
    print(text)
    if given.update:
        before, _, rest = given.update.read_text(encoding="utf-8").partition(START)
        given.update.write_text(f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""How do tasks run on a Ray cluster?

A task needs one CPU and states its memory, so a node takes only what fits. Ray runs it again where its process or its
node dies. At most one task per CPU is given out: fast nodes take more, and a task that runs far longer than the others
when CPUs are free is given out a second time; whichever is done first counts.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.errors import GpuledgerError, InputError, LakeError
from gpuledger.lake.engines.attempts import Returned, Sent, Sight, attempt, sights
from gpuledger.lake.engines.cluster import connect
from gpuledger.lake.processes import ALONE, D, Order, Progress, T, done_by
from gpuledger.version import __version__

# Most of what a task was seen to take at its largest; see docs/ray.md.
TASK_BYTES = 1 << 30
RETRIES = 5
# A task with fewer rows than this is done before it has arrived.
TASK_ROWS = 10_000
WAIT_S = 0.5
# A task may take this many times the median, and this many seconds, before it is given out again.
LAGS, LAGS_S = 3.0, 30.0
# A cluster without a node that can take a task is given up after this many seconds.
WITHOUT_NODES_S = 60.0
NOT_SHARED = (
    "keep the lake and the files to import where every node sees them under the same path (a shared file system); "
    "for files without a lake, point TMPDIR there too; or run without a cluster: --engine local"
)


class OnRay:
    """A Ray cluster; connected when it is first asked."""

    elsewhere = True

    def __init__(self, name: str) -> None:
        self.name = name

    def _ray(self) -> Any:
        return connect("auto" if "://" not in self.name else self.name)

    def ready(self) -> None:
        """Connect, and look for a node that can take a task."""
        _slots_or_error(self._ray(), self.name)

    def at_once(self, rows: int, least: int) -> int:  # noqa: ARG002
        """As many as the cluster has CPUs, as far as each gets enough to do; two where it has one, to run there."""
        if rows < 2 * TASK_ROWS:
            return 1
        return min(max(_slots_or_error(self._ray(), self.name), 2), rows // TASK_ROWS)

    def runner(self, several: int, shared: Sequence[str | Path] = (), hint: str = "") -> RayRunner:  # noqa: ARG002
        """Tasks of the cluster, as many at once as it has CPUs by then."""
        return RayRunner(self._ray(), self.name, sights(shared), hint or NOT_SHARED)


@dataclass
class _Given:
    """A task that was given out: its number, and since when."""

    number: int
    since: float = field(default_factory=time.monotonic)


class RayRunner:
    """Runs tasks on a cluster."""

    def __init__(self, ray: Any, name: str, shared: tuple[Sight, ...], hint: str) -> None:
        self._ray, self._name, self._shared, self._hint = ray, name, shared, hint
        needs = {"num_cpus": 1, "memory": TASK_BYTES, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        self._remote = ray.remote(attempt).options(**needs, runtime_env={"env_vars": ALONE})

    def __enter__(self) -> RayRunner:
        return self

    def __exit__(self, *_why: object) -> None:
        """Nothing is left behind: what ran was awaited or canceled."""

    def run(self, work: Callable[[T, Progress], D], tasks: Sequence[T], progress: Progress) -> Iterator[tuple[int, D]]:
        """Do the tasks; what is done comes with its task's number, in any order."""
        orders = [
            msgspec.msgpack.encode(Sent(Order.of(work, task), __version__, self._shared, self._hint)) for task in tasks
        ]
        batch = _Batch(self._ray, self._name, self._remote, orders)
        try:
            for number, returned in batch.returned():
                done = done_by(returned.answer, work)
                for stage, rows in returned.rows.items():
                    progress(stage, rows)
                yield number, done
        finally:
            batch.cancel()


class _Batch:
    """Orders under way."""

    def __init__(self, ray: Any, name: str, remote: Any, orders: Sequence[bytes]) -> None:
        self._ray, self._name, self._remote, self._orders = ray, name, remote, orders
        self._waiting = deque(range(len(orders)))
        self._given: dict[Any, _Given] = {}
        self._took: list[float] = []
        self._seen_at = time.monotonic()
        self._slots = 1

    def returned(self) -> Iterator[tuple[int, Returned]]:
        """What comes back, each number once."""
        left = set(range(len(self._orders)))
        while left:
            self._give()
            ready, _ = self._ray.wait(list(self._given), timeout=WAIT_S)
            for ref in ready:
                given = self._given.pop(ref)
                if given.number not in left:
                    continue
                found = self._fetched(ref)
                left.discard(given.number)
                self._took.append(time.monotonic() - given.since)
                self._drop_twins(given.number)
                yield given.number, found

    def _give(self) -> None:
        """Hand out as much as there are CPUs; where nothing waits, once more what lags."""
        self._slots = slots(self._ray) or self._without_nodes()
        while self._waiting and len(self._given) < self._slots:
            self._submit(self._waiting.popleft())
        if not self._waiting and len(self._given) < self._slots and (lagging := self._lagging()) is not None:
            self._submit(lagging)

    def _without_nodes(self) -> int:
        """Wait for nodes to come back, but not for ever."""
        if time.monotonic() - self._seen_at > WITHOUT_NODES_S:
            raise LakeError(
                f"{self._name}: no node is left that can take a task",
                hint="start nodes (ray start --address=HEAD:6379) and run the command again; what was done is kept",
            )
        return 1

    def _submit(self, number: int) -> None:
        self._seen_at = time.monotonic()
        self._given[self._remote.remote(self._orders[number])] = _Given(number)

    def _lagging(self) -> int | None:
        """A task that runs far longer than the others did, and has no twin."""
        if not self._took:
            return None
        limit = max(LAGS * statistics.median(self._took), LAGS_S)
        numbers = [given.number for given in self._given.values()]
        late = (g for g in self._given.values() if time.monotonic() - g.since > limit and numbers.count(g.number) == 1)
        return next((given.number for given in late), None)

    def _fetched(self, ref: Any) -> Returned:
        try:
            return msgspec.msgpack.decode(self._ray.get(ref), type=Returned)
        except self._ray.exceptions.RayError as error:
            raise _explained(self._name, error) from error

    def _drop_twins(self, number: int) -> None:
        for ref in [r for r, given in self._given.items() if given.number == number]:
            del self._given[ref]
            self._ray.cancel(ref, force=True)

    def cancel(self) -> None:
        """Stop what still runs."""
        for ref in self._given:
            self._ray.cancel(ref, force=True)
        self._given.clear()


def slots(ray: Any) -> int:
    """How many tasks the nodes that are alive can run at once."""
    return sum(
        int(min(node["Resources"].get("CPU", 0), node["Resources"].get("memory", 0) // TASK_BYTES))
        for node in ray.nodes()
        if node["Alive"]
    )


def _slots_or_error(ray: Any, name: str) -> int:
    found = slots(ray)
    if not found:
        gib = TASK_BYTES >> 30
        raise InputError(
            f"{name}: no node of the cluster has a CPU and {gib} GiB of memory for a task",
            hint="add a node (ray start --address=HEAD:6379), or run without a cluster: --engine local",
        )
    return found


def _explained(name: str, error: Exception) -> GpuledgerError:
    """Ray's error in our words: a node without gpuledger, a process that died again and again, a fault of the work."""
    text = str(error).strip()
    lines = text.splitlines() or [type(error).__name__]
    if "No module named" in text and "gpuledger" in text:
        return InputError(
            f"{name}: gpuledger is not installed on a node of the cluster",
            hint=f'run pip install "gpuledger=={__version__}" on every node, in the Python that Ray uses',
        )
    if type(error).__name__ in {"WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "LocalRayletDiedError"}:
        return LakeError(
            f"{name}: a task died with its process {RETRIES + 1} times: {lines[0]}",
            hint="look at the memory of the nodes (ray status), then run the command again; what was done is kept",
        )
    return LakeError(
        f"{name}: a task failed: {lines[-1]}", hint="run it with --engine local; if it fails too, report it"
    )

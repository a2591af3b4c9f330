"""What did each GPU of the lake do lately, who had it last, and how fast did the GPUs of one job run?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from gpuledger.efficiency.naming import name_of
from gpuledger.lake.batch import device_name
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows, joined
from gpuledger.ledger.read.owners import TeamOf
from gpuledger.live.alerts.rule import Owner, Subject
from gpuledger.physics.states import RESTING
from gpuledger.telemetry import schema

SUMS = (
    "observed_ms", "xid_events", "rows_remapped", "row_remap_failures", "thermal_ms", "power_capped_ms", "throttle_ms",
)  # fmt: skip
_OWNER = ("cluster", "namespace", "team", "user", "workload", "run_id")
_PLACE = ("host", "gpu_index", "gpu_model")
_RESTING = frozenset(state.label for state in RESTING)


@dataclass(frozen=True)
class Device:
    """One GPU or MIG instance: where it is, its newest owner, the end of its newest sample, sums of the window.

    `owner_since_ms`: when another owner last had it; 0 where none had lately.
    """

    uuid: str
    instance: str | None
    host: str | None
    gpu_index: str | None
    gpu_model: str | None
    owner: Owner
    last_ms: int
    owner_since_ms: int = 0
    sums: dict[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Board and instance."""
        return device_name(self.uuid, self.instance)

    @property
    def subject(self) -> Subject:
        """What an alert calls it."""
        name = name_of(self.uuid, self.host, self.gpu_index)
        return Subject("gpu", self.id, f"{name} MIG {self.instance}" if self.instance else name)


def newest_devices(books: Books, days: Collection[str], team_of: TeamOf) -> dict[str, Device]:
    """The devices with lines on some days, by id, as their newest lines show them."""
    labels = (*schema.DEVICE, *_OWNER)
    pieces = []
    for _, rows in books.blocks((*_OWNER, *_PLACE), ("last_ms",), hourly=True, days=days):
        pieces.append(_newest(rows, labels))
    rows = _newest(joined(pieces), labels) if pieces else {}
    if not rows:
        return {}
    # One row is left for each owner of a device: the newest has it, the one before had it until then.
    order = np.lexsort((rows["last_ms"], *(rows[c] for c in schema.DEVICE)))
    last = _ends(rows, order, schema.DEVICE)
    at, ends = order[last], rows["last_ms"][order]
    before = np.append(0, ends[:-1])[last]
    alone = np.append(True, last[:-1])[last]
    texts = {c: books.names[c].text(rows[c][at]) for c in (*labels, *_PLACE)}
    since = np.where(alone, 0, before).tolist()
    made = (
        _device({c: texts[c][i] for c in texts}, end_ms, since[i], team_of)
        for i, end_ms in enumerate(ends[last].tolist())
    )
    return {device.id: device for device in made}


def _newest(rows: Rows, labels: tuple[str, ...]) -> Rows:
    """The newest row of each combination of labels."""
    order = np.lexsort((rows["last_ms"], *(rows[c] for c in labels)))
    at = order[_ends(rows, order, labels)]
    return {c: rows[c][at] for c in (*labels, *_PLACE, "last_ms")}


def _ends(rows: Rows, order: np.ndarray, labels: tuple[str, ...]) -> np.ndarray:
    """Which rows, in this order, are the last of their combination of labels."""
    changes = np.zeros(len(order), dtype=bool)
    changes[-1:] = True
    for name in labels:
        changes[:-1] |= np.diff(rows[name][order]) != 0
    return changes


def _device(texts: dict[str, str | None], last_ms: int, since_ms: int, team_of: TeamOf) -> Device:
    owner = {name: texts[name] for name in _OWNER}
    owner["team"] = owner["team"] or team_of(owner["cluster"], owner["namespace"])
    host, index, model = (texts[name] for name in _PLACE)
    uuid, instance = (texts[name] for name in schema.DEVICE)
    return Device(uuid or "", instance, host, index, model, Owner(**owner), last_ms, since_ms)


def window_sums(books: Books) -> dict[str, dict[str, int]]:
    """The sums of each device over the window."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for _, rows in books.blocks((), SUMS, hourly=True):
        for name, at in _grouped(books, rows, schema.DEVICE):
            own = found[device_name(name[0], name[1])]
            for column in SUMS:
                own[column] += int(rows[column][at].sum())
    return dict(found)


Run = tuple[str | None, ...]


@dataclass(frozen=True)
class RankClock:
    """How fast one GPU of a job ran while it worked."""

    device: str
    worked_ms: int
    mhz: float


def run_clocks(books: Books) -> dict[Run, list[RankClock]]:
    """By job and GPU model the mean SM clock of each of its GPUs while they worked."""
    labels = (*schema.DEVICE, "cluster", "namespace", "workload", "run_id", "gpu_model")
    sums: dict[Run, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for _, rows in books.blocks((*labels[2:], "state"), ("clock_ms", "clock_mhz_ms"), hourly=True):
        works = ~books.names["state"].among(_RESTING)[rows["state"]] & (rows["clock_ms"] > 0)
        kept = {c: values[works] for c, values in rows.items()}
        for name, at in _grouped(books, kept, labels):
            uuid, instance, cluster, namespace, workload, run_id, model = name
            if run_id or workload:
                own = sums[cluster, namespace, workload, run_id, model][device_name(uuid, instance)]
                own[0] += int(kept["clock_ms"][at].sum())
                own[1] += int(kept["clock_mhz_ms"][at].sum())
    return {run: [RankClock(d, ms, mhz / ms) for d, (ms, mhz) in sorted(of.items())] for run, of in sums.items()}


def _grouped(books: Books, rows: Rows, labels: tuple[str, ...]) -> Iterator[tuple[tuple[str | None, ...], np.ndarray]]:
    """The rows of each combination of labels, with its texts."""
    if not len(rows["hour_ms"]):
        return
    codes, place = np.unique(np.stack([rows[c] for c in labels]), axis=1, return_inverse=True)
    order = np.argsort(place.reshape(-1), kind="stable")
    cuts = np.flatnonzero(np.diff(place.reshape(-1)[order])) + 1
    texts = zip(*(books.names[c].text(codes[i]) for i, c in enumerate(labels)), strict=True)
    yield from zip(texts, np.split(order, cuts), strict=True)

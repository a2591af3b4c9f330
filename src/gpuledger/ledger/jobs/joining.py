"""Which owner does a sample have, by its own labels and by the jobs that held its GPU?

A label of the sample wins; jobs fill in what it leaves open. A job that contradicts a label did not hold the GPU. A
sample that several jobs held becomes one row for each, which share its time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuledger.lake.batch import COPY, RECORDED_RUN, Batch, board_of
from gpuledger.lake.jobs.claims import LABELS, Claim, Owner
from gpuledger.lake.jobs.store import read_manifest
from gpuledger.lake.layout import Lake
from gpuledger.ledger.jobs.counts import JoinCounts, added
from gpuledger.ledger.jobs.holding import Held, Holdings, Sure
from gpuledger.ledger.store import Ledger
from gpuledger.units import some


class _Answer(NamedTuple):
    """The owners of a row; how they are known (None: the row's own labels are all there is).

    `clusters`: those of the row and of a job, where nothing else speaks against that job.
    """

    owners: tuple[Owner, ...]
    sure: Sure | None
    disagrees: bool = False
    clusters: tuple[tuple[str, str], ...] = ()


class Joined(NamedTuple):
    """Rows with owners, the labels that no device changes, and what was joined."""

    table: pa.Table
    fixed: frozenset[str]
    counts: JoinCounts


def join_jobs(table: pa.Table, fixed: frozenset[str], holdings: Holdings) -> Joined:
    """Rows in order of device and time, without conflicts, with the owners that jobs give them."""
    batch = Batch(table, fixed=fixed)
    held = _held_at(batch, holdings)
    if not (held >= 0).any():
        return Joined(table, fixed, JoinCounts())
    change = batch.changes(LABELS)
    change[batch.device_starts] = True
    change[1:] |= held[1:] != held[:-1]
    runs = np.flatnonzero(change)
    texts = list(zip(*(batch.text(name, runs).to_pylist() for name in LABELS), strict=True))
    lengths = np.diff(runs, append=batch.n)
    known: dict[tuple[int, Owner], _Answer] = {}
    answers = []
    for number, own in zip(held[runs].tolist(), texts, strict=True):
        key = (number, own)
        if key not in known:
            known[key] = _answer(own, None if number < 0 else holdings.held[number])
        answers.append(known[key])
    unplaced = {int(d) for d, a in zip(batch.devices_at(runs), answers, strict=True) if a.sure is Sure.UNPLACED}
    hosts = {holdings.hosts.get(board_of(batch.devices[d]), "") for d in unplaced}
    counts = _counted(answers, lengths.tolist(), hosts)
    return Joined(_rebuilt(table, answers, lengths), fixed - frozenset(LABELS), counts)


def _held_at(batch: Batch, holdings: Holdings) -> np.ndarray:
    """By row the number of its holders; -1 where no job held its board."""
    out = np.full(batch.n, -1, dtype=np.int64)
    ends = np.append(batch.device_starts[1:], batch.n)
    for device, first, last in zip(batch.devices, batch.device_starts.tolist(), ends.tolist(), strict=True):
        found = holdings.of_board.get(board_of(device))
        if found is not None:
            instants, numbers = found
            place = np.searchsorted(instants, batch.at_ms[first:last], side="right") - 1
            out[first:last] = np.where(place >= 0, numbers[place], -1)
    return out


def _answer(own: Owner, held: Held | None) -> _Answer:
    if held is None or held.sure is Sure.UNKNOWN:
        return _Answer((own,), None) if held is None else _unknown(own, held)
    fit = [claim for claim in held.claims if not claim.contradicts(own)]
    if not fit:
        here = own[LABELS.index("cluster")] or ""
        theirs = {claim.cluster or "" for claim in held.claims if claim.differing(own) == {"cluster"}}
        return _Answer((own,), None, disagrees=True, clusters=tuple((here, name) for name in sorted(theirs)))
    if held.sure is Sure.UNPLACED:
        if len(fit) == 1 and fit[0].named_by(own):
            return _Answer((_filled(own, fit[0].labels),), Sure.PLACED)
        return _Answer((_filled(own, _joint(fit, held.free)),), Sure.UNPLACED)
    owners = {_filled(own, claim.labels) for claim in fit}
    return _Answer(tuple(sorted(owners, key=lambda o: tuple(t or "" for t in o))), held.sure)


def _unknown(own: Owner, held: Held) -> _Answer:
    """A row of a GPU whose pod may have ended: what its own labels say, else that it is unknown whose it was."""
    if any(text for name, text in zip(LABELS, own, strict=True) if name != "cluster"):
        return _Answer((own,), None)
    names = list(dict.fromkeys(claim.name for claim in held.claims))
    unknown: dict[str, str | None] = dict.fromkeys(LABELS)
    return _Answer((_filled(own, unknown | {"run_id": f"unknown, perhaps {some(names, 4)}"}),), Sure.UNKNOWN)


def _filled(own: Owner, labels: dict[str, str | None]) -> Owner:
    return tuple(labels[name] if text is None else text for name, text in zip(LABELS, own, strict=True))


def _joint(claims: list[Claim], free: bool) -> dict[str, str | None]:
    """The owner of time of several jobs: what all of them have in common, unless the GPU may have been free."""
    names = list(dict.fromkeys(claim.name for claim in claims))
    shared: dict[str, str | None] = dict.fromkeys(LABELS)
    if not free:
        for name in LABELS:
            values = {claim.labels[name] for claim in claims}
            shared[name] = values.pop() if len(values) == 1 else None
    said = f"shared by job{'s' * (len(names) > 1)} {some(names, 4)}{' and free GPUs' if free else ''}"
    return shared | {"run_id": said}


def _counted(answers: list[_Answer], lengths: list[int], hosts: set[str]) -> JoinCounts:
    totals, overlapping, disagreed = Counter[Sure](), 0, 0
    for answer, rows in zip(answers, lengths, strict=True):
        disagreed += rows * answer.disagrees
        if answer.sure is not None:
            totals[answer.sure] += rows
            overlapping += rows * (len(answer.owners) > 1)
    return JoinCounts(
        totals[Sure.PLACED],
        totals[Sure.ASSUMED],
        totals[Sure.UNPLACED],
        disagreed,
        overlapping,
        totals[Sure.UNKNOWN],
        unplaced_hosts=tuple(sorted(h for h in hosts if h)),
        clusters=tuple(sorted({pair for answer in answers for pair in answer.clusters})),
    )


def _rebuilt(table: pa.Table, answers: list[_Answer], lengths: np.ndarray) -> pa.Table:
    """The rows with these owners; where there are several, one row for each, the later ones marked as copies."""
    many = np.array([len(a.owners) for a in answers])
    base = np.cumsum(many) - many
    copies = np.repeat(many, lengths)
    row = np.repeat(np.arange(table.num_rows), copies)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    place = pa.array(np.repeat(np.repeat(base, lengths), copies) + nth)
    shared = table[COPY].to_numpy()[row] if COPY in table.column_names else np.zeros(len(row), dtype=bool)
    runs = table["run_id"] if "run_id" in table.column_names else pa.nulls(table.num_rows, pa.string())
    out = table.drop_columns([n for n in (RECORDED_RUN, COPY) if n in table.column_names])
    out = out.append_column(RECORDED_RUN, runs)
    if len(row) > table.num_rows:
        out = out.take(pa.array(row))
    if len(row) > table.num_rows or shared.any():
        out = out.append_column(COPY, pa.array((nth > 0) | shared))
    owners = [owner for answer in answers for owner in answer.owners]
    for i, name in enumerate(LABELS):
        values = pa.array([owner[i] for owner in owners], pa.string()).dictionary_encode().take(place)
        out = _with_column(out, name, values)
    return out


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    if name not in table.column_names:
        return table.append_column(name, values)
    return table.set_column(table.column_names.index(name), name, values)


@dataclass(frozen=True)
class Owners:
    """Samples joined over all days; `kept_days`: days that keep the owners they have, as their samples are gone."""

    samples: int
    joined: JoinCounts
    kept_days: tuple[str, ...]


def owners_of(lake: Lake) -> Owners:
    """What the job tables said of all days as they are posted."""
    jobs, days = read_manifest(lake), Ledger(lake).manifest().days
    gone = tuple(d.day for d in days if not d.samples_kept and d.jobs != jobs.of_day(d.day))
    return Owners(sum(d.samples for d in days), added(d.joined for d in days), gone)

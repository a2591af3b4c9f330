"""Who held a board from when to when, and how sure is that?

A job that names its GPUs held those. One that does not held all GPUs of its host that no other job names, if it has at
least as many; the time of a host that such jobs share is theirs together. A board whose own labels name one of them is
that job's, which leaves fewer boards to the others. Nothing is guessed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

import numpy as np

from gpuledger.lake.jobs.claims import Claim, Identity, Owner, ended, is_index, order_of
from gpuledger.ledger.jobs.places import Hosts, Labelled, Place
from gpuledger.units import MS_PER_DAY


class Sure(StrEnum):
    """How it is known who held a board."""

    PLACED = "placed"
    ASSUMED = "assumed"
    UNPLACED = "unplaced"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Held:
    """The jobs that held a board for some time, or, where unplaced, may have. `free`: perhaps none of them did.

    Where unknown: pods that were there before, and ended at a time that no list shows.
    """

    claims: tuple[Claim, ...]
    sure: Sure
    free: bool = False


@dataclass(frozen=True)
class Holdings:
    """By board the instants at which its holders change and the number of the holders from there on (-1: none).

    `unclear`: hosts of jobs that fit several hosts of the samples. `missed`: hosts and GPUs of jobs that no sample of
    the day is from. `unindexed`: hosts whose jobs name GPUs by index, and whose samples do not.
    """

    held: tuple[Held, ...]
    of_board: Mapping[str, tuple[np.ndarray, np.ndarray]]
    hosts: Mapping[str, str]
    unclear: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    unindexed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Span:
    """A claim within the day; or, without one, the labels that a board's own samples carry. `sure`: it ran then."""

    start: int
    end: int
    claim: Claim | None
    own: Owner = ()
    sure: bool = True


@dataclass(frozen=True)
class _Spread:
    """The claims by the board they name, and by host those that name none; what `Holdings` reports of the others."""

    direct: dict[str, list[_Span]] = field(default_factory=lambda: defaultdict(list))
    loose: dict[str, list[_Span]] = field(default_factory=lambda: defaultdict(list))
    missed: set[str] = field(default_factory=set)
    unindexed: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Loose:
    """A job on a host and how many of its boards it holds at least, where that is known but not which.

    0: of a job with fewer GPUs than hosts, which may hold a board here or none.
    """

    claim: Claim
    gpus: int | None


def find_holdings(
    places: Sequence[Place], claims: Iterable[Claim], day_ms: int, labelled: Callable[[], Labelled] = dict
) -> Holdings:
    """Who held the boards of a day. `claims`: of jobs that ran on it; `labelled`: the labels of samples by board."""
    boards: dict[str, set[str]] = defaultdict(set)
    sizes: dict[str, int] = defaultdict(int)
    for place in places:
        host = place.host or ""
        boards[host].add(place.board)
        # A board that is not sampled shows by the indices of those that are.
        sizes[host] = max(sizes[host], len(boards[host]), int(place.gpu_index or -1) + 1)
    ordered = sorted(ended(claims), key=order_of)
    hosts = Hosts([h for h in boards if h], [c.host for c in ordered if c.host])
    spread = _spread(places, ordered, hosts, (day_ms, day_ms + MS_PER_DAY))
    said = labelled() if spread.loose else {}
    numbers: dict[Held, int] = {}
    out: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for host, mine in boards.items():
        shared = spread.loose.get(host, [])
        groups = [sorted(mine)] if shared else [[b] for b in sorted(mine)]
        for group in groups:
            found = {b: spread.direct[b] for b in group if b in spread.direct}
            if found or shared:
                if shared:
                    for b in group:
                        found[b] = [
                            *found.get(b, ()),
                            *(_Span(start, end, None, own) for start, end, own in said.get(b, ())),
                        ]
                _sweep(group, found, shared, sizes[host], numbers, out)
    of_host = {b: host for host, mine in boards.items() for b in mine}
    odd = (tuple(sorted(names)) for names in (hosts.unclear, spread.missed, spread.unindexed))
    return Holdings(tuple(numbers), out, of_host, *odd)


def _spread(places: Sequence[Place], claims: Sequence[Claim], hosts: Hosts, day: tuple[int, int]) -> _Spread:
    known = {p.board for p in places}
    by_index: dict[tuple[str | None, str | None], str] = {
        (p.host, p.gpu_index): p.board for p in places if p.host and p.gpu_index is not None
    }
    indexed = {p.host for p in places if p.gpu_index is not None}
    out = _Spread()
    for claim in claims:
        if not (spans := _spans(claim, day)):
            continue
        if claim.gpu is not None and not is_index(claim.gpu):
            if claim.gpu in known:
                out.direct[claim.gpu] += spans
            else:
                out.missed.add(claim.gpu)
            continue
        host = hosts.find(claim.host) if claim.host else None
        if host is None:
            out.missed.update({claim.host} - hosts.unclear if claim.host else ())
            continue
        board = by_index.get((host, claim.gpu))
        if claim.gpu is not None and board is not None:
            out.direct[board] += spans
        elif claim.gpu is None or host not in indexed:  # or the samples do not say which board has which index
            out.loose[host] += spans
            out.unindexed.update(() if claim.gpu is None else (host,))
        else:
            out.missed.add(f"{claim.host}/{claim.gpu}")
    return out


def _spans(claim: Claim, day: tuple[int, int]) -> list[_Span]:
    """The part of the day over which the job surely ran, and the one over which it may have."""
    end = day[1] if claim.end_ms is None else claim.end_ms
    sure = end if claim.sure_ms is None else min(claim.sure_ms, end)
    cut = ((claim.start_ms, sure, True), (sure, end, False))
    inside = ((max(first, day[0]), min(last, day[1]), certain) for first, last, certain in cut)
    return [_Span(first, last, claim, sure=certain) for first, last, certain in inside if first < last]


def _sweep(
    boards: Sequence[str],
    direct: Mapping[str, list[_Span]],
    loose: Sequence[_Span],
    size: int,
    numbers: dict[Held, int],
    out: dict[str, tuple[np.ndarray, np.ndarray]],
) -> None:
    """Go through the instants at which something changes on a host; note for each board who holds it from there on."""
    spans = [(board, s) for board, found in direct.items() for s in found] + [("", s) for s in loose]
    begins, ends = defaultdict(list), defaultdict(list)
    for place, (_, span) in enumerate(spans):
        begins[span.start].append(place)
        ends[span.end].append(place)
    instants = sorted({*begins, *ends})
    active: set[int] = set()
    found: dict[str, list[int]] = {board: [] for board in boards}
    for at in instants:
        active.difference_update(ends.get(at, ()))
        active.update(begins.get(at, ()))
        here: dict[str, dict[Identity, Claim]] = defaultdict(dict)
        maybe: dict[str, dict[Identity, Claim]] = defaultdict(dict)
        rest: dict[Identity, list[Claim]] = defaultdict(list)
        said: dict[str, Owner] = {}
        for place in sorted(active):
            board, span = spans[place]
            if span.claim is None:
                said[board] = span.own
            elif not span.sure:
                maybe[board][span.claim.identity] = span.claim
            elif board:
                here[board].setdefault(span.claim.identity, span.claim)
            else:
                rest[span.claim.identity].append(span.claim)
        # A job that names GPUs of the host is taken at its word, whatever other tables leave open.
        named = {job for found_here in here.values() for job in found_here}
        others = {job: _loose(claims) for job, claims in rest.items() if job not in named}
        strange = _by_label(said, here, others, size)
        for board in boards:
            held = _held(here.get(board, {}), others, size - len(here) - strange, size)
            if maybe:
                held = _doubted(held, {**maybe.get(board, {}), **maybe.get("", {})})
            found[board].append(-1 if held is None else numbers.setdefault(held, len(numbers)))
    for board, codes in found.items():
        starts = [0, *(i for i, (a, b) in enumerate(pairwise(codes), start=1) if a != b)]
        out[board] = np.array([instants[i] for i in starts]), np.array([codes[i] for i in starts])


def _by_label(
    said: Mapping[str, Owner], here: dict[str, dict[Identity, Claim]], others: dict[Identity, _Loose], size: int
) -> int:
    """Put jobs on the boards whose own labels name them; returns how many boards have labels that fit none of them."""
    strange, placed = 0, dict[str, Identity]()
    for board, own in said.items():
        if board in here:
            continue
        fit = [job for job, one in others.items() if not one.claim.contradicts(own)]
        strange += not fit
        if len(fit) == 1 and others[fit[0]].claim.named_by(own):
            placed[board] = fit[0]
    for board, job in placed.items():
        here[board][job] = others[job].claim
    for job, boards in Counter(placed.values()).items():
        claim, gpus = others[job].claim, others[job].gpus
        if gpus is not None and gpus < size:  # one that holds all of the host stays there
            if gpus > boards:
                others[job] = _Loose(claim, gpus - boards)
            else:  # all of its GPUs are found
                del others[job]
    return strange


def _loose(claims: Sequence[Claim]) -> _Loose:
    """What the claims of one job on one host say together."""
    counts = [c.gpus for c in claims if c.gpu is None and c.gpus is not None]
    if named := {c.gpu for c in claims if c.gpu is not None}:
        counts.append(len(named))
    return _Loose(claims[0], max(counts, default=None))


def _held(direct: Mapping[Identity, Claim], loose: Mapping[Identity, _Loose], free: int, size: int) -> Held | None:
    """Who holds a board: `direct` name it, `loose` are on its host; `free` of its `size` boards are named by none."""
    whole = {i: s.claim for i, s in loose.items() if s.gpus is not None and s.gpus >= size}
    if direct or (loose and len(whole) == len(loose)):
        return Held(_ordered({**whole, **direct}), Sure.PLACED)
    if not loose:
        return None
    claims = _ordered({i: s.claim for i, s in loose.items()})
    if len(loose) == 1:
        (span,) = loose.values()
        if span.gpus is None:
            return Held(claims, Sure.ASSUMED)
        return Held(claims, Sure.PLACED) if span.gpus >= free else Held(claims, Sure.UNPLACED, free=True)
    wanted = [s.gpus for s in loose.values() if s.gpus is not None]
    return Held(claims, Sure.UNPLACED, free=len(wanted) < len(loose) or sum(wanted) < free)


def _doubted(held: Held | None, maybe: Mapping[Identity, Claim]) -> Held | None:
    """Who holds a board, where pods that may have ended may hold it too; those that surely hold it leave them none."""
    if not maybe:
        return held
    if held is None:
        return Held(_ordered(maybe), Sure.UNKNOWN)
    return Held(held.claims, Sure.UNPLACED, free=True) if held.sure is Sure.ASSUMED else held


def _ordered(claims: Mapping[Identity, Claim]) -> tuple[Claim, ...]:
    return tuple(sorted(claims.values(), key=order_of))

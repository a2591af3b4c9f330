"""How are the dollars of a machine spread over its GPUs?

A charge pays for the GPUs that were seen on its machine in its period, each for the time it was there, at one rate: the
dollars over all of that time. A GPU first seen within an hour of the machine's first sample was there from the start of
the period, and the same at the end, so that time without samples is paid for too. Where the bill says that the machine
ran for less than the period, the time it was seen is within those hours. A machine that ran for $0 was paid for in some
other way (capacity blocks, reservations): its price is not $0 but unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.inventories.findings import PartlySeen, Unmatched, Why
from gpuledger.cost.inventories.kinds import Found, Spent
from gpuledger.cost.inventories.matching import Directory, Presence
from gpuledger.units import MS_PER_HOUR

Stretch = tuple[int, int]


@dataclass(frozen=True)
class Bought:
    """How a stretch was bought; `row` is one of the rows it comes from."""

    kind: str
    file: str
    row: int
    instance: str
    region: str
    purchase_option: str

    @property
    def how(self) -> tuple[str, ...]:
        """All but the row."""
        return self.kind, self.instance, self.region, self.purchase_option


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of some GPUs at one rate: `usd` for `over_ms` of one GPU."""

    gpus: tuple[str, ...]
    start_ms: int
    end_ms: int
    usd: Decimal
    over_ms: int | Fraction
    bought: Bought

    @property
    def usd_per_h(self) -> Fraction:
        """Dollars per GPU-hour."""
        return Fraction(self.usd) * MS_PER_HOUR / self.over_ms


@dataclass
class Spread:
    """All pieces, and what could not be spread."""

    pieces: list[Piece] = field(default_factory=list)
    unmatched: list[Unmatched] = field(default_factory=list)
    partly: dict[str, PartlySeen] = field(default_factory=dict)
    matched_usd: Decimal = Decimal(0)
    idle_priced_ms: Fraction = Fraction(0)
    outside_ms: int = 0
    repeated_rows: int = 0


def spread(found: Iterable[Found], directory: Directory) -> Spread:
    """The charges of all files over the GPUs of the lake."""
    out = Spread()
    lake = _hull(directory.presences)
    for kind in sorted({one.kind for one in found}):
        rows = _once([one.spent for one in found if one.kind == kind], out)
        for charge in _joined(rows, directory):
            _spread_one(charge, directory, lake, kind, out)
    out.pieces = _merged(out.pieces)
    return out


def _once(files: Sequence[Sequence[Spent]], out: Spread) -> list[Spent]:
    """The rows of files of one kind; a row that is in several of them, as exports overlap, counts once."""
    if len(files) == 1:
        return list(files[0])
    most: Counter[Spent] = Counter()
    rows: dict[Spent, Spent] = {}
    for file in files:
        alike = Counter(replace(row, file="", row=0) for row in file)
        out.repeated_rows += sum((most & alike).values())
        most |= alike
        for row in file:
            key = replace(row, file="", row=0)
            rows[key] = min(rows.get(key, row), row, key=lambda s: (s.file, s.row))
    return [rows[key] for key, times in most.items() for _ in range(times)]


@dataclass(frozen=True)
class _Charge:
    """All rows of one machine and period; `rows` are how many. `free`: none of them has dollars, not even to cancel."""

    spent: Spent
    rows: int
    free: bool


def _joined(rows: Iterable[Spent], directory: Directory) -> Iterator[_Charge]:
    """Rows of one machine and period added up: usage, discounts, credits, cores and memory."""
    groups: dict[tuple[str, int, int], list[Spent]] = {}
    for row in rows:
        groups.setdefault((directory.key(row.names), row.start_ms, row.end_ms), []).append(row)
    for key in sorted(groups):
        if len(groups[key]) == 1:
            yield _Charge(groups[key][0], 1, not groups[key][0].usd)
            continue
        # In an order of their own, so that neither the order of rows nor of files matters.
        mine = sorted(groups[key], key=lambda s: (-s.usd, s.file, s.row))
        hours = [s.hours for s in mine if s.hours is not None]
        gpu_hours = [s.gpu_hours for s in mine if s.gpu_hours is not None]
        yield _Charge(
            replace(
                mine[0],
                usd=sum((s.usd for s in mine), Decimal(0)),
                hours=sum(hours, Decimal(0)) if hours else None,
                gpu_hours=sum(gpu_hours, Decimal(0)) if len(gpu_hours) == len(mine) else None,
                instance=next((s.instance for s in mine if s.instance), ""),
                region=next((s.region for s in mine if s.region), ""),
                gpus=next((s.gpus for s in mine if s.gpus), None),
            ),
            len(mine),
            not any(s.usd for s in mine),
        )


def _spread_one(charge: _Charge, directory: Directory, lake: Stretch, kind: str, out: Spread) -> None:
    spent, gpus = charge.spent, directory.meant(charge.spent.names)
    stretches = _stretches(spent, gpus)
    if not stretches or charge.free:
        out.unmatched.append(_unmatched(charge, directory, lake))
        return
    length: int | Fraction = (whole := sum(end - start for start, end in stretches.values()))
    if spent.gpu_hours:
        allocated = Fraction(spent.gpu_hours) * MS_PER_HOUR
        # Which of the period's hours were allocated is not in the file: the same share of those the lake covers.
        covered = sum(max(min(end, lake[1]) - max(start, lake[0]), 0) for start, end in stretches.values())
        out.idle_priced_ms += max(length - allocated, Fraction(0)) * covered / whole
        out.outside_ms += whole - covered
        length = allocated
    bought = Bought(kind, spent.file, spent.row, spent.instance, spent.region, spent.purchase_option)
    alike: dict[Stretch, list[str]] = {}
    for uuid, stretch in stretches.items():
        alike.setdefault(stretch, []).append(uuid)
    out.pieces += [Piece(tuple(sorted(uuids)), *stretch, spent.usd, length, bought) for stretch, uuids in alike.items()]
    out.matched_usd += spent.usd
    # A GPU that was swapped makes one more name, never one more GPU at the same time.
    if spent.gpus and len(stretches) < spent.gpus and len({seen.host for seen in gpus}) == 1:
        host = gpus[0].host
        seen = max(len(stretches), out.partly[host].seen if host in out.partly else 0)
        out.partly[host] = PartlySeen(host, seen, spent.gpus)


def _stretches(spent: Spent, gpus: Sequence[Presence]) -> dict[str, Stretch]:
    """When each GPU of the machine is paid for by a charge."""
    there = {g.gpu_uuid: (max(g.first_ms, spent.start_ms), min(g.last_ms, spent.end_ms)) for g in gpus}
    there = {uuid: (first, last) for uuid, (first, last) in there.items() if first <= last and first < spent.end_ms}
    if not there:
        return {}
    first, last = min(a for a, _ in there.values()), max(b for _, b in there.values())
    start, end = _ran(spent, first, last)
    out = {
        uuid: (start if a - first < MS_PER_HOUR else a, end if last - b < MS_PER_HOUR else b)
        for uuid, (a, b) in there.items()
    }
    return {uuid: stretch for uuid, stretch in out.items() if stretch[0] < stretch[1]}


def _ran(spent: Spent, first: int, last: int) -> Stretch:
    """When the machine ran: the whole period, or as many hours of it as the bill says, around the time it was seen."""
    ran = None if not spent.hours else round(Fraction(spent.hours) * MS_PER_HOUR)
    if ran is None or ran >= spent.end_ms - spent.start_ms:
        return spent.start_ms, spent.end_ms
    start = max(spent.start_ms, min(first, spent.end_ms - ran))
    return start, max(start + ran, last)


def _unmatched(charge: _Charge, directory: Directory, lake: Stretch) -> Unmatched:
    spent = charge.spent
    outside = spent.end_ms <= lake[0] or spent.start_ms > lake[1]
    why = Why.OUTSIDE_LAKE if outside else why_not(directory, spent.names)
    if charge.free and why is Why.NOT_SEEN_THEN:
        why = Why.NOTHING_CHARGED
    what = (spent.names[0], why, spent.file, spent.instance)
    return Unmatched(*what, charge.rows, spent.usd, spent.start_ms, spent.end_ms)


def why_not(directory: Directory, names: tuple[str, ...]) -> Why:
    """Why these names mean no GPU of the time in question."""
    if directory.meant(names):
        return Why.NOT_SEEN_THEN
    return Why.SEVERAL_HOSTS if directory.ambiguous(names) else Why.NO_SUCH_HOST


def _hull(presences: Sequence[Presence]) -> Stretch:
    return min((p.first_ms for p in presences), default=0), max((p.last_ms for p in presences), default=0)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Pieces that follow each other at the same rate as one: a bill by the hour becomes as short as one by month."""
    out: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.gpus, p.bought.kind, p.start_ms, p.end_ms)):
        old = out[-1] if out else None
        if (
            old
            and (old.end_ms, old.usd, old.over_ms, old.gpus) == (piece.start_ms, piece.usd, piece.over_ms, piece.gpus)
            and old.bought.how == piece.bought.how
        ):
            out[-1] = replace(old, end_ms=piece.end_ms)
            continue
        out.append(piece)
    return out

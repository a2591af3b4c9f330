"""Are figures the same however many files a day is posted to, and however days are shared out to be added up?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import to_json
from gpuledger.lake.engines import choosing
from gpuledger.lake.layout import Lake
from gpuledger.ledger.book_files import TEMPORARY
from gpuledger.ledger.day_writer import DayWriter
from gpuledger.ledger.posting import empty_tables
from gpuledger.ledger.read import shares
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.straight import post_files
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import MS_PER_HOUR


class OneByOne:
    """An engine that shares work out as a cluster does, and does it here."""

    name = "one by one"
    elsewhere = True

    def __init__(self, several: int) -> None:
        self._several = several

    def ready(self) -> None:
        pass

    def at_once(self, rows: int, least: int) -> int:
        return self._several

    def runner(self, several: int, shared: Sequence[str | Path] = (), hint: str = "") -> OneByOne:
        return self

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_why: object) -> None:
        pass

    def run(self, work: Callable[..., Any], tasks: Sequence[Any], progress: Any) -> Iterator[tuple[int, Any]]:
        for number in reversed(range(len(tasks))):
            yield number, work(tasks[number], progress)


@pytest.fixture
def shared_out(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Use an engine with that many at once; even a few lines are worth it."""
    monkeypatch.setattr(shares, "BYTES_WORTH_SHARES", 0)
    return lambda several: monkeypatch.setattr(choosing, "engine_named", lambda _name: OneByOne(several))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven GPUs over three days; steps of seven minutes, some left out: spans reach over midnight."""
    file = tmp_path_factory.mktemp("fleet") / "fleet.parquet"
    write_fleet(FleetSpec(gpus=7, days=3, step_s=420), file)
    table = pq.read_table(file)
    kept = np.random.default_rng(3).random(table.num_rows) > 0.15
    pq.write_table(table.filter(pa.array(kept)), file)
    return file


def test_pieces_and_shares_change_no_digit(tmp_path: Path, fleet: Path, shared_out: Callable[[int], None]) -> None:
    limits, found = load_thresholds(), []
    for several in (1, 2, 3, 5):
        lake = Lake(tmp_path / str(several))
        shared_out(several)
        post_files(lake, [fleet], limits)
        first = min(posted.day for posted in Ledger(lake).manifest().days)
        start = int(np.datetime64(first, "ms").astype(np.int64))
        window = Scope(start + 5 * MS_PER_HOUR, start + 50 * MS_PER_HOUR + 1_000_000)
        found.append([to_json(efficiency_statement(lake, scope)) for scope in (Scope(), window)])
        assert len(list(lake.ledger_dir.glob(f"{first}/*.lines{TEMPORARY}"))) >= several
    assert all(one == found[0] for one in found)


ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 1 << 61)), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(1, 29), max_size=4))
def test_what_is_handed_over_adds_up_to_the_same(rows: list[tuple[int, int, int]], cuts: list[int]) -> None:
    """In parts that are each added up elsewhere, or row by row: the same sums, and the sums are the true ones."""

    def filled(into: Accumulator, some: Sequence[tuple[int, int, int]]) -> Accumulator:
        for a, b, n in some:
            keys = [np.array([a]), np.array([b])]
            into.add(
                keys, {"n": np.array([n]), "small": np.array([n % 7]), "most": np.array([n]), "least": np.array([n])}
            )
        return into

    whole = filled(Accumulator(most=("most",), least=("least",)), rows)
    edges = sorted({0, *(c for c in cuts if c < len(rows)), len(rows)})
    apart = Accumulator(most=("most",), least=("least",))
    for first, last in pairwise(edges):
        apart.add(*filled(Accumulator(most=("most",), least=("least",)), rows[first:last]).handed_over())
    (keys, sums), (other_keys, other) = whole.total(), apart.total()
    assert [k.tolist() for k in keys] == [k.tolist() for k in other_keys]
    assert {n: v.tolist() for n, v in sums.items()} == {n: v.tolist() for n, v in other.items()}
    for a, b, n in zip(*(k.tolist() for k in keys), sums["n"].tolist(), strict=True):
        assert n == float(sum(value for x, y, value in rows if (x, y) == (a, b)))


def test_a_killed_writer_leaves_nothing_that_is_read(tmp_path: Path, fleet: Path) -> None:
    """Files are written aside: what is left of a writer that was killed goes with the next commit of its day."""
    lake, limits = Lake(tmp_path / "lake"), load_thresholds()
    post_files(lake, [fleet], limits)
    ledger = Ledger(lake)
    posted = ledger.manifest().days[0]
    lines = ledger.read("lines", posted.day)
    killed = DayWriter(ledger, posted.day, posted.generation, 0)
    killed.__enter__()
    killed.add("lines", lines.slice(0, 3))
    assert len(list((ledger.root / posted.day).glob("*~*"))) == 3  # lines, and their sums over the day and over owners
    assert ledger.read("lines", posted.day).equals(lines)
    ledger.commit(posted)
    assert not list((ledger.root / posted.day).glob("*~*"))
    assert ledger.read("lines", posted.day).equals(lines)


def test_a_failed_writer_leaves_nothing(tmp_path: Path) -> None:
    ledger = Ledger(Lake(tmp_path))
    writer = DayWriter(ledger, "2026-01-20", 1)
    writer.__enter__()
    for name, empty in empty_tables().items():
        writer.add(name, empty)
    writer.__exit__(ValueError, ValueError("stop"), None)
    assert not list((ledger.root / "2026-01-20").iterdir())

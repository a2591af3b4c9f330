"""Which lines of the ledger does a statement stand on?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuledger.errors import InputError, UnknownName, nearest
from gpuledger.lake.layout import Lake
from gpuledger.ledger.store import Ledger
from gpuledger.units import MS_PER_DAY, utc, utc_day

if TYPE_CHECKING:
    import duckdb

# Time nobody held a GPU for; the word also works as a filter.
UNALLOCATED = "unallocated"
SOURCE = "read_parquet($files, union_by_name = true, hive_partitioning = false)"
MEMORY_LIMIT = "1GB"
ACHIEVABLE_SOURCES = ("s0", "peak", "measured")


@dataclass(frozen=True)
class Scope:
    """The window and the owners asked for. A line belongs to the window when its hour starts in [since, until)."""

    since_ms: int | None = None
    until_ms: int | None = None
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def names_owners(self) -> bool:
        """Whether only some owners are asked for."""
        return bool(self.clusters or self.namespaces or self.owners)

    def days(self) -> tuple[str, str] | None:
        """The days whose files can hold such lines; a span over midnight is posted with the day before."""
        if self.since_ms is None and self.until_ms is None:
            return None
        first = "" if self.since_ms is None else utc_day(self.since_ms - MS_PER_DAY)
        return first, "9999" if self.until_ms is None else utc_day(self.until_ms)

    @property
    def whole_days(self) -> bool:
        """Whether the window begins and ends at midnight, where it does."""
        return all(t is None or t % MS_PER_DAY == 0 for t in (self.since_ms, self.until_ms))

    def where(self, *, owners: bool = True) -> tuple[str, dict[str, Any]]:
        """The condition in SQL and its parameters, with or without the owners."""
        tests: list[str] = []
        given: dict[str, Any] = {}
        for name, test in (("since_ms", "hour_ms >= $since_ms"), ("until_ms", "hour_ms < $until_ms")):
            if (value := getattr(self, name)) is not None:
                tests.append(test)
                given[name] = value
        if owners and self.clusters:
            tests.append("list_contains($clusters, cluster)")
            given["clusters"] = list(self.clusters)
        if owners and self.namespaces:
            tests.append(f"list_contains($namespaces, coalesce(namespace, '{UNALLOCATED}'))")
            given["namespaces"] = list(self.namespaces)
        if owners and self.owners:
            own = ("workload", "run_id", "namespace || '/' || workload")
            tests.append(f"({' OR '.join(f'list_contains($owners, {text})' for text in own)})")
            given["owners"] = list(self.owners)
        return (f"WHERE {' AND '.join(tests)}" if tests else ""), given

    def __str__(self) -> str:
        parts = [f"from {utc(self.since_ms):%Y-%m-%d %H:%M} UTC"] if self.since_ms is not None else []
        parts += [f"until {utc(self.until_ms):%Y-%m-%d %H:%M} UTC"] if self.until_ms is not None else []
        for kind in ("clusters", "namespaces", "owners"):
            if names := getattr(self, kind):
                parts.append(f"{kind} {', '.join(names)}")
        return ", ".join(parts) or "no filter"


def check_source(achievable: str) -> str:
    """The named source of achievable TFLOPS, or an error that lists them."""
    if achievable not in ACHIEVABLE_SOURCES:
        raise UnknownName("source of achievable TFLOPS", achievable, ACHIEVABLE_SOURCES)
    return achievable


def line_files(lake: Lake, scope: Scope) -> list[str]:
    """The files of lines that can matter; an error where there is none."""
    lake.require()
    ledger = Ledger(lake)
    if not ledger.manifest().days:
        raise InputError(
            f"{lake.root}: nothing is posted yet", hint="post the samples first: gpuledger analyze does it on the way"
        )
    files = ledger.files("lines", scope.days())
    if not files:
        raise nothing_found(lake, scope)
    return files


def open_books(lake: Lake, scope: Scope) -> tuple[duckdb.DuckDBPyConnection, list[str]]:
    """A bounded query engine, and the files of lines that can matter."""
    import duckdb  # the efficiency statement needs none

    files = line_files(lake, scope)
    db = duckdb.connect()
    db.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    return db, files


def nothing_found(lake: Lake, scope: Scope) -> InputError:
    """The error for a scope without a line: what was asked, and what there is."""
    import duckdb

    ledger = Ledger(lake)
    days = sorted(d.day for d in ledger.manifest().days)
    names: dict[str, list[str]] = {}
    with duckdb.connect() as db:
        for kind in ("cluster", "namespace", "workload"):
            sql = f"SELECT DISTINCT {kind} FROM {SOURCE} WHERE {kind} IS NOT NULL ORDER BY 1"  # noqa: S608
            names[kind] = [row[0] for row in db.execute(sql, {"files": ledger.files("lines")}).fetchall()]
    there = [f"days {days[0]} to {days[-1]}"] if days else []
    there += [f"{kind}s {', '.join(known[:12])}" for kind, known in names.items() if known]
    asked = (("cluster", scope.clusters), ("namespace", scope.namespaces), ("workload", scope.owners))
    close = [n for kind, wanted in asked for w in wanted if w not in names[kind] for n in nearest(w, names[kind], 1)]
    hint = f"the ledger holds {'; '.join(there)}"
    if close:
        hint = f"did you mean {' or '.join(close)}? {hint}"
    return InputError(f"no line of the ledger matches: {scope}", hint=hint)

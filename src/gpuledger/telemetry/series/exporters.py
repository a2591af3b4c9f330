"""Which metric of which exporter fills which column, and in what unit does it come?"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import load_mapping

NAME = "__name__"


class _Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    column: str
    sources: tuple[str, ...]
    multiply: float = 1.0
    divide: float = 1.0
    plus: str = ""
    share_with: tuple[str, ...] = ()
    where: dict[str, tuple[str, ...]] = {}
    lowest: str = ""


class _Partition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    kind: str
    whole: tuple[str, ...]


class Exporter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exporter as its data file describes it.

    `board`: the label that several devices may share where a board has more than one. `whole`: what the kind of a
    partition reads on a device that is not partitioned. `vendor`: whose GPUs it is the usual exporter of.
    """

    name: str
    device: str
    vendor: str = ""
    includes: str = ""
    prefixes: tuple[str, ...] = ("",)
    uuid_prefix: str = ""
    info: tuple[str, ...] = ()
    board: str = ""
    partition: _Partition | None = None
    labels: dict[str, tuple[str, ...]] = {}
    metrics: tuple[_Metric, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    not_needed: tuple[str, ...]
    exporters: tuple[Exporter, ...]


@dataclass(frozen=True)
class Reading:
    """What a metric means: the column, the factor to its unit, and its rank among metrics of the same column.

    Values from `blank_from` up are the exporter's way to write that it has no value. `half`: 1 or 2 where two metrics
    make one reading together, else 0. `share_with`: metrics next to which this one is a share; else it may be percent.
    """

    exporter: Exporter
    column: str
    multiply: float
    divide: float
    rank: int
    where: dict[str, tuple[str, ...]]
    lowest: str
    blank_from: float
    half: int = 0
    share_with: tuple[str, ...] = ()


@cache
def _file() -> _File:
    return load_toml(data_dir(__package__, "exporters.toml"), _File)


@cache
def exporters() -> dict[str, Exporter]:
    """All known exporters by name."""
    return {e.name: e for e in _file().exporters}


@cache
def readings() -> dict[str, tuple[Reading, ...]]:
    """What each metric means, by its name; several meanings differ by their labels."""
    found: dict[str, tuple[Reading, ...]] = {}
    for exporter in exporters().values():
        blank_from = load_mapping(exporter.includes).blank_from if exporter.includes else float("inf")
        ranks = Counter[str]()
        for rule in _rules(exporter):
            sources = [(source, int(bool(rule.plus))) for source in _names(rule)]
            for source, half in [*sources, *([(rule.plus, 2)] if rule.plus else [])]:
                reading = Reading(
                    exporter, rule.column, rule.multiply, rule.divide, ranks[rule.column], rule.where, rule.lowest,
                    blank_from, half, rule.share_with,
                )  # fmt: skip
                ranks[rule.column] += not half
                for prefix in exporter.prefixes:
                    found[prefix + source] = (*found.get(prefix + source, ()), reading)
    return found


@cache
def proofs_of_shares() -> frozenset[str]:
    """The metrics next to which one that may be in percent is a share."""
    return frozenset(name for found in readings().values() for reading in found for name in reading.share_with)


def _rules(exporter: Exporter) -> tuple[_Metric, ...]:
    if not exporter.includes:
        return exporter.metrics
    shared = load_mapping(exporter.includes).values
    return tuple(
        _Metric(v.column, v.sources, v.multiply, v.divide, v.plus, v.share_with) for v in shared if not v.parse
    )


@cache
def fields_of(vendor: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """What the exporter of a vendor's GPUs calls these columns; empty unless it has all of them."""
    rules = [rule for e in exporters().values() if e.vendor == vendor for rule in _rules(e)]
    names = {rule.column: rule.sources[0] for rule in reversed(rules)}
    return tuple(names[column] for column in columns) if set(columns) <= names.keys() else ()


def _names(rule: _Metric) -> tuple[str, ...]:
    """The metrics of a reading, the surest first; collectors that speak OpenMetrics let counters end in _total."""
    if rule.column not in schema.counters():
        return rule.sources
    return (*rule.sources, *(f"{source}_total" for source in rule.sources if not source.endswith("_total")))


def reading_of(labels: Mapping[str, str]) -> Reading | None:
    """What a series measures; None where it is not a reading of a GPU that is kept."""
    for reading in readings().get(labels.get(NAME, ""), ()):
        if all(labels.get(name, "").strip() in wanted for name, wanted in reading.where.items()):
            return reading
    return None


@cache
def infos() -> dict[str, Exporter]:
    """The metrics whose labels describe a device, by name."""
    return {prefix + name: e for e in exporters().values() for name in e.info for prefix in e.prefixes}


@cache
def label_names(exporter: str) -> dict[str, tuple[str, ...]]:
    """The names a label may have in series of an exporter, by the schema's name, the surest first."""
    own, shared = exporters()[exporter].labels, load_mapping("dcgm").labels
    return {c: (*own.get(c, ()), *shared.get(c, ())) for c in dict.fromkeys([*shared, *own])}


def is_own_pod(pod: str) -> bool:
    """Whether a pod is that of an exporter, by its name."""
    return any(fnmatch.fnmatchcase(pod, pattern) for pattern in load_mapping("dcgm").exporter_pods)


@cache
def is_needless(name: str) -> bool:
    """Whether a metric is known and holds nothing that is read."""
    patterns = (*_file().not_needed, *load_mapping("dcgm").not_needed)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def not_read(names: Iterable[str], known: Mapping[str, list[str]]) -> set[str]:
    """Those of a server's metrics that begin as the known ones among them do, and of which nothing is read."""
    read = {name for metrics in known.values() for name in metrics}
    starts = tuple({f"{name.partition('_')[0]}_" for name in read})
    return {name for name in names if name.startswith(starts) and name not in read and not is_needless(name)}


def known_metrics(names: Iterable[str]) -> dict[str, list[str]]:
    """Those of the names that are readings or describe devices, by exporter."""
    found: dict[str, list[str]] = {}
    for name in names:
        owners = [r.exporter.name for r in readings().get(name, ())] or [e.name for e in (infos().get(name),) if e]
        if owners:
            found.setdefault(owners[0], []).append(name)
    return {exporter: sorted(metrics) for exporter, metrics in found.items()}

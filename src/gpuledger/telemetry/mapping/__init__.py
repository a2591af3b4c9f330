"""Which column of a source fills which column of the schema?

rules       what a mapping file may say
files       the mapping files of the package, and a user's own
checks      whether every name and number in a user's file means something
faults      what is wrong with a file that a mapping does not fit
wide        which columns of a row with several GPUs are one GPU's
shape       a file with its wide rows made long and its date and time joined
suggest     what an unknown column may be by its name
values      in which unit it is, by its cells
times       which column has the time, and how it is written
own_headers how a table is read that no tool is known to write
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from gpuledger.errors import FileFault, nearest
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping.checks import asking, constant_reading, missing, no_reading
from gpuledger.telemetry.mapping.files import OWN, load_mapping, shipped
from gpuledger.telemetry.mapping.rules import Mapping, TimeRule, ValueRule, WideRule
from gpuledger.telemetry.mapping.wide import template
from gpuledger.telemetry.measures import Factor, factor_of, header_unit
from gpuledger.times import Instant, Length, instant_ms, length_ms

__all__ = [
    "NOTHING_GIVEN", "OWN_HEADERS", "Bound", "Fitted", "Given", "Mapping", "TimeRule", "ValueRule", "WideRule", "bind",
    "factor", "fitted", "given", "is_not_needed", "load_mapping", "recognized", "shipped",
]  # fmt: skip

# The name of what is found for a table with headers of its own.
OWN_HEADERS = "own headers"
# What the fields of a tool begin with, and how alike the rest of two names is where one is the other misspelled.
_FIELD = re.compile(r"DCGM_(?:EXP_|FI_(?:DEV_|PROF_)?)?")
_FIELDS_ALIKE = 0.85


class Given(msgspec.Struct, frozen=True):
    """What the user says about files that do not say it themselves; `every_ms`: how far rows of a GPU are apart.

    `mean`: nothing shows the times of rows, so the mean of each GPU's rows stands for one reading.
    """

    at_ms: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    every_ms: int | None = None
    mean: bool = False


class Bound(msgspec.Struct, frozen=True):
    """A mapping applied to the columns a file really has.

    `time` is empty where the rows are of the instant `at_ms`, of the time of day in `clock`, or `elapsed` seconds after
    `at_ms`. `constants`: labels of all rows whose own cell is empty; `fixed`: readings likewise, in the schema's units.
    `absent`: what a user's map names and the file lacks. `labels`: by column the source columns it may stand in, the
    first filled cell of a row counting. `fallbacks`: by reading what fills the rows that lack it, in this order;
    `beside`: columns that are no reading, and show what others hold. `kept`: columns of what a GPU never changes.
    """

    mapping: Mapping
    time: str
    labels: dict[str, tuple[str, ...]]
    values: dict[str, tuple[str, ValueRule]]
    unused: tuple[str, ...]
    suggestions: dict[str, str]
    constants: dict[str, str] = msgspec.field(default_factory=dict)
    at_ms: int | None = None
    fixed: dict[str, float] = msgspec.field(default_factory=dict)
    absent: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    clock: str = ""
    elapsed: str = ""
    fallbacks: dict[str, tuple[tuple[str, ValueRule], ...]] = msgspec.field(default_factory=dict)
    beside: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def only(self, wanted: Collection[str] | None) -> Bound:
        """What fills some columns of the schema; None: all."""
        if wanted is None:
            return self
        kept = (*wanted, "gpu_uuid", "host", "gpu_model")  # what names a device, and what its readings are checked by
        labels = {c: sources for c, sources in self.labels.items() if c in kept}
        fixed = {c: number for c, number in self.fixed.items() if c in kept}
        values = {c: v for c, v in self.values.items() if c in kept}
        fallbacks = {c: v for c, v in self.fallbacks.items() if c in kept}
        asked = {n for v in (*((v,) for v in values.values()), *fallbacks.values()) for _, r in v for n in r.share_with}
        beside = tuple(n for n in self.beside if n in asked)
        return msgspec.structs.replace(
            self, labels=labels, values=values, fixed=fixed, fallbacks=fallbacks, beside=beside
        )

    def source_columns(self) -> list[str]:
        """The columns worth reading."""
        time = [name for name in (self.time, self.clock, self.elapsed) if name]
        readings = (source for _, source, _ in self.readings())
        return list(dict.fromkeys([*time, *self.label_columns(), *readings, *self.beside, *self.kept]))

    def readings(self) -> list[tuple[str, str, ValueRule]]:
        """Every reading with each of the source columns it is made of, and how that one is read."""
        sources = [(c, *one) for c in self.values for one in (self.values[c], *self.fallbacks.get(c, ()))]
        return [(c, name, rule) for c, source, rule in sources for name in (source, rule.plus) if name]

    def label_columns(self) -> list[str]:
        """The source columns of the labels, each once."""
        return list(dict.fromkeys(source for sources in self.labels.values() for source in sources))


class Fitted(msgspec.Struct, frozen=True):
    """A mapping applied to a file that may lack some of it: `missing` of what is required, `asked` of the user."""

    bound: Bound
    missing: tuple[str, ...]
    asked: tuple[str, ...]


def factor(rule: ValueRule) -> Factor:
    """How bare numbers of a reading get to the schema's unit."""
    by_unit = factor_of(rule.unit, rule.column) if rule.unit else None
    return by_unit or Factor(rule.multiply, rule.divide)


NOTHING_GIVEN = Given()


def given(
    *,
    at: Instant | None = None,
    every: Length | None = None,
    host: str | None = None,
    gpu_model: str | None = None,
) -> Given:
    """What a user said about files, in words."""
    said = {"host": host, "gpu_model": gpu_model}
    at_ms, every_ms = None if at is None else instant_ms(at), None if every is None else length_ms(every, bare="s")
    return Given(at_ms, {name: text for name, text in said.items() if text}, every_ms)


def bind(path: str | Path, names: list[str], mapping: Mapping | None = None, said: Given = NOTHING_GIVEN) -> Bound:
    """The mapping that fits a file's columns, or a fault that names what is missing and the nearest names."""
    chosen = mapping or _detect(path, names)
    found = fitted(path, names, chosen, said)
    if found.asked and set(found.missing) <= set(found.asked):
        time = "date" if found.bound.clock else "start" if found.bound.elapsed else "time"
        raise asking(path, [time if a == "time" else a for a in found.asked], chosen)
    if found.missing:
        raise missing(path, list(found.missing), names, chosen)
    _check_twice(path, names, chosen)
    for column, (source, rule) in found.bound.values.items():
        _check_header(path, column, source, rule)
    if not found.bound.values and chosen.name != OWN:  # own samples may hold none
        raise no_reading(path, names, chosen)
    return found.bound


def fitted(path: str | Path, names: list[str], chosen: Mapping, said: Given = NOTHING_GIVEN) -> Fitted:
    """The mapping applied to a file's columns as far as they go."""
    present = set(names)
    time = next((s for s in (chosen.time.joined, *chosen.time.sources) if s and s in present), "")
    grouped = template(path, chosen.wide.pattern).labels if chosen.wide else ()
    wanted = chosen.labels | {g: (g,) for g in grouped}
    labels = {c: hits for c, sources in wanted.items() if (hits := tuple(s for s in sources if s in present))}
    values, fallbacks = _values(chosen, names)
    constants, fixed = _constants(chosen)
    constants |= said.labels
    if "gpu_uuid" not in labels and "gpu_index" in labels:  # a GPU known by its index only
        labels["gpu_uuid"] = labels["gpu_index"]
    elif "gpu_uuid" not in {*labels, *constants} and "gpu_index" in constants:
        constants["gpu_uuid"] = constants["gpu_index"]
    at_ms = None if time else said.at_ms
    clock = "" if time else next((s for s in chosen.time.clock if s in present), "")
    elapsed = "" if time or clock else next((s for s in chosen.time.elapsed if s in present), "")
    missing = _lacking(chosen, present, time if at_ms is None else "--at", {*labels, *constants, *values, *fixed})
    said_here = {*labels, *constants, *(("time",) if time or at_ms is not None else ())}
    said_here |= {"every"} if time or clock or elapsed or said.every_ms or said.mean else set()
    asked = tuple(a for a in chosen.asks if a not in said_here and a != "gpu_model")  # a model may stay unknown
    named_here = (s for sources in labels.values() for s in sources)
    read = [*values.values(), *(one for more in fallbacks.values() for one in more)]
    used = {time, clock, elapsed, *chosen.time.join, *named_here, *chosen.ignored}
    used |= {name for source, rule in read for name in (source, rule.plus)}
    unused = tuple(n for n in names if n not in used)
    absent = _absent(chosen, labels, values)
    named = {s for sources in absent.values() for s in sources}
    mine = chosen.file or chosen.name in shipped()  # names that a tool prints cannot be misspelled
    rules = chosen.values if mine else ()
    close = {s: None for r in rules if r.column not in values for s in r.sources if s not in named}
    needed = [n for n in unused if not is_not_needed(n, chosen)]
    suggestions = {n: found for n in needed if (found := _misspelled(n, close))}
    suggestions |= _labels_written_otherwise(chosen, {*labels, *constants}, unused)
    beside = tuple(dict.fromkeys(n for _, rule in read for n in rule.share_with if n in present))
    bound = Bound(chosen, time, labels, values, unused, suggestions, constants, at_ms, fixed, absent, clock, elapsed)
    steady = dict.fromkeys([*(n for n in chosen.kept if n in present), *labels.get("gpu_model", ())])
    kept = tuple(steady) if labels.get("gpu_uuid") == labels.get("gpu_index") else ()
    bound = msgspec.structs.replace(bound, fallbacks=fallbacks, beside=beside, kept=kept)
    return Fitted(bound, tuple(missing), asked)


def _labels_written_otherwise(chosen: Mapping, filled: set[str], unused: Collection[str]) -> dict[str, str]:
    """Columns that look like a label nothing fills, such as `Namespace`: without a word its owner would be lost."""
    wanted = {_bare(s): s for label, sources in chosen.labels.items() if label not in filled for s in sources}
    return {n: wanted[_bare(n)] for n in unused if _bare(n) in wanted}


def _bare(name: str) -> str:
    letters = "".join(c for c in name.lower() if c.isalnum())
    return letters.removeprefix("label").removeprefix("k8s").removeprefix("kubernetes")


def _lacking(chosen: Mapping, present: set[str], time: str, filled: set[str]) -> list[str]:
    """What a row needs and the file does not give: what the mapping requires, a time, a GPU; each once."""
    required = dict.fromkeys([*chosen.required, "time", "gpu_uuid"])
    missing = [r for r in required if not _has(r, present, time, filled)]
    called = {"time": chosen.time.sources, "gpu_uuid": chosen.labels.get("gpu_uuid", ())}
    return [m for m in missing if not set(called.get(m, ())) & (set(missing) - {m})]


def is_not_needed(name: str, mapping: Mapping) -> bool:
    """Whether a column or metric is known to hold nothing that is read."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in mapping.not_needed)


def _misspelled(name: str, known: Iterable[str]) -> str:
    """The name of a reading this may be meant as; what all fields of a tool begin with makes none of them alike."""
    field = _FIELD.match(name)
    if field is None:
        return next(iter(nearest(name, known, 1)), "")
    rest = {k[found.end() :]: k for k in known if (found := _FIELD.match(k))}
    return next((rest[hit] for hit in nearest(name[field.end() :], rest, 1, cutoff=_FIELDS_ALIKE)), "")


def _values(
    chosen: Mapping, names: list[str]
) -> tuple[dict[str, tuple[str, ValueRule]], dict[str, tuple[tuple[str, ValueRule], ...]]]:
    """By reading the column of the file that fills it, also one whose name has a unit after it: `power.draw [W]`; and
    what fills the rows that lack it.
    """
    present, with_units = set(names), {h.name: n for n in reversed(names) if (h := header_unit(n))}
    found: dict[str, tuple[str, ValueRule]] = {}
    more: dict[str, tuple[tuple[str, ValueRule], ...]] = {}
    own = {rule.column for rule in chosen.values[: chosen.own_rules]}
    for rule in chosen.values:
        if (rule.column in found and rule.column in own) or (rule.plus and rule.plus not in present):
            continue
        one = _source(rule, present, with_units, chosen)
        if one is not None and rule.column in found:
            more[rule.column] = (*more.get(rule.column, ()), one)
        elif one is not None:
            found[rule.column] = one
    return found, more


def _source(
    rule: ValueRule, present: set[str], with_units: dict[str, str], chosen: Mapping
) -> tuple[str, ValueRule] | None:
    """The column of a rule, and how it is read: where its name ends in a unit, in that one; None where that is none of
    this reading's. In a user's map factors count; what it names and cannot be is refused later.
    """
    for source in rule.sources:
        named = header_unit(source)
        hit = source if source in present else with_units.get(named.name if named else source, "")
        header = header_unit(hit) if hit else None
        if hit and (header is None or rule.parse):
            return hit, rule
        if header is not None and (hit == source or chosen.file or factor_of(header.unit, rule.column)):
            plain = not rule.unit and rule.multiply == rule.divide == 1
            if plain or chosen.name in shipped():
                rule = msgspec.structs.replace(rule, unit=header.unit, multiply=1.0, divide=1.0, share_with=())
            return hit, rule
    return None


def _constants(chosen: Mapping) -> tuple[dict[str, str], dict[str, float]]:
    """Labels of all rows as text, and readings of all rows in the schema's units."""
    labels = {c: str(v) for c, v in chosen.constants.items() if c not in schema.readings()}
    where = chosen.file or chosen.name
    fixed = {c: constant_reading(where, c, v) for c, v in chosen.constants.items() if c in schema.readings()}
    return labels, fixed


def _absent(
    chosen: Mapping, labels: dict[str, tuple[str, ...]], values: dict[str, tuple[str, ValueRule]]
) -> dict[str, tuple[str, ...]]:
    """What a user's own map names and the file lacks."""
    if not chosen.file:
        return {}
    found = {c: sources for c, sources in chosen.labels.items() if c not in labels}
    return found | {r.column: r.sources for r in chosen.values[: chosen.own_rules] if r.column not in values}


def _check_twice(path: str | Path, names: list[str], chosen: Mapping) -> None:
    """Refuse a file with the columns of two rules of a user's map for one reading: only one could be read."""
    first: dict[str, str] = {}
    for rule in chosen.values[: chosen.own_rules] if chosen.file else ():
        source = next((s for s in rule.sources if s in names), "")
        if source and (other := first.setdefault(rule.column, source)) != source:
            problem = f"the map fills {rule.column} from {other!r} and from {source!r}, and the file has both"
            raise FileFault(path, problem, hint=f"keep one of the two [[values]] in {chosen.file}")


def _check_header(path: str | Path, column: str, source: str, rule: ValueRule) -> None:
    """Refuse a column whose name ends in another unit than the map gives it, or in one of something else."""
    header = header_unit(source)
    if header is None or rule.parse:
        return
    factor = factor_of(header.unit, column)
    if factor is None:
        unit = schema.columns()[column].unit
        problem = f"column {source!r} is in {header.unit}, which {column} ({unit}) cannot be read in"
        raise FileFault(path, problem, hint="map another column, or rename it in the file")
    if rule.unit and factor != factor_of(rule.unit, column):
        problem = f"column {source!r} is in {header.unit}, and the map reads it in {rule.unit}"
        raise FileFault(path, problem, hint="remove unit from the map, or rename the column in the file")


def _matches(pattern: str, names: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(n, pattern) for n in names)


def recognized(names: list[str]) -> Mapping | None:
    """The most specific mapping all of whose marks are there."""
    return next((m for m in shipped().values() if all(_matches(mark, names) for mark in m.detect)), None)


def _detect(path: str | Path, names: list[str]) -> Mapping:
    """The mapping whose marks are all there, or the one that names and values show; a fault where neither is."""
    from gpuledger.telemetry.mapping.own_headers import Proposal, proposal

    if found := recognized(names):
        return found
    nothing = Proposal(Mapping(), unknown=tuple(names), why_not="there are only its names")
    made = proposal(Path(path)) if Path(path).is_file() else nothing
    if made.why_not:
        raise made.fault(path)
    return made.mapping


def _has(required: str, present: set[str], time: str, filled: set[str]) -> bool:
    if required in ("time", "gpu_uuid"):  # a column of that name may still be something else
        return bool(time) if required == "time" else required in filled
    if required == schema.TIME and time:
        return True
    if required == "a DCGM_FI_* column":
        return _matches("DCGM_FI_*", sorted(present))
    return required in present or required in filled

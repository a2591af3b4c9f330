"""How is a table read that no tool is known to write: what do its names, its units and its values say?

A reading is one by its name; its unit is stated in the header, in the cells or by a word of the name, and the values
must be possible in it; where nothing states one, the values may show it. What stays open is left out and named. The
table is used where a time and a reading are sure, and something names a GPU: other machines have loads and watts too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpuledger.errors import GpuledgerError, UnknownKind
from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import open_source
from gpuledger.telemetry.mapping import OWN_HEADERS, factor
from gpuledger.telemetry.mapping.files import shipped
from gpuledger.telemetry.mapping.rules import Mapping as Rules
from gpuledger.telemetry.mapping.rules import TimeRule, ValueRule, WideRule
from gpuledger.telemetry.mapping.suggest import (
    Entry,
    dcgm_names,
    entry_of,
    label_by_cell,
    nvidia_smi_names,
    suggest,
    vocabulary,
    wide_pattern,
    words_of,
)
from gpuledger.telemetry.mapping.times import may_be_two_days, time_rule
from gpuledger.telemetry.mapping.values import Cells, gpu_label, is_model, largest, read_as
from gpuledger.telemetry.mapping.wide import plan_wide
from gpuledger.telemetry.measures import factor_of, header_unit, unit_of, units_of
from gpuledger.units import count, some

LOOKED_AT = 4096
_TITLE = "a table with headers of its own"
_MOST_FOUND, _MOST_RESTARTS = 64, 0.01
_EVEN, _FEWEST_STEPS, _FEWEST_EVEN = 0.25, 8, 0.2
_MEMORY = frozenset({"memory", "mem", "vram"})
_CALLED = {
    "fb": "memory", "mem": "memory", "util": "utilization", "temp": "temperature", "enc": "encoder", "dec": "decoder",
}  # fmt: skip
_COUNTS = frozenset({"count", "num", "n"})


@dataclass(frozen=True)
class Proposal:
    """How a table with its own headers would be read, as far as it goes; `why_not`: why it is not.

    `shown`: by column why it is taken to be in its unit, where only its values show that. `left_out`: columns that look
    like a reading, with the reason why they are none.
    """

    mapping: Rules
    shown: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def notes(self) -> list[str]:
        """What to report of it."""
        rules, place = self.mapping, "" if self.mapping.wide is None else f" in {self.mapping.wide.pattern!r}"
        parts = [f"time from {' and '.join(map(repr, _time_columns(rules.time)))}"]
        gpu = rules.labels.get("gpu_uuid") or rules.labels.get("gpu_index")
        parts += [f"GPU from {gpu[0]!r}"] if gpu else [f"GPU from the number{place}"] if place else []
        parts += [_in_words(rule, self.shown) for rule in rules.values]
        left = [f"{name!r} is not read: {why}" for name, why in self.left_out.items()]
        return [f"read by its names and values: {', '.join(parts)}", *left]

    def fault(self, path: str | Path) -> UnknownKind:
        """Why the table is refused, and what its columns look like."""
        rules = self.mapping
        known = dict.fromkeys(_time_columns(rules.time), "the time")
        known |= {s[0]: c for c, s in rules.labels.items()} | {r.sources[0]: r.column for r in rules.values}
        seen = f"; understood: {some([f'{n!r} as {what}' for n, what in known.items()], 4)}" if known else ""
        left = "".join(f"; {name!r}: {why}" for name, why in islice(self.left_out.items(), 3))
        other = f"; not understood: {', '.join(map(repr, self.unknown[:6]))}" if self.unknown else ""
        more = ", ..." if len(self.unknown) > 6 else ""
        return UnknownKind(
            path,
            f"it is a table of no tool that is known, and {self.why_not}{seen}{left}{other}{more}",
            hint="if it has samples of GPUs, write a mapping file that names its columns (docs/mapping-files.md) and"
            " pass it with --map map.toml",
        )


def _counts_gpus(words: set[str]) -> bool:
    """Whether a name counts GPUs: gpu_count, num_gpus, gpus."""
    return words == {"gpus"} or bool({"gpu", "gpus"} & words and _COUNTS & words)


def _time_columns(time: TimeRule) -> tuple[str, ...]:
    return (*time.sources, *time.join, *time.clock, *time.elapsed)


def _in_words(rule: ValueRule, shown: Mapping[str, str]) -> str:
    """Which reading a column is, in which unit, and whether only its values show that."""
    (name,), header = rule.sources, header_unit(rule.sources[0])
    by = factor_of(header.unit, rule.column) if header else factor(rule)
    what = " ".join(_CALLED.get(word, word) for word in rule.column.split("_")[:-1])
    unit = f" in {unit_of(by, rule.column)}" if by and units_of(rule.column) else ""
    return f"{what}{unit} from {name!r}" + (" by its values" if name in shown else "")


# What was found in each file: an import opens one several times, and in pieces.
_found: dict[tuple[str, int, int], Proposal] = {}


def proposal(path: Path) -> Proposal:
    """How a table is read that is in no known layout, by the first rows of the file."""
    about = path.stat()
    key = (str(path), about.st_mtime_ns, about.st_size)
    if key not in _found:
        if len(_found) >= _MOST_FOUND:
            _found.clear()
        _found[key] = _look(path)
    return _found[key]


def _look(path: Path) -> Proposal:
    from gpuledger.telemetry.mapping.shape import open_shaped

    opened, readings = open_source(path), None
    if wide := wide_pattern(opened.names):
        readings = plan_wide(path, opened.names, wide.pattern).readings
        opened = open_shaped(path, Rules(wide=wide))
    try:
        batch = next(opened.batches(opened.names, ()), None)
    except GpuledgerError as error:
        return Proposal(Rules(), why_not=error.message.removeprefix(f"{path}: "))
    if batch is None:
        wrong = len(opened.wrong_rows)
        why = f"each of its {count(wrong, 'row')} has another number of cells than the header" if wrong else "no row"
        return Proposal(Rules(), unknown=tuple(opened.names), why_not=why)
    cells = {name: Cells(name, batch.column(name).slice(0, LOOKED_AT)) for name in opened.names}
    return _Table(cells, wide, readings, partial(largest, opened)).proposal(text=opened.text)


class _Table:
    """The columns of a table, as they are sorted out. `readings`: of a wide table, the columns that each GPU has."""

    def __init__(
        self,
        cells: Mapping[str, Cells],
        wide: WideRule | None = None,
        readings: Sequence[str] | None = None,
        most: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        self.cells, self.wide, self.most = cells, wide, most
        self.words = {name: words_of(name) + ["gpu"] * (name in (readings or ())) for name in cells}
        self.readings = [*cells] if readings is None else [*readings]
        others = vocabulary().others
        self.mixed = any(others & {*self.words[n]} and len(one.numbers) for n, one in cells.items())
        self.dcgm = dcgm_names() if sum(name in dcgm_names() for name in cells) > 1 else {}
        self.shown, self.left_out = dict[str, str](), dict[str, str]()

    def proposal(self, *, text: bool = True) -> Proposal:
        """The table as it would be read; `text`: GPUs without a name are told apart later."""
        time = time_rule({name: one.texts for name, one in self.cells.items()})
        taken = {*_time_columns(time)}
        if not taken:
            either = "the day or the month may come first"
            self.left_out |= {n: either for n, one in self.cells.items() if may_be_two_days(one.texts)}
        labels, values = self._labels(taken), dict[str, ValueRule]()
        taken |= {source for sources in labels.values() for source in sources}
        for name in self.readings:
            if name not in taken and (rule := self._rule(name, labels)):
                values.setdefault(rule.column, rule)
        rules = Rules(
            name=OWN_HEADERS, title=_TITLE, time=time, labels=labels, values=tuple(values.values()),
            asks=_asked(time, labels), blank_text=shipped()["dcgm"].blank_text, wide=self.wide,
            kept=tuple(n for n in self.cells if "total" in self.words[n] and _MEMORY & {*self.words[n]}),
        )  # fmt: skip
        used = taken | {rule.sources[0] for rule in rules.values}
        unknown = tuple(name for name in self.cells if name not in {*used, *self.left_out, "gpu_index"})
        return Proposal(rules, self.shown, self.left_out, unknown, self._why_not(rules, used, text=text))

    def _why_not(self, rules: Rules, used: set[str], *, text: bool) -> str:
        """Why the table is not read as samples of GPUs; empty where it is."""
        words = {word for name in self.cells for word in self.words[name]}
        gpus = self.wide or rules.labels.keys() & {"gpu_uuid", "gpu_index"}
        marks, turns = sorted(vocabulary().not_samples & words), "" if gpus else self._turns(rules)
        reasons = {
            "no column has the time of its rows": rules.time != TimeRule(),
            f"its rows are not samples ({some(marks, 3)})": not marks,
            "its rows have a start and an end": not {"start", "end"} <= words,
            "no column has a reading whose unit is sure": bool(rules.values),
            "nothing says that it is of GPUs": bool(self.wide) or any(self._names_a_gpu(name) for name in used),
            "its rows are of several GPUs together": bool(gpus) or not self._several_together(),
            f"its rows are by turns of several ({turns!r})": not turns,
            "no column names the GPU of a row": bool(gpus) or text,
            f"cells of {(name := self._named_by())!r} do not name GPUs": bool(gpus) or not name,
            "its rows are not evenly spaced, as samples are": not self._uneven(rules),
        }
        return next((why for why, good in reasons.items() if not good), "")

    def _names_a_gpu(self, name: str) -> bool:
        known = name in self.dcgm or name in nvidia_smi_names()
        cell = next(iter(self.cells[name].texts), "")
        return known or bool(vocabulary().gpu & {*self.words[name]} or label_by_cell(cell))

    def _named_by(self) -> str:
        """A column that names GPUs by its own name, and has several values."""
        names = (name for name, one in self.cells.items() if len({*one.texts}) > 1)
        return next((name for name in names if {*self.words[name]} <= vocabulary().names_gpus), "")

    def _several_together(self) -> bool:
        """Whether a column counts more than one GPU in a row."""
        counts = (self.cells[n].numbers for n, w in self.words.items() if _counts_gpus({*w}))
        return any(len(numbers) and numbers.max() > 1 for numbers in counts)

    def _turns(self, rules: Rules) -> str:
        """A column of words, such as that of the container, which changes from row to row and is back later."""
        model = rules.labels.get("gpu_model", ())
        for name, cells in self.cells.items():
            words = [] if name in {*model, *_time_columns(rules.time)} or len(cells.numbers) else cells.texts
            changes = sum(a != b for a, b in pairwise(words))
            if 1 < len({*words}) <= len(words) / 2 and changes > len(words) / 2:
                return name
        return ""

    def _uneven(self, rules: Rules) -> bool:
        """Whether the rows of a GPU come at any time, as results do."""
        from gpuledger.telemetry.stamps import StampReader

        if not rules.time.sources:
            return False
        at_ms, wrong = StampReader(rules.time.formats).read(pa.array(self.cells[rules.time.sources[0]].words))
        steps = self._steps(np.where(wrong == 0, at_ms.astype(float), np.nan), rules.labels)
        steps = steps[steps > 0]
        if len(steps) < _FEWEST_STEPS:
            return False
        return bool((np.abs(steps / np.median(steps) - 1) <= _EVEN).mean() < _FEWEST_EVEN)

    def _steps(self, values: np.ndarray, labels: Mapping[str, tuple[str, ...]]) -> np.ndarray:
        """From each row of a GPU to its next one."""
        gpu = (labels.get("gpu_uuid") or labels.get("gpu_index") or ("",))[0]
        which = np.array(self.cells[gpu].words if gpu in self.cells else [""] * len(values))
        steps = [np.diff(values[which == one]) for one in {*which.tolist()}]
        found: np.ndarray = np.concatenate(steps) if steps else np.array([])
        return found[~np.isnan(found)]

    def _labels(self, taken: set[str]) -> dict[str, tuple[str, ...]]:
        """The columns that name what a row is of."""
        out, gpus = dict[str, tuple[str, ...]](), dict[str, tuple[int, str]]()
        for name, cells in self.cells.items():
            mine = cells.texts and name not in taken and not (self.wide and name == "gpu_index")
            found = suggest(name, cells.texts[0]) if mine else None
            if found is None or found.column not in schema.labels():
                continue
            if found.column in ("gpu_uuid", "gpu_index"):
                kind, count = gpu_label(cells, sure=found.column == "gpu_index" and len(self.words[name]) > 1)
                if kind and count > gpus.get(kind, (0, ""))[0]:
                    gpus[kind] = count, name
            elif found.column != "gpu_model" or is_model(cells, self.words[name]):
                out.setdefault(found.column, (name,))
        return out | {kind: (name,) for kind, (_, name) in gpus.items()}

    def _rule(self, name: str, labels: Mapping[str, tuple[str, ...]]) -> ValueRule | None:
        """How a column is read as a reading; None where it is none, with the reason where it looks like one."""
        known, cells = self.dcgm.get(name) or nvidia_smi_names().get(name), self.cells[name]
        entry = None if known else entry_of(self.words[name])
        column = known.column if known else entry.column if entry else ""
        if column not in schema.readings() or not cells.texts:
            if len(cells.numbers) and {w for w in self.words[name] if not w.isdecimal()} == {"gpu"}:
                self.left_out[name] = f"it is not said which reading; call it {name.lower()}_power_w, or what it is"
            return None
        why = self._why_left_out(name, entry)
        rule, said = (None, why) if why else read_as(column, cells, self.words[name], known, self.most)
        if rule and schema.columns()[column].kind == "counter":
            steps = self._steps(cells.by_row, labels)
            if (steps < 0).sum() > _MOST_RESTARTS * len(steps):
                rule, said = None, "it falls, and a counter never does"
        if said:
            (self.shown if rule else self.left_out)[name] = said
        return rule

    def _why_left_out(self, name: str, entry: Entry | None) -> str:
        cells, own = self.cells[name], entry is None or vocabulary().gpu & {*self.words[name]}
        strange = entry.strange(self.words[name]) if entry else []
        return (
            (entry.unsure if entry else "")
            or (f"{strange[0]!r} in its name may make it another reading" if strange else "")
            or (entry.varies if entry and len({*cells.texts}) == 1 else "")
            or (f"its cells are not numbers ({cells.odd[:20]!r})" if cells.odd else "")
            or ("" if own or not self.mixed else "the table is of other devices too, and its name says not of which")
        )


def _asked(time: TimeRule, labels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What the table does not say and only the user knows."""
    host = () if labels.keys() & {"host", "gpu_uuid"} else ("host",)
    return (
        *host,
        *(() if "gpu_model" in labels else ("gpu_model",)),
        *(("time",) if time.clock or time.elapsed else ()),
    )

"""What does import --explain show? What a file is and why, which column is read as what, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote
from typing import Any

from gpuledger.encode import encode, iso
from gpuledger.plain_text import visible
from gpuledger.report.document import Block, Document, Prose, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Row, Table, cell, make_table
from gpuledger.report.written import amount, number
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import OUT_OF_RANGE
from gpuledger.telemetry.explain import ColumnRead, DeviceBy, Explanation, NotSamples, Rejected
from gpuledger.telemetry.formats import Fit, Recognized
from gpuledger.telemetry.mapping.rules import ASKS

NAME_CHARS, CELL_CHARS, WHY_CHARS = 24, 13, 60
SHOWN_COLUMNS, SHOWN_NAMES = 6, 3
# What a screen shows first of the columns that are read.
FIRST = ("gpu_uuid", "gpu_index", "gpu_model", "gpu_util_ratio", "power_w", "fb_used_bytes")
_DEVICES: dict[DeviceBy, str] = {
    "name": "by its UUID or name",
    "host and index": "by its host and its index on the host",
    "index": "by its index only: GPUs of two hosts would count as one; add --host NAME or a column with the host",
    "nothing": "not known: name a column for gpu_uuid, or for gpu_index and host",
}


@document_for(Explanation)
def explained_document(found: Explanation) -> Document:
    """The document of a file with samples: one screen; its JSON has every column."""
    blocks: list[Block] = []
    if found.problem:
        blocks = [Prose(found.problem.removeprefix(f"{found.file}: "), "warning"), Prose(f"next: {found.hint}", "note")]
    blocks += [Terms(list(_above(found)))]
    blocks += [_columns(found)] if found.columns else []
    blocks += [Terms(list(_below(found)))]
    state = "cannot be imported as it is" if found.problem else "can be imported"
    return Document(
        name="explain",
        kind="How a file is read",
        title=f"How {found.file} is read",
        headline=f"{found.file} {state}: {_layout(found)}",
        summary=blocks,
        data=lambda: _data(found),
    )


@document_for(NotSamples)
def not_samples_document(found: NotSamples) -> Document:
    """The document of a file of another kind."""
    pairs = [*_seen(found.recognized), ("holds", found.answer)]
    return Document(
        name="explain",
        kind="How a file is read",
        title=f"How {found.file} is read",
        headline=f"{found.file}: {found.what}",
        summary=[Terms(pairs), Prose(f"next: {found.hint}")],
        data=lambda: encode(
            "explain",
            {
                "file": found.file, "importable": False, "problem": found.what, "next": found.hint,
                "answer": found.answer, **_recognized(found.recognized), "kind": found.recognized.format.kind.value,
            },
        ),
    )  # fmt: skip


def _layout(found: Explanation) -> str:
    rules = found.bound.mapping
    wide = f", {amount(number(found.gpus_per_row), 'GPU')} per row" if rules.wide else ""
    return f"read as {rules.title}{wide}" if found.known else "no known layout; a proposal by the names of its columns"


def _seen(found: Recognized | None) -> Iterator[tuple[str, str]]:
    """What showed the format, and the next one where it was as sure."""
    if found is None:
        return
    yield "recognized", f"{found.format.name}: {_short(found.seen.why, WHY_CHARS)}"
    if found.close and found.next_format is not None:
        yield "as likely", f"{found.next_format.name}: {_short(found.next_seen.why, WHY_CHARS)}"


def _above(found: Explanation) -> Iterator[tuple[str, str]]:
    """Above the columns: what the file is, what is stated of it, its times and GPUs."""
    yield from _seen(found.recognized)
    if found.stated:
        yield "stated", ", ".join(f"{one.what} ({one.option})" for one in found.stated)
    yield "time", _time(found)
    if found.device_by != "name":
        yield "GPU", _DEVICES[found.device_by]
    bound = found.bound
    fixed = {name: f"{value:g} {schema.columns()[name].unit}" for name, value in bound.fixed.items()}
    said = {name for name, option in ASKS.items() if any(one.option == option for one in found.stated)}
    said |= {"gpu_uuid"} if "gpu_index" in bound.constants else set()
    yield from ((n, f"{v} in every row") for n, v in {**bound.constants, **fixed}.items() if n not in said)
    yield from ((n, f"missing: add {ASKS[n]}") for n in found.missing if n in ASKS and n != "time")


def _time(found: Explanation) -> str:
    """Where the times come from, and the first one as it is written and as it is read."""
    bound, rule = found.bound, found.bound.mapping.time
    first = next((f": {c.cell} is {_as_read(c.column, c.read).text}" for c in found.columns if c.role == "time"), "")
    if bound.time and not found.rows:
        return f"{visible(bound.time)}, written {' or '.join(rule.formats) or 'in ISO 8601 or epoch'}; no row was read"
    if bound.time:
        return f"{visible(bound.time)}{visible(first)}"
    if bound.elapsed and bound.at_ms is not None:
        return f"{iso(bound.at_ms)} (--at) plus the seconds in {visible(bound.elapsed)!r}"
    if bound.at_ms is not None:
        return f"{iso(bound.at_ms)} for all rows (--at)"
    return "not known: name a column under [time], or add --at TIME"


def _columns(found: Explanation) -> Table:
    """What is read as what, and the first value of each column as it is written and as it is kept."""
    ranks = {name: place for place, name in enumerate(FIRST)}
    indexed = {c.source for c in found.columns if c.column == "gpu_index"}
    shown = [c for c in found.columns if c.role != "time" and not (c.column == "gpu_uuid" and c.source in indexed)]
    read = sorted(shown, key=lambda c: ranks.get(c.column, len(ranks)))
    rows: list[Row] = [
        [_name(c.source), c.column, c.unit, _short(c.cell), _as_read(c.column, c.read)] for c in read[:SHOWN_COLUMNS]
    ]
    caption = "The first values as they would be kept" if found.known else "What a starter map would read as what"
    heads = ("Column of the file", "Read as", "Unit", "First cell", "Kept as")
    rest = [c.source for c in read[SHOWN_COLUMNS:]]
    note = f"and {number(len(rest))} more: {_short(', '.join(rest), WHY_CHARS)}" if rest else ""
    return replace(make_table("columns", caption, heads, "wwwww", rows, empty="No column is read."), note=note)


def _below(found: Explanation) -> Iterator[tuple[str, str]]:
    """Below the columns: what is not read or rejected, the notes, and what to do next."""
    if found.unused:
        known = sum(not one.needed for one in found.unused)
        needless = f", {number(known)} of them known, not needed" if known else ""
        yield "not read", f"{amount(number(len(found.unused)), 'column')}{needless}: {_unused(found)}"
    absent = [f"{column} ({', '.join(map(repr, sources))})" for column, sources in found.bound.absent.items()]
    if absent:
        yield "not there", f"named by the map: {_some(absent)}"
    if found.rejected:
        looked = f"of the first {amount(number(found.rows_looked_at), 'row')} would be rejected"
        yield "rejected", f"{number(len(found.rejected))} {looked}; {_rejected(found, found.rejected[0])}"
    yield from (("note", note) for note in found.notes[:2])
    if not found.problem:
        own = found.recognized is not None and found.recognized.seen.fit is Fit.POSSIBLE
        starter = "; to start a mapping file: add --write-map map.toml" if own and found.unused else ""
        yield "next", f"gpuledger {quote(found.file)}{starter}"


def _unused(found: Explanation) -> str:
    """The likeliest columns that are not read, each with what it may be where nothing else is that."""
    filled = {c.column for c in found.columns}
    guesses = {u.source: u.suggestion for u in found.unused if u.suggestion and u.suggestion.column not in filled}
    may_be = {name: s for name, s in guesses.items() if s.sure or not found.known}
    likely = sorted(found.unused, key=lambda u: (not u.needed, u.source not in may_be))
    words = {name: f" (may be {s.column}{'' if s.sure else '; which unit?'})" for name, s in may_be.items()}
    return _short(_some([f"{u.source}{words.get(u.source, '')}" for u in likely]), 2 * WHY_CHARS)


def _some(names: list[str]) -> str:
    shown = ", ".join(visible(name) for name in names[:SHOWN_NAMES])
    return shown + (", ..." if len(names) > SHOWN_NAMES else "")


def _rejected(found: Explanation, one: Rejected) -> str:
    return f"row {number(one.row)}: {_reason(found, one)} {visible(one.column)} {_short(one.value)}"


def _reason(found: Explanation, one: Rejected) -> str:
    """Why a row is rejected; a value out of range with the range of its reading."""
    words = one.reason.replace("_", " ")
    fills = next((c for c, (source, _) in found.bound.values.items() if source == one.column), "")
    if one.reason != OUT_OF_RANGE or not fills:
        return words
    about = schema.columns()[fills]
    return f"{words}: {fills} is {about.min:g} to {about.max:g}, {about.unit}"


def _as_read(column: str, value: object) -> Cell:
    if value is None:
        return Cell("nothing")
    if column == schema.TIME and isinstance(value, int):
        return cell(iso(value), value)
    if isinstance(value, float):
        return cell(f"{value:g}", value)
    return cell(_short(str(value)))


def _name(text: str) -> str:
    """A name in the width of its column: its end tells it apart as much as its start does."""
    if len(text) <= NAME_CHARS:
        return visible(text)
    half = NAME_CHARS // 2
    return visible(f"{text[: half - 1]}…{text[-half:]}")


def _short(text: str, most: int = CELL_CHARS) -> str:
    return visible(text if len(text) <= most else f"{text[: most - 1]}…")


def _recognized(found: Recognized | None) -> dict[str, Any]:
    """The keys of the JSON that say what a file was recognized as."""
    if found is None:
        return {"format": None, "why": None, "runner_up": None}
    return {"format": found.key, "why": found.seen.why, "runner_up": found.next_key if found.close else None}


def _data(found: Explanation) -> dict[str, Any]:
    bound = found.bound
    return encode(
        "explain",
        {
            "file": found.file, "importable": not found.problem, "problem": found.problem or None,
            "next": found.hint or None, **_recognized(found.recognized),
            "layout": bound.mapping.title, "known_layout": found.known, "map": bound.mapping.file or None,
            "gpus_per_row": found.gpus_per_row,
            "columns": [_column(c) for c in found.columns],
            "unused": [
                {"source": u.source, "cell": u.cell, "suggestion": u.suggestion.column if u.suggestion else None}
                for u in found.unused
            ],
            "constants": {**bound.constants, **bound.fixed},
            "absent": {column: list(sources) for column, sources in bound.absent.items()},
            "missing": found.missing, "zone": found.zone, "zoneless": found.zoneless, "gpu_known_by": found.device_by,
            "stated": [vars(one) for one in found.stated], "rows": found.rows, "rows_looked_at": found.rows_looked_at,
            "rejected": [vars(r) for r in found.rejected], "notes": found.notes,
        },
    )  # fmt: skip


def _column(one: ColumnRead) -> dict[str, Any]:
    return {
        "source": one.source, "column": one.column, "role": one.role, "unit": one.unit, "factor": one.factor,
        "cell": one.cell, "read": one.read,
    }  # fmt: skip

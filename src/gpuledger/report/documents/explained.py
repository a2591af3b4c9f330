"""What does import --explain show? Which column is read as what, the first rows, and what is missing."""

from __future__ import annotations

from typing import Any

from gpuledger.encode import encode, iso
from gpuledger.plain_text import visible
from gpuledger.report.document import Block, Bullets, Document, Prose, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Row, Table, cell, make_table
from gpuledger.report.written import NARROW, amount, number
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import OUT_OF_RANGE
from gpuledger.telemetry.explain import ColumnRead, DeviceBy, Explanation, Rejected, Unused
from gpuledger.telemetry.mapping.rules import ASKS

SHOWN_CHARS = 24
SHOWN_REJECTS = 6
_DEVICES: dict[DeviceBy, str] = {
    "name": "by its UUID or name",
    "host and index": "by its host and its index on the host",
    "index": "by its index only: GPUs of two hosts would count as one; add --host NAME or a column with the host",
    "nothing": "not known: name a column for gpu_uuid, or for gpu_index and host",
}


@document_for(Explanation)
def explained_document(found: Explanation) -> Document:
    """The document of one file."""
    rules = found.bound.mapping
    layout = f"read as {rules.title}" if found.known else "no known layout; a proposal by the names of its columns"
    count = len(found.columns) + len(found.unused)
    facts = [
        layout,
        f"{number(len(found.columns) - _twice(found))} of {amount(number(count - _twice(found)), 'column')} read",
    ]
    if rules.wide:
        facts.append(
            f"{amount(number(found.gpus_per_row), 'GPU')} per row of the file, by {visible(rules.wide.pattern)!r}"
        )
    state = "cannot be imported as it is" if found.problem else "can be imported"
    problem: list[Block] = []
    if found.problem:
        problem = [Prose(found.problem, "warning"), Prose(f"next: {found.hint}", "note")]
    blocks: list[Block] = [*problem, _read(found), _how(found)]
    blocks += [_unused(found.unused)] if found.unused else []
    blocks += [_rows(found)] if found.rows else []
    blocks += [_rejected(found)] if found.rejected else []
    blocks += [Bullets(_absent(found), "Named by the map, not in the file")] if found.bound.absent else []
    blocks += [Prose(f"note: {note}", "warning") for note in found.notes]
    return Document(
        name="explain",
        kind="How a file is read",
        title=f"How {found.file} is read",
        headline=f"{found.file} {state}",
        facts=facts,
        summary=blocks,
        data=lambda: _data(found),
    )


def _twice(found: Explanation) -> int:
    """How many columns of the file fill a second column of the schema."""
    return len(found.columns) - len({c.source for c in found.columns})


def _read(found: Explanation) -> Table:
    rows: list[Row] = [
        [visible(c.source), c.column, c.unit, c.factor.replace(" ", NARROW), _short(c.cell), _as_read(c.column, c.read)]
        for c in found.columns
    ]
    heads = ("Column of the file", "Read as", "Unit", "Factor", "First cell", "As read")
    caption = "What is read as what" if found.known else "What a starter map would read as what"
    return make_table("columns", caption, heads, "wwwWww", rows, screen_rows=len(rows), empty="No column is read.")


def _as_read(column: str, value: object) -> Cell:
    if value is None:
        return Cell("nothing")
    if column == schema.TIME and isinstance(value, int):
        return cell(iso(value), value)
    if isinstance(value, float):
        return cell(f"{value:g}", value)
    return cell(_short(str(value)))


def _how(found: Explanation) -> Terms:
    bound = found.bound
    rule = bound.mapping.time
    if bound.time:
        written = " or ".join(rule.formats) or "ISO 8601 or epoch numbers"
        zone = (
            f"without a zone, read as {found.zone} (change with --tz)" if found.zoneless else "with their zone or epoch"
        )
        time = f"from {visible(bound.time)!r}, written {written}; {zone if found.rows else 'no row was read'}"
    elif bound.elapsed and bound.at_ms is not None:
        time = f"{iso(bound.at_ms)} (--at) plus the seconds in {visible(bound.elapsed)!r}"
    elif bound.at_ms is not None:
        time = f"{iso(bound.at_ms)} for all rows (--at)"
    else:
        time = "not known: name a column under [time], or add --at TIME"
    pairs = [("time", time), ("GPU", _DEVICES[found.device_by])]
    pairs += [(name, f"{value} in every row without one of its own") for name, value in bound.constants.items()]
    pairs += [(name, f"{value:g} {schema.columns()[name].unit} in every row") for name, value in bound.fixed.items()]
    pairs += [(name, f"missing: add {ASKS[name]}") for name in found.missing if name in ASKS and name != "time"]
    return Terms(pairs, "How rows are read")


def _unused(unused: list[Unused]) -> Table:
    rows: list[Row] = [[visible(u.source), _short(u.cell), _suggested(u)] for u in unused]
    return make_table(
        "unused", "Not read", ("Column of the file", "First cell", "May be"), "www", rows, screen_rows=len(rows)
    )


def _suggested(unused: Unused) -> str:
    if not unused.needed:
        return "known, not needed"
    if unused.suggestion is None:
        return ""
    known = unused.suggestion.sure
    return unused.suggestion.column + ("" if known else " (which unit?)")


def _rows(found: Explanation) -> Table:
    filled = [c for c in schema.columns() if any(row.get(c) is not None for row in found.rows)]
    rows: list[Row] = [[c, *(_as_read(c, row.get(c)) for row in found.rows)] for c in filled]
    heads = ("Column", *(f"Row {n}" for n in range(1, len(found.rows) + 1)))
    return make_table(
        "rows", "The first rows as they would be kept", heads, "w" * len(heads), rows, screen_rows=len(rows)
    )


def _rejected(found: Explanation) -> Table:
    rows: list[Row] = [
        [cell(str(r.row), r.row), _reason(found, r), visible(r.column), _short(r.value)]
        for r in found.rejected[:SHOWN_REJECTS]
    ]
    caption = (
        f"{number(len(found.rejected))} of the first {amount(number(found.rows_looked_at), 'row')} would be rejected"
    )
    return make_table("rejected", caption, ("Row", "Reason", "Column", "Value"), "nwww", rows)


def _reason(found: Explanation, one: Rejected) -> str:
    """Why a row is rejected; a value out of range with the range of its reading."""
    words = one.reason.replace("_", " ")
    fills = next((c for c, (source, _) in found.bound.values.items() if source == one.column), "")
    if one.reason != OUT_OF_RANGE or not fills:
        return words
    about = schema.columns()[fills]
    return f"{words}: {fills} is {about.min:g} to {about.max:g}, {about.unit}"


def _absent(found: Explanation) -> list[str]:
    return [f"{column}: {', '.join(map(repr, sources))}" for column, sources in found.bound.absent.items()]


def _short(text: str) -> str:
    return visible(text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…")


def _data(found: Explanation) -> dict[str, Any]:
    bound = found.bound
    return encode(
        "explain",
        {
            "file": found.file, "importable": not found.problem, "problem": found.problem or None,
            "next": found.hint or None, "layout": bound.mapping.title, "known_layout": found.known,
            "map": bound.mapping.file or None, "gpus_per_row": found.gpus_per_row,
            "columns": [_column(c) for c in found.columns],
            "unused": [
                {"source": u.source, "cell": u.cell, "suggestion": u.suggestion.column if u.suggestion else None}
                for u in found.unused
            ],
            "constants": {**bound.constants, **bound.fixed},
            "absent": {column: list(sources) for column, sources in bound.absent.items()},
            "missing": found.missing, "zone": found.zone, "zoneless": found.zoneless, "gpu_known_by": found.device_by,
            "rows": found.rows, "rows_looked_at": found.rows_looked_at,
            "rejected": [vars(r) for r in found.rejected], "notes": found.notes,
        },
    )  # fmt: skip


def _column(one: ColumnRead) -> dict[str, Any]:
    return {
        "source": one.source, "column": one.column, "role": one.role, "unit": one.unit, "factor": one.factor,
        "cell": one.cell, "read": one.read,
    }  # fmt: skip

"""What is in the mapping file that a user starts from?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from gpuledger.errors import FileFault, GpuledgerError, map_os_error
from gpuledger.plain_text import json_text, visible
from gpuledger.telemetry import schema
from gpuledger.telemetry.date_order import turned
from gpuledger.telemetry.explain import Explanation, Unused, explain
from gpuledger.telemetry.mapping import OWN_HEADERS, Bound, Mapping, ValueRule, load_mapping
from gpuledger.telemetry.mapping.own_headers import proposal
from gpuledger.telemetry.mapping.wide import template
from gpuledger.telemetry.measures import units_of


def write_starter(found: Explanation, path: Path) -> Path:
    """Write the starter map, if it works as it is written; a file that is there already is not overwritten."""
    text = starter_map(found)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise FileFault(path, "the file exists", hint="name another file, or remove this one") from error
    except OSError as error:
        raise map_os_error(error, path, "write the mapping file") from error
    if why := _why_not(found, path):
        path.unlink()
        raise _none(found, why)
    return path


def _why_not(found: Explanation, path: Path) -> str:
    """Why the file cannot be read with a map; empty where it can, with options for what only the user knows."""
    try:
        again = explain(found.file, mapping=load_mapping(str(path)), zone=found.zone)
    except GpuledgerError as error:
        return error.message.removeprefix(f"{found.file}: ")
    return "" if {*again.missing} <= {*again.bound.mapping.asks} and again.bound.values else again.problem


def _none(found: Explanation, why: str) -> FileFault:
    hint = "docs/mapping-files.md shows how to write one, and which options say what a file does not"
    return FileFault(found.file, f"no mapping file is written: {why}", hint=hint)


def starter_map(found: Explanation) -> str:
    """A mapping file with every column of the file: those that are read, and the rest as comments to complete."""
    bound, file = found.bound, Path(found.file)
    own = proposal(file) if not found.known or bound.mapping.name == OWN_HEADERS else None
    if own is not None and own.why_not:
        raise _none(found, own.why_not)
    shown, left_out = (own.shown, own.left_out) if own else ({}, {})
    parts = [_top(found), _time(found), _labels(found), _constants(bound)]
    parts += [_value(rule, (source,), shown.get(source, "")) for source, rule in bound.values.values()]
    parts += [_unread(one, bound, left_out.get(one.source, "")) for one in found.unused if not _is_label(one)]
    return "\n".join(part for part in parts if part)


def _top(found: Explanation) -> str:
    rules = found.bound.mapping
    plain, file = Mapping(), visible(Path(found.file).name)
    lines = [
        f"# Mapping file for {file}, written by gpuledger import --write-map. Check it, then:",
        f"#   gpuledger import {file} --map THIS_FILE",
        "# A line that starts with # is not read. All columns and units: docs/mapping-files.md",
        f"name = {_text(Path(found.file).stem)}",
        f"title = {_text(rules.title)}",
    ]
    lines += [f"ignored = {_list(rules.ignored)}"] if rules.ignored else []
    lines += [f"blank_from = {_number(rules.blank_from)}"] if math.isfinite(rules.blank_from) else []
    lines += [f"blank_text = {_list(rules.blank_text)}"] if rules.blank_text != plain.blank_text else []
    lines += [f"asks = {_list(rules.asks)}"] if rules.asks else []
    if rules.wide:
        lines += ["", "[wide]", f"pattern = {_text(rules.wide.pattern)}"]
    return "\n".join([*lines, ""])


def _time(found: Explanation) -> str:
    rule, bound = found.bound.mapping.time, found.bound
    lines = ["[time]"]
    if rule.join and bound.time == rule.joined:
        lines.append(f"join = {_list(rule.join)}")
    elif bound.time:
        lines.append(f"sources = {_list([bound.time])}")
    elif bound.clock or bound.elapsed:
        lines.append(f"clock = {_list([bound.clock])}" if bound.clock else f"elapsed = {_list([bound.elapsed])}")
    else:
        lines.append("sources = []  # the file has no times: import with --at TIME")
    order = found.dates.other_order
    formats = turned(rule.formats, order) if order else rule.formats
    lines += [f"formats = {_list(formats)}"] if formats else []
    lines += [f"unit = {_text(rule.unit)}"] if rule.unit else []
    return "\n".join([*lines, ""])


def _labels(found: Explanation) -> str:
    rules = found.bound.mapping
    given = template(found.file, rules.wide.pattern).labels if rules.wide else ()
    pairs = [(c.column, c.source) for c in found.columns if c.role == "label" and c.source not in given]
    lines = ["[labels]", *(f"{column} = {_list([source])}" for column, source in pairs)]
    labels = [(u.suggestion.column, u.source) for u in found.unused if u.suggestion and _is_label(u)]
    lines += [f"# {column} = {_list([source])}" for column, source in labels]
    return "\n".join([*lines, ""])


def _constants(bound: Bound) -> str:
    """Constants of the map, and what the user said about the file; an index that names the GPU is enough once."""
    given: dict[str, str | float] = {**bound.constants, **bound.fixed}
    if given.get("gpu_uuid") == given.get("gpu_index"):
        given.pop("gpu_uuid", None)
    lines = [f"{name} = {_text(value) if isinstance(value, str) else _number(value)}" for name, value in given.items()]
    return "\n".join(["[constants]", *lines, ""]) if lines else ""


def _value(rule: ValueRule, sources: Iterable[str], shown: str = "") -> str:
    """A reading; `shown`: the values by which its unit was chosen."""
    about = schema.columns()[rule.column]
    lines = ["[[values]]", f"column = {_text(rule.column)}  # {about.meaning}, {about.unit}"]
    lines.append(f"sources = {_list(sources)}")
    lines += [f"{n} = {_number(v)}" for n, v in (("multiply", rule.multiply), ("divide", rule.divide)) if v != 1]
    lines += [f"unit = {_text(rule.unit)}" + f"  # by its values, {shown}" * bool(shown)] if rule.unit else []
    lines += [f"{n} = {_text(v)}" for n, v in (("parse", rule.parse), ("plus", rule.plus)) if v]
    lines += [f"share_with = {_list(rule.share_with)}"] if rule.share_with else []
    return "\n".join([*lines, ""])


def _unread(unused: Unused, bound: Bound, why: str) -> str:
    """A column that is not read, as comments that become a rule when they are completed; `why`, where it is known."""
    cell = f", first cell {_text(unused.cell[:40])}" if unused.cell else ", empty in the first rows"
    head = f"# Not read: {visible(unused.source)}{cell}{f'; {visible(why)}' if why else ''}."
    found = unused.suggestion
    if found is None:
        return f"{head}\n"
    if found.column in bound.values:
        return f"{head} It looks like {found.column}, which is read from another column.\n"
    units = [u for u in units_of(found.column) if u.isascii()]
    ask = f"\n# unit = {_text(units[0])}  # which one? {', '.join(units)}" if units and not found.rule else ""
    body = _value(found.rule or ValueRule(found.column, (unused.source,)), [unused.source]).rstrip()
    commented = "\n".join(f"# {line}" for line in body.splitlines())
    return f"{head} It looks like {found.column}; to read it remove the # below.\n{commented}{ask}\n"


def _is_label(unused: Unused) -> bool:
    return unused.suggestion is not None and unused.suggestion.column in schema.labels()


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _text(text: str) -> str:
    return json_text(text)


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(_text(t) for t in texts)}]"

"""Which value does every setting have, and how does a user begin a gpuledger.toml?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gpuledger.advice.limits import LAYER as ADVICE
from gpuledger.advice.limits import load_limits
from gpuledger.catalog.thresholds import LAYER as CLASSES
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.teams import set_teams
from gpuledger.cost.user_settings import set_budgets, set_prices
from gpuledger.encode import encode
from gpuledger.live.alerts.limits import LAYER as ALERTS
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.report.document import Document
from gpuledger.report.tables import make_table
from gpuledger.scaling.grades import LAYER as GRADES
from gpuledger.scaling.grades import load_scaling_thresholds
from gpuledger.settings import FILE, SECTIONS, VERSION, FoundBy, Value, in_force
from gpuledger.training.tune.choices import LAYER as TUNING
from gpuledger.training.tune.choices import load_plan

_EXAMPLES = {
    "teams": 'ml-training = "foundation models"',
    "prices": "H100-SXM5-80GB = 2.50",
    "budgets": '"foundation models" = 10000',
}


FOUND_BY = {
    "given": "named with --settings",
    "environment": "named by GPULEDGER_CONFIG",
    "folder": "the nearest in the working folder and those above it",
    "user": "in the user's configuration folder",
}


@dataclass(frozen=True)
class InForce:
    """The settings file that is read, how it was found, and every value."""

    file: str | None
    found_by: FoundBy
    values: tuple[Value, ...]


def settings_in_force() -> InForce:
    """Every setting with its origin; a value that cannot be used is refused here."""
    settings = in_force()
    of_layers = (load_thresholds, load_limits, load_scaling_thresholds, load_plan, load_alerts)
    for check in (*of_layers, set_teams, set_prices, set_budgets):
        check()
    values = [value for layer in (CLASSES, ADVICE, GRADES, TUNING, ALERTS) for value in layer.values()]
    for section in _EXAMPLES:
        own = settings.section(section).items()
        values += [Value(f"{section}.{name}", value, str(settings.file), shipped=False) for name, value in own]
    return InForce(str(settings.file) if settings.file else None, settings.found_by, tuple(values))


def settings_document(found: InForce) -> Document:
    """Every setting, its value and the file it comes from; those that differ from the shipped ones first."""
    order = sorted(found.values, key=lambda value: value.shipped)
    rows = [[value.name, _short(value.value), value.origin] for value in order]
    own = sum(not value.shipped for value in found.values)
    if found.file is None:
        head = "No gpuledger.toml is in use; gpuledger config init writes one"
    else:
        head = f"{found.file} ({FOUND_BY[found.found_by]}) sets {own} of {len(rows)} values"
    table = make_table("settings", "", ("Setting", "Value", "From"), "www", rows, screen_rows=len(rows))
    return Document("settings", "Settings", "Settings", head, summary=[table], data=lambda: encode("settings", found))


def _short(value: Any) -> str:
    return ", ".join(str(v.get("name", "...") if isinstance(v, dict) else v) for v in _list(value))


def template() -> str:
    """A gpuledger.toml with every setting in a comment, at its shipped value."""
    lines = [
        f"# Settings of gpuledger: {FILE} in the working folder or a folder above it. gpuledger config show lists the",
        "# values in force. Remove the # in front of a setting to change it.",
        f"version = {VERSION}",
    ]
    for layer in (CLASSES, ADVICE, GRADES, TUNING, ALERTS):
        lines += ["", f"# {SECTIONS[layer.section]}"]
        named = [(v.name.rpartition("."), v.value) for v in layer.values(shipped=True)]
        for table, some in groupby(sorted(named, key=lambda n: n[0][0]), key=lambda n: n[0][0]):
            lines.append(f"[{table}]")
            # JSON writes numbers, text, true and false, and lists of these, as TOML does.
            plain = [(key, value) for (_, _, key), value in some if not any(isinstance(v, dict) for v in _list(value))]
            lines += [f"# {key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain]
    for section, example in _EXAMPLES.items():
        lines += ["", f"# {SECTIONS[section]}", f"[{section}]", f"# {example}"]
    return "\n".join(lines) + "\n"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]

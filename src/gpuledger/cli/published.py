"""Which published figures can ours be compared with?"""

from __future__ import annotations

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.cli.figures import NOT_KNOWN, number
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.units import Unknown

ROI_TARGET_PCT = 70.0


class PublishedFigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published finding; `name` is the field of our own answer it is compared with."""

    name: str
    label: str
    value: float
    unit: str
    digits: int


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The findings of one publication."""

    version: int
    source: str
    note: str
    figures: tuple[PublishedFigure, ...]


def published_findings() -> Published:
    """The findings published for the sample fleet."""
    return load_toml(data_dir("gpuledger.cli", "data", "published.toml"), Published)


def ours(statement: EfficiencyStatement) -> dict[str, float | Unknown]:
    """The figures of a statement under the names of the published ones."""
    worth = (r.equivalent_gpus for r in statement.roi if r.target_rfu_pct == ROI_TARGET_PCT)
    return {
        "gpu_util_pct": statement.fleet.gpu_util_pct,
        "pif": statement.fleet.pif,
        "rfu_power_pct": statement.fleet.rfu_power_pct,
        "efficiency_gap_pp": statement.fleet.efficiency_gap_pp,
        "bottlenecked_pct_of_active": statement.active.bottlenecked_pct_of_active,
        "equivalent_gpus_at_70": next(worth, Unknown("RFU by power is 70 % or more already")),
    }


def comparison(statement: EfficiencyStatement) -> list[tuple[str, str, str]]:
    """Each published finding in words: what it is, theirs, ours."""
    figures = ours(statement)
    return [
        (f.label, f"{number(f.value, f.digits)} {f.unit}".strip(), _text(figures[f.name], f.digits, f.unit))
        for f in published_findings().figures
    ]


def _text(value: float | Unknown, digits: int, unit: str) -> str:
    text = number(value, digits)
    return text if text == NOT_KNOWN else f"{text} {unit}".strip()

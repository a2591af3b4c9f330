"""Which sentences stand in a section of the scaling report, beside its tables?"""

from __future__ import annotations

from collections.abc import Callable

from gpuledger.scaling.statement import Comparison, ScalingStatement
from gpuledger.units import Unknown

SHOWN = 50  # faults in a document


def lines_of(block: str, statement: ScalingStatement) -> list[str]:
    """The sentences of a block; none where it has none."""
    made = _BLOCKS.get(block)
    return made(statement) if made else []


def faults_of(statement: ScalingStatement, most: int) -> list[str]:
    """The first faults of the results, and how many more there are."""
    found = statement.facts.faults
    left = len(found) - most
    return [*found[:most], *([f"and {left:,} more; the JSON has them all"] if left > 0 else [])]


def _curve(s: ScalingStatement) -> list[str]:
    curve = s.facts.scaling.curve
    return [f"No prediction for other sizes: {curve.refused}." if curve.refused else f"The law is {curve.note}."]


def _batches(s: ScalingStatement) -> list[str]:
    knee, note = s.facts.batches.knee, s.facts.batches.note
    knee_words = f"batch {knee}; beyond it, doubling gives less than 1.41 times as much"
    said = str(knee) if isinstance(knee, Unknown) else knee_words
    return [f"Knee: {said}.", *([f"{note[:1].upper()}{note[1:]}."] if note else [])]


def _readiness(s: ScalingStatement) -> list[str]:
    r = s.readiness
    return [
        f"Verdict: {r.verdict}.",
        *(f"Against: {w}." for w in r.against),
        *(f"Not known: {w}." for w in r.unknown),
        *(f"For: {w}." for w in r.passed),
    ]


def _comparison(s: ScalingStatement) -> list[str]:
    found = s.comparison
    if not isinstance(found, Comparison):
        return []
    return [f"Before: {found.before_file}.", *(found.settings or ("No setting differs.",))]


_BLOCKS: dict[str, Callable[[ScalingStatement], list[str]]] = {
    "summary": lambda s: list(s.summary),
    "overall": lambda s: [s.overall_words],
    "public": lambda s: [s.public_words],
    "curve": _curve,
    "batches": _batches,
    "readiness": _readiness,
    "comparison": _comparison,
}

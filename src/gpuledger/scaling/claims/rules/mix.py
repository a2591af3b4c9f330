"""Did all nodes, and the baseline, get the same mix of requests?"""

from __future__ import annotations

from gpuledger.bench.records import Run
from gpuledger.scaling.analysis.tokens import tokens_of
from gpuledger.scaling.claims.rule import Case, looks_for
from gpuledger.units import Unknown

NO = Unknown("")


def _apart(values: dict[str, float], beyond: float) -> str:
    if len(values) < 2 or min(values.values()) <= 0:
        return ""
    low, high = min(values, key=lambda k: values[k]), max(values, key=lambda k: values[k])
    if values[high] / values[low] - 1 < beyond:
        return ""
    return f"{low} {values[low]:.4g}, {high} {values[high]:.4g}"


def _mean(run: Run, field: str) -> float | None:
    found = getattr(tokens_of(run, NO, NO, NO), field)
    n = sum(r.ok for r in run.measured)
    return None if isinstance(found, Unknown) or not n else found / n


def against_baseline(case: Case) -> str:
    """Lengths that differ from the baseline's; empty where they do not, or there is none."""
    said = []
    if case.baseline is not None:
        for field in ("input_tokens", "output_tokens"):
            both = {"run": _mean(case.run, field), "baseline": _mean(case.baseline, field)}
            if words := _apart({k: v for k, v in both.items() if v is not None}, case.limits.mix.differs_from_ratio):
                said.append(f"mean {field.replace('_', ' ')}: {words}, so requests a second do not compare")
    return "; ".join(said)


@looks_for("uneven_mix", "An uneven mix of requests", order=95)
def look(case: Case) -> str | None:
    """Lengths or numbers of requests that differ from node to node, or from the baseline."""
    beyond, nodes, said = case.limits.mix.differs_from_ratio, case.facts.nodes, []
    planned = {n.node: float(n.counts.planned) for n in nodes}
    answered = {n.node: float(n.counts.ok) for n in nodes}
    for what, values in (
        ("planned requests", planned),
        ("answers in the means", answered),
        ("mean input tokens", {n.node: n.mean_input_tokens for n in nodes if isinstance(n.mean_input_tokens, float)}),
        (
            "mean output tokens",
            {n.node: n.mean_output_tokens for n in nodes if isinstance(n.mean_output_tokens, float)},
        ),
    ):
        if words := _apart({k: v for k, v in values.items() if v > 0}, beyond):
            said.append(f"{what} by node: {words}")
    if uneven := against_baseline(case):
        said.append(uneven)
    return "; ".join(said) or None

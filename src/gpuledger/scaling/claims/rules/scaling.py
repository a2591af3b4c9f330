"""Is the scaling efficiency backed by a measured and comparable baseline, and "super-linear" by the interval?"""

from __future__ import annotations

from gpuledger.bench.records import Run
from gpuledger.scaling.analysis.counting import tokens_in
from gpuledger.scaling.analysis.latency import latency_of
from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, contradicted, judges, looks_for, supported
from gpuledger.scaling.figures import Figure
from gpuledger.scaling.statistics import number
from gpuledger.units import Unknown

TYPED = ("baseline_throughput_per_s", "baseline_latency_s", "baseline_tokens_per_s")
UNEVEN = "the baseline had requests of other lengths"
LENGTHS = ("input_tokens", "output_tokens")


@judges("baseline_throughput_per_s", "number")
def baseline_throughput(case: Case, claim: Claim) -> Finding:
    """Throughput of the baseline run. Only a baseline file can show it."""
    found = case.facts.scaling.baseline_per_s
    if isinstance(found, Unknown):
        return cannot_tell(f"{number(claim.number)}/s is typed in: {found.why}")
    return case.count(claim, found, "/s")


@judges("baseline_latency_s", "number")
def baseline_latency(case: Case, claim: Claim) -> Finding:
    """Mean latency of the baseline run. Only a baseline file can show it."""
    if case.baseline is None:
        return cannot_tell(f"{number(claim.number)} s is typed in: {case.facts.scaling.refused}")
    return case.count(claim, latency_of(case.baseline, case.facts.seed).all.mean_s, "s")


@judges("baseline_tokens_per_s", "number")
def baseline_tokens(case: Case, claim: Claim) -> Finding:
    """Tokens per second of the baseline run. Only a baseline file can show it."""
    base = case.facts.scaling
    if case.baseline is None or isinstance(base.token_factor_x, Unknown):
        why = base.refused or "the baseline does not report its tokens"
        return cannot_tell(f"{number(claim.number)} tokens/s is typed in: {why}")
    rate = case.facts.tokens.per_s
    found = rate if isinstance(rate, Unknown) else rate.value / base.token_factor_x.value
    return case.compare(claim, found, "tokens/s")


@looks_for("baseline_not_measured", "Baseline missing or typed in", order=20)
def not_measured(case: Case) -> str | None:
    """No baseline file, whatever was typed."""
    if case.facts.scaling.refused is None or case.facts.scaling.size < 2:
        return None
    typed = [f"{c.claim} = {c.value}" for c in case.about(*TYPED)]
    held = case.run.more.get("baseline_throughput_per_s", case.run.more.get("baseline_typed_in"))
    typed += [f"the header's {held}"] if held is not None else []
    tail = f"; {', '.join(typed)} is typed in, not measured" if typed else ""
    return f"{case.facts.scaling.refused}{tail}"


def _differ(values: dict[str, float], beyond: float) -> str:
    if len(values) < 2 or min(values.values()) <= 0:
        return ""
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    if values[high] / values[low] - 1 < beyond:
        return ""
    return f"{low} {values[low]:.4g}, {high} {values[high]:.4g}"


def _mean(run: Run, field: str) -> float | Unknown:
    found = tokens_in(run, field)
    return found if isinstance(found, Unknown) else found / len(run.answered)


def _against_baseline(case: Case) -> str:
    """Lengths that differ from the baseline's; empty where they do not, or without a baseline."""
    said = []
    for field in LENGTHS if case.baseline is not None else ():
        both = {name: _mean(r, field) for name, r in (("run", case.run), ("baseline", case.baseline)) if r is not None}
        known = {k: v for k, v in both.items() if not isinstance(v, Unknown)}
        if words := _differ(known, case.limits.mix.differs_from_ratio):
            said.append(f"mean {field.replace('_', ' ')}: {words}, so requests per second do not compare")
    return "; ".join(said)


@looks_for("uneven_mix", "An uneven mix of requests", order=95)
def uneven_mix(case: Case) -> str | None:
    """Lengths or numbers of requests that differ from node to node, or from the baseline."""
    nodes = case.facts.nodes
    figures: dict[str, dict[str, Figure]] = {
        "planned requests": {n.node: n.counts.planned for n in nodes},
        "answers in the means": {n.node: n.counts.ok for n in nodes},
        "mean input tokens": {n.node: n.mean_input_tokens for n in nodes},
        "mean output tokens": {n.node: n.mean_output_tokens for n in nodes},
    }
    said = []
    for what, values in figures.items():
        known = {k: v for k, v in values.items() if not isinstance(v, Unknown) and v > 0}
        if words := _differ(known, case.limits.mix.differs_from_ratio):
            said.append(f"{what} by node: {words}")
    return "; ".join((*said, *filter(None, [_against_baseline(case)]))) or None


def _by_typed_in(case: Case) -> str:
    """The efficiency by wall clock against a baseline that was typed in."""
    rate, size = case.facts.throughput_per_s, case.facts.scaling.size
    typed = next((c for c in case.about("baseline_throughput_per_s") if c.number > 0), None)
    if typed is None or isinstance(rate, Unknown) or not size:
        return ""
    share = rate.each(lambda v: v / (typed.number * size / 100))
    return (
        f". Even against the typed-in {number(typed.number)}/s the wall clock gives {number(share.value)} % "
        f"({number(share.low)} to {number(share.high)} %)"
    )


@judges("scaling_efficiency_pct", "number")
def efficiency(case: Case, claim: Claim) -> Finding:
    """Throughput over that of a measured baseline times the size, in percent; above 100 only where the interval is."""
    found = case.facts.scaling.efficiency_pct
    if isinstance(found, Unknown):
        return cannot_tell(f"{found.why}{_by_typed_in(case)}")
    if uneven := _against_baseline(case):
        return cannot_tell(f"{UNEVEN}: {uneven}")
    if claim.number > 100 and found.holds(claim.number) and found.low <= 100:
        return cannot_tell(f"measured: {found.words('%')}; the interval holds 100 %, so super-linear is not shown")
    return case.compare(claim, found, "%")


@judges("scaling_factor_x", "number")
def factor(case: Case, claim: Claim) -> Finding:
    """Throughput over that of a measured baseline."""
    if uneven := _against_baseline(case):
        return cannot_tell(f"{UNEVEN}: {uneven}")
    return case.compare(claim, case.facts.scaling.factor_x, "x")


@judges("super_linear", "yes or no")
def superlinear(case: Case, claim: Claim) -> Finding:
    """More than the baseline times the size: only where the interval excludes 100 %."""
    found, spread = case.facts.scaling.superlinear, case.facts.scaling.efficiency_pct
    if isinstance(found, Unknown) or isinstance(spread, Unknown):
        return cannot_tell(f"{case.facts.scaling.refused}{_by_typed_in(case)}")
    if uneven := _against_baseline(case):
        return cannot_tell(f"{UNEVEN}: {uneven}")
    why = f"measured: {spread.words('%')}"
    if claim.value is found:
        return supported(why)
    return cannot_tell(f"{why}; the interval holds 100 %") if spread.holds(100) else contradicted(why)


@looks_for("super_linear_without_interval", "Super-linear scaling that the interval does not support", order=25)
def superlinear_claimed(case: Case) -> str | None:
    """A claim above linear. Without a claim a figure above 100 is normal: half of all linear runs have one."""
    found, said = case.facts.scaling.efficiency_pct, None
    for claim in case.about("scaling_efficiency_pct", "scaling_factor_x", "super_linear"):
        linear = {"scaling_efficiency_pct": 100, "scaling_factor_x": case.facts.scaling.size}.get(claim.claim)
        if claim.value is True or (linear is not None and claim.number > linear):
            said = claim
    if said is None or (not isinstance(found, Unknown) and found.low > 100):
        return None
    if not isinstance(found, Unknown):
        return f"efficiency is {found.words('%')}: its low end is not above 100 %, so super-linear is not shown"
    return f"{said.claim} = {said.value} claims more than linear, without an interval: {found.why}{_by_typed_in(case)}"


@judges("predicted_throughput_per_s", "number")
def predicted(case: Case, claim: Claim) -> Finding:
    """Throughput of a size ("size") that was not run, by the scalability law over three sizes or more."""
    curve, size = case.facts.scaling.curve, claim.more.get("size")
    if curve.refused:
        return cannot_tell(curve.refused)
    found = next((p.throughput_per_s for p in curve.predictions if p.size == size), None)
    return case.compare(claim, found or Unknown(f"size {size!r} was not predicted"), "/s predicted")

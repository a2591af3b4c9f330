"""How does the scaling report come about: from runs to figures, from figures to grades and verdicts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuledger.bench.records import Run
from gpuledger.cost.pricing import PriceChoice
from gpuledger.scaling.analysis.baseline import Baseline, gpus_of, scaling_of
from gpuledger.scaling.analysis.batches import batches_of
from gpuledger.scaling.analysis.counting import counts_of, in_flight, throughput_of, wall_of
from gpuledger.scaling.analysis.factors import factors_of
from gpuledger.scaling.analysis.latency import latency_of, samples_of
from gpuledger.scaling.analysis.memory import memory_pct
from gpuledger.scaling.analysis.money import cost_of
from gpuledger.scaling.analysis.nodes import node_figures
from gpuledger.scaling.analysis.settings import model_of
from gpuledger.scaling.analysis.telemetry import no_telemetry
from gpuledger.scaling.analysis.tokens import tokens_of
from gpuledger.scaling.bottlenecks import bottlenecks_of
from gpuledger.scaling.causes import causes_of
from gpuledger.scaling.claims.judging import checks, verdicts
from gpuledger.scaling.claims.rule import Case, Claim
from gpuledger.scaling.compare import compare_runs
from gpuledger.scaling.figures import Facts, Figure, NodeFigures, Source, Telemetry
from gpuledger.scaling.grades import Thresholds, load_scaling_thresholds, overall
from gpuledger.scaling.optimizations import optimizations_of
from gpuledger.scaling.public import public_figures
from gpuledger.scaling.readiness import readiness_of
from gpuledger.scaling.scorecard import scorecard
from gpuledger.scaling.statement import ScalingStatement
from gpuledger.scaling.statistics import LEVEL
from gpuledger.scaling.summary import headline, recommendations, summary
from gpuledger.settings import changed
from gpuledger.units import Unknown

PREDICT = (4, 8)
SEED = 1
NOT_ASKED = "no earlier run was given"


@dataclass(frozen=True)
class Given:
    """Everything a report is made from, read already. `others`: runs of other sizes; `before`: an earlier run."""

    run: Run
    others: tuple[Run, ...] = ()
    baseline: Baseline = field(default_factory=lambda: Baseline(None, "no baseline was given"))
    before: Run | None = None
    telemetry: Telemetry = field(default_factory=lambda: no_telemetry("it was not read"))
    claims: tuple[Claim, ...] = ()
    price: PriceChoice = field(default_factory=PriceChoice)
    predict: tuple[int, ...] = PREDICT
    digests: Mapping[str, str] = field(default_factory=dict)


def scaling_statement(given: Given, limits: Thresholds | None = None, *, seed: int = SEED) -> ScalingStatement:
    """The whole report of one run. The same input and seed give the same figures."""
    limits = limits or load_scaling_thresholds()
    facts = facts_of(given, limits, seed)
    ready = readiness_of(facts, limits)
    case = Case(facts, given.run, given.baseline.run, ready, limits, given.claims)
    grades = scorecard(facts, limits)
    letter, words = overall(grades)
    holds, changes = bottlenecks_of(facts), optimizations_of(facts)
    public, public_words = public_figures(facts)
    found, judged = checks(case), verdicts(case)
    first, second = headline(facts, ready, holds)
    before: Any = Unknown(NOT_ASKED)
    return ScalingStatement(
        headline=first,
        second=second,
        facts=facts,
        grades=grades,
        overall=letter,
        overall_words=words,
        checks=found,
        claims=judged,
        causes=causes_of(facts, given.run),
        bottlenecks=holds,
        optimizations=changes,
        public=public,
        public_words=public_words,
        readiness=ready,
        summary=summary(facts, ready, holds, found),
        recommendations=recommendations(facts, changes, limits),
        comparison=before if given.before is None else compare_runs(given.before, given.run, seed),
    )


def facts_of(given: Given, limits: Thresholds, seed: int) -> Facts:
    """The figures of a run, before they are judged."""
    run = given.run
    wall, wall_words = wall_of(run)
    rate, gpus = throughput_of(run.measured, wall, seed), gpus_of(run)
    nodes = node_figures(run, wall, limits, seed, given.telemetry)
    tokens = tokens_of(run, wall, rate, gpus)
    files = (run.file, *(o.file for o in given.others))
    base = given.baseline.run
    samples, samples_note = samples_of(run)
    return Facts(
        file=run.file,
        files=tuple(dict.fromkeys((*files, *([base.file] if base else [])))),
        config=dict(run.more),
        model=model_of(run),
        nodes_n=len(run.names),
        gpus=gpus,
        wall_s=wall,
        wall_words=wall_words,
        counts=counts_of(run),
        throughput_per_s=rate,
        inverse_latency_per_s=_inverse(nodes),
        in_flight=in_flight(run.measured),
        latency=latency_of(run, seed),
        nodes=nodes,
        tokens=tokens,
        scaling=scaling_of(run, given.baseline, given.others, given.predict, seed),
        batches=batches_of([*given.others, run], limits, given.price),
        memory_pct=memory_pct(nodes, given.telemetry.memory_peak_bytes),
        telemetry=given.telemetry,
        cost=cost_of(run, wall, tokens, given.telemetry, given.price),
        client_bottleneck=_client(run),
        factors=factors_of(run, tokens, nodes),
        samples=samples,
        samples_note=samples_note,
        sources=tuple(_source(r, given.digests) for r in (run, *given.others, *([base] if base else []))),
        faults=_faults([run, *given.others, *([base] if base else [])]),
        assumptions=(*_assumptions(run, wall_words, seed), *changed(grades=limits.origin)),
        seed=seed,
    )


def _source(run: Run, digests: Mapping[str, str]) -> Source:
    started = run.more.get("started")
    return Source(run.file, digests.get(run.file, ""), len(run.requests), None if started is None else str(started))


def _inverse(nodes: Sequence[NodeFigures]) -> Figure:
    """What somebody would claim who adds up 1 / mean latency over the nodes."""
    known = [n.inverse_latency_per_s for n in nodes if not isinstance(n.inverse_latency_per_s, Unknown)]
    return sum(known) if known else Unknown("no node answered")


def _client(run: Run) -> str | None:
    if isinstance(run.client, Unknown) or not run.client.get("bottleneck"):
        return None
    return str(run.client.get("why") or "the client says it was the limit")


def _faults(runs: Sequence[Run]) -> tuple[str, ...]:
    said = []
    for run in runs:
        name = Path(run.file).name
        said += [f"{name}, line {f.line}{f' ({f.node})' if f.node else ''}: {f.why}" for f in run.faults]
        if not run.ended:
            said.append(f"{name}: the run did not come to its end")
        said += [f"{name}: {node}: {problem}" for node, problems in run.problems.items() for problem in problems]
    return tuple(dict.fromkeys(said))


def _assumptions(run: Run, wall_words: str, seed: int) -> tuple[str, ...]:
    said = [
        f"Wall clock: {wall_words}.",
        f"Intervals hold {100 * LEVEL:.0f} % of figures resampled from this run (seed {seed}): not another day's.",
        "Throughput is answers over the whole wall clock; its interval draws the gaps between answers anew.",
        "Requests marked as warm-up count nowhere but in their own line.",
        "Cold requests that were not marked count in success and throughput, and stand apart in latency.",
    ]
    if isinstance(run.planned, Unknown):
        said.append("The header does not say what was planned: requests without a line cannot be counted as lost.")
    return tuple(said)

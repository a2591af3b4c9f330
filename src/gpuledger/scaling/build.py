"""How does the scaling report come about: from files to runs, from runs to figures, grades and verdicts?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger.bench.records import Run, present
from gpuledger.bench.results import read_results
from gpuledger.cost.pricing import PriceChoice
from gpuledger.errors import InputError
from gpuledger.scaling.analysis.counting import (
    counts_of,
    gpus_of,
    in_flight,
    model_of,
    throughput_of,
    tokens_of,
    wall_of,
)
from gpuledger.scaling.analysis.curve import scaling_of, size_of, unit_of
from gpuledger.scaling.analysis.latency import latency_of, samples_of
from gpuledger.scaling.analysis.nodes import node_figures
from gpuledger.scaling.analysis.standouts import (
    Detail,
    latency_against,
    mean_tokens,
    metrics_apart,
    next_review,
    ratings_of,
    standouts_of,
    study_of,
)
from gpuledger.scaling.analysis.telemetry import batches_of, cost_of, memory_pct, no_telemetry, telemetry_of
from gpuledger.scaling.causes import causes_of, factors_of
from gpuledger.scaling.claims.rule import Case, Claim, checks, read_claims, verdicts
from gpuledger.scaling.figures import Facts, Source, Telemetry
from gpuledger.scaling.gains import bottlenecks_of, optimizations_of, public_figures
from gpuledger.scaling.grades import Thresholds, load_scaling_thresholds, overall, readiness_of, scorecard
from gpuledger.scaling.statement import Readiness, ScalingStatement, headline, recommendations, summary
from gpuledger.scaling.statistics import LEVEL
from gpuledger.scaling.trend import compare_runs
from gpuledger.settings import changed
from gpuledger.units import Unknown, known

File = str | Path
PREDICT = (4, 8)
SEED = 1


@dataclass(frozen=True)
class Given:
    """Everything a report is made from. `others`: runs of other sizes; `before`: an earlier run."""

    run: Run
    others: tuple[Run, ...] = ()
    baseline: Run | Unknown = Unknown("no baseline was given")  # noqa: RUF009  (frozen, so one for all is safe)
    before: Run | None = None
    telemetry: Telemetry = field(default_factory=lambda: no_telemetry("it was not read"))
    claims: tuple[Claim, ...] = ()
    price: PriceChoice = field(default_factory=PriceChoice)
    predict: tuple[int, ...] = PREDICT
    digests: Mapping[str, str] = field(default_factory=dict)


def read_runs(files: Sequence[File]) -> list[Run]:
    """Every run of every file, in order."""
    return [run for file in files for run in read_results(file)]


def gather(
    files: Sequence[File],
    *,
    baseline: File | None = None,
    claims: File | None = None,
    before: File | None = None,
    price: PriceChoice | None = None,
    predict: Sequence[int] = PREDICT,
) -> Given:
    """Read everything. The largest run is judged; of equal ones the last."""
    if not files:
        raise InputError("no results were given", hint="name one or more files of gpuledger bench")
    runs = read_runs(files)
    run = _largest(runs)
    others = [r for r in runs if r is not run]
    base = _baseline(run, others, baseline)
    used = {r.file for r in (*runs, *present([base]))}
    return Given(
        run=run,
        others=tuple(others),
        baseline=base,
        before=None if before is None else _largest(read_results(before)),
        telemetry=telemetry_of(run),
        claims=() if claims is None else read_claims(claims),
        price=price or PriceChoice(),
        predict=tuple(predict),
        digests={file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in sorted(used)},
    )


def _largest(runs: Sequence[Run]) -> Run:
    unit = unit_of(runs)
    return max(enumerate(runs), key=lambda pair: (size_of(pair[1], unit), pair[0]))[1]


def _smallest(runs: Sequence[Run]) -> Run:
    unit = unit_of(runs)
    return min(runs, key=lambda r: size_of(r, unit))


def _baseline(run: Run, others: Sequence[Run], given: File | None) -> Run | Unknown:
    """The file given, else the one the header names, else the smallest of the other runs."""
    if given is not None:
        return _smallest(read_results(given))
    if run.baseline is not None:
        for path in (Path(run.file).parent / run.baseline, Path(run.baseline)):
            if path.is_file():
                return _smallest(read_results(path))
        return Unknown(f"the header names {run.baseline} as baseline: no such file")
    unit, why = unit_of([run, *others]), "no measured baseline: no file of results was given or named in the header"
    if smaller := [r for r in others if size_of(r, unit) < size_of(run, unit)]:
        return _smallest(smaller)
    if len(run.names) < 2 and not others:
        why = "one node only: scaling needs a larger run, and this one as its baseline"
    elif (typed := run.more.get("baseline_typed_in")) is not None:
        why = f"no measured baseline: {typed!r} in the header is typed in, not a file of results"
    return Unknown(why)


def scaling_statement(given: Given, limits: Thresholds | None = None, *, seed: int = SEED) -> ScalingStatement:
    """The whole report of one run. The same input and seed give the same figures."""
    limits = limits or load_scaling_thresholds()
    facts = facts_of(given, limits, seed)
    ready = readiness_of(facts, limits)
    case = Case(facts, given.run, known(given.baseline), ready, limits, given.claims)
    grades = scorecard(facts, limits)
    letter, words = overall(grades)
    holds, changes, found = bottlenecks_of(facts), optimizations_of(facts), checks(case)
    public, public_words = public_figures(facts)
    first, second = headline(facts, ready, holds)
    before = given.before
    return ScalingStatement(
        headline=first,
        second=second,
        facts=facts,
        grades=grades,
        overall=letter,
        overall_words=words,
        checks=found,
        claims=verdicts(case),
        causes=causes_of(facts, given.run),
        bottlenecks=holds,
        optimizations=changes,
        public=public,
        public_words=public_words,
        readiness=ready,
        summary=summary(facts, ready, holds, found),
        recommendations=recommendations(facts, changes, limits),
        comparison=Unknown("no earlier run was given") if before is None else compare_runs(before, given.run, seed),
        detail=_detail(given, facts, ready, limits, seed, first=holds[0].name if holds else ""),
    )


def _detail(given: Given, facts: Facts, ready: Readiness, limits: Thresholds, seed: int, *, first: str) -> Detail:
    taken, made = mean_tokens(given.run)
    return Detail(
        study=study_of(facts, compared=given.before is not None),
        next_review=next_review(ready.verdict, first, ready.unknown),
        standouts=standouts_of(given.run),
        metrics_apart=metrics_apart(facts.nodes, limits.variance),
        ratings=ratings_of(facts.nodes, limits),
        latency_of_baseline_pct=latency_against(
            given.run, Unknown(facts.scaling.refused) if facts.scaling.refused else given.baseline, seed
        ),
        mean_input_tokens=taken,
        mean_output_tokens=made,
    )


def facts_of(given: Given, limits: Thresholds, seed: int) -> Facts:
    """The figures of a run, before they are judged."""
    run, runs = given.run, (given.run, *given.others, *present([given.baseline]))
    wall, wall_words = wall_of(run)
    rate = throughput_of(run, seed)
    nodes = node_figures(run, wall, limits, seed, given.telemetry)
    tokens = tokens_of(run, rate)
    inverse = present(n.inverse_latency_per_s for n in nodes)
    samples, samples_note = samples_of(run)
    return Facts(
        file=run.file,
        files=tuple(dict.fromkeys(r.file for r in runs)),
        config=dict(run.more),
        model=model_of(run),
        nodes_n=len(run.names),
        gpus=gpus_of(run),
        wall_s=wall,
        wall_words=wall_words,
        counts=counts_of(run),
        throughput_per_s=rate,
        inverse_latency_per_s=sum(inverse) if inverse else Unknown("no node answered"),
        in_flight=in_flight(run),
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
        sources=tuple(_source(r, given.digests) for r in runs),
        faults=_faults(runs),
        assumptions=(*_assumptions(run, wall_words, seed), *changed(grades=limits.origin)),
        seed=seed,
    )


def _source(run: Run, digests: Mapping[str, str]) -> Source:
    started = run.more.get("started")
    return Source(run.file, digests.get(run.file, ""), len(run.requests), None if started is None else str(started))


def _client(run: Run) -> str | None:
    if isinstance(run.client, Unknown) or not run.client.get("bottleneck"):
        return None
    return str(run.client.get("why") or "the client reports that it was the bottleneck")


def _faults(runs: Sequence[Run]) -> tuple[str, ...]:
    found = []
    for run in runs:
        name = Path(run.file).name
        found += [f"{name}, line {f.line}{f' ({f.node})' if f.node else ''}: {f.why}" for f in run.faults]
        if not run.ended:
            found.append(f"{name}: the run did not come to its end")
        found += [f"{name}: {node}: {problem}" for node, problems in run.problems.items() for problem in problems]
    return tuple(dict.fromkeys(found))


def _assumptions(run: Run, wall_words: str, seed: int) -> tuple[str, ...]:
    made = [
        f"Wall clock: {wall_words}.",
        f"Intervals hold {100 * LEVEL:.0f} % of figures resampled from this run (seed {seed}); another day may differ.",
        "Throughput is answers over the whole wall clock; its interval resamples the gaps between answers.",
        "Requests marked as warm-up count only in their own line.",
        "Cold requests that were not marked count in success and throughput, and are separate in latency.",
    ]
    if isinstance(run.planned, Unknown):
        made.append("The header does not report the plan: requests without a line cannot be counted as lost.")
    return tuple(made)

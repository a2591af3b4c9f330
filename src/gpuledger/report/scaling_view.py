"""What do all documents show of a scaling report: its own figures, and the rows made of them?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuledger.report.outline import Card, Outline, Section, card, load_outline
from gpuledger.report.scaling_rows import (
    BatchRow,
    ChangeRow,
    CheckRow,
    ClaimRow,
    ColdRow,
    GainRow,
    GradeRow,
    MemoryRow,
    NodeRow,
    OptimizationRow,
    PredictionRow,
    PublicRow,
    SourceRow,
    SpreadRow,
    Words,
    batch_row,
    change_row,
    cold_row,
    grade_row,
    node_row,
    spanned,
    spread_row,
    spread_rows,
)
from gpuledger.report.scaling_words import configuration, cost_words, scaling_words, token_words
from gpuledger.report.written import loose
from gpuledger.scaling.statement import Comparison, ScalingStatement
from gpuledger.units import Unknown

OUTLINE = "scaling_outline.toml"
TABLES = "scaling_tables.toml"
Text = str | Unknown


@dataclass(frozen=True)
class ScalingView:
    """A scaling report with the rows its tables show."""

    statement: ScalingStatement

    @property
    def overall(self) -> Text:
        """The overall grade."""
        return self.statement.overall

    @property
    def throughput(self) -> object:
        """Answers a second, with their range."""
        return spanned(self.statement.facts.throughput_per_s)

    @property
    def success(self) -> object:
        """Of the planned ones."""
        found = self.statement.facts.counts.success_pct
        return found if isinstance(found, Unknown) else found.value

    @property
    def efficiency(self) -> object:
        """Against the baseline."""
        return spanned(self.statement.facts.scaling.efficiency_pct)

    @property
    def warm_mean(self) -> object:
        """Of a warm request."""
        return spanned(self.statement.facts.latency.warm.mean_s)

    @property
    def usd_per_million(self) -> object:
        """Dollars for a million tokens."""
        return self.statement.facts.cost.usd_per_million_tokens

    @property
    def grades(self) -> tuple[GradeRow, ...]:
        """The scorecard."""
        return tuple(grade_row(g, self.statement) for g in self.statement.grades)

    @property
    def configuration(self) -> tuple[Words, ...]:
        """What ran."""
        return configuration(self.statement.facts)

    @property
    def scaling(self) -> tuple[Words, ...]:
        """Baseline, theory, what was reached."""
        return scaling_words(self.statement.facts)

    @property
    def predictions(self) -> tuple[PredictionRow, ...]:
        """What the law says other sizes do."""
        return tuple(
            PredictionRow(p.size, spanned(p.throughput_per_s), p.efficiency_pct, "yes" if p.extrapolated else "no")
            for p in self.statement.facts.scaling.curve.predictions
        )

    @property
    def latencies(self) -> tuple[SpreadRow, ...]:
        """All, warm, cold, warm-up, first token, between tokens."""
        return spread_rows(self.statement.facts.latency)

    @property
    def node_latencies(self) -> tuple[SpreadRow, ...]:
        """Every node, all answers and warm ones."""
        rows = []
        for n in self.statement.facts.nodes:
            rows += [spread_row(n.node, n.latency), spread_row(f"{n.node}, warm", n.warm)]
        return tuple(rows)

    @property
    def tokens(self) -> tuple[Words, ...]:
        """By wall clock."""
        return token_words(self.statement.facts)

    @property
    def nodes(self) -> tuple[NodeRow, ...]:
        """Node by node."""
        return tuple(node_row(n) for n in self.statement.facts.nodes)

    @property
    def memory(self) -> tuple[MemoryRow, ...]:
        """Node by node, of the real card; and the peak the telemetry saw."""
        facts = self.statement.facts
        rows = [
            MemoryRow(n.node, n.card, _gb(n.memory_used_bytes), _gb(n.card_bytes), n.memory_pct) for n in facts.nodes
        ]
        peak = facts.telemetry.memory_peak_bytes
        if not isinstance(peak, Unknown):
            rows.append(MemoryRow("any GPU, at its peak", "from the telemetry", _gb(peak), "", facts.memory_pct))
        return tuple(rows)

    @property
    def cold(self) -> tuple[ColdRow, ...]:
        """Node by node."""
        return tuple(cold_row(n) for n in self.statement.facts.nodes)

    @property
    def batches(self) -> tuple[BatchRow, ...]:
        """The sweep."""
        return tuple(batch_row(p) for p in self.statement.facts.batches.points)

    @property
    def causes(self) -> tuple[Words, ...]:
        """What the run says to each."""
        word = {True: "yes", False: "no"}
        return tuple(
            Words(c.name, str(c.found) if isinstance(c.found, Unknown) else word[c.found], c.evidence)
            for c in self.statement.causes
        )

    @property
    def bottlenecks(self) -> tuple[GainRow, ...]:
        """By what mending them would bring."""
        return tuple(GainRow(b.rank, b.name, b.gain_pct, b.why) for b in self.statement.bottlenecks)

    @property
    def optimizations(self) -> tuple[OptimizationRow, ...]:
        """What could be changed."""
        return tuple(
            OptimizationRow(o.name, o.horizon, o.gain, f"{o.why}. Rests on: {o.basis}")
            for o in self.statement.optimizations
        )

    @property
    def factors(self) -> tuple[Words, ...]:
        """What shapes the result."""
        return tuple(Words(f.name, f.finding) for f in self.statement.facts.factors)

    @property
    def public(self) -> tuple[PublicRow, ...]:
        """What others published."""
        return tuple(
            PublicRow(f"{p.model} on {p.gpu}", p.what, p.value, p.ours, p.unit, f"{p.source} ({p.as_of}). {p.note}")
            for p in self.statement.public
        )

    @property
    def claims(self) -> tuple[ClaimRow, ...]:
        """What was claimed, and what the run says."""
        return tuple(
            ClaimRow(c.claim + (f" ({c.node})" if c.node else ""), _said(c.value), c.verdict, c.why)
            for c in self.statement.claims
        )

    @property
    def checks(self) -> tuple[CheckRow, ...]:
        """The usual mistakes, the ones made first."""
        made = sorted(self.statement.checks, key=lambda c: not c.caught)
        return tuple(CheckRow(c.title, "caught" if c.caught else "not found", c.why if c.caught else "") for c in made)

    @property
    def cost(self) -> tuple[Words, ...]:
        """Dollars and joules."""
        return cost_words(self.statement.facts)

    @property
    def changes(self) -> tuple[ChangeRow, ...]:
        """Against the earlier run."""
        found = self.statement.comparison
        return tuple(change_row(c) for c in found.changes) if isinstance(found, Comparison) else ()

    @property
    def sources(self) -> tuple[SourceRow, ...]:
        """The files behind the report."""
        return tuple(
            SourceRow(Path(s.file).name, s.requests, s.started or "not given", s.sha256[:16] or "not known")
            for s in self.statement.facts.sources
        )

    @property
    def outline(self) -> Outline:
        """The order of the documents."""
        return load_outline(OUTLINE)

    @property
    def sections(self) -> tuple[Section, ...]:
        """Those that have something to say: comparison and sweep only where there is one."""
        quiet = {"comparison": not isinstance(self.statement.comparison, Comparison), "batches": not self.batches}
        return tuple(s for s in self.outline.sections if not quiet.get(s.id))

    @property
    def cards(self) -> list[Card]:
        """The key figures."""
        return [card(kind, self) for kind in self.outline.cards]

    @property
    def head(self) -> list[str]:
        """The provenance line at the top."""
        f = self.statement.facts
        gpus = "GPUs not known" if isinstance(f.gpus, Unknown) else f"{f.gpus} GPU{'s' * (f.gpus != 1)}"
        started = next((s.started for s in f.sources if s.started), None)
        out = [Path(f.file).name, f"{f.nodes_n} node{'s' * (f.nodes_n != 1)}", gpus]
        out.append("wall clock not known" if isinstance(f.wall_s, Unknown) else f"{loose(f.wall_s)} s of wall clock")
        return [*out, *([f"started {started}"] if started else [])]


def _said(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _gb(value: float | Unknown) -> str | Unknown:
    return value if isinstance(value, Unknown) else f"{value / 1e9:.2f} GB"

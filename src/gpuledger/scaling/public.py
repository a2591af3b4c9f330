"""What did others publish for the same model and GPU? Only with a date and a source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import msgspec

from gpuledger.bench.records import present
from gpuledger.catalog.files import data_dir
from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.models import find_model
from gpuledger.scaling.figures import BatchPoint, Facts, Figure
from gpuledger.scaling.statement import PublicFigure
from gpuledger.settings import convert, read_toml
from gpuledger.units import Unknown, ratio

Metric = Literal["single_stream_tokens_per_s", "tokens_per_gpu_per_s", "tokens_per_s"]


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure of the data file."""

    model: str
    gpu: str
    what: str
    metric: Metric
    value: float
    unit: str
    source: str
    as_of: str
    note: str = ""


@cache
def load_public() -> tuple[Published, ...]:
    """Every published figure."""
    file = data_dir("gpuledger.scaling", "data", "public_figures.toml")
    return convert(read_toml(file)["figures"], tuple[Published, ...], str(file))


def public_figures(facts: Facts) -> tuple[tuple[PublicFigure, ...], str]:
    """Those of the run's model and GPU, and a note on them."""
    named, cards = facts.model, {n.gpu for n in facts.nodes if isinstance(n.gpu, str)}
    if isinstance(named, Unknown):
        return (), f"No public figure: {named.why}."
    found_model = find_model(named)
    model = named if isinstance(found_model, Unknown) else found_model.name
    gpus = {found.key for card in cards if not isinstance(found := find_gpu(card), Unknown)}
    if len(gpus) != 1:
        return (), "No public figure: the nodes do not share one GPU of the catalog."
    gpu = gpus.pop()
    same = [f for f in load_public() if f.model == model and f.gpu == gpu]
    if not same:
        return (), f"No public figure is known for {model} on {gpu}, so the run cannot be ranked."
    shown = tuple(
        PublicFigure(f.model, f.gpu, f.what, f.value, f.unit, f.source, f.as_of, _ours(f.metric, facts), f.note)
        for f in same
    )
    return shown, "Settings differ: a published figure is a point of reference, not a rank."


def _ours(metric: Metric, facts: Facts) -> Figure:
    tokens, points = facts.tokens, facts.batches.points
    if len(points) > 1:  # of a sweep the comparable batch: one request at a time, or the best of all
        return _of_sweep(metric, points, facts.gpus)
    if metric == "single_stream_tokens_per_s":
        return tokens.single_stream_per_s
    if metric == "tokens_per_gpu_per_s":
        return tokens.per_gpu_per_s
    return tokens.per_s if isinstance(tokens.per_s, Unknown) else tokens.per_s.value


def _of_sweep(metric: Metric, points: Sequence[BatchPoint], gpus: int | Unknown) -> Figure:
    if metric == "single_stream_tokens_per_s":
        return next((p.tokens_per_s for p in points if p.batch == 1), Unknown("batch 1 was not in the sweep"))
    best = max(present(p.tokens_per_s for p in points), default=None)
    if best is None:
        return Unknown("no batch of the sweep reports its tokens")
    if metric == "tokens_per_s":
        return best
    return gpus if isinstance(gpus, Unknown) else ratio(best, gpus, "the run has no GPU")

"""What does the catalog say of the GPU of each row?"""

from __future__ import annotations

import hashlib
from functools import cache

import msgspec
import numpy as np

from gpuledger.catalog.gpus import find_gpu, load_gpus
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.batch import Batch, as_dictionary
from gpuledger.ledger import lines
from gpuledger.physics.evidence import PipeRates, pipe_rates
from gpuledger.physics.pipe_facts import pipe_facts
from gpuledger.physics.row_facts import KindFacts, RowFacts, state_rules
from gpuledger.telemetry import schema
from gpuledger.units import PPM, Unknown

_PIPES = ("tensor", "hmma", "imma", "dfma", "fp32", "fp16", "fp64")


@cache
def _facts(model: str | None, precision: str | None) -> KindFacts:
    gpu = find_gpu(model) if model else Unknown("no model name")
    if isinstance(gpu, Unknown):
        return KindFacts(np.nan, np.nan, np.nan, {}, None)
    rates = pipe_rates(gpu, precision)
    # Shares per ppm and MHz; rows hold ratios, so a million times that.
    worth = {p: float(r[1]) * PPM for p, r in rates.per_activity.items()} if isinstance(rates, PipeRates) else {}
    mhz = gpu.tensor_rated_mhz or gpu.fp32_rated_mhz
    return KindFacts(
        float("nan") if gpu.board_power_w is None else gpu.board_power_w.value,
        float("nan") if gpu.idle_power_w is None else gpu.idle_power_w.value,
        float("nan") if mhz is None else mhz.value,
        {p: worth[_RATED.get(p, p)] for p in _PIPES if _RATED.get(p, p) in worth},
        state_rules().budgets.get(gpu.key),
        pipe_facts().thin.get(gpu.architecture),
    )


_KIND = ("gpu_model", "tensor_precision")
# Where the kinds of tensor work are not separated, rates name the tensor pipe "matrix".
_RATED = {"tensor": "matrix", "hmma": "matrix"}


def row_facts(batch: Batch) -> RowFacts:
    """The facts of each row's GPU model and tensor precision."""
    starts = np.flatnonzero(batch.changes(_KIND))
    codes, kinds = _kinds(batch, starts)
    return RowFacts([_facts(*kind) for kind in kinds], codes, np.diff(starts, append=batch.n))


def _kinds(batch: Batch, starts: np.ndarray) -> tuple[np.ndarray | None, list[tuple[str | None, str | None]]]:
    """The kind of some rows (None: all are of one), and the model and precision of each kind."""
    code, texts = np.zeros(len(starts), dtype=np.int64), list[tuple[str | None, ...]]([()])
    for name in _KIND:
        column = batch.column(name)
        if column is None:
            texts = [(*t, None) for t in texts]
            continue
        words = [*as_dictionary(column).dictionary.to_pylist(), None]
        numbers = batch.codes(name)
        assert numbers is not None
        numbers = numbers[starts]
        code = code * len(words) + np.where(numbers < 0, len(words) - 1, numbers)
        texts = [(*t, w) for t in texts for w in words]
    used, place = np.unique(code, return_inverse=True)
    found = [(texts[i][0], texts[i][1]) for i in used.tolist()]
    return (None if len(found) == 1 else place.reshape(-1)), found


@cache
def facts_fingerprint() -> str:
    """16 hex digits that change when a fact changes by which samples are judged."""
    known = {name.casefold(): _facts(name, None) for gpu in load_gpus().values() for name in gpu.spellings()}
    content = msgspec.json.encode([known, state_rules(), pipe_facts()], order="sorted")
    return hashlib.sha256(content).hexdigest()[:16]


def rules_of_the_moment(limits: Thresholds) -> str:
    """What books that end with this process were posted by: no fact changes meanwhile, so all need not be read."""
    return f"moment {limits.fingerprint()}"


def posted_by(rules: str, limits: Thresholds) -> bool:
    """Whether a day was posted by these limits and the facts known now."""
    return rules == rules_of_the_moment(limits) or rules == rules_fingerprint(limits)


def rules_fingerprint(limits: Thresholds) -> str:
    """Changes when a limit or a fact of a GPU changes that posting uses, so that days with samples are posted again."""
    text = f"{lines.version()} {schema.version()} {limits.fingerprint()} {facts_fingerprint()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]

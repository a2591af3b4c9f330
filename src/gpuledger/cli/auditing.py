"""How do a command line's prices, files and windows become an audit, of a lake or of one run, and when does it fail?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.advice.asking import Asked, asked, audit, audit_or_snapshot
from gpuledger.advice.statement import AuditStatement
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cli.price_options import price_of, usd_of
from gpuledger.cli.screen import Stages
from gpuledger.cost.judged import known_waste
from gpuledger.cost.statement import BUCKETS, CostStatement
from gpuledger.efficiency.snapshot import Snapshot
from gpuledger.errors import InputError, UnknownName
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import Window, scope_of
from gpuledger.recording.runs import RunNotes
from gpuledger.units import Unknown

LEAST_SAMPLES = 2
WASTE = "waste"
NAMES = (WASTE, *BUCKETS)
_FORM = re.compile(r"\s*([a-z_]+)\s*>\s*(\d+(?:\.\d+)?)\s*%?\s*")


def wanted(
    lake: Path, *, prices: Sequence[str], usd_per_kwh: str | None, limits_file: Path | None, **given: Any
) -> Asked:
    """The options of a command line, checked."""
    per_kwh = None if usd_per_kwh is None else usd_of(usd_per_kwh, "--usd-per-kwh")
    return asked(lake, price=price_of(prices), usd_per_kwh=per_kwh, limits=limits_file, dash="--", **given)


def audit_lake(lake: Lake, chosen: Window, asked: Asked, stages: Stages) -> AuditStatement | Snapshot:
    """The audit of a window of the lake, whose ledger is up to date; a snapshot where each GPU was seen once."""
    tick = stages.start("auditing")
    made = audit_or_snapshot(lake, scope_of(lake, **chosen), asked)
    tick(1)
    return made


def audit_run(lake: Lake, notes: RunNotes, asked: Asked, stages: Stages) -> AuditStatement:
    """The audit of one recording: its own time on its own devices."""
    _enough(notes)
    stages.post(lake, load_thresholds())
    end = max(notes.ended_ms or notes.started_ms, notes.started_ms + 1)
    return audit(lake, Scope(notes.started_ms, end, owners=(notes.run_id,)), asked)


def _enough(notes: RunNotes) -> None:
    if notes.devices and not any(d.owned for d in notes.devices):
        raise InputError(
            f"run {notes.run_id} held no GPU (of {len(notes.devices)} recorded), so no GPU time is its own",
            hint="was the GPU hidden from it (CUDA_VISIBLE_DEVICES)? audit the whole lake: gpuledger audit",
        )
    if notes.rows < LEAST_SAMPLES:
        words = f"the run left {notes.rows} sample{'s' * (notes.rows != 1)} in {notes.seconds:.1f} s"
        raise InputError(f"{words}: too short to audit", hint="audit something that runs for some seconds")


@dataclass(frozen=True)
class FailOn:
    """A share of the bill that is too much."""

    name: str
    above_pct: float

    @classmethod
    def parse(cls, text: str) -> FailOn:
        """ "waste>40": more than 40 % of the bill is waste; also with the name of a bucket."""
        found = _FORM.fullmatch(text.casefold())
        if not found or not math.isfinite(float(found[2])):
            raise InputError(f"--fail-on {text!r} is not NAME>PERCENT", hint="for example --fail-on 'waste>40'")
        if found[1] not in NAMES:
            raise UnknownName("share of the bill", found[1], NAMES)
        return cls(found[1], float(found[2]))

    def verdict(self, cost: CostStatement | Snapshot) -> str:
        """Why it failed, in words; empty where it did not. What is not known counts as failed."""
        if isinstance(cost, Snapshot):
            return f"{self.name} is not known: each GPU has a single sample, which has no bill"
        dollars = cost.dollars
        amount = known_waste(dollars) if self.name == WASTE else {str(b): v for b, v in cost.buckets.items()}[self.name]
        if isinstance(dollars, Unknown) or isinstance(amount, Unknown):
            return f"{self.name} is {amount}"
        share = dollars.pct(amount)
        return f"{self.name} is {share:.1f} % of the bill, above {self.above_pct:g} %" if share > self.above_pct else ""

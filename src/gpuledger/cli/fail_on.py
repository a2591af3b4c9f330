"""When does an audit count as failed, where asked (--fail-on)?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from gpuledger.cost.statement import BUCKETS, CostStatement
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown

WASTE = "waste"
NAMES = (WASTE, *BUCKETS)
_FORM = re.compile(r"\s*([a-z_]+)\s*>\s*(\d+(?:\.\d+)?)\s*%?\s*")


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

    def verdict(self, cost: CostStatement) -> str:
        """Why it failed, in words; empty where it did not. What is not known counts as failed."""
        dollars = cost.dollars
        if isinstance(dollars, Unknown):
            return f"{self.name} is {dollars}"
        amount = dollars.waste_usd if self.name == WASTE else getattr(dollars, f"{self.name}_usd")
        share = dollars.pct(amount)
        return f"{self.name} is {share:.1f} % of the bill, above {self.above_pct:g} %" if share > self.above_pct else ""

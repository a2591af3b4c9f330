"""Which prices and budgets did the user set, and which budgets are exceeded?

[prices]
H100-SXM5-80GB = 2.50                   # dollars per GPU-hour

[budgets]
"foundation models" = 10000             # team or namespace: dollars per month
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.offers import PRICE_RANGE, plausible_usd_per_h
from gpuledger.cost.statement import CostRow, CostStatement
from gpuledger.errors import FactError, UnknownName
from gpuledger.settings import Settings, in_force
from gpuledger.units import Unknown

Amount = Annotated[float, msgspec.Meta(gt=0)] | Annotated[int, msgspec.Meta(gt=0)]
Price = Decimal | Mapping[str, Decimal] | None
Kind = Literal["team", "namespace"]
NO_TIME = "no team and no namespace of that name has time in this window"


@dataclass(frozen=True)
class Budget:
    """What a team or a namespace spends per month compared with what it may spend."""

    name: str
    of: Kind | None
    budget_usd: Decimal
    monthly_usd: Decimal | Unknown

    @property
    def over(self) -> bool | None:
        """Whether the budget is exceeded; None where the spending is unknown."""
        return None if isinstance(self.monthly_usd, Unknown) else self.monthly_usd > self.budget_usd

    @property
    def words(self) -> str:
        """The same in one sentence."""
        if isinstance(self.monthly_usd, Unknown):
            return f"budget of {self.name}: ${self.budget_usd:,.2f} per month; spending unknown: {self.monthly_usd.why}"
        state = "over budget" if self.over else "within budget"
        return f"{self.of} {self.name}: ${self.monthly_usd:,.2f} of a ${self.budget_usd:,.2f} monthly budget, {state}"

    def as_json(self) -> dict[str, object]:
        """Its fields and the verdict."""
        figures = {"budget_usd": self.budget_usd, "monthly_usd": self.monthly_usd}
        return {"name": self.name, "of": self.of, **figures, "over": self.over}


def set_prices(settings: Settings | None = None) -> dict[str, Decimal]:
    """The prices that were set, in dollars per GPU-hour by the GPU's name."""
    found = settings or in_force()
    prices = {name: Decimal(str(v)) for name, v in found.table("prices", dict[str, Amount]).items()}
    for name, price in prices.items():
        try:
            get_gpu(name)
        except UnknownName as error:
            raise FactError(str(found.file), f"prices.{name}", error.message, hint=error.hint) from error
        if not plausible_usd_per_h(price):
            problem = f"{price} is not a price for a GPU-hour"
            raise FactError(str(found.file), f"prices.{name}", problem, hint=f"give dollars {PRICE_RANGE}: 2.50")
    return prices


def with_set_prices(given: Price) -> Price:
    """The prices that were given; those that were set hold for the GPUs that none was given for."""
    return given if isinstance(given, Decimal) else {**set_prices(), **(given or {})} or None


def set_budgets(settings: Settings | None = None) -> dict[str, Decimal]:
    """The budgets that were set, in dollars per month by team or namespace."""
    found = (settings or in_force()).table("budgets", dict[str, Amount])
    return {name: Decimal(str(budget)) for name, budget in found.items()}


def budgets_of(cost: CostStatement, settings: Settings | None = None) -> tuple[Budget, ...]:
    """The budgets that were set, each compared with the window's spending as dollars per month."""
    return tuple(_compared(cost, name, budget) for name, budget in set_budgets(settings).items())


def _compared(cost: CostStatement, name: str, budget: Decimal) -> Budget:
    row, of = row_named(cost, name)
    if row is None:
        return Budget(name, None, budget, Unknown(NO_TIME))
    return Budget(name, of, budget, row.month_usd)


def row_named(cost: CostStatement, name: str, of: Kind | None = None) -> tuple[CostRow | None, Kind | None]:
    """The row of a team of this name, else of a namespace, and which of them it is; `of`: only that kind."""
    kinds: tuple[tuple[Kind, tuple[CostRow, ...]], ...] = (("team", cost.by_team), ("namespace", cost.by_namespace))
    found = ((row, kind) for kind, rows in kinds if of in {None, kind} for row in rows if row.name == name)
    return next(found, (None, None))

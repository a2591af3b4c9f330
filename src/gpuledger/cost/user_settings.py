"""Which teams, prices and budgets did the user set, and which budgets are exceeded?

[teams]
ml-training = "foundation models"       # namespace, or "cluster/namespace"

[prices]
H100-SXM5-80GB = 2.50                   # dollars per GPU-hour

[budgets]
"foundation models" = 10000             # team or namespace: dollars per month

What is asked of a namespace may also stand in a file of its own; "cluster/namespace" wins over the plain name:

version = 1
[namespaces.ml-training]
team = "foundation models"
rfu_target_ratio = 0.70          # optional: what efficiency is compared with
gap_alert_above_ratio = 0.25     # optional: when to alert on utilization less real use
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.offers import PRICE_RANGE, plausible_usd_per_h
from gpuledger.cost.money import usd
from gpuledger.cost.projections import months_of
from gpuledger.cost.statement import CostRow, CostStatement
from gpuledger.errors import FactError, UnknownName
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.settings import Settings, in_force
from gpuledger.units import Unknown

NO_TEAM = "no team"
CONFIG_VERSION = 1
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1)]


class NamespaceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of one namespace."""

    team: str | None = None
    rfu_target_ratio: Ratio | None = None
    gap_alert_above_ratio: Ratio | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: int = CONFIG_VERSION
    namespaces: dict[str, NamespaceConfig] = {}

    def of(self, cluster: str | None, namespace: str | None) -> NamespaceConfig:
        """What holds for a namespace of a cluster."""
        if namespace is None:
            return NamespaceConfig()
        narrow = self.namespaces.get(f"{cluster}/{namespace}")
        return narrow or self.namespaces.get(namespace) or NamespaceConfig()

    def set_team(self, cluster: str | None, namespace: str | None) -> str | None:
        """The team a namespace was given; None where it was given none."""
        return self.of(cluster, namespace).team

    def team(self, cluster: str | None, namespace: str | None, label: str | None = None, *, owned: bool = False) -> str:
        """The team that is shown the cost: by its label, else as set; time without an owner has none."""
        if label is not None:
            return label
        if namespace is None:
            return NO_TEAM if owned else UNALLOCATED
        return self.set_team(cluster, namespace) or NO_TEAM


def load_config(path: Path) -> Config:
    """The user's file, checked whole."""
    return checked(load_toml(path, Config), str(path))


def demo_config() -> Config:
    """The demo fleet's teams, as shipped."""
    file = data_dir("gpuledger.cost", "data", "demo_config.toml")
    return checked(load_toml(file, Config), str(file))


def checked(config: Config, path: str) -> Config:
    """The same, where its version and the names of its teams can be used."""
    if config.version > CONFIG_VERSION:
        raise FactError(
            path, "version", f"{config.version} is newer than this gpuledger reads", hint="upgrade gpuledger"
        )
    for name, namespace in config.namespaces.items():
        if namespace.team is not None and not namespace.team.strip():
            raise FactError(path, f"namespaces.{name}.team", "is empty", hint="name the team, or leave the line out")
        if namespace.team in {NO_TEAM, UNALLOCATED}:
            problem = f"{namespace.team!r} has a meaning of its own here"
            raise FactError(path, f"namespaces.{name}.team", problem, hint="give the team another name")
    return config


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


def set_teams(settings: Settings | None = None) -> Config | None:
    """The teams that were set; None where none were."""
    found = settings or in_force()
    teams = found.table("teams", dict[str, str])
    if not teams:
        return None
    return checked(Config(namespaces={n: NamespaceConfig(team) for n, team in teams.items()}), str(found.file))


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
    month = months_of(cost.projection, cost.end_ms - cost.start_ms)
    return tuple(_compared(cost, name, budget, month) for name, budget in set_budgets(settings).items())


def _compared(cost: CostStatement, name: str, budget: Decimal, month: Fraction) -> Budget:
    row, of = row_named(cost, name)
    if row is None:
        return Budget(name, None, budget, Unknown(NO_TIME))
    spent = row.dollars
    monthly = spent if isinstance(spent, Unknown) else usd(Fraction(spent.paid_usd) * month)
    return Budget(name, of, budget, monthly)


def row_named(cost: CostStatement, name: str, of: Kind | None = None) -> tuple[CostRow | None, Kind | None]:
    """The row of a team of this name, else of a namespace, and which of them it is; `of`: only that kind."""
    kinds: tuple[tuple[Kind, tuple[CostRow, ...]], ...] = (("team", cost.by_team), ("namespace", cost.by_namespace))
    found = ((row, kind) for kind, rows in kinds if of in {None, kind} for row in rows if row.name == name)
    return next(found, (None, None))

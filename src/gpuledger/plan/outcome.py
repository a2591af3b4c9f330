"""Which parts does every plan have? What was refused and why, dollars with their range, and what it rests on.

The statement of a planner has a `headline`, what was `chosen`, `runners_up`, `refused`, `assumptions`, `prices_dated`
where it has prices; a figure that is not known is an `Unknown`. `report.plan_sections` shows what all plans share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol


@dataclass(frozen=True)
class Refused:
    """An option that was not taken: what it is, why, and what would change that where something would."""

    what: str
    why: str
    instead: str = ""


@dataclass(frozen=True)
class UsdRange:
    """Dollars with the range they may lie in."""

    low_usd: Decimal
    middle_usd: Decimal
    high_usd: Decimal

    def __add__(self, other: UsdRange) -> UsdRange:
        return UsdRange(
            self.low_usd + other.low_usd, self.middle_usd + other.middle_usd, self.high_usd + other.high_usd
        )


class Plan(Protocol):
    """What the sections that all plans share are made from."""

    @property
    def headline(self) -> str: ...
    @property
    def refused(self) -> Sequence[Refused]: ...
    @property
    def assumptions(self) -> Sequence[str]: ...

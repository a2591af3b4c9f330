"""What is said of the change of a bill since the period before?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.encode import Json
from gpuledger.units import Unknown

_PARTS = ("volume_usd", "rate_usd", "efficiency_usd")


@dataclass(frozen=True)
class Effect:
    """The change of one bucket since the last period, in three parts that add up to it.

    `unknown`: why, for a period (before, after) that does not show what is in this bucket.
    """

    bucket: str
    before_usd: Decimal
    after_usd: Decimal
    volume_usd: Decimal
    rate_usd: Decimal
    efficiency_usd: Decimal
    unknown: tuple[Unknown | None, Unknown | None] = (None, None)

    @property
    def shown(self) -> Mapping[str, Decimal | Unknown]:
        """Its figures for a reader."""
        before, after = self.unknown
        either = after if before is None else before
        return {
            "before_usd": self.before_usd if before is None else before,
            "after_usd": self.after_usd if after is None else after,
            **{name: getattr(self, name) if either is None else either for name in ("change_usd", *_PARTS)},
        }

    @property
    def known(self) -> bool:
        """Whether both periods show it."""
        return self.unknown == (None, None)

    def as_json(self) -> Json:
        """Unknown figures as such."""
        return {"bucket": self.bucket, **{n: self.shown[n] for n in ("before_usd", "after_usd", *_PARTS)}}

    @property
    def change_usd(self) -> Decimal:
        """After less before."""
        return self.after_usd - self.before_usd


@dataclass(frozen=True)
class Comparison:
    """This period against the last of the same length."""

    start_ms: int
    end_ms: int
    total: Effect
    by_bucket: tuple[Effect, ...]
    words: tuple[str, ...]

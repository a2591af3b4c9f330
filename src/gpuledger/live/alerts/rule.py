"""What is an alert rule, and what does it report about each GPU, owner or budget it looks at?

A rule is one module with one function under `alert`; that is all, also for a rule from outside this package. It reports
a value for everything it looks at, also where all is well: an alert recovers only when its value is seen to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from gpuledger.live.alerts.limits import Limits
from gpuledger.registry import Registry
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.live.alerts.seen import Seen

__all__ = ["ALERTS", "Evidence", "Limits", "Owner", "Reading", "Rule", "Subject", "Unknown", "alert"]

Kind = Literal["gpu", "namespace", "owner", "budget", "lake"]
Evidence = Mapping[str, str | int | float | None]


class Owner(msgspec.Struct, frozen=True):
    """Whose time it is, as far as known."""

    cluster: str | None = None
    namespace: str | None = None
    team: str | None = None
    user: str | None = None
    workload: str | None = None
    run_id: str | None = None


class Subject(msgspec.Struct, frozen=True):
    """What an alert is about. `id` never changes, `name` is what people call it."""

    kind: Kind
    id: str
    name: str


@dataclass(frozen=True)
class Reading:
    """One measurement. `at_ms`: of which instant; `since_ms`: since when it is so, where the data shows it."""

    subject: Subject
    value: float | Unknown
    at_ms: int
    since_ms: int | None = None
    owner: Owner = Owner()  # noqa: RUF009  (frozen, so one for all is safe)
    evidence: Evidence = field(default_factory=dict)


Look = Callable[["Seen"], Iterable[Reading]]


@dataclass(frozen=True)
class Rule:
    """One alert rule; see `alert`."""

    name: str
    title: str
    unit: str
    next_step: str
    look: Look
    limits: Limits | None = None


ALERTS: Registry[Rule] = Registry("alert rule", "gpuledger.live.alerts.rules")


def alert(name: str, title: str, *, unit: str, next_step: str, limits: Limits | None = None) -> Callable[[Look], Look]:
    """Decorator: make a function from what is seen to readings a rule, known under `name`.

    A value at or above the limit is bad. In `next_step` {subject} becomes the name of what the alert is about.
    `limits`: a rule from outside brings its own; those of ours are settings.
    """

    def keep(look: Look) -> Look:
        ALERTS.register(name)(Rule(name, title, unit, next_step, look, limits))
        return look

    return keep

"""Who is notified, and when? The owner first, then the team, then everyone, while the alert lasts."""

from __future__ import annotations

from typing import Literal

import msgspec

from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.limits import AlertSettings
from gpuledger.live.alerts.rule import Owner
from gpuledger.times import length_ms

Step = Literal["owner", "team", "everyone", "terminal"]
TERMINAL = "terminal"


class Notice(msgspec.Struct, frozen=True):
    """One receiver of an event, and the instant from which it is notified."""

    receiver: str
    step: Step
    due_ms: int


def notices(event: Event, settings: AlertSettings, *, terminal: bool = True) -> list[Notice]:
    """Who is notified that an alert began; each receiver once, at its earliest.

    Without a receiver for the owner, the team is notified at once; without one for the team either, everyone is.
    `terminal`: whoever runs the watcher sees everything at once.
    """
    ladder, at = settings.ladder, event.at_ms
    owner, team = _owner(event.owner, settings), settings.receivers_of(event.owner.team or "")
    everyone = ladder.everyone or tuple(settings.receivers)
    team_wait = length_ms(ladder.team_after) if owner else 0
    all_wait = length_ms(ladder.everyone_after) if owner or team else 0
    if event.severity in ladder.at_once:
        team_wait = all_wait = 0
    steps: list[tuple[Step, tuple[str, ...], int]] = [
        ("terminal", (TERMINAL,) if terminal else (), 0),
        ("owner", owner, 0),
        ("team", team, team_wait),
        ("everyone", everyone, max(all_wait, team_wait)),
    ]
    found: dict[str, Notice] = {}
    for step, names, wait in steps:
        for name in names:
            found.setdefault(name, Notice(name, step, at + wait))
    return list(found.values())


def _owner(owner: Owner, settings: AlertSettings) -> tuple[str, ...]:
    space = owner.namespace
    if space is None:
        return ()
    return settings.receivers_of(f"{owner.cluster}/{space}") or settings.receivers_of(space)

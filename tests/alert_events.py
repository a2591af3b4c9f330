"""Events and looks for tests of alerts, without a lake."""

from __future__ import annotations

import msgspec

from gpuledger.live.alerts.deciding import Looked
from gpuledger.live.alerts.event import Event, event_id
from gpuledger.live.alerts.limits import Limits
from gpuledger.live.alerts.rule import Owner, Reading, Rule, Subject

NOW = 1_800_000_000_000
LIMITS = Limits(on=True, severity="warning", fire=3.0, clear=1.0)


def begun(key: str = "r:1", owner: Owner = Owner(), at_ms: int = NOW, incident: int = 1) -> Event:  # noqa: B008
    """An alert that began."""
    return Event(
        id=event_id("journal", key, incident, "firing"), what="firing", key=key, incident=incident, rule="r",
        title="GPU stopped reporting", severity="warning", subject=Subject("gpu", "1", "node-1/3"), owner=owner,
        value=31.0, limit=10.0, unit="min", since_ms=at_ms - 31 * 60_000, at_ms=at_ms, evidence={"host": "node-1"},
        next_step="look",
    )  # fmt: skip


def ended(event: Event, at_ms: int) -> Event:
    """The end of it."""
    name = event_id("journal", event.key, event.incident, "resolved")
    return msgspec.structs.replace(event, id=name, what="resolved", at_ms=at_ms, ending="recovered")


def look(value: float | None, at_ms: int = NOW) -> Looked:
    """What a rule called r reports; None: nothing at all."""
    rule = Rule("r", "Rule", "count", "nothing", lambda _seen: ())
    found = () if value is None else (Reading(Subject("gpu", "1", "node-1/3"), value, at_ms),)
    return Looked(rule, LIMITS, found)

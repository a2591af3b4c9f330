"""What is in a message? One event for each beginning and each end of an alert, with an id that never changes.

The id follows from the journal, the key, the number of the incident and what happened: a message that is sent again
carries the same one, and a receiver that has it can drop the second.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from gpuledger.encode import iso
from gpuledger.live.alerts.limits import Severity
from gpuledger.live.alerts.machine import Change, Ending
from gpuledger.live.alerts.rule import Owner, Subject
from gpuledger.times import duration
from gpuledger.units import MS_PER_MIN

EVENT_VERSION = 1
_ID_DIGITS = 32
# How the unit at the end of a name is written, around the value.
_UNITS = {"pct": "{} %", "mhz": "{} MHz", "usd": "${}", "min": "{} min"}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that began or ended. `at_ms`: when that was noticed; `since_ms`: since when it was so."""

    id: str
    what: Change
    key: str
    incident: int
    rule: str
    title: str
    severity: Severity
    subject: Subject
    owner: Owner
    value: float | None
    limit: float
    unit: str
    since_ms: int
    at_ms: int
    evidence: dict[str, str | int | float | None]
    next_step: str
    ending: Ending | None = None

    @property
    def firing(self) -> bool:
        """Whether the alert begins."""
        return self.what == "firing"

    def as_json(self) -> dict[str, Any]:
        """Its fields with the times as text, and the message in words."""
        found: dict[str, Any] = {"v": EVENT_VERSION, **msgspec.to_builtins(self)}
        return {**found, "since_utc": iso(self.since_ms), "at_utc": iso(self.at_ms), "text": headline(self)}


def event_id(journal: str, key: str, incident: int, what: Change) -> str:
    """The id of an event: the same whenever it is made."""
    text = "\0".join((journal, key, str(incident), what))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def key_of(rule: str, subject: Subject) -> str:
    """What alerts are distinguished by: the rule and what it is about."""
    return f"{rule}:{subject.id}"


# -- in words, for people


def headline(event: Event) -> str:
    """The message in one line."""
    about = f"{event.title}: {event.subject.name}"
    if event.firing:
        limit = figure(event.limit, event.unit if event.unit == "min" else "")
        return f"{about}, {figure(event.value, event.unit)} (limit {limit})"
    lasted = duration(max(0, event.at_ms - event.since_ms))
    why = {"gone": "no longer reported", "rule off": "its rule was turned off"}.get(event.ending or "", "recovered")
    return f"{about}, {why} after {lasted}"


def details(event: Event) -> list[tuple[str, str]]:
    """What else a reader wants to know, as names and texts."""
    owner = owner_text(event.owner)
    out = [("Severity", event.severity), ("Since", f"{iso(event.since_ms)[:16].replace('T', ' ')} UTC")]
    out += [("Owner", owner)] if owner not in event.subject.name else []
    out += [_evidence(name, value) for name, value in event.evidence.items() if value != ""]
    return [*out, *([("Next", event.next_step)] if event.firing else [])]


def owner_text(owner: Owner) -> str:
    """The owner in a few words; empty where nothing is known."""
    work = "/".join(text for text in (owner.namespace, owner.workload or owner.run_id) if text)
    who = [text for text in (owner.team, owner.user) if text]
    return f"{work} ({', '.join(who)})" if work and who else work or ", ".join(who)


def figure(amount: float | None, unit: str) -> str:
    """A value with its unit."""
    if amount is None:
        return "unknown"
    if unit == "min":
        return duration(round(amount * MS_PER_MIN))
    text = f"{amount:,.0f}" if amount == int(amount) or abs(amount) >= 100 else f"{amount:.1f}"
    return f"{text} {unit.removesuffix('s') if amount == 1 else unit}".strip()


def _evidence(name: str, value: str | int | float | None) -> tuple[str, str]:
    """A name and a value as people write them: rfu_pct, 45.4 is RFU, 45.4 %."""
    stem, _, unit = name.rpartition("_")
    text = f"{value:,.1f}" if isinstance(value, float) else str(value)
    if stem and unit in _UNITS:
        name, text = stem, _UNITS[unit].format(text)
    words = name.replace("_", " ").replace("gpus", "GPUs").replace("rfu", "RFU").replace("xid", "XID")
    return words[:1].upper() + words[1:], "unknown" if value is None else text

"""What changes after a look: which alerts begin, which are over, and who is notified?"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gpuledger.live.alerts.event import Event, event_id, key_of
from gpuledger.live.alerts.journal import Journal, Round
from gpuledger.live.alerts.ladder import notices
from gpuledger.live.alerts.limits import AlertSettings, Limits
from gpuledger.live.alerts.machine import QUIET, Change, Ending, Held, Phase, step, turned_off, unseen
from gpuledger.live.alerts.rule import Reading, Rule
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Looked:
    """What one rule reported."""

    rule: Rule
    limits: Limits
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Instant:
    """Now by this machine's clock, and the end of the newest sample."""

    now_ms: int
    newest_ms: int


def decide(
    journal: Journal,
    settings: AlertSettings,
    looked: Sequence[Looked],
    at: Instant,
    *,
    off: Iterable[str] = (),
    terminal: bool = True,
) -> Round:
    """The changes; nothing is written. A rule that was not looked at leaves its alerts as they are; `off` ends them."""
    held, found = journal.held(), Round()
    ended_rules = frozenset(off)
    for one in looked:
        worst = _worst(one)
        for key, reading in worst.items():
            before = held.get(key, QUIET)
            after, change = step(before, reading, one.limits)
            _keep(found, key, before, after)
            if change == "firing":
                event = _begun(journal, one, key, after, reading, at.now_ms)
                found.begun.append((event, notices(event, settings, terminal=terminal)))
            elif change == "resolved":
                _end(journal, found, key, before, "recovered", at.now_ms, reading)
        for key in (k for k in held if _rule(k) == one.rule.name and k not in worst):
            after, change = unseen(held[key], at.newest_ms, one.limits)
            _settle(journal, found, key, held, after, change, "gone", at.now_ms)
    for key in (k for k in held if _rule(k) in ended_rules):
        after, change = turned_off(held[key])
        _settle(journal, found, key, held, after, change, "rule off", at.now_ms)
    return found


def _rule(key: str) -> str:
    return key.partition(":")[0]


def _worst(looked: Looked) -> dict[str, Reading]:
    """One reading for each key: of several the worst, of known and unknown the known one."""
    found: dict[str, Reading] = {}
    for reading in looked.readings:
        key = key_of(looked.rule.name, reading.subject)
        if key not in found or _size(reading) > _size(found[key]):
            found[key] = reading
    return found


def _size(reading: Reading) -> float:
    return float("-inf") if isinstance(reading.value, Unknown) else reading.value


def _keep(found: Round, key: str, before: Held, after: Held) -> None:
    if after != before and (before.phase, after.phase, before) != (Phase.QUIET, Phase.QUIET, QUIET):
        found.held[key] = after


def _settle(
    journal: Journal, found: Round, key: str, held: Mapping[str, Held], after: Held, change: Change | None,
    ending: Ending, now_ms: int,
) -> None:  # fmt: skip
    _keep(found, key, held[key], after)
    if change is not None:
        _end(journal, found, key, held[key], ending, now_ms)


def _begun(journal: Journal, looked: Looked, key: str, held: Held, reading: Reading, now_ms: int) -> Event:
    rule, value = looked.rule, reading.value
    next_step = rule.next_step.replace("{subject}", shlex.quote(reading.subject.name))
    return Event(
        id=event_id(journal.id, key, held.incident, "firing"), what="firing", key=key, incident=held.incident,
        rule=rule.name, title=rule.title, severity=looked.limits.severity, subject=reading.subject,
        owner=reading.owner, value=None if isinstance(value, Unknown) else value, limit=looked.limits.fire,
        unit=rule.unit, since_ms=held.since_ms, at_ms=now_ms, evidence=dict(reading.evidence), next_step=next_step,
    )  # fmt: skip


def _end(
    journal: Journal, found: Round, key: str, before: Held, ending: Ending, now_ms: int, reading: Reading | None = None
) -> None:
    """The end of an alert: in everything that names it, as it began."""
    begun = journal.begun(key, before.incident)
    if begun is None:
        return
    value = None if reading is None or isinstance(reading.value, Unknown) else reading.value
    end = msgspec.structs.replace(
        begun, id=event_id(journal.id, key, before.incident, "resolved"), what="resolved", at_ms=now_ms, value=value,
        evidence=dict(reading.evidence) if reading else {}, ending=ending,
    )  # fmt: skip
    found.ended.append(end)

"""How do alerts stand: what fires, what waits, what is silenced, which messages are not delivered yet?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpuledger.encode import Json, encode, iso
from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.journal import Journal
from gpuledger.live.alerts.ladder import Notice
from gpuledger.live.alerts.machine import Phase
from gpuledger.live.alerts.outbox import Mailbox, mailboxes
from gpuledger.live.alerts.silence import Silence, quiet_until


@dataclass(frozen=True)
class Pending:
    """A key beyond its limit, not yet for long enough. `for_ms`: up to its newest measurement."""

    key: str
    since_ms: int
    for_ms: int


@dataclass(frozen=True)
class Standing:
    """All of it at one instant. `silenced`: keys that fire and are kept quiet; `events`: what the last look changed;
    `notices`: who is notified of each beginning among them, by its id; `window`: from when to when rules looked."""

    at_ms: int
    firing: tuple[Event, ...]
    silenced: frozenset[str]
    pending: tuple[Pending, ...]
    silences: tuple[Silence, ...]
    receivers: tuple[Mailbox, ...]
    events: tuple[Event, ...] = ()
    notices: dict[str, tuple[Notice, ...]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    window: tuple[int, int] | None = None

    def as_json(self) -> Json:
        """Its fields, plain."""
        found: dict[str, Any] = dict(vars(self))
        window = self.window and {"start_utc": iso(self.window[0]), "end_utc": iso(self.window[1])}
        return found | {"silenced": sorted(self.silenced), "window": window}


def standing(journal: Journal, now_ms: int, **more: Any) -> Standing:
    """How alerts stand by the journal; `more`: of the last look."""
    silences = journal.silences(now_ms)
    firing = journal.firing()
    quiet = frozenset(e.key for e in firing if quiet_until(e, silences, now_ms) is not None)
    held = sorted(journal.held().items())
    pending = tuple(Pending(key, h.since_ms, h.seen_ms - h.since_ms) for key, h in held if h.phase is Phase.PENDING)
    return Standing(now_ms, tuple(firing), quiet, pending, tuple(silences), tuple(mailboxes(journal)), **more)


def to_json(found: Standing) -> Json:
    """The answer as one JSON object."""
    return encode("alerts", found)

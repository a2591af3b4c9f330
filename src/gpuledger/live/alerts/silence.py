"""What is kept quiet, and until when?

A silence matches keys (idle_held:*) or fields (namespace=ml-*,severity=info); * stands for any text. While it lasts no
message about what it matches is sent. What still fires when it ends is reported then; what recovered meanwhile is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from gpuledger.errors import InputError, UnknownName
from gpuledger.live.alerts.event import Event

FIELDS = ("rule", "subject", "severity", "cluster", "namespace", "team", "user", "workload", "run_id")


class Silence(msgspec.Struct, frozen=True):
    """One silence, as it was written."""

    pattern: str
    until_ms: int
    made_ms: int
    why: str = ""


def checked(pattern: str) -> str:
    """The pattern, or an error: an unknown field, an empty one."""
    pattern = pattern.strip()
    if not pattern or any(not part.strip() for part in pattern.split(",")):
        raise InputError("silence='' matches nothing", hint="give a key such as 'idle_held:*', or namespace=ml-*")
    if "=" not in pattern:
        return pattern  # of keys
    for name, equals, value in (part.partition("=") for part in pattern.split(",")):
        if not equals or not value.strip():
            hint = "write fields as name=pattern with commas between them: namespace=ml-*,severity=info"
            raise InputError(f"silence={pattern!r}: {(name + equals).strip()!r} has no pattern to match", hint=hint)
        if name.strip() not in FIELDS:
            raise UnknownName("field of an alert", name.strip(), FIELDS)
    return pattern


def _pairs(pattern: str) -> list[tuple[str, str]]:
    """Fields and what they must match; none where the pattern is one of keys."""
    parts = [part.partition("=") for part in pattern.split(",")]
    if not all(equals and name.strip().isidentifier() for name, equals, _ in parts):
        return []
    return [(name.strip(), value.strip()) for name, _, value in parts]


def matches(pattern: str, event: Event) -> bool:
    """Whether a pattern is about an event's alert."""
    pairs = _pairs(pattern)
    if not pairs:
        return fnmatchcase(event.key, pattern)
    own = {"rule": event.rule, "subject": event.subject.name, "severity": event.severity}
    found = {**msgspec.to_builtins(event.owner), **own}
    return all(found[name] is not None and fnmatchcase(str(found[name]), value) for name, value in pairs)


def quiet_until(event: Event, silences: Iterable[Silence], now_ms: int) -> int | None:
    """Until when an event's alert is kept quiet; None where it is not."""
    return max((s.until_ms for s in silences if s.until_ms > now_ms and matches(s.pattern, event)), default=None)

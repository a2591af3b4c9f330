"""What is a receiver, and what does it answer? Kinds register themselves; a user's settings are fields of a kind.

A receiver takes one event at a time. It returns when the other side has it, and raises `Undelivered` otherwise. The
same event may come again with the same id, when we were killed before its delivery was noted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.errors import FactError, InputError, UnknownName
from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.ladder import TERMINAL
from gpuledger.registry import Registry
from gpuledger.settings import convert


class Undelivered(Exception):
    """The other side did not take an event. `final`: it never will; `retry_s`: how long it asks us to wait."""

    def __init__(self, why: str, *, final: bool = False, retry_s: float | None = None) -> None:
        super().__init__(why)
        self.why, self.final, self.retry_s = why, final, retry_s


class Receiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the kinds: the fields of a kind are its settings."""

    kind: str

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is sent."""

    def send(self, event: Event, timeout_s: float) -> None:
        """Deliver one event."""
        raise NotImplementedError

    def refresh(self, firing: Sequence[Event], now_ms: int, timeout_s: float) -> None:
        """Show what fires now, for receivers that forget; most do not."""


KINDS: Registry[type[Receiver]] = Registry(
    "kind of receiver", "gpuledger.live.alerts.receivers", group="gpuledger.receivers"
)


def check_receiver(name: str, given: dict[str, Any], file: str) -> None:
    """Refuse a receiver whose settings cannot be used, by field."""
    made_receiver(name, given, file).check()


def made_receiver(name: str, given: dict[str, Any], file: str) -> Receiver:
    """A receiver of the user's settings."""
    where = f"alerts.receivers.{name}"
    if name == TERMINAL:
        problem = "is always there: every event is shown where gpuledger watch runs"
        raise FactError(file, where, problem, hint="choose another name")
    kind = given.get("kind")
    if not isinstance(kind, str):
        raise FactError(file, f"{where}.kind", "is missing", hint=f"give one of: {', '.join(KINDS.names())}")
    try:
        found = KINDS.get(kind)
    except UnknownName as error:
        raise FactError(file, f"{where}.kind", error.message, hint=error.hint) from error
    made = convert(given, found, file, where)
    try:
        made.check()
    except InputError as error:
        raise FactError(file, where, error.message, hint=error.hint) from error
    return made


def opened_text(text: str) -> str:
    """A setting as it is, or where it points: env:NAME in the environment, file:PATH in a file."""
    source, colon, where = text.partition(":")
    if colon and source == "env":
        if where not in os.environ:
            raise Undelivered(f"the environment variable {where} is not set")
        return os.environ[where].strip()
    if colon and source == "file":
        try:
            return Path(where).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not text"
            raise Undelivered(f"{where} cannot be read: {why}") from error
    return text

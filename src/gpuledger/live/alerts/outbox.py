"""Which message goes to which receiver next, and what became of those before?

One receiver gets its messages in the order of the events, the next only after the one before: an end never overtakes
its beginning. A message waits, is delivered, is refused (the receiver answered that it will never take it) or is not
needed (the alert was over before its receiver was to be notified).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.journal import Journal
from gpuledger.live.alerts.silence import Silence, quiet_until

_MORE = 200


@dataclass(frozen=True)
class Message:
    """One event on its way to one receiver."""

    seq: int
    receiver: str
    event: Event
    attempts: int


@dataclass(frozen=True)
class Mailbox:
    """How a receiver stands: messages by state, the last error of the first that waits, and when it is tried again."""

    receiver: str
    waiting: int
    delivered: int
    refused: int
    attempts: int
    error: str
    next_ms: int | None


def next_message(journal: Journal, receiver: str, now_ms: int) -> Message | int | None:
    """The message to send now, else the instant to look again, else None: nothing waits."""
    silences, after, soonest, page = journal.silences(now_ms), -1, None, 1
    select = """SELECT o.seq, o.attempts, o.due_ms, o.next_ms, e.body FROM outbox o JOIN events e ON e.seq = o.seq
      WHERE o.receiver = ? AND o.state = 'waiting' AND o.seq > ? ORDER BY o.seq LIMIT ?"""
    while rows := journal.db.execute(select, (receiver, after, page)).fetchall():
        for seq, attempts, due_ms, next_ms, body in rows:
            event = msgspec.json.decode(body, type=Event)
            wait = _wait(event, due_ms, silences, now_ms)
            if wait is None and next_ms > now_ms:
                return int(next_ms)  # the receiver is down: what comes later waits too
            if wait is None:
                return Message(seq, receiver, event, attempts)
            soonest = wait if soonest is None else min(soonest, wait)
        after, page = rows[-1][0], _MORE  # mostly the first is due
    return soonest


def _wait(event: Event, due_ms: int, silences: Sequence[Silence], now_ms: int) -> int | None:
    """Until when a message rests, by the ladder or a silence; None where it is due."""
    if due_ms > now_ms:
        return due_ms
    return quiet_until(event, silences, now_ms)


def delivered(journal: Journal, message: Message, now_ms: int) -> None:
    """The receiver has it."""
    _done(journal, message, "delivered", "", now_ms)


def refused(journal: Journal, message: Message, error: str, now_ms: int) -> None:
    """The receiver will never take it; it is kept with the reason."""
    _done(journal, message, "refused", error, now_ms)


def _done(journal: Journal, message: Message, state: str, error: str, now_ms: int) -> None:
    with journal.change():
        journal.db.execute(
            "UPDATE outbox SET state = ?, error = ?, done_ms = ? WHERE seq = ? AND receiver = ?",
            (state, error, now_ms, message.seq, message.receiver),
        )


def attempted(journal: Journal, message: Message) -> None:
    """About to be sent: from now on the receiver may have it, whatever happens to us."""
    with journal.change():
        journal.db.execute(
            "UPDATE outbox SET attempts = attempts + 1 WHERE seq = ? AND receiver = ?", (message.seq, message.receiver)
        )


def failed(journal: Journal, message: Message, error: str, next_ms: int) -> None:
    """The receiver did not take it; it is tried again."""
    with journal.change():
        journal.db.execute(
            "UPDATE outbox SET error = ?, next_ms = ? WHERE seq = ? AND receiver = ?",
            (error, next_ms, message.seq, message.receiver),
        )


def mailboxes(journal: Journal) -> list[Mailbox]:
    """How every receiver stands that ever was to get a message."""
    out = []
    for (name,) in journal.db.execute("SELECT DISTINCT receiver FROM outbox ORDER BY receiver").fetchall():
        count = dict(
            journal.db.execute(
                "SELECT state, count(*) FROM outbox WHERE receiver = ? GROUP BY state", (name,)
            ).fetchall()
        )
        first = journal.db.execute(
            "SELECT attempts, error, next_ms FROM outbox WHERE receiver = ? AND state = 'waiting' AND error != '' "
            "ORDER BY seq LIMIT 1",
            (name,),
        ).fetchone()
        attempts, error, next_ms = first or (0, "", None)
        waiting, done, never = (count.get(state, 0) for state in ("waiting", "delivered", "refused"))
        out.append(Mailbox(name, waiting, done, never, attempts, error, next_ms))
    return out

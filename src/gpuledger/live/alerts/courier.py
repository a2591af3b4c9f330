"""How does a message reach its receiver, however often that is down, and however often we are killed?

A message is noted as delivered only after the receiver took it. If we are killed in between it is sent again with the
same id. So a message arrives at least once; a receiver that drops ids it has gets it exactly once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections.abc import Callable

from gpuledger.errors import GpuledgerError
from gpuledger.live.alerts import outbox
from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.journal import Journal
from gpuledger.live.alerts.limits import Delivery
from gpuledger.live.alerts.outbox import Message
from gpuledger.live.alerts.receiver import Undelivered
from gpuledger.times import length_ms

Send = Callable[[Event], None]
Clock = Callable[[], int]
_LONGEST_NAP_S = 2.0


def clock_ms() -> int:
    """Now, by this machine."""
    return time.time_ns() // 1_000_000


def wait_ms(message: Message, patience: Delivery, asked_s: float | None = None) -> int:
    """How long after a failure the next try is: twice as long each time, spread a little, at most the longest wait."""
    first, longest = length_ms(patience.first_wait), length_ms(patience.longest_wait)
    grown = min(longest, first << min(message.attempts, 30))
    # Receivers that came back must not hear from everybody in the same instant.
    spread = zlib.crc32(f"{message.event.id}{message.attempts}".encode()) % 256 / 1024
    wait = round(grown * (1 - spread))
    return wait if asked_s is None else max(wait, min(round(asked_s * 1000), longest))


def deliver_due(
    journal: Journal,
    name: str,
    send: Send,
    patience: Delivery,
    *,
    clock: Clock = clock_ms,
    stop: threading.Event | None = None,
) -> int | None:
    """Send what is due to one receiver, in order; the instant to try again, None where nothing waits."""
    while stop is None or not stop.is_set():
        found = outbox.next_message(journal, name, clock())
        if not isinstance(found, Message):
            return found
        outbox.attempted(journal, found)
        try:
            send(found.event)
        except Undelivered as problem:
            if problem.final:
                outbox.refused(journal, found, problem.why, clock())
                continue
            outbox.failed(journal, found, problem.why, clock() + wait_ms(found, patience, problem.retry_s))
        except Exception as error:  # noqa: BLE001  (a receiver from outside may raise anything; the message stays)
            why = f"{type(error).__name__}: {error}"
            outbox.failed(journal, found, why, clock() + wait_ms(found, patience))
        else:
            outbox.delivered(journal, found, clock())
    return None


class Courier(threading.Thread):
    """Delivers to one receiver until it is stopped."""

    def __init__(self, journal: Journal, name: str, send: Send, patience: Delivery, stop: threading.Event) -> None:
        super().__init__(name=f"courier {name}", daemon=True)
        self.receiver, self.send, self.patience = name, send, patience
        self._journal, self._stop_all = journal, stop
        self.news = threading.Event()

    def run(self) -> None:
        """Send what is due, sleep until more is."""
        journal = self._journal.again()  # SQLite wants a connection for each thread
        try:
            while not self._stop_all.is_set():
                self.news.clear()
                try:
                    due = deliver_due(journal, self.receiver, self.send, self.patience, stop=self._stop_all)
                except (GpuledgerError, sqlite3.Error):  # a full disk: what could not be marked is sent again
                    due = None
                nap = _LONGEST_NAP_S if due is None else (due - clock_ms()) / 1000
                self.news.wait(min(max(nap, 0.005), _LONGEST_NAP_S))
        finally:
            journal.close()

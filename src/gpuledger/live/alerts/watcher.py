"""How is a growing lake watched: look, decide, note, deliver, again and again?"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.live.alerts.courier import Courier, Send, clock_ms, deliver_due
from gpuledger.live.alerts.deciding import Instant, Looked, decide
from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.journal import Journal, Round
from gpuledger.live.alerts.ladder import TERMINAL
from gpuledger.live.alerts.limits import AlertSettings, load_alerts
from gpuledger.live.alerts.receiver import Receiver, Undelivered, made_receiver
from gpuledger.live.alerts.rule import ALERTS
from gpuledger.live.alerts.seen import Seen
from gpuledger.live.alerts.silence import quiet_until
from gpuledger.settings import in_force
from gpuledger.times import length_ms

Show = Callable[[Event], None]
_WATCHED = ("manifest.json", "jobs/manifest.json", "prices/yours.json")


@dataclass(frozen=True)
class Look:
    """One look: what every rule reported, which rules are off, what went wrong on the way, and from when to when it
    looked."""

    at: Instant
    looked: tuple[Looked, ...]
    off: frozenset[str]
    problems: dict[str, str] = field(default_factory=dict)
    window: tuple[int, int] | None = None


class Eyes:
    """Looks at a lake. Nothing is read again while neither the lake nor a setting changed."""

    def __init__(self, lake: Lake, **terms: Any) -> None:
        self.lake = lake
        self._terms = terms
        self._mark: tuple[object, ...] = ()
        self._seen: Seen | None = None
        self._last: dict[str, int] = {}

    def look(self, settings: AlertSettings, now_ms: int) -> Look:
        """What all rules report now; a rule that cannot be asked is a problem, and its alerts stay as they are."""
        mark = self._changed()
        if self._seen is None or mark != self._mark:
            self.lake.require()
            post_lake(self.lake, load_thresholds(None))
            self._seen, self._mark = Seen(self.lake, settings, now_ms, self._terms), mark
        seen = self._seen
        seen.now_ms = now_ms
        found, off, problems = list[Looked](), set[str](), dict[str, str]()
        for name, rule in ALERTS:
            limits = settings.limits_of(name, rule.limits)
            if not limits.on:
                off.add(name)
                continue
            last = self._last.get(name)
            if last is not None and now_ms - last < limits.every_ms:
                continue
            try:
                one = Looked(rule, limits, tuple(rule.look(seen)))
            except GpuledgerError as error:
                problems[name] = error.message
            except Exception as error:  # noqa: BLE001  (a rule from outside may raise anything; the others go on)
                problems[name] = f"{type(error).__name__}: {error}"
            else:
                self._last[name] = now_ms
                found.append(one)
        window = seen.end_ms - seen.window_ms, seen.end_ms
        return Look(Instant(now_ms, seen.newest_ms), tuple(found), frozenset(off), problems, window)

    def _changed(self) -> tuple[object, ...]:
        """What changes when the lake or a setting does."""
        settings = in_force().file
        files = [*(self.lake.root / name for name in _WATCHED), *([Path(settings)] if settings else [])]
        found: list[object] = []
        for file in files:
            with contextlib.suppress(OSError, LakeError):  # an object store may be away
                stat = file.stat()
                found.append((str(file), stat.st_mtime_ns, stat.st_size))
        return tuple(found)


class Watcher:
    """Looks, decides and delivers. `show`: what the terminal does with an event; None: it gets nothing."""

    def __init__(self, journal: Journal, see: Callable[[AlertSettings, int], Look], show: Show | None = None) -> None:
        self.journal, self._see, self._show = journal, see, show
        self.settings = load_alerts()
        self.stop = threading.Event()
        self.problems: dict[str, str] = {}
        self.window: tuple[int, int] | None = None
        self._couriers: dict[str, Courier] = {}
        self._forgotten_ms = 0

    def round(self, now_ms: int) -> Round:
        """One look, noted; deliveries follow."""
        self.problems = {}
        try:
            self.settings = load_alerts()
        except GpuledgerError as error:  # the file is being edited: what held before holds
            self.problems["settings"] = error.message
        look = self._see(self.settings, now_ms)
        self.problems |= look.problems
        self.window = look.window
        terminal = self._show is not None
        found = decide(self.journal, self.settings, look.looked, look.at, off=look.off, terminal=terminal)
        self.journal.record(found, now_ms)
        keep_ms = length_ms(self.settings.keep)
        if now_ms - self._forgotten_ms > keep_ms // 100:
            self.journal.forget(now_ms - keep_ms)
            self._forgotten_ms = now_ms
        return found

    def once(self, now_ms: int) -> Round:
        """One look, and every message that is due, each receiver by itself."""
        found = self.round(now_ms)
        threads = [threading.Thread(target=self._deliver, args=(name, send)) for name, send in self._sends().items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._refresh(now_ms)
        return found

    def _deliver(self, name: str, send: Send) -> None:
        journal = self.journal.again()
        try:
            deliver_due(journal, name, send, self.settings.delivery, stop=self.stop)
        finally:
            journal.close()

    def run(self, every_ms: int, after: Callable[[Round], None] = lambda _found: None) -> None:
        """Look every so often until stopped. A look that fails is a problem, not the end."""
        while not self.stop.is_set():
            began = clock_ms()
            try:
                found = self.round(began)
            except GpuledgerError as error:
                self.problems["lake"], found = error.message, Round()
            except (OSError, sqlite3.Error) as error:
                self.problems["lake"], found = str(error), Round()
            self._hire()
            self._refresh(began)
            after(found)
            self.stop.wait(max(0.0, (began + every_ms - clock_ms()) / 1000))
        for courier in self._couriers.values():
            courier.news.set()
            courier.join(self.settings.delivery.timeout_s + 1)

    def _hire(self) -> None:
        """A courier for each receiver; those there are go by the settings as they are now."""
        sends = self._sends()
        for name, send in sends.items():
            if name not in self._couriers:
                self._couriers[name] = Courier(self.journal, name, send, self.settings.delivery, self.stop)
                self._couriers[name].start()
            courier = self._couriers[name]
            courier.send, courier.patience = send, self.settings.delivery
            courier.news.set()
        for name, courier in self._couriers.items():
            if name not in sends:
                courier.send = _removed

    def _sends(self) -> dict[str, Send]:
        timeout_s = self.settings.delivery.timeout_s
        found: dict[str, Send] = {name: partial(r.send, timeout_s=timeout_s) for name, r in self._receivers().items()}
        return found | ({TERMINAL: self._show} if self._show else {})

    def _receivers(self) -> dict[str, Receiver]:
        file = self.settings.origin
        return {name: made_receiver(name, given, file) for name, given in self.settings.receivers.items()}

    def _refresh(self, now_ms: int) -> None:
        """Show receivers that forget what fires now and was delivered to them."""
        forget = {n: r for n, r in self._receivers().items() if type(r).refresh is not Receiver.refresh}
        if not forget:
            return
        silences = self.journal.silences(now_ms)
        firing = [event for event in self.journal.firing() if quiet_until(event, silences, now_ms) is None]
        for name, receiver in forget.items():
            has = self.journal.delivered_to(name)
            try:
                receiver.refresh([e for e in firing if e.id in has], now_ms, self.settings.delivery.timeout_s)
            except Undelivered as problem:
                self.problems[name] = problem.why


def _removed(_event: Event) -> None:
    raise Undelivered("it is not in the settings any more")

"""Where do alerts, events and messages rest, so that nothing is lost or made twice when the watcher is killed?

LAKE/alerts/journal.sqlite   SQLite in WAL mode, synced at every commit; `user_version` is the version of its tables
LAKE/alerts/lock             held by the one watcher that may decide

What a look changes is one transaction: what is held of each key, the events, and who is to be notified.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpuledger.errors import InputError, LakeError, map_os_error
from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.ladder import Notice
from gpuledger.live.alerts.machine import Held, Phase
from gpuledger.live.alerts.silence import Silence, matches

JOURNAL_VERSION = 1
FOLDER, FILE = "alerts", "journal.sqlite"
_BUSY_S = 30.0
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE held (key TEXT PRIMARY KEY, phase TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL,
  incident INTEGER NOT NULL, what TEXT NOT NULL, at_ms INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX events_by_key ON events (key, incident);
CREATE TABLE outbox (seq INTEGER NOT NULL REFERENCES events (seq), receiver TEXT NOT NULL, step TEXT NOT NULL,
  state TEXT NOT NULL, due_ms INTEGER NOT NULL, next_ms INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '', done_ms INTEGER, PRIMARY KEY (seq, receiver));
CREATE INDEX outbox_waiting ON outbox (receiver, seq) WHERE state = 'waiting';
CREATE TABLE silences (pattern TEXT PRIMARY KEY, until_ms INTEGER NOT NULL, made_ms INTEGER NOT NULL,
  why TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Round:
    """What one look changes: what is held by key, events with who is notified, and ends of alerts."""

    held: dict[str, Held] = field(default_factory=dict)
    begun: list[tuple[Event, list[Notice]]] = field(default_factory=list)
    ended: list[Event] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """All events, beginnings first."""
        return [*(event for event, _ in self.begun), *self.ended]


class Journal:
    """The journal of a lake. A thread opens one of its own: `again`."""

    def __init__(self, folder: Path, *, aside: bool = False, marks_only: bool = False) -> None:
        self.folder, self.file, self._marks_only = folder, folder / FILE, marks_only
        with self._using():
            self.db = self._copy() if aside else self._open()
            try:
                self._make()
            except BaseException:
                self.db.close()
                raise
            (self.id,) = self.db.execute("SELECT value FROM meta WHERE name = 'id'").fetchone()

    @classmethod
    def of(cls, lake: Path, *, aside: bool = False) -> Journal:
        """The journal of the lake at this place. `aside`: a copy in memory; what it records is forgotten."""
        return cls(lake / FOLDER, aside=aside)

    def again(self) -> Journal:
        """The same journal for a thread that only marks messages. Marks survive a kill; a power cut may take the last.

        A message whose mark was lost is sent again, with the same id.
        """
        return Journal(self.folder, marks_only=True)

    def _open(self) -> sqlite3.Connection:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise map_os_error(error, self.folder, "write the alerts") from error
        db = sqlite3.connect(self.file, timeout=_BUSY_S, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {'NORMAL' if self._marks_only else 'FULL'}")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _copy(self) -> sqlite3.Connection:
        db = sqlite3.connect(":memory:", isolation_level=None)
        try:
            if self.file.exists():
                with contextlib.closing(sqlite3.connect(self.file, timeout=_BUSY_S)) as there:
                    there.backup(db)
        except sqlite3.Error:
            db.close()
            raise
        return db

    def close(self) -> None:
        """Let go of the file."""
        self.db.close()

    def _make(self) -> None:
        with self.change():
            (version,) = self.db.execute("PRAGMA user_version").fetchone()
            if version > JOURNAL_VERSION:
                raise LakeError(f"{self.file}: written by a newer gpuledger", hint="upgrade gpuledger")
            if version == 0:
                for statement in _TABLES.split(";\n"):
                    self.db.execute(statement)
                self.db.execute("INSERT INTO meta VALUES ('id', ?)", (secrets.token_hex(16),))
                self.db.execute(f"PRAGMA user_version = {JOURNAL_VERSION:d}")

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            hint = (
                "restore the file from a backup, or move it away: alerts then start anew, and old ones are sent again"
            )
            raise LakeError(f"{self.file}: the journal of alerts cannot be used: {error}", hint=hint) from error

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """All changes inside, or none."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield
            self.db.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):  # SQLite may have undone it itself
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                hint = "free some space and see that the folder can be written; nothing was half-written"
                raise LakeError(f"{self.file}: cannot be written: {error}", hint=hint) from error
            raise

    @contextlib.contextmanager
    def deciding(self) -> Iterator[None]:
        """One watcher at a time decides and delivers."""
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                hint = "use that one, or stop it first; --list and --silence work next to it"
                raise InputError(f"{self.folder}: another gpuledger watch is running", hint=hint) from error
            yield
        finally:
            os.close(handle)

    # -- what is held

    def held(self) -> dict[str, Held]:
        """What is held, by key."""
        rows = self.db.execute("SELECT key, body FROM held")
        return {key: msgspec.json.decode(body, type=Held) for key, body in rows}

    def begun(self, key: str, incident: int) -> Event | None:
        """The event with which an alert began."""
        row = self.db.execute(
            "SELECT body FROM events WHERE key = ? AND incident = ? AND what = 'firing'", (key, incident)
        ).fetchone()
        return None if row is None else _event(row[0])

    def firing(self) -> list[Event]:
        """The alerts that fire, as they began; the oldest first."""
        found = (self.begun(key, held.incident) for key, held in self.held().items() if held.phase is Phase.FIRING)
        return sorted((event for event in found if event), key=lambda e: (e.at_ms, e.key))

    def delivered_to(self, receiver: str) -> set[str]:
        """The ids of the beginnings a receiver has."""
        select = """SELECT e.id FROM outbox o JOIN events e ON e.seq = o.seq
          WHERE o.receiver = ? AND o.state = 'delivered' AND e.what = 'firing'"""
        return {name for (name,) in self.db.execute(select, (receiver,))}

    def events(self, most: int = -1) -> list[Event]:
        """Events, the newest last."""
        rows = self.db.execute("SELECT body FROM events ORDER BY seq DESC LIMIT ?", (most,)).fetchall()
        return [_event(body) for (body,) in reversed(rows)]

    def record(self, found: Round, now_ms: int) -> None:
        """Everything a look changed, in one transaction. An event that is there already is not made again."""
        if not found.held and not found.events:
            return
        with self.change():
            silences = self._silences(now_ms)
            for key, held in found.held.items():
                row = (key, held.phase.value, msgspec.json.encode(held))
                self.db.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", row)
            for event, notices in found.begun:
                self._add(event, notices)
            for event in found.ended:
                self._add(event, self._notices_of(event, silences, now_ms))

    def _add(self, event: Event, notices: Sequence[Notice]) -> None:
        columns = "(id, key, incident, what, at_ms, body)"
        row = (event.id, event.key, event.incident, event.what, event.at_ms, msgspec.json.encode(event))
        made = self.db.execute(f"INSERT OR IGNORE INTO events {columns} VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608
        if made.rowcount:
            due = [(made.lastrowid, t.receiver, t.step, t.due_ms, t.due_ms) for t in notices]
            into = "INSERT INTO outbox (seq, receiver, step, state, due_ms, next_ms) VALUES (?, ?, ?, 'waiting', ?, ?)"
            self.db.executemany(into, due)

    def _notices_of(self, end: Event, silences: Sequence[Silence], now_ms: int) -> list[Notice]:
        """Who is notified that an alert is over: all who were notified that it began. The others need neither."""
        row = self.db.execute(
            "SELECT seq FROM events WHERE key = ? AND incident = ? AND what = 'firing'", (end.key, end.incident)
        ).fetchone()
        if row is None:
            return []
        quiet = any(matches(silence.pattern, end) for silence in silences)
        later = "state = 'waiting' AND attempts = 0" + ("" if quiet else " AND due_ms > :now")
        gone = f"UPDATE outbox SET state = 'not needed', done_ms = :now WHERE seq = :seq AND {later}"  # noqa: S608
        self.db.execute(gone, {"now": now_ms, "seq": row[0]})
        select = "SELECT receiver, step FROM outbox WHERE seq = ? AND state != 'not needed'"
        return [Notice(name, step, now_ms) for name, step in self.db.execute(select, row)]

    # -- silences

    def _silences(self, now_ms: int) -> list[Silence]:
        rows = self.db.execute("SELECT * FROM silences WHERE until_ms > ? ORDER BY pattern", (now_ms,))
        return [Silence(*row) for row in rows]

    def silences(self, now_ms: int) -> list[Silence]:
        """Those that last."""
        return self._silences(now_ms)

    def silence(self, new: Silence) -> None:
        """Begin a silence, or change when it ends; one that ends in the past is over."""
        with self.change():
            row = msgspec.structs.astuple(new)
            self.db.execute("INSERT OR REPLACE INTO silences VALUES (?, ?, ?, ?)", row)

    # -- age

    def forget(self, before_ms: int) -> int:
        """Delete events that are older and done: delivered to all, and their alert is over."""
        old = """SELECT seq FROM events e WHERE at_ms < ?
          AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.seq = e.seq AND o.state = 'waiting')
          AND NOT EXISTS (SELECT 1 FROM held h WHERE h.key = e.key AND h.phase = 'firing')"""
        with self.change():
            gone = self.db.execute(old, (before_ms,)).fetchall()
            self.db.executemany("DELETE FROM outbox WHERE seq = ?", gone)
            self.db.executemany("DELETE FROM events WHERE seq = ?", gone)
        return len(gone)


def _event(body: bytes) -> Event:
    return msgspec.json.decode(body, type=Event)

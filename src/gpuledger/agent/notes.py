"""What did an agent do last, what did it lose and why, and is it well?

SPOOL/status.json has it for the host, LAKE/agents/HOST-SPOOL.json for everyone else: the lake says itself which samples
it will never get. Several agents may run on one host, as sidecars do; each has a spool, and so a file, of its own.
"""

from __future__ import annotations

import contextlib
from enum import Enum
from pathlib import Path

import msgspec

from gpuledger.errors import LakeError
from gpuledger.lake.json_files import file_name, read_json, write_json
from gpuledger.lake.layout import Lake
from gpuledger.recording.runs import RunNotes
from gpuledger.units import count, size, utc

NOTES_VERSION = 1
# An agent writes its status every ten seconds.
STALE_MS = 60_000
# An agent that has not shipped for this long, or for two and a half times its own interval, is silent.
SILENT_MS = 15 * 60_000
# What the notes of an agent that ended are shown for, where nothing of it is missing.
PAST_MS = 24 * 3_600_000
# Losses next to each other become one; this many are kept apart.
MOST_LOSSES = 64
_WHAT = "the notes of an agent"


class Why(Enum):
    """Why samples never reach the lake."""

    SPOOL_FULL = "spool_full"
    DAY_CLOSED = "day_closed"
    REFUSED = "refused"
    MEMORY_FULL = "memory_full"


_WORDS = {
    Why.SPOOL_FULL: "the spool was full",
    Why.DAY_CLOSED: "the lake had closed their day",
    Why.REFUSED: "the lake cannot read them (kept in SPOOL/refused)",
    Why.MEMORY_FULL: "the spool could not be written",
}


class Loss(msgspec.Struct, frozen=True):
    """Samples of a time that the lake will not get. Their GPUs are unobserved for that time."""

    why: Why
    rows: int
    first_ms: int
    last_ms: int

    def words(self) -> str:
        """What was lost, in a line."""
        first, last = utc(self.first_ms), utc(self.last_ms)
        until = f"{last:%H:%M:%S}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        span = f"{first:%Y-%m-%d %H:%M:%S} to {until} UTC"
        return f"{count(self.rows, 'sample')} lost, {span}: {_WORDS[self.why]}"


def with_loss(losses: tuple[Loss, ...], new: Loss) -> tuple[Loss, ...]:
    """The losses and one more; one that goes on makes the last of its kind longer. Rows always add up."""
    same = [i for i, loss in enumerate(losses) if loss.why is new.why]
    crowded = len(losses) >= MOST_LOSSES
    if same and (crowded or same[-1] == len(losses) - 1):
        old = losses[same[-1]]
        ends = (min(old.first_ms, new.first_ms), max(old.last_ms, new.last_ms))
        joined = Loss(new.why, old.rows + new.rows, *ends)
        return (*losses[: same[-1]], joined, *losses[same[-1] + 1 :])
    return (*losses, new)


class AgentNotes(msgspec.Struct, frozen=True, kw_only=True):
    """One agent as of `at_ms`. `spool`: the id of its spool."""

    version: int = NOTES_VERSION
    host: str
    state: str
    at_ms: int
    started_ms: int
    lake: str
    spool: str = ""
    every_s: float = 60.0
    pid: int = 0
    gpuledger: str = ""
    last_sample_ms: int | None = None
    last_ship_ms: int | None = None
    spool_bytes: int = 0
    spool_max_bytes: int = 0
    waiting_rows: int = 0
    waiting_batches: int = 0
    shipped_rows: int = 0
    shipped_batches: int = 0
    rejected_rows: int = 0
    failures: int = 0
    losses: tuple[Loss, ...] = ()
    problem: str = ""
    cpu_s: float = 0.0
    recording: RunNotes | None = None

    @property
    def lost_rows(self) -> int:
        """How many samples the lake will not get."""
        return sum(loss.rows for loss in self.losses)

    def unwell(self, now_ms: int) -> str:
        """Why the agent does not do its work; empty where it does. A lake that cannot be reached is not its fault."""
        age_s = (now_ms - self.at_ms) / 1000
        if self.state != "running":
            return "it ended without being stopped" if self.state == "killed" else "it was stopped"
        if age_s > STALE_MS / 1000:
            return f"no sign of life for {age_s:.0f} s"
        if self.last_sample_ms is not None and self.at_ms - self.last_sample_ms > STALE_MS:
            return f"no sample for {(self.at_ms - self.last_sample_ms) / 1000:.0f} s"
        return ""

    def words(self, now_ms: int) -> list[str]:
        """The agent in a few lines."""
        devices = len(self.recording.devices) if self.recording else 0
        unwell = self.unwell(now_ms)
        doing = f"not recording: {unwell}" if unwell else f"recording {count(devices, 'GPU')}"
        out = [f"{self.host}: {doing}"]
        out.append(f"  last sample {_ago(self.last_sample_ms, now_ms)}, last shipped {_ago(self.last_ship_ms, now_ms)}")
        share = f"{size(self.spool_bytes)} of {size(self.spool_max_bytes)}"
        out.append(f"  {count(self.waiting_rows, 'sample')} waiting, spool {share}; {self.shipped_rows:,} shipped")
        if self.problem:
            out.append(f"  cannot ship to {self.lake}: {self.problem.splitlines()[0]}")
        return out + [f"  {loss.words()}" for loss in self.losses]

    def is_silent(self, now_ms: int) -> bool:
        """Whether it should have shipped since, and did not."""
        return self.state != "stopped" and now_ms - self.at_ms > max(SILENT_MS, 2500 * self.every_s)

    def is_past(self, now_ms: int) -> bool:
        """Whether it ended a day ago or earlier, with every sample shipped."""
        return (
            self.state == "stopped" and now_ms - self.at_ms > PAST_MS and not self.lost_rows and not self.waiting_rows
        )

    def line(self, now_ms: int, *, one_of_several: bool = False) -> str:
        """The agent as one of many: what the lake knows of it since its last shipment."""
        name = f"{self.host} (spool {self.spool})" if one_of_several else self.host
        devices = len(self.recording.devices) if self.recording else 0
        ended = f", {self.state}" if self.state != "running" else ""
        shipped_ms = max(self.at_ms, self.last_ship_ms or 0)
        lost = f", {count(self.lost_rows, 'sample')} lost" if self.lost_rows else ""
        return f"{name}: {count(devices, 'GPU')}, last shipped {_ago(shipped_ms, now_ms)}{ended}{lost}"


def _ago(at_ms: int | None, now_ms: int) -> str:
    if at_ms is None:
        return "never"
    seconds = max(0, now_ms - at_ms) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def write_status(spool: Path, notes: AgentNotes) -> None:
    """Leave the notes where `gpuledger agent status` and probes find them."""
    write_json(spool / "status.json", notes, _WHAT)


def read_status(spool: Path) -> AgentNotes | None:
    """The notes an agent left in its spool; None where none ever ran there."""
    file = spool / "status.json"
    return read_json(file, AgentNotes, NOTES_VERSION, _WHAT) if file.exists() else None


def publish(lake: Lake, notes: AgentNotes) -> None:
    """Leave the notes in the lake, one file per agent."""
    name = f"{file_name(notes.host)}-{notes.spool}" if notes.spool else file_name(notes.host)
    write_json(lake.root / "agents" / f"{name}.json", notes, _WHAT)


def forget_nameless(lake: Lake, host: str) -> None:
    """Delete the notes of a host that an older agent left, whose files had no spool in their names."""
    with contextlib.suppress(OSError, LakeError):
        file = lake.root / "agents" / f"{file_name(host)}.json"
        if file.exists() and not read_json(file, AgentNotes, NOTES_VERSION, _WHAT).spool:
            file.unlink(missing_ok=True)


def read_agents(lake: Lake) -> tuple[list[AgentNotes], list[LakeError]]:
    """The agents that ship to a lake, by host; and what is wrong with notes that cannot be read."""
    found, broken = [], []
    for file in sorted((lake.root / "agents").glob("*.json")):
        try:
            found.append(read_json(file, AgentNotes, NOTES_VERSION, _WHAT, hint="delete it; the agent writes it again"))
        except LakeError as error:
            broken.append(error)
    return found, broken

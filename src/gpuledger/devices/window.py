"""How do readings at two rates become whole rows?

Cheap readings make a row on every tick. What is read once per second is laid over the rows of that second: a level
holds from its reading on, and a mean covers the very second it was taken over. The energy counter costs most and is
read when rows are released, every other second; its gain is spread evenly over the rows in between. So a row waits
until it is released, and sums over rows are as exact as the counters.

A reading that repeats the one before within the counter's own period is not an observation and makes no row; the row
before it stands for that time.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.devices.clock import Clock
from gpuledger.devices.device import WATCHED, Device, Row, Value
from gpuledger.devices.reading import DeviceReport, Period, Probe, Reader

# Activity counters are refreshed each 0.1 s: two samples closer than that make no mean.
MIN_MEAN_S = 0.1
# A row may stand for two ticks, no more: posting takes anything over 2.5 usual steps for a gap in the samples.
HOLD_TICKS = 2
RARE_S = 10.0
# NVML refreshes utilization each 1/6 to 1 s.
SLOWEST_REFRESH_S = 1.0


class Track:
    """One device under recording."""

    def __init__(self, device: Device, tick_s: float, clock: Clock) -> None:
        self.device, self.facts = device, device.facts
        self._tick_s, self._clock = tick_s, clock
        self._reader = Reader(device, clock.monotonic)
        probes = self._reader.survey(device.fields)
        self._fast = [p for p in probes if p.field.rate == "fast"]
        self._slow = [p for p in probes if p.field.rate == "slow" and p.field.kind == "level"]
        self._rare = [p for p in probes if p.field.rate == "rare"]
        self._means = [p for p in probes if p.field.kind == "mean"]
        self._counters = [p for p in probes if p.field.kind == "counter"]
        self._groups = (self._fast, self._slow, self._rare, self._means, self._counters)
        self.columns = ("at_ms", *(c for group in self._groups for p in group for c in p.field.columns))
        fast = [c for p in self._fast for c in p.field.columns]
        self._watched = [(fast.index(c), Period(tick_s)) for c in WATCHED if c in fast]
        self._periods = dict(zip([c for c in WATCHED if c in fast], [p for _, p in self._watched], strict=True))
        self._util_or_power = next(iter(self._periods.values()), None)
        self._opened_s = -1.0
        self._rare_s = -RARE_S
        self._levels: list[Value] = []
        self._rare_levels: list[Value] = []
        self._start: list[Value] = []
        self._pending: list[tuple[float, int, list[Value]]] = []
        self._ready: list[tuple[float, list[Value]]] = []
        self._released_s = 0.0
        self._last_row_s = -1.0
        self.phase = self.next_slow = self.next_release = 0
        self.rows = self.repeats = self.silent = 0
        self.lost_at_ms: int | None = None
        self.lost_why = ""

    @property
    def slow_only(self) -> bool:
        """Whether no field read on a tick could make an observation: then it is read once per second only."""
        return not self._watched

    def tick(self, now_s: float, at_ms: int, *, whole: bool) -> None:
        """Read the cheap fields; `whole` ticks open a second and always make a row."""
        values = self._reader.read_all(self._fast)
        if self._fast and all(v is None for v in values):
            self.silent += 1
            return
        changed = whole
        for place, period in self._watched:
            changed |= period.see(now_s, values[place])
        if changed or self._is_new(now_s - self._last_row_s):
            self._pending.append((now_s, at_ms, values))
            self._last_row_s = now_s
        else:
            self.repeats += 1

    def _is_new(self, since_s: float) -> bool:
        """Whether an unchanged reading is an observation: only once the counter had time to be refreshed."""
        period_s = self._util_or_power.seconds() if self._util_or_power else None
        return period_s is None or since_s >= min(period_s, HOLD_TICKS * self._tick_s) - self._tick_s / 2

    def close_second(self, now_s: float, *, release: bool) -> list[Row]:
        """Read what costs more, finish the rows of the second that ends, and open the next.

        Gives the rows of all seconds since the last release; none where it is not time yet.
        """
        levels = self._reader.read_timed(self._slow)
        if now_s - self._rare_s >= RARE_S:
            self._rare_levels, self._rare_s = self._reader.read_timed(self._rare), now_s
        opening = self._opened_s < 0
        long_enough = not opening and now_s - self._opened_s >= MIN_MEAN_S
        self._complete(self._reader.read_timed(self._means) if long_enough else self._blank(self._means))
        self._opened_s, self._levels = now_s, levels
        if not release and not opening:
            return []
        counters = self._reader.read_timed(self._counters)
        rows = self._release(now_s, counters)
        self._released_s, self._start = now_s, counters
        return rows

    def _complete(self, means: Sequence[Value]) -> None:
        """The rows of a second, but for the counters."""
        for at_s, at_ms, fast in self._pending:
            self._ready.append((at_s, [at_ms, *fast, *self._levels, *self._rare_levels, *means]))
        self._pending.clear()

    def _release(self, now_s: float, end: Sequence[Value]) -> list[Row]:
        rows: list[Row] = []
        length_s = now_s - self._released_s
        for at_s, row in self._ready:
            share = (at_s - self._released_s) / length_s if length_s > 0 else 0.0
            rows.append((*row, *(_between(a, b, share) for a, b in zip(self._start, end, strict=True))))
        self._ready.clear()
        self.rows += len(rows)
        return rows

    def lose(self, at_ms: int, why: str) -> list[Row]:
        """The device is gone: finish its rows with what is known."""
        self.lost_at_ms, self.lost_why = at_ms, why
        if self._opened_s < 0:
            return []
        self._complete(self._blank(self._means))
        return self._release(self._released_s, self._blank(self._counters))

    @staticmethod
    def _blank(probes: list[Probe]) -> list[Value]:
        return [v for p in probes for v in p.blank]

    def report(self) -> DeviceReport:
        """What happened so far."""
        probes = [p for group in self._groups for p in group]
        periods = {c: p.seconds() for c, p in self._periods.items()}
        util = self._periods.get("gpu_util_ratio")
        return DeviceReport(
            facts=self.facts,
            rows=self.rows,
            repeats_left_out=self.repeats,
            silent_ticks=self.silent,
            util_period_s=self._shown(periods.get("gpu_util_ratio")),
            power_period_s=self._shown(periods.get("power_w")),
            util_changes=util.changes if util else 0,
            missing=self._reader.missing(),
            failures={p.field.columns[0]: p.failures for p in probes if p.failures},
            last_errors={p.field.columns[0]: p.last_error for p in probes if p.failures},
            slowest_call_ms={p.field.columns[0]: round(p.slowest_s * 1e3, 3) for p in probes if p.slowest_s > 0},
            lost_at_ms=self.lost_at_ms,
            lost_why=self.lost_why,
        )

    def _shown(self, seconds: float | None) -> float | None:
        """A period; None where the load kept the value still for longer than any driver does."""
        return None if seconds is None or seconds > SLOWEST_REFRESH_S + self._tick_s else round(seconds, 4)


def _between(start: Value, end: Value, share: float) -> Value:
    """A counter between its two readings; not known where it was not read twice or started again."""
    if start is None or end is None or end < start:
        return None
    return int(start + (end - start) * share)

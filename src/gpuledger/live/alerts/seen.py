"""What do rules see of a lake? Each thing is read when a rule first asks for it, and once per look."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from typing import Any

from gpuledger.advice.asking import asked
from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.cost.month_budget import MonthBudget, month_budget
from gpuledger.cost.teams import Config, set_teams
from gpuledger.cost.user_settings import set_budgets
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.lake.batch import board_of, device_name
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import end_ms, last_of, newest_ms
from gpuledger.ledger.spells import KINDS
from gpuledger.live.alerts.devices import SUMS, Device, RankClock, Run, newest_devices, run_clocks, window_sums
from gpuledger.live.alerts.limits import AlertSettings
from gpuledger.telemetry import schema
from gpuledger.times import length_ms
from gpuledger.units import MS_PER_DAY, utc_day

_HELD = KINDS[1]
assert _HELD == "idle_held"


class Seen:
    """A posted lake at one instant. `now_ms`: by the clock of this machine; `newest_ms`: of its newest sample.

    `window`: the last `window_ms` up to `end_ms`, as --last counts. `terms`: prices and inventory as for an audit.
    """

    def __init__(self, lake: Lake, settings: AlertSettings, now_ms: int, terms: dict[str, Any] | None = None) -> None:
        self.lake, self.now_ms = lake, now_ms
        self.newest_ms = newest_ms(lake)
        self.end_ms, self.window_ms = end_ms(lake), length_ms(settings.window)
        self.window = last_of(lake, self.window_ms)
        self.forget_ms = length_ms(settings.forget_after)
        self._terms = terms or {}

    @cached_property
    def thresholds(self) -> Thresholds:
        """The classes, targets and idle rule in force."""
        return load_thresholds(None)

    @cached_property
    def _window(self) -> Books:
        return Books(self.lake, self.window, self.thresholds)

    @cached_property
    def devices(self) -> dict[str, Device]:
        """The GPUs and MIG instances seen lately, by id, with their sums over the window."""
        first = self.newest_ms - self.forget_ms
        # A day's last samples may be posted with the day before.
        days = {utc_day(at) for at in range(first - MS_PER_DAY, self.newest_ms + MS_PER_DAY, MS_PER_DAY)}
        found = newest_devices(Books(self.lake, Scope(), self.thresholds), days, self.teams.set_team)
        sums = window_sums(self._window)
        none = dict.fromkeys(SUMS, 0)
        return {id_: replace(d, sums=sums.get(id_, none)) for id_, d in found.items() if d.last_ms >= first}

    @cached_property
    def teams(self) -> Config:
        """The teams that were set."""
        return set_teams() or Config()

    @cached_property
    def boards(self) -> dict[str, Device]:
        """The boards, by UUID. Instances of a board all report its faults: the largest figure counts."""
        parts: dict[str, list[Device]] = defaultdict(list)
        for id_, device in self.devices.items():
            parts[board_of(id_)].append(device)
        out = {}
        for uuid, some in parts.items():
            most = {c: max(d.sums[c] for d in some) for c in SUMS}
            newest = max(some, key=lambda d: d.last_ms)
            out[uuid] = replace(newest, instance=None, sums=most)
        return out

    @cached_property
    def idle_held_since(self) -> dict[str, int]:
        """The devices that hold memory without work up to their newest sample, and since when their owner does that."""
        books = Books(self.lake, Scope(self.newest_ms - self.forget_ms), self.thresholds)
        spells: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for rows in books.spells():
            held = books.names["kind"].among((_HELD,))[rows["kind"]]
            names = zip(*(books.names[c].text(rows[c][held]) for c in schema.DEVICE), strict=True)
            ends = zip(rows["start_ms"][held].tolist(), rows["end_ms"][held].tolist(), strict=True)
            for (uuid, instance), span in zip(names, ends, strict=True):
                spells[device_name(uuid, instance)].append(span)
        out = {}
        for id_, own in spells.items():
            device = self.devices.get(id_)
            start, end = _last_stretch(own)
            if device is not None and end >= device.last_ms:
                out[id_] = max(start, device.owner_since_ms)
        return out

    @cached_property
    def run_clocks(self) -> dict[Run, list[RankClock]]:
        """How fast the GPUs of each job ran in the window."""
        return run_clocks(self._window)

    @cached_property
    def efficiency(self) -> EfficiencyStatement:
        """The efficiency statement of the window."""
        return efficiency_statement(
            self.lake, self.window, thresholds=self.thresholds,
            calibration=load_calibration(self.lake), team_of=self.teams.set_team,
        )  # fmt: skip

    @cached_property
    def budgets(self) -> MonthBudget | None:
        """The month's budgets, as `gpuledger ask budget` gives them; None where none are set."""
        budgets = set_budgets()
        if not budgets:
            return None
        terms = asked(self.lake.root, **self._terms).terms
        return month_budget(self.lake, budgets, **terms)


def _last_stretch(spells: list[tuple[int, int]]) -> tuple[int, int]:
    """The last of spells that touch made one, as where midnight cut them."""
    start, end = max(spells, key=lambda s: s[1])
    for low, high in sorted(spells, reverse=True):
        if low < start <= high:
            start = low
    return start, end

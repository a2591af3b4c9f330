"""Which statements does the dashboard show, and when are they made again?

A statement is made once, whoever asks for it, and kept until the lake changes. Then the audit, which the first
page shows, is made while viewers still see the old one; other statements are made when they are first asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from gpuledger.advice.asking import Asked, asked, audit
from gpuledger.advice.one_gpu import OneGpu, one_gpu
from gpuledger.advice.statement import AuditStatement
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.emissions.build import Placing, energy_statement, placing
from gpuledger.cost.emissions.statement import EnergyStatement
from gpuledger.cost.statement import ALWAYS
from gpuledger.cost.teams import Config, set_teams
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.gpu_history import device_owners, gpu_history, recent_util
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.efficiency.xid_codes import with_codes
from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.owners import dimension
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import Window, newest_ms, scope_of
from gpuledger.plan.move.build import migrate_from_lake
from gpuledger.plan.move.statement import LakePlan
from gpuledger.settings import in_force
from gpuledger.times import today
from gpuledger.web.contract import Filters, State, Status, Where

T = TypeVar("T")
KEPT = 64  # statements and pages; one not asked for lately is made again
RETRY_S = (1.0, 30.0)  # a lake that cannot be read is looked at again after the first, at most after the second
_WATCHED = ("manifest.json", "jobs/manifest.json", "prices/yours.json")


class LiveLake:
    """A lake that may grow while it is looked at.

    `edition`: the last one viewers saw. `where`: the place of its GPUs and a file of carbon intensities by hour.
    `terms`: prices, inventory and the like, as for an audit.
    """

    def __init__(
        self,
        root: str | Path,
        default: Filters = Filters(),  # noqa: B008
        edition: int = 0,
        where: Where = Where(),  # noqa: B008
        **terms: Any,
    ) -> None:
        self.lake, self.default, self._where = Lake(root), default, where
        _placing(where)
        self._terms: Mapping[str, Any] = terms
        asked(self.lake.root, **terms)  # a wrong file or name stops the start, not a page
        self._kept: OrderedDict[tuple[object, ...], object] = OrderedDict()
        self._making: dict[tuple[object, ...], threading.Lock] = {}
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] = ()
        self._again_at, self._wait_s = float("inf"), 0.0
        self.status = Status("loading", edition, None, _now_ms())

    # -- the lake as it grows

    def refresh(self) -> bool:
        """Look whether the lake changed, and make the first page's statements again; whether there is news."""
        mark, now = self._mark(), time.monotonic()
        if mark == self._seen and now < self._again_at:
            return False
        edition = self.status.edition + 1
        found = self._looked(edition)
        failed = bool(found.problem)
        self._wait_s = min(max(self._wait_s * 2, RETRY_S[0]), RETRY_S[1]) if failed else 0.0
        self._again_at = time.monotonic() + self._wait_s if failed else float("inf")
        self._seen = mark
        if failed and self.status.state == "ready":  # its last figures are better than none
            found = replace(self.status, problem=found.problem, hint=found.hint)
        news = not (failed and _same(found, self.status))
        if news:
            self.status = found
        with self._lock:
            for key in [key for key in self._kept if key[0] != self.status.edition]:
                del self._kept[key]
        return news

    def _looked(self, edition: int) -> Status:
        """How the lake stands; its first statements are made on the way."""
        try:
            self._post()
            newest = newest_ms(self.lake) or None
            if newest is None:
                return Status("empty", edition, None, _now_ms(), "the lake has no samples", _HINT)
            self.audit(self.default, edition)
            return Status("ready", edition, newest, _now_ms())
        except GpuledgerError as error:
            state: State = "error" if self.lake.exists() else "empty"
            return Status(state, edition, self.status.newest_ms, _now_ms(), error.message, error.hint)
        except Exception as error:  # noqa: BLE001  (whatever a file half-written or gone leads to: look again later)
            words = f"the lake cannot be read: {type(error).__name__}: {error}"
            return Status("error", edition, self.status.newest_ms, _now_ms(), words, _BROKEN)

    def _mark(self) -> tuple[object, ...]:
        """What changes when the lake or a setting does."""
        files = [self.lake.root / name for name in _WATCHED]
        found: list[object] = []
        settings: Path | None = None
        try:
            settings = in_force().file
        except GpuledgerError as error:  # the file went while the server runs: the next look reports it
            found.append(error.message)
        own = [Path(file) for file in (settings, self._where.carbon) if file]
        for file in (*files, *own):
            with contextlib.suppress(OSError, LakeError):  # an object store may be away
                stat = file.stat()
                found.append((str(file), stat.st_mtime_ns, stat.st_size))
        return ("looked", *found)

    def _post(self) -> None:
        """Bring the books up to date. Where the lake cannot be written, those there are must do."""
        self.lake.require()
        try:
            post_lake(self.lake, load_thresholds(None))
        except (GpuledgerError, OSError):
            if not (self.lake.ledger_dir / "manifest.json").exists():
                raise

    # -- statements

    def scope(self, filters: Filters) -> Scope:
        """The scope of a statement; an error names what cannot be read."""
        given = {name: value for name, value in vars(filters).items() if value}
        return scope_of(self.lake, **cast("Window", given))

    def audit(self, filters: Filters, edition: int | None = None, by: str | None = None) -> AuditStatement:
        """The cost audit. The dimensions every audit has need no other one."""
        found = None if by is None else dimension(by)
        if found in ALWAYS:
            whole = self.audit(filters, edition)
            return replace(whole, cost=replace(whole.cost, by=found))
        return self.once("audit", filters, lambda: self._audit(filters, by), edition, by)

    def _audit(self, filters: Filters, by: str | None) -> AuditStatement:
        terms: Asked = asked(self.lake.root, **{**self._terms, "by": by})
        return audit(self.lake, self.scope(filters), terms)

    def efficiency(self, filters: Filters, edition: int | None = None) -> EfficiencyStatement:
        """The efficiency statement."""

        def make() -> EfficiencyStatement:
            return efficiency_statement(
                self.lake, self.scope(filters), thresholds=load_thresholds(None),
                calibration=load_calibration(self.lake), team_of=(set_teams() or Config()).set_team,
            )  # fmt: skip

        return self.once("efficiency", filters, make, edition)

    def recent(self, filters: Filters, edition: int | None = None) -> tuple[int, dict[str, list[float | None]]]:
        """How busy each GPU was in the last hours."""
        return self.once("recent", filters, lambda: recent_util(self.lake, self.scope(filters)), edition)

    def owners(self, filters: Filters) -> dict[str, tuple[str, ...]]:
        """Every owner of each GPU."""
        team_of = (set_teams() or Config()).set_team
        return self.once("owners", filters, lambda: device_owners(self.lake, self.scope(filters), team_of))

    def gpu(self, filters: Filters, device: str) -> OneGpu:
        """One GPU hour by hour, with its figures of the other statements."""

        def make() -> OneGpu:
            history = gpu_history(self.lake, self.scope(filters), device)
            made = self.efficiency(filters)
            books = Books(self.lake, self.scope(filters), load_thresholds(None))
            health = with_codes(made.health, books, {history.gpu_uuid})
            return one_gpu(history, self.audit(filters), replace(made, health=health))

        return self.once("gpu", filters, make, None, device)

    def energy(self, filters: Filters) -> EnergyStatement:
        """Energy and carbon next to dollars, also hour by hour."""

        def make() -> EnergyStatement:
            terms = asked(self.lake.root, **self._terms).terms.copy()
            placed = replace(_placing(self._where), by_hour=True)
            return energy_statement(self.lake, self.scope(filters), placed, **terms)

        return self.once("energy", filters, make)

    def moves(self, filters: Filters) -> LakePlan:
        """What each namespace should move to."""
        from gpuledger.advice.asking import paying

        own = {name: self._terms[name] for name in ("price", "instance", "region", "inventory") if name in self._terms}

        def make() -> LakePlan:
            scope = self.scope(filters)
            return migrate_from_lake(self.lake, scope, today=today(), **paying(self.lake.root, **own))

        return self.once("moves", filters, make)

    def once(self, kind: str, filters: Filters, make: Callable[[], T], edition: int | None = None, *more: object) -> T:
        """What `make` makes, made once per edition of the lake; others who ask wait for it."""
        key = (self.status.edition if edition is None else edition, kind, filters, *more)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast("T", self._kept[key])
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._kept:
                    return cast("T", self._kept[key])
            made = make()
            with self._lock:
                self._kept[key] = made
                self._making.pop(key, None)
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return made


_HINT = "import data: gpuledger import FILE; this page shows it as soon as it is there"

_BROKEN = "see all of it: gpuledger analyze --lake FOLDER; the lake is looked at again by itself"


def _same(one: Status, other: Status) -> bool:
    return (one.state, one.problem, one.hint) == (other.state, other.problem, other.hint)


def _placing(where: Where) -> Placing:
    return placing(where.cloud, where.at, Path(where.carbon) if where.carbon else None)


def _now_ms() -> int:
    return int(time.time() * 1000)

"""Which statements does the dashboard show, and when are they made again?

A statement is made once, whoever asks for it, and kept until the lake changes. Then those of the first page are made
in the background while viewers still see the old ones; a page of other filters is made when it is first asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from gpuledger.advice.asking import Asked, asked, audit
from gpuledger.advice.statement import AuditStatement
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.user_settings import Config, set_teams
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.gpu_history import GpuHistory, gpu_history, recent_util
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.errors import GpuledgerError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import Window, newest_ms, scope_of
from gpuledger.plan.move.build import migrate_from_lake
from gpuledger.plan.move.statement import LakePlan
from gpuledger.settings import in_force
from gpuledger.times import today

T = TypeVar("T")
State = Literal["loading", "empty", "ready", "error"]
KEPT = 64  # statements and pages; a filter nobody asked for lately is made again
_WATCHED = ("manifest.json", "jobs/manifest.json", "prices/yours.json")


@dataclass(frozen=True)
class Filters:
    """What a page is about: a window and owners, as the address names them."""

    since: str = ""
    until: str = ""
    last: str = ""
    cluster: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()

    def scope(self, lake: Lake) -> Scope:
        """The scope of a statement; an error names what cannot be read."""
        given = {name: value for name, value in vars(self).items() if value}
        return scope_of(lake, **cast("Window", given))


@dataclass(frozen=True)
class Status:
    """How the lake stands: which edition of its statements is shown, how old its newest sample is, what is wrong."""

    state: State
    edition: int
    newest_ms: int | None
    made_ms: int
    problem: str = ""
    hint: str = ""


class LiveLake:
    """A lake that may grow while it is looked at. `terms`: prices, inventory and the like, as for an audit."""

    def __init__(self, root: str | Path, default: Filters = Filters(), **terms: Any) -> None:  # noqa: B008  (frozen)
        self.lake, self.default = Lake(root), default
        self._terms: Mapping[str, Any] = terms
        asked(self.lake.root, **terms)  # a wrong file or name is told at the start, not on a page
        self._kept: OrderedDict[tuple[object, ...], object] = OrderedDict()
        self._making: dict[tuple[object, ...], threading.Lock] = {}
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] = ()
        self.status = Status("loading", 0, None, _now_ms())

    # -- the lake as it grows

    def refresh(self) -> bool:
        """Look whether the lake changed, and make the first page's statements again; whether there is news."""
        mark = self._mark()
        if mark == self._seen:
            return False
        edition = self.status.edition + 1
        try:
            self._post()
            newest = newest_ms(self.lake) or None
            if newest is None:
                found = Status("empty", edition, None, _now_ms(), "the lake has no samples", _HINT)
            else:
                for make in (self.audit, self.efficiency, self.recent):
                    make(self.default, edition)
                found = Status("ready", edition, newest, _now_ms())
        except GpuledgerError as error:
            state: State = "error" if self.lake.exists() else "empty"
            found = Status(state, edition, self.status.newest_ms, _now_ms(), error.message, error.hint)
        self._seen = mark
        self.status = found
        with self._lock:
            for key in [key for key in self._kept if key[0] != edition]:
                del self._kept[key]
        return True

    def _mark(self) -> tuple[object, ...]:
        """What changes when the lake or a setting does."""
        files = [self.lake.root / name for name in _WATCHED]
        settings = in_force().file
        found: list[object] = []
        for file in (*files, *([Path(settings)] if settings else [])):
            with contextlib.suppress(OSError):
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

    def audit(self, filters: Filters, edition: int | None = None, by: str | None = None) -> AuditStatement:
        """The cost audit."""
        return self.once("audit", filters, lambda: self._audit(filters, by), edition, by)

    def _audit(self, filters: Filters, by: str | None) -> AuditStatement:
        terms: Asked = asked(self.lake.root, **{**self._terms, "by": by})
        return audit(self.lake, filters.scope(self.lake), terms)

    def efficiency(self, filters: Filters, edition: int | None = None) -> EfficiencyStatement:
        """The efficiency statement."""

        def make() -> EfficiencyStatement:
            return efficiency_statement(
                self.lake, filters.scope(self.lake), thresholds=load_thresholds(None),
                calibration=load_calibration(self.lake), team_of=(set_teams() or Config()).set_team,
            )  # fmt: skip

        return self.once("efficiency", filters, make, edition)

    def recent(self, filters: Filters, edition: int | None = None) -> tuple[int, dict[str, list[float | None]]]:
        """How busy each GPU was in the last hours."""
        return self.once("recent", filters, lambda: recent_util(self.lake, filters.scope(self.lake)), edition)

    def gpu(self, filters: Filters, device: str) -> GpuHistory:
        """One GPU hour by hour."""
        return self.once("gpu", filters, lambda: gpu_history(self.lake, filters.scope(self.lake), device), None, device)

    def moves(self, filters: Filters) -> LakePlan:
        """What each namespace should move to."""
        from gpuledger.advice.asking import paying

        own = {name: self._terms[name] for name in ("price", "instance", "region", "inventory") if name in self._terms}

        def make() -> LakePlan:
            scope = filters.scope(self.lake)
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


def _now_ms() -> int:
    return int(time.time() * 1000)

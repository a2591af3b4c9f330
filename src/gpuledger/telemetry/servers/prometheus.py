"""What does a Prometheus (or Thanos, Mimir, VictoriaMetrics, Grafana Cloud) hold of GPUs in a stretch of time?

Samples are asked for as `{...}[2h]`, an instant query with a range: the answer has the stored samples with their own
times, so that a gap stays a gap. A server that refuses this is asked for a range with a step, and for the times of the
samples it repeats, so that repeats are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from gpuledger.errors import InputError, ServerFault
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.answers import UNREADABLE, Answer, NotSeries, Series, add_series, numbers, series_of
from gpuledger.telemetry.series.exporters import NAME, exporters, infos, known_metrics, not_read
from gpuledger.telemetry.series.labels import EXPORTED, JOB_OWNER, METRICS, POD_LABELS, POD_OWNER, SET_OWNER, TARGET
from gpuledger.telemetry.servers.web import Refused, TooMuch, Web
from gpuledger.times import length_ms
from gpuledger.units import MS_PER_DAY

API = "/api/v1"
# A window this short that is still too much is cut by devices instead.
SHORTEST_MS = 300_000
# Prometheus gives at most 11,000 steps of a range.
MOST_STEPS = 10_000
_NAMES_AT_A_TIME = 100
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


@dataclass
class Prometheus:
    """One server. `step_ms`: the scrape interval, where it is known or was given.

    `not_read`: the metrics of its exporters that were met and are not read.
    """

    web: Web
    step_ms: int | None = None
    warned: set[str] = field(default_factory=set)
    not_read: set[str] = field(default_factory=set)
    raw: bool = True

    def greet(self) -> None:
        """Ask something small: a wrong address is found at once, and the server's clock is known."""
        try:
            self._series("/query", [("query", "vector(1)")])
        except TooMuch as error:
            raise self._too_slow(error) from error

    def metrics(self, since_ms: int, until_ms: int) -> dict[str, list[str]]:
        """The metrics of GPUs it holds, by exporter."""
        try:
            answer = self._ask(f"/label/{NAME}/values", [("start", _s(since_ms)), ("end", _s(until_ms))])
            names = msgspec.json.decode(answer.data, type=list[str])
        except TooMuch as error:
            raise self._too_slow(error) from error
        except UNREADABLE as error:
            raise self._nonsense(error) from error
        known = known_metrics(names)
        self.not_read |= not_read(names, known)
        return known

    def read(self, metrics: dict[str, list[str]], since_ms: int, until_ms: int) -> Points:
        """All samples of these metrics from an instant to before another, with the labels that show whose they are.

        Whose they are is looked up for whole days, so that it does not depend on how time is cut into windows.
        """
        points = Points()
        for exporter, names in metrics.items():
            self._read(points, exporter, [n for n in names if n not in infos()], since_ms, until_ms, None)
        first, end = since_ms // MS_PER_DAY * MS_PER_DAY, -(-until_ms // MS_PER_DAY) * MS_PER_DAY
        if len(points):
            self._describe(points, metrics, [("start", _s(first)), ("end", _s(end))])
        return points

    def _read(
        self,
        points: Points,
        exporter: str,
        names: Sequence[str],
        since_ms: int,
        until_ms: int,
        devices: Sequence[str] | None,
    ) -> None:
        """One exporter's samples; a window that cannot be shorter is cut by devices."""
        matchers = "" if devices is None else f',{exporters()[exporter].device}=~"{one_of(devices)}"'
        try:
            found = self._samples(names, matchers, since_ms, until_ms)
        except TooMuch as error:
            if until_ms - since_ms > SHORTEST_MS:
                raise
            known = devices if devices is not None else self._devices(exporter, names, since_ms, until_ms)
            if len(known) < 2:
                raise ServerFault(
                    self.web.where,
                    f"cannot answer for one GPU over {(until_ms - since_ms) // 1000} s: {error}",
                    hint="raise the server's limits (query.max-samples, query.timeout), or try when it is less busy",
                ) from error
            half = len(known) // 2
            for some in (known[:half], known[half:]):
                self._read(points, exporter, names, since_ms, until_ms, some)
            return
        try:
            add_series(points, found, from_ms=since_ms)
        except NotSeries as error:
            raise self._nonsense(error) from error

    def _samples(self, names: Sequence[str], matchers: str, since_ms: int, until_ms: int) -> list[Series]:
        if self.raw:
            query = f'{{{NAME}=~"{one_of(names)}"{matchers}}}[{until_ms - since_ms}ms]'
            try:
                return self._series("/query", [("query", query), ("time", _s(until_ms - 1))])
            except Refused as error:
                if error.code != 400:
                    raise
                self.raw = False
        return self._stepped(names, matchers, since_ms, until_ms)

    def _stepped(self, names: Sequence[str], matchers: str, since_ms: int, until_ms: int) -> list[Series]:
        """The samples from ranges with a step: twice the scrapes, so that none falls between two steps."""
        step_ms = max(self._interval_ms() // 2, 1000)
        if (until_ms - since_ms) // step_ms > MOST_STEPS:
            raise TooMuch("more steps than a range may have")
        span = [("start", _s(since_ms)), ("end", _s(until_ms - 1)), ("step", _s(step_ms))]
        found = []
        for name in names:
            selector = f"{name}{{{matchers.lstrip(',')}}}"
            values = self._series("/query_range", [("query", selector), *span])
            times = self._series("/query_range", [("query", f"timestamp({selector})"), *span])
            at = {_unnamed(one): one for one in times}
            found += [_at_own_times(one, at.get(_unnamed(one))) for one in values]
        return found

    def _interval_ms(self) -> int:
        if self.step_ms is None:
            try:
                answer = self._ask("/targets", [("state", "active")])
                targets = msgspec.json.decode(answer.data, type=_Targets)
                scrapes = [length_ms(t.scrape_interval) for t in targets.active_targets if t.scrape_interval]
            except (ServerFault, InputError, msgspec.DecodeError):
                scrapes = []
            if not scrapes:
                raise ServerFault(
                    self.web.where, "gives samples by steps only and not its scrape interval", hint="add --step 15s"
                )
            self.step_ms = min(scrapes)
        return self.step_ms

    def _devices(self, exporter: str, names: Sequence[str], since_ms: int, until_ms: int) -> list[str]:
        match = ("match[]", f'{{{NAME}=~"{one_of(names)}"}}')
        found = self._labels([match, ("start", _s(since_ms)), ("end", _s(until_ms))])
        label = exporters()[exporter].device
        return sorted({labels.get(label, "") for labels in found})

    def _describe(self, points: Points, metrics: dict[str, list[str]], window: list[tuple[str, str]]) -> None:
        """Add series without points: of the scraped targets, of what describes devices, of the pods' workloads."""
        jobs = sorted({labels["job"] for labels in points.labels if "job" in labels})
        wanted = [f'{TARGET}{{job=~"{one_of(jobs)}"}}'] if jobs else []
        wanted += [name for names in metrics.values() for name in names if name in infos() or name == names[0]]
        pods = {labels[name] for labels in points.labels for name in ("pod", f"{EXPORTED}pod") if name in labels}
        for some in _chunks(sorted(pods)):
            wanted += [f'{m}{{{x}pod=~"{one_of(some)}"}}' for m in (POD_OWNER, POD_LABELS) for x in ("", EXPORTED)]
        owned = self._add_labels(points, wanted, window)
        sets = sorted({labels["owner_name"] for labels in owned if labels.get("owner_kind") == "ReplicaSet"})
        runs = sorted({labels["owner_name"] for labels in owned if labels.get("owner_kind") == "Job"})
        self._add_labels(points, [f'{SET_OWNER}{{replicaset=~"{one_of(some)}"}}' for some in _chunks(sets)], window)
        self._add_labels(points, [f'{JOB_OWNER}{{job_name=~"{one_of(some)}"}}' for some in _chunks(runs)], window)

    def _add_labels(self, points: Points, wanted: list[str], window: list[tuple[str, str]]) -> list[dict[str, str]]:
        found = self._labels([*(("match[]", match) for match in wanted), *window]) if wanted else []
        for labels in found:
            points.series(labels)
        return [labels for labels in found if labels.get(NAME) in METRICS]

    def _labels(self, params: list[tuple[str, str]]) -> list[dict[str, str]]:
        try:
            return msgspec.json.decode(self._ask("/series", params).data, type=list[dict[str, str]])
        except UNREADABLE as error:
            raise self._nonsense(error) from error
        except TooMuch as error:
            raise ServerFault(
                self.web.where,
                f"cannot list its series: {error}",
                hint="raise the server's limits, or try when it is less busy",
            ) from error

    def _series(self, path: str, params: list[tuple[str, str]]) -> list[Series]:
        # Thanos would rather leave out what does not answer; what is missing must not look like a gap.
        answer = self._ask(path, [*params, ("partial_response", "false")])
        try:
            return series_of(answer.data)
        except (*UNREADABLE, NotSeries) as error:
            raise self._nonsense(error) from error

    def _ask(self, path: str, params: list[tuple[str, str]]) -> Answer:
        raw = self.web.get(API + path, params)
        try:
            answer = msgspec.json.decode(raw, type=Answer)
        except UNREADABLE as error:
            if raw.lstrip()[:1] == b"{":
                raise TooMuch("the answer was cut off") from error
            raise self._nonsense(error) from error
        if answer.status != "success":
            raise ServerFault(self.web.where, answer.error or "an error without words", hint="see the server's log")
        if answer.is_partial:
            raise ServerFault(
                self.web.where,
                "a part of its storage did not answer, so the answer has holes",
                hint="run the same command later: it goes on where it stopped",
            )
        self.warned.update(answer.warnings)
        return answer

    def _too_slow(self, error: Exception) -> ServerFault:
        return ServerFault(
            self.web.where,
            f"does not answer even a small question: {error}",
            hint="look at the server's log and at proxies before it, then run the same command again",
        )

    def _nonsense(self, error: Exception) -> ServerFault:
        return ServerFault(
            self.web.where,
            f"does not answer as a Prometheus API does: {error}",
            hint="check the address: it must be the one that has /api/v1/query below it",
        )


class _Target(msgspec.Struct, frozen=True, rename="camel"):
    scrape_interval: str = ""


class _Targets(msgspec.Struct, frozen=True, rename="camel"):
    active_targets: tuple[_Target, ...] = ()


def one_of(words: Iterable[str]) -> str:
    """A regular expression for any of the words, as it stands between the quotes of a query."""
    plain = "|".join(_SPECIAL.sub(lambda c: "\\" + c[0], word) for word in words)
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _chunks(words: list[str]) -> list[list[str]]:
    return [words[i : i + _NAMES_AT_A_TIME] for i in range(0, len(words), _NAMES_AT_A_TIME)]


def _s(ms: int) -> str:
    return f"{ms // 1000}.{ms % 1000:03d}"


def _unnamed(one: Series) -> frozenset[tuple[str, str]]:
    return frozenset((name, text) for name, text in one.metric.items() if name != NAME)


def _at_own_times(one: Series, times: Series | None) -> Series:
    """The series with each sample once, at its own time."""
    if times is None:
        return msgspec.structs.replace(one, values=msgspec.Raw(b"[]"))
    steps, values = numbers(one)
    asked, seconds = numbers(times)
    _, ours, theirs = np.intersect1d(steps, asked, assume_unique=True, return_indices=True)
    at, first = np.unique(seconds[theirs], return_index=True)
    kept = [[t, repr(v)] for t, v in zip(at.tolist(), values[ours][first].tolist(), strict=True)]
    return msgspec.structs.replace(one, values=msgspec.Raw(msgspec.json.encode(kept)))

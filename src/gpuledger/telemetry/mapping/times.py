"""Which column of an unknown table has the time of each row, and how is it written?"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence

from gpuledger.telemetry.mapping.rules import TimeRule
from gpuledger.telemetry.mapping.suggest import words_of

_NAMES = frozenset({
    "timestamp", "timestamps", "time", "datetime", "date", "ts", "when", "at", "clock", "epoch", "iso", "utc", "unix",
    "stamp", "localtime",
})  # fmt: skip
_COUNTED = frozenset({"elapsed", "relative", "time", "t", "seconds", "sec", "secs", "s"})
_SECONDS = frozenset({"seconds", "second", "sec", "secs", "s"})
_A_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?")
_A_DATE = re.compile(r"\d{1,4}[-/._]\d{1,2}[-/._]\d{1,4}|\d{8}")
_EITHER_WAY = re.compile(r"(\d{1,2})-(\d{1,2})-\d{4}\b")
_EPOCH = re.compile(r"\d{10}(\.\d*)?|\d{13}(\.\d*)?|\d{16}|\d{19}")
# With dots the day comes first; with slashes the month, unless the dates show otherwise; with dashes they must show it.
_DATES = ("%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y%m%d", "%Y_%m_%d", "%b %d %Y")
_BETWEEN = (" ", "_", "-", ", ")
_CLOCKS = ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%H-%M-%S", "%H%M%S")
_EITHER = {"%m-%d-%Y", "%d-%m-%Y"}
_MOST_TEXTS, _MOST_WRONG, _MONTHS = 200, 0.05, 12


def time_rule(texts: Mapping[str, Sequence[str]]) -> TimeRule:
    """Where the time stands, by names and cells: an instant, a date and a time, a time of day, seconds since a start.

    A time of day is not used without its date where the table has one that may mean two days.
    """
    named = [name for name in texts if _NAMES & {*words_of(name)} and texts[name]]
    instants = {name: formats for name in named if (formats := layouts(texts[name])) is not None}
    if instants:
        name = max(instants, key=lambda one: len({*texts[one]}))
        return TimeRule(sources=(name,), formats=instants[name])
    clocks = [name for name in named if all(_A_CLOCK.fullmatch(text) for text in texts[name])]
    for name in named if clocks else ():
        both = [f"{date} {clock}" for date, clock in zip(texts[name], texts[clocks[0]], strict=False)]
        if name not in clocks and (formats := layouts(both)) is not None:
            return TimeRule(join=(name, clocks[0]), formats=formats)
    if clocks:
        dated = any(_A_DATE.fullmatch(texts[name][0]) for name in named)
        return TimeRule() if dated else TimeRule(clock=(clocks[0],))
    counted = (name for name in texts if _COUNTED & {*words_of(name)} and _SECONDS & {*_words(name)})
    return TimeRule(elapsed=tuple(name for name in counted if _grows(texts[name]))[:1])


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", name.lower())


def may_be_two_days(texts: Sequence[str]) -> bool:
    """Whether these are dates that do not show which number is the month."""
    found = [_EITHER_WAY.match(text) for text in texts]
    return bool(found) and all(one and max(int(one[1]), int(one[2])) <= _MONTHS for one in found)


def layouts(texts: Sequence[str]) -> tuple[str, ...] | None:
    """How instants are written, () for ISO 8601 and epoch numbers; None where they are none, or may be two."""
    shown = list(dict.fromkeys(texts[:: max(1, len(texts) // _MOST_TEXTS)]))
    wrong = _MOST_WRONG * len(shown)
    if not shown or sum(not _is_instant(text) for text in shown) <= wrong:
        return () if shown else None
    used = {date + between: _used(date + between, shown) for date in _DATES for between in _BETWEEN}
    missed = {start: forms.count("") for start, forms in used.items() if forms.count("") <= wrong}
    best = [start for start in missed if missed[start] == min(missed.values())]
    if not best or {start[:8] for start in best} >= _EITHER:
        return None
    return tuple(dict.fromkeys(form for form in used[best[0]] if form))


def _used(start: str, texts: Sequence[str]) -> list[str]:
    """By text the layout with this date that it is written in, empty where there is none."""
    return [next((start + clock for clock in _CLOCKS if _parses(text, start + clock)), "") for text in texts]


def _parses(text: str, form: str) -> bool:
    try:
        dt.datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _is_instant(text: str) -> bool:
    """ISO 8601 with a time of day, or an epoch number of this century."""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return bool(_EPOCH.fullmatch(text))
    return len(text) > 10


def _grows(texts: Sequence[str]) -> bool:
    """Whether cells are numbers that never get smaller."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return False
    return bool(numbers) and numbers[0] >= 0 and numbers == sorted(numbers) and numbers[-1] < 1e8

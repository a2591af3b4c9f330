"""How are alerts shown on a terminal: an event as it comes, and how all of them stand?"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

from gpuledger.live.alerts.event import Event, details, figure, headline, owner_text
from gpuledger.live.alerts.limits import SEVERITIES
from gpuledger.live.alerts.standing import Standing, to_json
from gpuledger.plain_text import visible
from gpuledger.report.document import Document, Prose
from gpuledger.report.tables import Table, make_table
from gpuledger.report.written import period
from gpuledger.times import duration
from gpuledger.units import count, utc

_INDENT = " " * 6


def event_lines(event: Event) -> list[str]:
    """An event in a few lines that fit the terminal."""
    sign = event.severity if event.firing else "recovered"
    loud = event.firing and event.severity == "critical"
    head = f"{utc(event.at_ms):%Y-%m-%d %H:%M}  {sign.upper() if loud else sign}"
    wide = max(40, shutil.get_terminal_size().columns)
    lines = [f"{head}  {headline(event)}"]
    if event.firing:
        rest = [(name, text) for name, text in details(event) if name not in {"Severity", "Next"} and text]
        lines += [f"{_INDENT}{'; '.join(f'{_within(name)} {text}' for name, text in rest)}"]
        lines += [f"{_INDENT}next: {event.next_step}"]
    return [part for line in lines for part in _wrapped(visible(line), wide)]


def _within(name: str) -> str:
    """A name within a sentence: an abbreviation stays as it is."""
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


def _wrapped(line: str, wide: int) -> list[str]:
    return textwrap.wrap(line, wide, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)


def summary(found: Standing, *, messages: bool = True) -> str:
    """How alerts stand, in one sentence."""
    parts = [count(len(found.firing), "alert") + (" fires" if len(found.firing) == 1 else " fire")]
    parts += [f"{len(found.silenced)} of them silenced"] if found.silenced else []
    parts += [f"{len(found.pending)} pending"] if found.pending else []
    waiting = sum(box.waiting for box in found.receivers)
    parts += [f"{count(waiting, 'message')} waiting"] if waiting and messages else []
    return ", ".join(parts)


def window_line(found: Standing) -> str:
    """From when to when the rules looked; empty where they did not."""
    return f"Window: {period(*found.window)}." if found.window else ""


def problem_lines(found: Standing) -> Iterator[str]:
    """What could not be looked at or delivered."""
    for name, why in sorted(found.problems.items()):
        yield f"{name}: {why}"
    for box in found.receivers:
        if box.error:
            again = "" if box.next_ms is None else f"; next try at {utc(box.next_ms):%H:%M:%S} UTC"
            yield f"{box.receiver}: {count(box.waiting, 'message')} waiting: {box.error}{again}"
        if box.refused:
            yield f"{box.receiver}: {count(box.refused, 'message')} refused by the receiver; kept in the journal"


def standing_document(found: Standing) -> Document:
    """What fires, what is silenced, and how each receiver stands."""
    order = sorted(found.firing, key=lambda e: (SEVERITIES.index(e.severity), e.since_ms, e.key))
    parts: list[Table | Prose] = []
    if order:
        rows = [
            [e.severity + (" (silenced)" if e.key in found.silenced else ""), e.key, figure(e.value, e.unit),
             f"{utc(e.since_ms):%m-%d %H:%M}", owner_text(e.owner)]
            for e in order
        ]  # fmt: skip
        heads = ("Severity", "Key", "When it fired", "Since (UTC)", "Owner")
        parts.append(make_table("firing", "Firing", heads, "wwwwW", rows, screen_rows=50))
    if found.pending:
        waits = [[p.key, duration(p.for_ms)] for p in found.pending]
        parts.append(make_table("pending", "Beyond the limit, not yet for long enough", ("Key", "For"), "ww", waits))
    if found.silences:
        quiet = [[s.pattern, f"{utc(s.until_ms):%Y-%m-%d %H:%M} UTC", s.why] for s in found.silences]
        parts.append(make_table("silences", "Silences", ("Pattern", "Until", "Why"), "www", quiet))
    if found.receivers:
        boxes = [[b.receiver, str(b.delivered), str(b.waiting), str(b.refused), b.error] for b in found.receivers]
        heads = ("Receiver", "Delivered", "Waiting", "Refused", "Last error")
        parts.append(make_table("receivers", "Messages", heads, "wnnnw", boxes))
    parts += [Prose(line, "warning") for line in sorted(f"{n}: {why}" for n, why in found.problems.items())]
    return Document(
        "alerts", "Alerts", "Alerts", summary(found).capitalize() + ".", summary=parts, data=lambda: to_json(found)
    )

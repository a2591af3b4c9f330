"""Where does a command's answer go: tables on stdout, or one JSON object and nothing else?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gpuledger.plain_text import json_text, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID

    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.lake.layout import Lake
    from gpuledger.telemetry.stated import Stated


class Screen:
    """What one command may show. Text with --json or --quiet goes nowhere; progress needs a terminal on stderr."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.talks = not as_json and not quiet
        self._bars: Progress | None = None
        self._read: dict[str, list[Any]] = {"stated": [], "notes": []}

    def console(self, *, err: bool = False) -> Console:
        """The terminal, or whatever stdout is; stderr where stdout is another command's."""
        from gpuledger.cli.terminal import Terminal

        return Terminal(stderr=err)

    def say(self, *lines: str, err: bool = False) -> None:
        """Plain lines for a reader; a path stays whole, whatever is in it."""
        for line in lines if self.talks else ():
            if err and self._bars is not None:  # above the bars, which are drawn again and again
                self._bars.console.print(visible(line), markup=False, highlight=False, soft_wrap=True)
            else:
                click.echo(visible(line), err=err)

    def note(self, words: str) -> None:
        """What reading the files found: a line on stderr, or in the one JSON object."""
        self._read["notes"].append(words)
        self.say(f"note: {words}", err=True)

    def state(self, stated: Sequence[Stated]) -> None:
        """What the files do not say: one line, before all others."""
        if stated:
            from gpuledger.telemetry.stated import stated_words

            self._read["stated"] += [{"what": one.what, "option": one.option} for one in stated]
            self.say(f"stated: {stated_words(stated)}", err=True)

    def read(self) -> list[str]:
        """What was stated of the files, and the notes about them, for a document that outlives the terminal."""
        stated = [f"Assumed, as the files do not show it: {', '.join(one['what'] for one in self._read['stated'])}."]
        return [*(stated if self._read["stated"] else ()), *self._read["notes"]]

    def show(self, *parts: RenderableType, err: bool = False) -> None:
        """Tables for a reader, and text with markup."""
        if self.talks:
            console = self.console(err=err)
            for part in parts:
                # A path must stay one word on one line to be copied.
                console.print(part, soft_wrap=isinstance(part, str))

    def answer(self, figures: Mapping[str, Any]) -> None:
        """The whole answer as one JSON object, where asked for. Not-a-number is refused: JSON has none."""
        if self.as_json:
            read = {"reading": self._read} if any(self._read.values()) else {}
            click.echo(json_text({**figures, **read}, indent=1))

    @contextmanager
    def stages(self) -> Iterator[Stages]:
        """Progress bars while something long runs."""
        if not (self.talks and sys.stderr.isatty()):
            yield Stages(None, self)
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from gpuledger.cli.terminal import Terminal

        done = TextColumn("{task.completed:>11,.0f}")
        columns = (TextColumn("{task.description:<18}"), BarColumn(24), done, TimeElapsedColumn())
        progress = self._bars = Progress(*columns, console=Terminal(stderr=True), transient=True)
        try:
            yield Stages(progress, self)
        finally:
            progress.stop()
            self._bars = None


class Bar:
    """One bar: call it with each further amount done."""

    def __init__(self, progress: Progress | None, total: int | None, task: TaskID | None = None) -> None:
        self._progress, self._total, self._task = progress, total, task

    def __call__(self, amount: int) -> None:
        """Show that more is done."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)

    def expect(self, total: int) -> None:
        """There is at least this much to do."""
        if self._progress is not None and self._task is not None and (self._total or 0) < total:
            self._total = total
            self._progress.update(self._task, total=total)


class Stages:
    """The bars of one command, one for each stage of its work."""

    def __init__(self, progress: Progress | None, screen: Screen) -> None:
        self._progress, self._screen = progress, screen
        self.shown = progress is not None

    def start(self, stage: str, total: int | None = None) -> Bar:
        """A new bar; call what comes back with each further amount done. Without a total the bar only moves."""
        if self._progress is None:
            return Bar(None, total)
        if not self._progress.live.is_started:  # not before: until then a process has one thread and may be copied
            self._progress.start()
        return Bar(self._progress, total, self._progress.add_task(stage, total=total))

    def post(self, lake: Lake, limits: Thresholds) -> None:
        """Bring the ledger up to date, with a bar that knows its end when nothing was posted before; then report what
        makes the days of the lake doubtful.
        """
        from gpuledger.ledger.engine import post_lake
        from gpuledger.ledger.read.doubts import doubts
        from gpuledger.ledger.store import Ledger

        lake.require()
        fresh = not Ledger(lake).manifest().days
        post_lake(lake, limits, self.start("posting", sum(p.rows for p in lake.manifest().parts) if fresh else None))
        for words in doubts(lake):
            self._screen.say(f"note: {words}", err=True)

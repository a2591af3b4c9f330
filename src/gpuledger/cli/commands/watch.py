"""Can I be notified when something goes wrong in the fleet?"""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import Pause, lake_option, screen_options
from gpuledger.cli.price_options import inventory_option, price_of
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError, UnknownName
from gpuledger.times import length_ms

if TYPE_CHECKING:
    from gpuledger.live.alerts.event import Event
    from gpuledger.live.alerts.journal import Journal, Round
    from gpuledger.live.alerts.watcher import Eyes, Watcher

_ONE_OF = ("once", "dry_run", "listing", "silence", "end_silence")


@click.command("watch")
@lake_option
@click.option("--once", is_flag=True, help="Look once, deliver what is due, and end: for cron.")
@click.option("--every", "every_ms", type=Pause("0.1s", "1d"), metavar="LENGTH", default="60s", show_default=True,
              help="Time between looks (30, 30s, 2m).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would fire and who would be notified; write and send nothing.")
@click.option("--list", "listing", is_flag=True, help="Show what fires, silences, and messages not delivered yet.")
@click.option("--silence", metavar="PATTERN", help="Send nothing about these: idle_held:*, or namespace=ml-*.")
@click.option("--for", "for_ms", type=length_ms, metavar="LENGTH", help="How long a silence lasts (2h, 7d).")
@click.option("--why", default="", metavar="TEXT", help="Why a silence was set; --list shows it.")
@click.option("--end-silence", metavar="PATTERN", help="End a silence now.")
@inventory_option
@click.option("--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeatable.")
@screen_options
def command(
    screen: Screen, lake_dir: Path, for_ms: int | None, every_ms: int, inventory: tuple[Path, ...],
    prices: tuple[str, ...], why: str, **chosen: Any,
) -> None:  # fmt: skip
    """Watch a lake and send alerts.

    Receivers are a file, a webhook, Slack, e-mail or Alertmanager.

    Rules, receivers and who is notified when are set in [alerts] of gpuledger.toml. State and undelivered messages are
    kept in LAKE/alerts: a watcher that was killed continues where it was. With --json each event is one line of JSON;
    with --once, --list and --dry-run there is one object.
    """
    from gpuledger.live.alerts.journal import Journal
    from gpuledger.live.alerts.limits import load_alerts

    what = [name for name in _ONE_OF if chosen[name]]
    if len(what) > 1:
        names = {"listing": "--list"}
        both = " and ".join(names.get(n, "--" + n.replace("_", "-")) for n in what[:2])
        raise InputError(f"{both} are different things to do", hint="give one of them")
    if (for_ms is not None or why) and not chosen["silence"]:
        raise InputError("--for and --why belong to --silence", hint="for example --silence 'idle_held:*' --for 2h")
    from gpuledger.lake.layout import Lake

    lake = Lake(lake_dir)
    lake.require()
    load_alerts()
    with closing(Journal.of(lake.store.here, aside=chosen["listing"] or chosen["dry_run"])) as journal:
        if chosen["silence"] or chosen["end_silence"]:
            _silence(screen, journal, chosen["silence"], chosen["end_silence"], for_ms, why)
        elif chosen["listing"]:
            _show(screen, journal)
        else:
            from gpuledger.live.alerts.watcher import Eyes

            eyes = Eyes(lake, inventory=list(inventory) or None, price=price_of(prices))
            if chosen["dry_run"]:
                _dry_run(screen, eyes, journal)
            else:
                _watch(screen, eyes, journal, once=chosen["once"], every_ms=every_ms)


def _silence(
    screen: Screen, journal: Journal, pattern: str | None, ended: str | None, for_ms: int | None, why: str
) -> None:
    from gpuledger.live.alerts.courier import clock_ms
    from gpuledger.live.alerts.silence import Silence, checked
    from gpuledger.units import utc

    now = clock_ms()
    if ended is not None:
        known = [s.pattern for s in journal.silences(now)]
        if ended not in known:
            raise UnknownName("silence", ended, known)
        journal.silence(Silence(ended, now, now))
        screen.say(f"{ended}: silence ended")
    else:
        if for_ms is None:
            raise InputError("--silence needs --for: how long it lasts", hint="for example --for 2h")
        made = Silence(checked(pattern or ""), now + for_ms, now, why)
        journal.silence(made)
        screen.say(f"{made.pattern}: silent until {utc(made.until_ms):%Y-%m-%d %H:%M} UTC")
    _answer(screen, journal)


def _answer(screen: Screen, journal: Journal, **more: Any) -> None:
    from gpuledger.live.alerts.courier import clock_ms
    from gpuledger.live.alerts.standing import standing, to_json

    screen.answer(to_json(standing(journal, clock_ms(), **more)))


def _show(screen: Screen, journal: Journal) -> None:
    from gpuledger.cli.showing import give
    from gpuledger.cli.watching import standing_document
    from gpuledger.live.alerts.courier import clock_ms
    from gpuledger.live.alerts.standing import standing

    give(standing_document(standing(journal, clock_ms())), screen)


def _dry_run(screen: Screen, eyes: Eyes, journal: Journal) -> None:
    from gpuledger.cli.watching import event_lines, summary, window_line
    from gpuledger.live.alerts.courier import clock_ms
    from gpuledger.live.alerts.deciding import decide
    from gpuledger.live.alerts.limits import load_alerts
    from gpuledger.live.alerts.standing import standing, to_json
    from gpuledger.times import duration

    settings, now = load_alerts(), clock_ms()
    look = eyes.look(settings, now)
    found = decide(journal, settings, look.looked, look.at, off=look.off)
    notices = {event.id: tuple(some) for event, some in found.begun}
    journal.record(found, now)
    state = standing(
        journal, now, events=tuple(found.events), notices=notices, problems=look.problems, window=look.window
    )
    screen.answer(to_json(state))
    for event in found.events:
        screen.say(*event_lines(event))
        for one in notices.get(event.id, ()):
            when = f"after {duration(one.due_ms - event.at_ms)}" if one.due_ms > event.at_ms else "at once"
            screen.say(f"      would notify {one.receiver} ({one.step}) {when}")
    screen.say(f"Dry run: {summary(state, messages=False)}. Nothing was written or sent. {window_line(state)}")
    for name, why in sorted(look.problems.items()):
        screen.say(f"{name}: {why}", err=True)


def _watch(screen: Screen, eyes: Eyes, journal: Journal, *, once: bool, every_ms: int) -> None:
    from gpuledger.live.alerts.outbox import mailboxes
    from gpuledger.live.alerts.watcher import Watcher
    from gpuledger.plain_text import visible

    with journal.deciding():
        watcher = Watcher(journal, eyes.look, None if not screen.talks and not screen.as_json else _shown(screen, once))
        if once:
            _once(screen, watcher)
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: watcher.stop.set())
        sends = ", ".join(watcher.settings.receivers) or "this terminal alone; set others in [alerts.receivers]"
        screen.say(f"Watching {eyes.lake.root}, alerts go to {sends}. Stop with Ctrl-C.")
        reported: dict[str, str] = {}

        def after(_found: Round) -> None:
            """Report what went wrong, once while it stays the same."""
            problems = watcher.problems | {box.receiver: box.error for box in mailboxes(journal) if box.error}
            for name, why in problems.items():
                if reported.get(name) != why:
                    click.echo(visible(f"{name}: {why}"), err=True)
            reported.clear()
            reported.update(problems)

        watcher.run(every_ms, after)


def _shown(screen: Screen, once: bool) -> Any:
    """What the terminal does with an event: a few lines; with --json one line of JSON, unless one answer follows."""
    from gpuledger.cli.watching import event_lines
    from gpuledger.plain_text import json_text

    def show(event: Event) -> None:
        if screen.as_json and not once:
            click.echo(json_text(event.as_json()))
        screen.say(*event_lines(event))

    return show


def _once(screen: Screen, watcher: Watcher) -> None:
    from gpuledger.cli.watching import problem_lines, summary, window_line
    from gpuledger.live.alerts.courier import clock_ms
    from gpuledger.live.alerts.standing import standing, to_json

    found = watcher.once(clock_ms())
    notices = {event.id: tuple(some) for event, some in found.begun}
    state = standing(
        watcher.journal, clock_ms(), events=tuple(found.events), notices=notices, problems=dict(watcher.problems),
        window=watcher.window,
    )  # fmt: skip
    screen.answer(to_json(state))
    screen.say(f"{summary(state).capitalize()}. {window_line(state)}".rstrip())
    screen.say(*problem_lines(state), err=True)

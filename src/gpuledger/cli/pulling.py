"""How does a command import from a server, once or until it is stopped?"""

from __future__ import annotations

import functools
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gpuledger.cli.options import PATH, Command, Pause
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError, ServerFault
from gpuledger.times import instant_ms, length_ms
from gpuledger.units import MS_PER_S

MS_PER_MINUTE = 60 * MS_PER_S

if TYPE_CHECKING:
    from gpuledger.lake.importing import ImportResult
    from gpuledger.lake.layout import Lake
    from gpuledger.telemetry.mapping import Given


class ServerWishes(msgspec.Struct, frozen=True):
    """What the options say about servers."""

    since: int | None
    until: int | None
    step: int | None
    delay: int
    follow: bool
    poll: int
    header: tuple[str, ...]
    user: str | None
    password_file: Path | None
    bearer_file: Path | None
    ca: Path | None

    def given(self) -> list[str]:
        """The options that only make sense with a server and were given."""
        names = ("since", "until", "step", "follow", "header", "user", "password_file", "bearer_file", "ca")
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]

    def headers(self) -> dict[str, str]:
        """The headers by name."""
        found = {}
        for text in self.header:
            name, colon, value = text.partition(":")
            if not colon or not name.strip() or not text.isprintable():
                raise InputError("--header is not 'Name: value'", hint="for example --header 'X-Scope-OrgID: team-a'")
            found[name.strip()] = value.strip()
        return found


def server_options(command: Command) -> Command:
    """The options of servers, given to the command as `wishes`."""

    @click.option(
        "--since", type=instant_ms, metavar="TIME",
        help="Server: start; default where the last import of it stopped, else 7 days back.",
    )  # fmt: skip
    @click.option("--until", type=instant_ms, metavar="TIME", help="Server: end; default now, less --delay.")
    @click.option("--step", type=length_ms, metavar="LENGTH", help="Server: scrape interval, where it cannot be found.")
    @click.option(
        "--delay", type=length_ms, metavar="LENGTH", default="2m", show_default=True,
        help="Server: leave out the newest samples, which may still arrive.",
    )  # fmt: skip
    @click.option("--follow", is_flag=True, help="Server: go on importing until Ctrl-C.")
    @click.option(
        "--poll", type=Pause("0.1s", "1d"), metavar="LENGTH", default="60s", show_default=True,
        help="Server: pause of --follow.",
    )  # fmt: skip
    @click.option(
        "--header", multiple=True, metavar="'NAME: VALUE'", help="Server: header of each request; repeatable."
    )
    @click.option("--user", metavar="NAME", help="Server: user name (basic authentication).")
    @click.option("--password-file", type=PATH, metavar="FILE", help="Server: file with the password.")
    @click.option("--bearer-file", type=PATH, metavar="FILE", help="Server: file with a bearer token.")
    @click.option("--ca", type=PATH, metavar="FILE", help="Server: certificate authority to trust (PEM).")
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        names = ServerWishes.__struct_fields__
        wishes = ServerWishes(**{name: given.pop(name) for name in names})
        return command(wishes=wishes, **given)

    return inner


def pull_from(screen: Screen, lake: Lake, address: str, wishes: ServerWishes, said: Given) -> ImportResult:
    """Import from a server; with --follow until the user stops it."""
    from gpuledger.lake.pulling import pull
    from gpuledger.telemetry.servers.address import api_root
    from gpuledger.telemetry.servers.prometheus import Prometheus
    from gpuledger.telemetry.servers.web import Access, Web

    def waiting(seconds: float, why: str) -> None:
        screen.say(f"{why}; trying again in {seconds:.0f} s", err=True)

    access = Access(wishes.headers(), wishes.user or "", wishes.password_file, wishes.bearer_file, wishes.ca)
    server = Prometheus(Web(api_root(address), access, waiting=waiting), wishes.step)

    def once(since_ms: int | None) -> ImportResult:
        with screen.stages() as stages:
            tick = stages.start("minutes imported")
            return pull(
                lake, server, since_ms=since_ms, until_ms=wishes.until, delay_ms=wishes.delay,
                given=said, progress=lambda done_ms, _points: tick(done_ms // MS_PER_MINUTE),
            )  # fmt: skip

    result = once(wishes.since)
    stop = _Stop()
    try:
        while wishes.follow and not stop.asked:
            screen.say(
                f"{result.rows_added} rows added; next in {wishes.poll / MS_PER_S:.0f} s (Ctrl-C ends)", err=True
            )
            time.sleep(wishes.poll / MS_PER_S)
            try:
                result = _sum(result, once(None))
            except ServerFault as fault:
                screen.say(f"{fault.message}; going on", err=True)
    except KeyboardInterrupt:
        stop.asked = True
    finally:
        stop.restore()
    if stop.asked:
        screen.say("stopped; the same command goes on from here", err=True)
    return result


class _Stop:
    """Remembers Ctrl-C: Python loses an interrupt that comes while it clears away an object."""

    def __init__(self) -> None:
        self.asked = False
        self._before = signal.signal(signal.SIGINT, self._interrupted)

    def _interrupted(self, _number: int, _frame: object) -> None:
        self.asked = True
        raise KeyboardInterrupt

    def restore(self) -> None:
        """Handle it as before."""
        signal.signal(signal.SIGINT, self._before)


def _sum(first: ImportResult, second: ImportResult) -> ImportResult:
    from gpuledger.lake.pulling import add_results

    add_results(first, second)
    return first

"""Can I watch the fleet in a browser?"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gpuledger.cli.carbon_options import carbon_options
from gpuledger.cli.options import Pause, lake_option
from gpuledger.cli.price_options import inventory_option, price_of
from gpuledger.errors import GpuledgerError, InputError, MissingExtra

MOST_FILES = 65_536


@click.command("serve")
@lake_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8200, show_default=True, help="Port; 0 takes a free one."
)
@click.option("--token", help="Ask viewers for this token; made up if --host is not this machine alone.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A host name viewers use; repeatable.")
@click.option("--last", default="", metavar="LENGTH", help="Window pages start with (7d, 24h).  [default: all]")
@click.option(
    "--every", "every_ms", type=Pause("0.1s", "1h"), metavar="LENGTH", default="2s", show_default=True,
    help="Time between looks for new samples (5, 5s, 2m).",
)  # fmt: skip
@inventory_option
@carbon_options
@click.option("--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeatable.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    lake_dir: Path, host: str, port: int, token: str | None, names: tuple[str, ...], last: str, every_ms: int,
    inventory: tuple[Path, ...], prices: tuple[str, ...], quiet: bool, carbon: dict[str, Any],
) -> None:  # fmt: skip
    """Serve a live dashboard, a JSON API and metrics of a lake.

    Read-only. On this machine alone no token is needed; bound elsewhere a token is asked for, and printed here.
    """
    from gpuledger.lake.layout import Lake
    from gpuledger.times import length_ms
    from gpuledger.web.contract import Filters, Where
    from gpuledger.web.maker import MakerProcess, Start

    if last:
        length_ms(last)
    alone = _alone(host)
    token = token or (None if alone else secrets.token_urlsafe(24))
    with _listening(host, port) as listening:
        price = price_of(prices)
        paid = dict(price) if isinstance(price, Mapping) else price
        file = carbon["carbon_file"]
        where = Where(carbon["cloud"], carbon["at"], str(file.resolve()) if file else "")
        start = Start(str(lake_dir), Filters(last=last), 0, tuple(map(str, inventory)), paid, where)
        maker = MakerProcess(start)  # it loads what it needs while the server does
        try:
            import uvicorn

            from gpuledger.web.app import create_app
        except ModuleNotFoundError as error:
            maker.close()
            if error.name not in {"fastapi", "uvicorn"}:
                raise
            raise MissingExtra("the dashboard", "web") from error
        maker.check()
        _allow_viewers()
        bound = listening.getsockname()[1]
        app = create_app(maker, token=token, hosts=_hosts(host, names), every_s=every_ms / 1000, stale_ms=_stale_ms())
        if not quiet:
            shown = host if alone or names else socket.gethostname()
            address = f"http://{names[0] if names else shown}:{bound}/"
            click.echo(f"Dashboard of {lake_dir}: {address}{f'?token={token}' if token else ''}")
            click.echo("Stop with Ctrl-C.")
            with contextlib.suppress(GpuledgerError):  # a bucket that is away: the pages show it
                if not Lake(lake_dir).exists():
                    click.echo(f"{lake_dir}: no lake was found here yet; pages fill once it has samples.", err=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])


def _stale_ms() -> int | None:
    """From when on pages show how old the newest sample is: the limit of the alert, if that is on."""
    from gpuledger.live.alerts.limits import LAYER
    from gpuledger.units import MS_PER_MIN

    limits = LAYER.load().rules["stale"]
    return int(limits.fire * MS_PER_MIN) if limits.on else None


def _allow_viewers() -> None:
    """Let a thousand viewers in: each holds a file open, and many shells allow 1,024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, max(soft, MOST_FILES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _alone(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _hosts(host: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names viewers may use: those given and, bound elsewhere than to this machine alone, its own."""
    own = () if _alone(host) else (socket.gethostname(), socket.getfqdn())
    return (*names, host, *own)


def _listening(host: str, port: int) -> socket.socket:
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server((host, port), family=kind[0], backlog=1024)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms for its last piece
    except OSError as error:
        wrong_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        hint = "choose another with --port, or 0 for a free one"
        if wrong_host:
            hint = "give --host an address of this machine: 0.0.0.0 for all it has, 127.0.0.1 for itself alone"
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}", hint=hint) from error
    return made

"""Can I watch the fleet in a browser?"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from pathlib import Path
from typing import Any

import click

from gpuledger.cli.options import lake_option
from gpuledger.cli.price_options import inventory_option, price_of
from gpuledger.errors import InputError, MissingExtra


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
    "--every",
    "every_s",
    type=click.FloatRange(0.1),
    default=2.0,
    show_default=True,
    help="Seconds between looks for new samples.",
)
@inventory_option
@click.option("--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeatable.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    lake_dir: Path, host: str, port: int, token: str | None, names: tuple[str, ...], last: str, every_s: float,
    inventory: tuple[Path, ...], prices: tuple[str, ...], quiet: bool,
) -> None:  # fmt: skip
    """Serve a live dashboard, a JSON API and metrics of a lake.

    Read-only. On this machine alone no token is needed; bound elsewhere a token is asked for, and printed here.
    """
    from gpuledger.times import length_ms

    try:
        import uvicorn

        from gpuledger.web.app import create_app
    except ModuleNotFoundError as error:
        if error.name not in {"fastapi", "uvicorn"}:
            raise
        raise MissingExtra("the dashboard", "web") from error
    from gpuledger.web.live_lake import Filters, LiveLake

    if last:
        length_ms(last)
    terms: dict[str, Any] = {"inventory": list(inventory) or None, "price": price_of(prices)}
    alone = _alone(host)
    token = token or (None if alone else secrets.token_urlsafe(24))
    live = LiveLake(lake_dir, Filters(last=last), **terms)
    with _listening(host, port) as listening:
        bound = listening.getsockname()[1]
        app = create_app(live, token=token, hosts=_hosts(host, names), every_s=every_s)
        if not quiet:
            shown = host if alone or names else socket.gethostname()
            address = f"http://{names[0] if names else shown}:{bound}/"
            click.echo(f"Dashboard of {lake_dir}: {address}{f'?token={token}' if token else ''}")
            click.echo("Stop with Ctrl-C.")
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])


def _alone(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _hosts(host: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names viewers may use: those given, else this machine's own and its addresses."""
    if names:
        return (*names, host)
    if _alone(host):
        return (host,)
    here = socket.gethostname()
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(here, None)}
    except OSError:
        found = set()
    return (host, here, *sorted(found), *(["*"] if host in {"0.0.0.0", "::"} else []))  # noqa: S104  (compared only)


def _listening(host: str, port: int) -> socket.socket:
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server((host, port), family=kind[0], backlog=512)
    except OSError as error:
        hint = "choose another with --port, or 0 for a free one"
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}", hint=hint) from error
    return made

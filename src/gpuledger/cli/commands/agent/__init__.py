"""How do the GPUs of a fleet get into one lake? One agent per host; its other commands are modules here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gpuledger.cli.app import CommandFolder
from gpuledger.cli.options import PATH, Pause, device_option, label_option, labels_of, lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.times import length_ms

SPOOL = Path("gpuledger-spool")

spool_option = click.option(
    "--spool", type=PATH, default=SPOOL, show_default=True, help="Folder where samples wait until they are shipped."
)


@click.command("agent")
@lake_option
@spool_option
@click.option("--spool-max", default="2GiB", show_default=True, metavar="SIZE",
              help="When the spool reaches this size, the oldest samples are dropped and counted.")  # fmt: skip
@click.option("--hz", type=float, default=1.0, show_default=True, help="Readings per second.")
@click.option("--every", "every_ms", type=Pause("1s", "1h"), metavar="LENGTH", default="60s", show_default=True,
              help="Time between shipments; for more than about 60 hosts per lake give 10m.")  # fmt: skip
@click.option("--grace", "grace_ms", type=length_ms, metavar="LENGTH", default="25s", show_default=True,
              help="Time the last shipment may take when the agent is stopped.")  # fmt: skip
@click.option("--listen", metavar="HOST:PORT", help="Answer /healthz and /metrics here; off unless given.")
@click.option("--once", is_flag=True, help="Ship what the spool holds and end, without recording: for a Slurm epilog.")
@label_option
@device_option
@screen_options
def _run(screen: Screen, lake_dir: Path, spool: Path, labels: tuple[str, ...], once: bool, **how: Any) -> int:
    context = click.get_current_context()
    if context.invoked_subcommand:
        if any(context.get_parameter_source(p) is ParameterSource.COMMANDLINE for p in context.params):
            sub = context.invoked_subcommand
            raise InputError(f"options before {sub!r} are not its own", hint=f"write: gpuledger agent {sub} ...")
        return 0
    from gpuledger.agent.listening import address_of
    from gpuledger.agent.running import Agent, Settings, ship_once
    from gpuledger.units import count, size_bytes

    listen = address_of(how["listen"]) if how["listen"] else None
    settings = Settings(
        lake=str(lake_dir),
        spool=spool,
        spool_max=size_bytes(how["spool_max"]),
        hz=how["hz"],
        every_s=how["every_ms"] / 1000,
        grace_s=how["grace_ms"] / 1000,
        device=how["device"],
        labels=labels_of(labels),
        listen=listen,
    )

    def say(words: str) -> None:
        screen.say(*words.splitlines(), err=True)

    notes = ship_once(settings, say) if once else Agent(settings, say).run()
    import msgspec

    screen.answer(msgspec.to_builtins(notes))
    screen.say(
        f"{count(notes.shipped_rows, 'sample')} shipped to {lake_dir} so far, {notes.waiting_rows:,} waiting, "
        f"{notes.lost_rows:,} lost"
    )
    return 0


command = CommandFolder(
    __name__,
    name="agent",
    help="Record the GPUs of this host and ship samples to a lake.",
    invoke_without_command=True,
    callback=_run.callback,
    params=_run.params,
)

"""Is the agent of this host well, and which hosts ship to a lake?"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import click

from gpuledger.cli.commands.agent import SPOOL
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError


@click.command("status")
@click.option("--spool", type=PATH, default=SPOOL, show_default=True, help="Spool of the agent on this host.")
@click.option("--lake", "lake_dir", type=PATH, help="Show every host that ships to this lake instead.")
@screen_options
def command(screen: Screen, spool: Path, lake_dir: Path | None) -> int:
    """Show what an agent recorded, shipped, keeps and lost.

    Exit 1 if it does not take samples. With --lake: all hosts as of their last shipment; exit 1 if one is silent.
    """
    import msgspec

    from gpuledger.agent.notes import read_agents
    from gpuledger.agent.status import status_of
    from gpuledger.lake.layout import Lake
    from gpuledger.units import count

    now_ms = time.time_ns() // 1_000_000
    if lake_dir is not None:
        lake = Lake(lake_dir)
        lake.require()
        found, broken = read_agents(lake)
        if not found and not broken:
            raise InputError(f"no agent has shipped to {lake_dir} yet", hint=f"gpuledger agent --lake {lake_dir}")
        problems = [n.host for n in found if n.is_silent(now_ms)]
    else:
        here, broken = status_of(spool), []
        if here is None:
            raise InputError(f"no agent has run with the spool {spool}", hint="give its --spool, or start one")
        found = [here]
        problems = [here.host] if here.unwell(now_ms) else []
    screen.answer(
        {"now_ms": now_ms, "unwell": problems, "agents": msgspec.to_builtins(found)}
        | ({"unreadable": [error.message for error in broken]} if broken else {})
    )
    on_host = Counter(notes.host for notes in found)
    shown = [notes for notes in found if lake_dir is None or not notes.is_past(now_ms)]
    for notes in shown:
        several = on_host[notes.host] > 1
        screen.say(*(notes.words(now_ms) if lake_dir is None else [notes.line(now_ms, one_of_several=several)]))
    if len(shown) < len(found):
        screen.say(f"{count(len(found) - len(shown), 'more agent')} stopped over a day ago, all samples shipped")
    if lake_dir is not None and problems:
        screen.say(f"silent for more than 15 min and two of their shipments: {', '.join(problems)}")
    for error in broken:
        screen.say(*str(error).splitlines())
    return 1 if problems or broken else 0

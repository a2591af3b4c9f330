"""Is a configuration right, and where not?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.units import count


@click.command("check")
@click.argument("folder", type=PATH, required=False)
@screen_options
def command(screen: Screen, folder: Path | None) -> int:
    """Check a configuration and list each error with valid values.

    Exits 2 if there is an error. Without FOLDER, checks the built-in reference.
    """
    from gpuledger.plan.guide.config import examine

    config, faults = examine(folder)
    found = [{"error": f.message, "next": f.hint} for f in faults]
    notes = list(config.notes) if config else []
    where = str(folder or "the shipped reference")
    screen.answer({"where": where, "sound": not faults, "faults": found, "notes": notes})
    for fault in faults if not screen.as_json else ():
        tell(fault.message, fault.hint)
    if config is not None:
        counted = (
            f"{count(len(config.instances), 'instance')}, {count(len(config.sizes), 'model size')}, "
            f"{count(len(config.workloads), 'workload')}, {count(len(config.sets), 'set')}"
        )
        screen.say(f"{where}: sound: {counted}", *(f"note: {n}" for n in notes))
    return BAD_INPUT if faults else 0

"""Is a configuration right, and where not?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.failures import BAD_INPUT, tell
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.units import count

if TYPE_CHECKING:
    from gpuledger.plan.guide.effects import Unused


@click.command("check")
@click.argument("folder", type=PATH, required=False)
@screen_options
def command(screen: Screen, folder: Path | None) -> int:
    """Check a configuration and list each error with valid values.

    Exits 2 if there is an error. Values that change no plan are listed with what is used in their place. Without
    FOLDER, checks the built-in reference.
    """
    from gpuledger.plan.guide.config import examine
    from gpuledger.plan.guide.effects import unused

    config, faults = examine(folder)
    found = [{"error": f.message, "next": f.hint} for f in faults]
    notes = list(config.notes) if config else []
    idle = unused(config) if config else ()
    where = str(folder or "the shipped reference")
    answer = {
        "where": where,
        "sound": not faults,
        "faults": found,
        "notes": notes,
        "unused": [vars(one) for one in idle],
    }
    screen.answer(answer)
    for fault in faults if not screen.as_json else ():
        tell(fault.message, fault.hint)
    if config is not None:
        counted = (
            f"{count(len(config.instances), 'instance')}, {count(len(config.sizes), 'model size')}, "
            f"{count(len(config.workloads), 'workload')}, {count(len(config.sets), 'set')}"
        )
        screen.say(f"{where}: sound: {counted}", *(f"note: {n}" for n in notes), *_no_effect(idle))
    return BAD_INPUT if faults else 0


def _no_effect(idle: Sequence[Unused]) -> list[str]:
    """The user's own values one by one, the shipped ones in one line."""
    lines = [f"note: {one}" for one in idle if one.yours]
    if shipped := [one.field.split(".") for one in idle if not one.yours]:
        names, instances = dict.fromkeys(f[-1] for f in shipped), dict.fromkeys(f[1] for f in shipped)
        gpus = count(len(instances), "shipped instance")
        lines.append(f"note: {', '.join(names)} of {gpus} have no effect on plans: the catalog has their GPUs")
    return lines

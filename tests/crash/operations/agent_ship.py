"""An agent ships what it has recorded: batches leave the spool when the lake has them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from crash.faults import LAKE
from crash.operations import Operation, gpuledger, record
from crash.processes import Commands

# The mark of the lake is in its name too, so that calls on the spool count.
SPOOL = f"{LAKE}-spool"


def prepare(commands: Commands, folder: Path, _data: Path) -> None:
    argv = record.argv(folder)
    done = commands.run([*argv[:2], f"{SPOOL}/live", *argv[3:]], folder)
    assert done.code == 0, str(done)


def argv(_data: Path) -> list[str]:
    return gpuledger("agent", "--once", "--spool", SPOOL, "-q")


operation = Operation("agent, ship", argv, prepare) if find_spec("gpuledger.agent") else None

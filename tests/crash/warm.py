"""How does a process that has gpuledger loaded become one of its commands?"""

from __future__ import annotations

import ctypes
import os
import runpy
import sys
from pathlib import Path


def become(argv: list[str], folder: str, answer: str, control: str, library: str) -> None:
    """Be a command in a process group of its own: `gpuledger ...`, or `python FILE ...`."""
    os.setsid()
    os.chdir(folder)
    for name, number in (("stdout", 1), ("stderr", 2)):
        with Path(f"{answer}.{name}").open("w") as out:
            os.dup2(out.fileno(), number)
    if control:
        os.environ["CRASH_CONTROL"] = control  # for processes that the command starts
        if ctypes.CDLL(library).crash_load(control.encode()):
            raise OSError(f"cannot load {control}")
    if argv[0] == "python":
        sys.argv = argv[1:]
        runpy.run_path(argv[1], run_name="__main__")
        return
    from gpuledger.cli import main

    sys.argv = argv
    sys.exit(main())


def nothing() -> None:
    """End at once: the first process starts the server that forks."""

"""Which of the other tools does a Python have, in which version, and how does it start their commands?"""

from __future__ import annotations

import functools
import json
import subprocess

ASK = """
import importlib.metadata as m, json, sys
try:
    dist = m.distribution(sys.argv[1])
    found = {e.name: e.value for e in dist.entry_points if e.group == "console_scripts"}
    print(json.dumps([dist.version, found]))
except m.PackageNotFoundError:
    print(json.dumps(["", {}]))
"""


@functools.cache
def _of(package: str, python: str) -> tuple[str, dict[str, str]]:
    done = subprocess.run([python, "-c", ASK, package], capture_output=True, text=True, check=True)
    version, commands = json.loads(done.stdout)
    return version, commands


def version_of(package: str, python: str) -> str:
    """The version of a package there, or nothing."""
    return _of(package, python)[0]


def command_of(package: str, name: str, python: str) -> list[str] | None:
    """What the package's installed command runs, started with this Python; nothing where it is not installed."""
    entry = _of(package, python)[1].get(name)
    if entry is None:
        return None
    module, _, function = entry.partition(":")
    start = f"import sys; from {module} import {function} as main; sys.argv[0] = {name!r}; sys.exit(main())"
    return [python, "-c", start]

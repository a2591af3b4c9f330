"""What does gpuledger answer about this telemetry, asked as a user asks: import, analyze, audit, tidy?"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class CommandFailed(Exception):
    """A command that did not end with exit code 0; the message holds what it printed."""


def gpuledger(*args: str) -> str:
    """Run one command of the command line in this process and return what it printed."""
    from gpuledger.cli import main

    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    try:
        sys.argv = ["gpuledger", *args]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main()
    finally:
        sys.argv = given
    if code:
        raise CommandFailed(f"gpuledger {' '.join(args)}: exit code {code}: {err.getvalue()}{out.getvalue()}".strip())
    return out.getvalue()


def ask(*args: str) -> Json:
    """A command's --json answer."""
    found: Json = json.loads(gpuledger(*args, "--json"))
    return found


def take_in(lake: Path, telemetry: Path) -> Json:
    """Import a file; a rejected row is a failure here, because every row is known to be sound."""
    return ask("import", str(telemetry), "--lake", str(lake), "--map", "dcgm", "--fail-on", "rejects")

"""What does the user read when something went wrong?

Two lines on stderr: what happened and where, and what to do next. With --json the same as one JSON object, still on
stderr, so that stdout is either one whole answer or empty. GPULEDGER_DEBUG=1 adds the traceback.
"""

from __future__ import annotations

import os
import re
import sys

import click

from gpuledger.errors import GpuledgerError, map_os_error
from gpuledger.plain_text import json_text, visible

BAD_INPUT = 2
BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


def explain(error: BaseException, *, as_json: bool) -> int:
    """Say on stderr what went wrong; returns the exit code."""
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has enough of it. Python would complain when it flushes at exit: give it a void.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit) and isinstance(error.code, int | None):
        return error.code or 0
    message, hint, code = _words(error)
    if os.environ.get("GPULEDGER_DEBUG"):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    if as_json:
        said = {"error": _one_line(message), "next": _one_line(hint), "exit_code": code}
        click.echo(json_text(said), err=True)
    else:
        tell(message, hint)
    return code


def tell(message: str, hint: str = "") -> None:
    """What happened and the next step, on stderr; control characters in them are written out."""
    click.echo(f"error: {visible(_one_line(message))}", err=True)
    if hint:
        click.echo(f"next: {visible(_one_line(hint))}", err=True)


def _one_line(text: str) -> str:
    """The text without the line breaks of the library it came from."""
    return " ".join(part for part in re.split(r"[ \n]+", text) if part)


def _words(error: BaseException) -> tuple[str, str, int]:
    """What happened, the next step, and the exit code."""
    if isinstance(error, GpuledgerError):
        return error.message, error.hint, error.exit_code
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "interrupted", "run the same command again; what was committed before is safe", INTERRUPTED
    if isinstance(error, MemoryError):
        return "out of memory", "close other programs, or take fewer files at a time", BAD_INPUT
    if isinstance(error, OSError):
        mapped = map_os_error(error, error.filename or "output", "read or write")
        return mapped.message, mapped.hint, mapped.exit_code
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return (
        f"this is a bug in gpuledger: {what}",
        "run it again with GPULEDGER_DEBUG=1 to see the traceback, and report that",
        BUG,
    )


def _usage(error: click.ClickException) -> tuple[str, str, int]:
    """A command line that does not parse, in our two lines."""
    message = error.format_message().rstrip(".")
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "gpuledger"
    return message[:1].lower() + message[1:], f"see {path} --help", BAD_INPUT

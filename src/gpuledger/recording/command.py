"""How is a command recorded from its start to its end?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.devices.attribution import command_name
from gpuledger.devices.clock import Clock
from gpuledger.devices.device import Source
from gpuledger.devices.process_tree import RUN_VARIABLE
from gpuledger.errors import DeviceError, GpuledgerError, InputError, MissingExtra
from gpuledger.plain_text import visible
from gpuledger.recording.child import OUR_FAILURE, CannotStart, Relay, check_command
from gpuledger.recording.record import DEFAULT_LAKE, Recording
from gpuledger.recording.runs import RunNotes

Say = Callable[[str], None]


@dataclass(frozen=True)
class CommandRun:
    """A command that was run: its exit code as a shell would see it, and the notes of its recording, if any."""

    exit_code: int
    notes: RunNotes | None
    problem: str = ""


def to_stderr(words: str) -> None:
    """Say something beside the command's own output."""
    sys.stderr.write(f"gpuledger: {visible(words, lines=True)}\n")
    sys.stderr.flush()


def run_command(
    argv: Sequence[str],
    lake: str | Path = DEFAULT_LAKE,
    *,
    hz: float = 10.0,
    labels: Mapping[str, str] | None = None,
    device: str | Source = "nvml",
    flush_s: float = 10.0,
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
    say: Say = to_stderr,
) -> CommandRun:
    """Run a command with the GPUs recorded; output, signals and exit code pass through.

    127: there is no such command; 126: it cannot be run; 125: we cannot record where we were told to. Without a GPU or
    a driver the command still runs, and a message says that nothing is recorded.
    """
    if not argv:
        raise InputError("no command was given", hint="gpuledger record -- COMMAND ...")
    try:
        check_command(argv)
    except CannotStart as error:
        return _failed(error.exit_code, str(error), say)
    surroundings = dict(os.environ if environ is None else environ)
    with Relay() as relay:
        recording, problem = None, ""
        try:
            recording = Recording(
                lake,
                hz=hz,
                labels=labels,
                device=device,
                flush_s=flush_s,
                program=command_name(argv),
                environ=surroundings,
                clock=clock,
                around_command=True,
            )
            with relay.held_back():
                recording.start()
        except (DeviceError, MissingExtra) as error:
            problem = str(error)
            say(f"NOT RECORDING: {error}\n  the command runs all the same")
        except GpuledgerError as error:
            return _failed(OUR_FAILURE, f"{error}\n  the command was not started", say)
        try:
            code = _run(relay, argv, surroundings, recording)
        except CannotStart as error:
            _finish(recording, error.exit_code, say)
            return _failed(error.exit_code, str(error), say)
        return CommandRun(code, _finish(recording, code, say), problem)


def _run(relay: Relay, argv: Sequence[str], surroundings: dict[str, str], recording: Recording | None) -> int:
    """Run the command, and look who holds the GPUs as it starts and as it ends."""
    if recording is None:
        return relay.run(argv, surroundings)
    marked = {**surroundings, RUN_VARIABLE: recording.run_id}
    return relay.run(argv, marked, started=recording.follow, ending=recording.look)


def _failed(code: int, problem: str, say: Say) -> CommandRun:
    say(problem)
    return CommandRun(code, None, problem)


def _finish(recording: Recording | None, code: int, say: Say) -> RunNotes | None:
    """End the recording; whatever goes wrong now must not change the command's exit code."""
    if recording is None:
        return None
    try:
        notes = recording.stop(code)
    except GpuledgerError as error:
        say(str(error))
        return recording.notes()
    for words in notes.words():
        say(words)
    return notes

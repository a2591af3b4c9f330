"""How are the GPUs of this machine recorded, alone or while a command runs?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import device_option, hz_option, label_option, labels_of, lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.units import count

if TYPE_CHECKING:
    from gpuledger.recording.runs import RunNotes


MOST_S = 366 * 86_400


@click.command("record", context_settings={"allow_interspersed_args": False})
@lake_option
@hz_option
@click.option(
    "--duration", type=float, metavar="SECONDS", help="Stop after this many seconds; default: run until Ctrl-C."
)
@label_option
@device_option
@click.argument("argv", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
@screen_options
def command(
    screen: Screen, lake_dir: Path, duration: float | None, labels: tuple[str, ...], argv: tuple[str, ...], **how: Any
) -> int:
    """Record GPU telemetry until Ctrl-C or while a command runs.

    A command's output, signals and exit code pass through. Exit 127 means the command was not found, 126 that it cannot
    be run, 125 that recording could not start (lake or label). Without a GPU the command still runs.
    """
    if argv:
        return _around(screen, argv, lake_dir, duration, labels, how)
    from gpuledger.recording.command import wait_for_end
    from gpuledger.recording.record import Recording

    if duration is not None and not 0 < duration <= MOST_S:
        hint = "give seconds above 0 and up to a year; without --duration Ctrl-C stops"
        raise InputError(f"cannot record for {duration:g} s", hint=hint)
    with Recording(lake_dir, labels=labels_of(labels), of_job=False, **how) as run:
        if screen.talks:
            length = f"for {duration:g} s" if duration else "until Ctrl-C"
            click.echo(f"recording {count(len(run.devices), 'device')} at {how['hz']:g} Hz {length}", err=True)
        wait_for_end(duration)
    notes = run.notes()
    screen.answer(figures(notes, lake_dir))
    if screen.talks:
        screen.say(*words(notes, lake_dir))
    return 0


def _around(
    screen: Screen, argv: tuple[str, ...], lake_dir: Path, duration: float | None, labels: tuple[str, ...],
    how: dict[str, Any],
) -> int:  # fmt: skip
    from gpuledger.errors import GpuledgerError
    from gpuledger.recording.command import OUR_FAILURE, run_command, to_stderr

    try:
        if duration is not None:
            raise InputError("--duration and a command both set the end", hint="leave --duration out")
        given = labels_of(labels)
    except GpuledgerError as error:
        to_stderr(f"{error}\n  the command was not started")
        return OUR_FAILURE
    done = run_command(argv, lake_dir, labels=given, **how)
    if done.notes is not None:
        screen.answer({**figures(done.notes, lake_dir), "exit_code": done.exit_code})
        if screen.talks:
            for line in words(done.notes, lake_dir):
                to_stderr(line)
    else:
        screen.answer({"exit_code": done.exit_code, "run_id": None, "recorded": False, "problem": done.problem})
    return done.exit_code


def figures(notes: RunNotes, lake_dir: Path) -> dict[str, Any]:
    """The notes of a recording as plain figures."""
    import msgspec

    return {"recorded": True, "lake": str(lake_dir), "seconds": notes.seconds, **msgspec.to_builtins(notes)}


def words(notes: RunNotes, lake_dir: Path) -> list[str]:
    """The notes of a recording in a few lines."""
    cpu = notes.sampler_cpu_s + notes.writer_cpu_s
    share = 100 * cpu / notes.seconds / max(1, len(notes.devices)) if notes.seconds else 0.0
    what = f"{count(notes.rows, 'sample')} of {count(len(notes.devices), 'device')} in {notes.seconds:.1f} s"
    lines = [
        f"recorded {what} -> {lake_dir} (run {notes.run_id})",
        f"cost of recording: {cpu:.2f} s of CPU, {share:.2f} % of a core per device",
    ]
    for device in notes.devices:
        if device.util_period_s:
            lines.append(
                f"{device.device}: utilization is refreshed every {device.util_period_s:.2f} s; "
                f"{device.repeats_left_out} repeated readings omitted"
            )
        if device.missing:
            lines.append(f"{device.device}: unknown here: {', '.join(sorted(device.missing))} (why: see the notes)")
    return lines

"""What did it cost, what of it was wasted, and what should be changed first?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.analysis import books, jobs_option, reading_options, zone_named
from gpuledger.cli.options import (
    PATH,
    REPORT,
    by_option,
    device_option,
    engine_option,
    full_option,
    hz_option,
    label_option,
    labels_of,
    lake_option,
    screen_options,
    statement_options,
)
from gpuledger.cli.price_options import inventory_option
from gpuledger.cli.screen import Screen
from gpuledger.errors import GpuledgerError, InputError
from gpuledger.plain_text import visible

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.lake.taking import Reading
    from gpuledger.ledger.read.window import Window
    from gpuledger.recording.command import CommandRun
    from gpuledger.recording.runs import RunNotes
    from gpuledger.report.document import Document

FAILED = 1


@dataclass(frozen=True)
class Around:
    """How a command is recorded."""

    argv: tuple[str, ...]
    hz: float
    labels: tuple[str, ...]
    device: str


class AuditCommand(click.Command):
    """Tells words after a bare `--`, which are a command to record, from files before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words after `--` apart."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta["argv"] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])


@click.command("audit", cls=AuditCommand)
@click.argument("files", metavar="[FILE]... [-- CMD...]", nargs=-1)
@lake_option
@inventory_option
@click.option(
    "--price", "prices", multiple=True, metavar="[GPU=]USD",
    help="Dollars per GPU-hour; repeat for each GPU. A price in the inventory comes first, a list price last.",
)  # fmt: skip
@click.option("--instance", metavar="NAME", help="Price the GPUs as in this instance type, such as p5.48xlarge.")
@click.option("--region", metavar="NAME", help="Region of --instance, such as us-east-1.")
@click.option("--teams", type=PATH, help="TOML file that assigns namespaces to teams.")
@statement_options
@by_option
@click.option("--previous", is_flag=True, help="Compare with the preceding period of the same length.")
@click.option("--usd-per-kwh", metavar="USD", help="Energy price; shown next to the bill, never added to it.")
@click.option("--limits", "limits_file", type=PATH, help="TOML file with the limits at which advice applies.")
@click.option(
    "--out",
    type=REPORT,
    help="Folder for audit.html, its Markdown and JSON versions, charts and CSVs; or FILE.csv, FILE.xlsx.",
)
@click.option("--fail-on", metavar="NAME>PCT", help="Exit 1 if waste or a bucket exceeds this percentage: 'waste>40'.")
@hz_option
@label_option
@device_option
@reading_options
@jobs_option
@engine_option
@full_option
@screen_options
def command(
    screen: Screen, chosen: Window, files: tuple[str, ...], lake_dir: Path, out: Path | None, fail_on: str | None,
    hz: float, labels: tuple[str, ...], device: str, reading: Callable[[], Reading], full: bool,
    tables: tuple[Path, ...], **given: Any,
) -> int:  # fmt: skip
    """Price the waste and recommend what to change first.

    Audit the lake; with FILEs, these files alone, without a lake. With a command, record it and audit that run; its
    output, signals and exit code pass through.
    """
    argv: tuple[str, ...] = click.get_current_context().meta["argv"]
    if argv and files:
        raise InputError("files and a command to record were both named", hint="audit one of them at a time")
    if argv and tables:
        raise InputError(
            "--jobs goes with files", hint=f"gpuledger jobs {tables[0]} --lake {lake_dir} adds it to a lake"
        )
    if argv:
        around = Around(argv, hz, labels, device)
        return _around(screen, around, lake_dir, out, chosen, fail_on, full, given)
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.auditing import FailOn, audit_lake, wanted
    from gpuledger.cli.given_files import given_files
    from gpuledger.cli.showing import write_files
    from gpuledger.efficiency.snapshot import Snapshot
    from gpuledger.report.documents.audit import audit_document
    from gpuledger.report.documents.snapshot import snapshot_document
    from gpuledger.telemetry.formats import Kind

    kinds, limits = given_files(files, reading().mapping is not None), load_thresholds()
    if kinds.alone:
        kinds.show(kinds.documents(zone_named()), out, screen, full=full)
        return 0
    zone = kinds.used_as(screen, zone_named(), Kind.JOBS, Kind.INVENTORY)
    given["inventory"], tables = (*given["inventory"], *kinds.of(Kind.INVENTORY)), (*tables, *kinds.of(Kind.JOBS))
    asked, judge, files = wanted(lake_dir, **given), FailOn.parse(fail_on) if fail_on else None, kinds.samples
    of_files = (lake_dir, files, reading, chosen, limits, screen)
    with screen.stages() as stages, books(*of_files, stages, tables, zone=zone) as lake:
        audit = audit_lake(lake, chosen, asked, stages)
        document = snapshot_document(audit) if isinstance(audit, Snapshot) else audit_document(audit)
        written = write_files(document, out, screen, stages)
    failed = judge.verdict(audit if isinstance(audit, Snapshot) else audit.cost) if judge else ""
    _answer(screen, document, written, {"failed": failed or None}, full=full, err=False)
    if failed:
        click.echo(visible(f"failed: {failed}"), err=True)
    return FAILED if failed else 0


def _around(
    screen: Screen,
    around: Around,
    lake_dir: Path,
    out: Path | None,
    chosen: Window,
    fail_on: str | None,
    full: bool,
    given: dict[str, Any],
) -> int:
    """Record a command, then audit that run; the command's exit code is ours."""
    from gpuledger.cli.auditing import wanted
    from gpuledger.recording.command import OUR_FAILURE, run_command, to_stderr

    try:
        _only_the_run(chosen, fail_on, given)
        asked, labels = wanted(lake_dir, **given), labels_of(around.labels)
    except GpuledgerError as error:
        to_stderr(f"{error}\n  the command was not started")
        return OUR_FAILURE
    done = run_command(around.argv, lake_dir, hz=around.hz, labels=labels, device=around.device)
    if done.notes is None:
        screen.answer({"exit_code": done.exit_code, "run_id": None, "recorded": False, "problem": done.problem})
        screen.say("gpuledger: nothing was recorded, so there is nothing to audit", err=True)
        return done.exit_code
    try:
        _audit_of(screen, done, lake_dir, out, asked, full)
    except GpuledgerError as error:
        screen.answer({**_run(done), "problem": str(error)})
        to_stderr(f"no audit of this run: {error}")
    return done.exit_code


def _only_the_run(chosen: Window, fail_on: str | None, given: dict[str, Any]) -> None:
    """Refuse what would widen, narrow or judge the run: the command says when it begins, ends and fails."""
    if chosen or given["previous"]:
        raise InputError(
            "around a command the audit is of that run alone",
            hint="leave the window, the filters and --previous out; audit the lake afterwards with them",
        )
    if fail_on:
        raise InputError(
            "--fail-on and a command both set the exit code", hint="audit the lake afterwards with --fail-on"
        )


def _audit_of(screen: Screen, done: CommandRun, lake_dir: Path, out: Path | None, asked: Asked, full: bool) -> None:
    from gpuledger.cli.auditing import audit_run
    from gpuledger.cli.showing import write_files
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents.audit import audit_document

    assert done.notes is not None
    with screen.stages() as stages:
        document = audit_document(audit_run(Lake(lake_dir), done.notes, asked, stages))
        files = write_files(document, out, screen, stages)
    _answer(screen, document, files, _run(done), full=full, err=True)


def _run(done: CommandRun) -> dict[str, Any]:
    assert done.notes is not None
    return {
        "exit_code": done.exit_code,
        "run_id": done.notes.run_id,
        "recorded": True,
        "samples_recorded": done.notes.rows,
        "recording": _recording(done.notes),
    }


def _recording(notes: RunNotes) -> dict[str, Any]:
    """How long the run had each GPU, who else held it, and what the user should know about it."""
    import msgspec

    kept = ("device", "index", "owned", "run_s", "shared_s", "held_by", "holders_unknown")
    devices = [msgspec.to_builtins(d) for d in notes.devices]
    found = [{name: value for name, value in d.items() if name in kept} for d in devices]
    return {"seconds": notes.seconds, "devices": found, "notes": notes.words()}


def _answer(
    screen: Screen, document: Document, files: dict[str, str], more: dict[str, Any], *, full: bool, err: bool
) -> None:
    """One JSON object on stdout; or text, which leaves stdout to a command that has written there."""
    from gpuledger.cli.showing import show

    if screen.as_json:
        screen.answer({**document.data(), **more, "files": files})
    show(document, files, screen, full=full, err=err)

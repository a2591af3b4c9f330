"""How does telemetry get into the lake, and what is reported about it?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.analysis import Bars, reading_options, zone_named
from gpuledger.cli.options import PATH, engine_option, lake_option, screen_options
from gpuledger.cli.pulling import ServerWishes, pull_from, server_options
from gpuledger.cli.screen import Screen, Stages
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.lake.importing import ImportResult
    from gpuledger.lake.layout import Lake
    from gpuledger.lake.taking import Reading
    from gpuledger.report.document import Document
    from gpuledger.telemetry.explain import NotSamples

FOUND_PROBLEMS = 1


@click.command("import")
@click.argument("files", metavar="SRC...", nargs=-1, required=True)
@lake_option
@reading_options
@click.option("--explain", is_flag=True, help="Show how a file would be read, with its first rows; import nothing.")
@click.option("--write-map", type=PATH, metavar="PATH", help="With --explain: write a mapping file to start from.")
@click.option("--jobs", "tables", multiple=True, type=PATH, help="Job table to add (see gpuledger jobs); repeatable.")
@server_options
@engine_option
@click.option("--fail-on", type=click.Choice(["rejects"]), help="Exit 1 if any row was rejected.")
@screen_options
def command(
    screen: Screen,
    files: tuple[str, ...],
    lake_dir: Path,
    reading: Callable[[], Reading],
    explain: bool,
    write_map: Path | None,
    wishes: ServerWishes,
    tables: tuple[Path, ...],
    fail_on: str | None,
) -> int:
    """Import telemetry from files or a Prometheus server.

    SRC is a file, a folder, a quoted pattern, an s3://, gs:// or http(s):// address, or prometheus://HOST:PORT/PATH
    (prometheus+https:// for https): a Prometheus, Thanos, Mimir or VictoriaMetrics.

    The format of a file is recognized by its content: nvidia-smi (screens, -q, --query-gpu, dmon, pmon), dcgmi,
    amd-smi, rocm-smi, gpustat, nvtop, DCGM names or headers of your own in CSV and Parquet, pages of exporters, W&B,
    Zeus, nvitop; tables of jobs are added as jobs. Files of a folder that are not telemetry are named and passed over.

    The import of a server goes on where the last one stopped. Importing the same file again adds nothing. An
    invalid row is rejected, counted and kept in a rejects file. An invalid file stops the import and leaves the lake
    unchanged.
    """
    from gpuledger.cli.given_files import given_files
    from gpuledger.cli.showing import give
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents.jobs import import_document
    from gpuledger.telemetry.formats import Kind

    how = reading()
    if explain or write_map:
        _explain(screen, files, how, write_map)
        return 0
    kinds = given_files(files, how.mapping is not None)
    _check_tables(tables, zone_named())
    if kinds.alone:
        added = [_added(path, screen, lake_dir, zone_named() or "UTC") for path in (*tables, *kinds.of(Kind.JOBS))]
        kinds.show(kinds.documents(zone_named()), None, screen, *added)
        return 0
    tables, zone = (*tables, *kinds.of(Kind.JOBS)), kinds.used_as(screen, zone_named(), Kind.JOBS) or zone_named()
    _check_tables(tables, zone)
    result = _imported(screen, Lake(lake_dir), kinds.samples, how, wishes)
    document = import_document(result, lake_dir)
    give(_with_tables(document, screen, lake_dir, tables, zone) if tables else document, screen)
    if result.rows_rejected:
        screen.say(f"rejected rows, each with its file, row, column and value: {result.rejects_file}")
    where = "" if str(lake_dir) == "gpuledger-data" else f" --lake {lake_dir}"
    screen.say(f"next: gpuledger analyze{where} --out report")
    return FOUND_PROBLEMS if fail_on == "rejects" and result.rows_rejected else 0


def _check_tables(tables: tuple[Path, ...], zone: str | None) -> None:
    """Nothing is imported where a table cannot be read."""
    if tables:
        from gpuledger.lake.jobs.reading import read_jobs

        for table in tables:
            read_jobs(table, zone)


def _added(table: Path, screen: Screen, lake_dir: Path, zone: str) -> Document | str:
    """What adding a job table to the lake did; why it cannot be added, which its summary may do without."""
    from gpuledger.cli.job_tables import add_tables
    from gpuledger.errors import FileFault
    from gpuledger.report.documents.jobs import jobs_document

    try:
        with screen.stages() as stages:
            return jobs_document(*add_tables(lake_dir, [table], zone, stages), lake_dir)
    except FileFault as error:
        return f"not added to {lake_dir}: {error.message}"


def _with_tables(
    document: Document, screen: Screen, lake_dir: Path, tables: tuple[Path, ...], zone: str | None
) -> Document:
    """Add the tables; the document says so too."""
    from gpuledger.cli.job_tables import add_tables
    from gpuledger.report.documents.jobs import jobs_document, with_jobs

    with screen.stages() as stages:
        added = add_tables(lake_dir, tables, zone, stages)
    return with_jobs(document, jobs_document(*added, lake_dir))


def _imported(screen: Screen, lake: Lake, files: tuple[str, ...], how: Reading, wishes: ServerWishes) -> ImportResult:
    from gpuledger.lake.importing import import_files
    from gpuledger.telemetry.servers.address import is_server

    if any(is_server(src) for src in files):
        if len(files) > 1:
            raise InputError("a server is imported by itself", hint="name one server and no file")
        return pull_from(screen, lake, files[0], wishes, how.given)
    if wishes.given():
        raise InputError(f"{wishes.given()[0]} is for servers", hint="leave it out, or name prometheus://HOST")
    with screen.stages() as stages:
        bars = Bars(stages, _rows_expected(files, stages))
        return import_files(lake, files, zone=how.zone, mapping=how.mapping, given=how.given, progress=bars)


def _explain(screen: Screen, files: tuple[str, ...], how: Reading, write_map: Path | None) -> None:
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.explained import explained_document, not_samples_document
    from gpuledger.telemetry.explain import NotSamples, explain, explain_file
    from gpuledger.telemetry.starter import write_starter

    if len(files) != 1:
        raise InputError("--explain shows one file at a time", hint=f"gpuledger import --explain {files[0]}")
    path = Path(files[0])
    starter = explain(path, mapping=how.mapping, given=how.given, zone=how.zone) if write_map else None
    written = write_starter(starter, write_map) if starter and write_map else None
    found = explain_file(path, mapping=how.mapping, given=how.given, zone=how.zone)
    if isinstance(found, NotSamples):
        give(not_samples_document(_answered(found)), screen)
        return
    give(explained_document(found), screen, {"map": str(written)} if written else None)
    if written:
        screen.say(f"next: check {written}, then gpuledger import {path} --map {written}")
    elif found.problem:
        screen.say("to start a mapping file from this: add --write-map map.toml")


def _answered(found: NotSamples) -> NotSamples:
    """With the first line of the answer to it."""
    from gpuledger.cli.given_files import given_files

    (document,) = given_files((found.file,)).documents(zone_named())
    return replace(found, answer=document.headline)


def _rows_expected(files: tuple[str, ...], stages: Stages) -> int | None:
    """The rows of all files, where the files state it and a bar is shown; text, folders and addresses do not."""
    from gpuledger.telemetry.formats import open_source

    if not stages.shown or not all(Path(f).is_file() for f in files):
        return None
    found = [open_source(f).rows_expected for f in files]
    return sum(n for n in found if n is not None) if None not in found else None

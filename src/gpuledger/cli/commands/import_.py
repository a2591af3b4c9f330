"""How do files of telemetry get into the lake, and what is reported about them?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import PATH, lake_option, screen_options
from gpuledger.cli.screen import Screen, Stages, Tick
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.telemetry.mapping import Given, Mapping

FOUND_PROBLEMS = 1


@click.command("import")
@click.argument("files", metavar="SRC...", nargs=-1, required=True)
@lake_option
@click.option("--tz", "zone", default="UTC", show_default=True, help="Time zone of timestamps without one.")
@click.option(
    "--map",
    "map_name",
    help="Column names: a built-in layout (export36: 36-column DCGM export; dcgm) or a mapping file.",
)
@click.option(
    "--at",
    metavar="TIME",
    help="When the readings were taken or start, for a file without times; the day, for one with the time of day only.",
)
@click.option(
    "--every", metavar="LENGTH", help="How far readings of a GPU are apart, for a file without times (1s, 0.5s)."
)
@click.option("--host", metavar="NAME", help="Which host the files are from, where they do not say it.")
@click.option("--gpu-model", metavar="NAME", help="Which GPU the files are of, where they do not say it.")
@click.option("--explain", is_flag=True, help="Show how a file would be read, with its first rows; import nothing.")
@click.option("--write-map", type=PATH, metavar="PATH", help="With --explain: write a mapping file to start from.")
@click.option("--fail-on", type=click.Choice(["rejects"]), help="Exit 1 if any row was rejected.")
@screen_options
def command(
    screen: Screen,
    files: tuple[str, ...],
    lake_dir: Path,
    zone: str,
    map_name: str | None,
    at: str | None,
    every: str | None,
    host: str | None,
    gpu_model: str | None,
    explain: bool,
    write_map: Path | None,
    fail_on: str | None,
) -> int:
    """Import telemetry into the lake.

    SRC is a file, a folder, a quoted pattern, or an s3://, gs:// or http(s):// address. The kind of file is recognized
    by its content: CSV or Parquet with DCGM column names, nvidia-smi (--query-gpu, dmon, pmon), dcgmi dmon, amd-smi,
    rocm-smi, W&B system metrics, Zeus, nvitop. Files of a folder that are not telemetry are named and passed over.

    Importing the same file again adds nothing. An invalid row is rejected, counted and kept in a rejects file. An
    invalid file stops the import and leaves the lake unchanged.
    """
    from gpuledger.cli.showing import give
    from gpuledger.lake.importing import import_files
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents.imported import import_document
    from gpuledger.telemetry.mapping import given, load_mapping

    mapping = load_mapping(map_name) if map_name else None
    said = given(at=at, every=every, host=host, gpu_model=gpu_model)
    if explain or write_map:
        _explain(screen, files, mapping, said, zone, write_map)
        return 0
    with screen.stages() as stages:
        result = import_files(
            Lake(lake_dir), files, zone=zone, mapping=mapping, given=said, progress=_Bars(stages, files)
        )
    give(import_document(result, lake_dir), screen)
    if result.rows_rejected:
        screen.say(f"every rejected row, with its file, row, column and value: {result.rejects_file}")
    where = "" if str(lake_dir) == "gpuledger-data" else f" --lake {lake_dir}"
    screen.say(f"next: gpuledger analyze{where} --out report")
    return FOUND_PROBLEMS if fail_on == "rejects" and result.rows_rejected else 0


def _explain(
    screen: Screen, files: tuple[str, ...], mapping: Mapping | None, said: Given, zone: str, write_map: Path | None
) -> None:
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.explained import explained_document
    from gpuledger.telemetry.explain import explain
    from gpuledger.telemetry.starter import write_starter

    if len(files) != 1:
        raise InputError("--explain shows one file at a time", hint=f"gpuledger import --explain {files[0]}")
    found = explain(files[0], mapping=mapping, given=said, zone=zone)
    written = write_starter(found, write_map) if write_map else None
    give(explained_document(found), screen, {"map": str(written)} if written else None)
    if written:
        screen.say(f"next: check {written}, then gpuledger import {files[0]} --map {written}")
    elif found.problem or found.unused:
        screen.say("to start a mapping file from this: add --write-map map.toml")


class _Bars:
    """One bar for reading, one for writing; how many rows there will be is known once they are read."""

    def __init__(self, stages: Stages, files: tuple[str, ...]) -> None:
        self._stages = stages
        self._expected = _rows_expected(files) if stages.shown else None
        self._ticks: dict[str, Tick] = {}
        self._read = 0

    def __call__(self, stage: str, rows: int) -> None:
        if stage not in self._ticks:
            label, total = ("reading", self._expected) if stage == "read" else ("sorting, writing", self._read)
            self._ticks[stage] = self._stages.start(label, total)
        self._read += rows if stage == "read" else 0
        self._ticks[stage](rows)


def _rows_expected(files: tuple[str, ...]) -> int | None:
    """The rows of all files, where the files state it; text, folders and addresses do not."""
    from gpuledger.telemetry.sources import open_source

    if not all(Path(f).is_file() for f in files):
        return None
    found = [open_source(f).rows_expected for f in files]
    return sum(n for n in found if n is not None) if None not in found else None

"""Which books is a statement made from: a lake's, brought up to date, or those of some files?"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import PATH
from gpuledger.cli.screen import Bar, Screen, Stages
from gpuledger.errors import InputError

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.lake.layout import Lake
    from gpuledger.lake.taking import Reading
    from gpuledger.ledger.read.window import Window

jobs_option = click.option(
    "--jobs", "tables", multiple=True, type=PATH, help="With FILEs: job table that shows who held the GPUs; repeatable."
)
_STAGES = {"read": "reading", "write": "sorting, writing", "post": "posting"}


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What files do not say themselves, given to the command as `reading`."""

    @click.option("--tz", "zone", default="UTC", show_default=True, help="Time zone of timestamps without one.")
    @click.option(
        "--map",
        "map_name",
        help="Column names: a built-in layout (export36: 36-column DCGM export; dcgm) or a mapping file.",
    )
    @click.option("--at", metavar="TIME", help="When readings were taken or start; the day, if the file has the time.")
    @click.option("--every", metavar="LENGTH", help="Time between readings of a GPU, for a file without times (1s).")
    @click.option("--host", metavar="NAME", help="Which host the files are from, where they do not say it.")
    @click.option("--gpu-model", metavar="NAME", help="Which GPU the files are of, where they do not say it.")
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        names = ("zone", "map_name", "at", "every", "host", "gpu_model")
        asked = {name: given.pop(name) for name in names}
        return command(reading=lambda: _reading(**asked), **given)

    return inner


def zone_named() -> str | None:
    """The time zone the user named for this command; None where its default holds."""
    context = click.get_current_context()
    given = context.get_parameter_source("zone") not in (None, click.core.ParameterSource.DEFAULT)
    return context.params["zone"] if given else None


def _reading(zone: str, map_name: str | None, **said: str | None) -> Reading:
    from gpuledger.lake.taking import Reading
    from gpuledger.telemetry.mapping import given, load_mapping

    return Reading(zone, load_mapping(map_name) if map_name else None, given(**said))


class Bars:
    """One bar a stage; how many rows there will be is known once they are read. Stages may run at the same time."""

    def __init__(self, stages: Stages, expected: int | None = None) -> None:
        self._stages, self._expected = stages, expected
        self._bars: dict[str, Bar] = {}
        self._read = 0

    def __call__(self, stage: str, rows: int) -> None:
        if stage not in self._bars:
            total = self._expected or (None if stage == "read" else self._read)
            self._bars[stage] = self._stages.start(_STAGES[stage], total)
        self._bars[stage](rows)
        if stage == "read":
            self._read += rows
            for other in (bar for name, bar in self._bars.items() if name != "read"):
                other.expect(self._read)


@contextmanager
def books(
    lake_dir: Path,
    files: Sequence[str],
    reading: Callable[[], Reading],
    chosen: Window,
    limits: Thresholds,
    screen: Screen,
    stages: Stages,
    tables: Sequence[Path],
    *,
    owners: bool = True,
    zone: str | None = None,
) -> Iterator[Lake]:
    """The lake, its ledger brought up to date; or, where files are named, the books of these files alone.

    `tables`: job tables that say who held the GPUs of the files; `owners`: whether the statement is of some owners.
    `zone`: of the times of tables that have none, where none is named.
    """
    from gpuledger.lake.layout import Lake

    if tables and not files:
        hint = f"gpuledger jobs {tables[0]} --lake {lake_dir} adds it to a lake"
        raise InputError("--jobs goes with files that are read without a lake", hint=hint)
    if not files:
        lake = Lake(lake_dir)
        stages.post(lake, limits)
        yield lake
        return
    from gpuledger.ledger.of_files import Jobs, books_of

    cut, jobs = any(name in chosen for name in ("since", "until", "last")), Jobs(tuple(tables), zone_named() or zone)
    with books_of(files, limits, reading(), Bars(stages), cut=cut, jobs=jobs, owners=owners) as (lake, found):
        screen.state(found.stated)
        for note in found.notes:
            screen.note(note)
        if found.rows_rejected:
            why = ", ".join(f"{n} x {reason}" for reason, n in found.rejects.items())
            screen.note(f"{found.rows_rejected} rows could not be used ({why})")
        yield lake

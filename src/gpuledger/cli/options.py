"""Which options do commands share, and what do they mean everywhere?"""

from __future__ import annotations

import datetime as dt
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.times import instant_ms, length_ms

Command = Callable[..., Any]
PATH = click.Path(path_type=Path)


class _ReportPath(click.Path):
    """Where a report goes; a kind of file that cannot be written is refused before any work is done."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from gpuledger.report.sheets import is_one_file

        place = Path(os.fsdecode(super().convert(value, param, ctx)))
        is_one_file(place)
        return place


REPORT = _ReportPath(path_type=Path)


class _LakePath(click.Path):
    """Where a lake is: a folder, or an address such as s3://BUCKET/FOLDER."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from gpuledger.lake.stores.path import place_of

        return place_of(os.fsdecode(super().convert(value, param, ctx)))


LAKE = _LakePath(path_type=Path)


class Pause(click.types.StringParamType):
    """A time between two looks, in milliseconds: 5s, 2m, or plain seconds."""

    def __init__(self, least: str, most: str) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = super().convert(value, param, ctx)
        option = param.opts[0] if param else "a time between looks"
        hint = f"give {self.least} to {self.most}: a number and s, m or h; 5 is 5s"
        try:
            found = length_ms(text, bare="s")
        except InputError as error:
            raise InputError(f"{option}: {error.message}", hint=hint) from None
        if not length_ms(self.least) <= found <= length_ms(self.most):
            raise InputError(f"{option} {text} is out of range", hint=hint)
        return found


lake_option = click.option(
    "--lake", "lake_dir", type=LAKE, default=Path("gpuledger-data"), show_default=True,
    help="Folder with the samples and the ledger, or s3://, gs://, az://BUCKET/FOLDER.",
)  # fmt: skip


hz_option = click.option(
    "--hz", type=float, default=10.0, show_default=True,
    help="Readings per second; expensive ones stay at 1 per second.",
)  # fmt: skip
label_option = click.option(
    "--label", "labels", multiple=True, metavar="NAME=VALUE",
    help="Label the samples: namespace, workload, run_id, ...; repeatable.",
)  # fmt: skip
device_option = click.option(
    "--device", default="nvml", show_default=True, metavar="nvml|amd|replay:FILE", help="Telemetry source."
)


by_option = click.option(
    "--by", metavar="OWNER", type=click.Choice(["team", "user", "account", "job", "pod", "namespace", "cluster"]),
    help="Break it down by team, user, account, job, pod, namespace or cluster too.",
)  # fmt: skip


full_option = click.option("--full", is_flag=True, help="Show everything, not only the short answer.")


def engine_option(command: Command) -> Command:
    """--engine: the command runs on it, connected before any work begins."""

    @click.option(
        "--engine", metavar="NAME",
        help="Where it runs: local, ray (the Ray cluster of this machine or of RAY_ADDRESS) or ray://HOST:PORT.  "
        "[default: GPULEDGER_ENGINE, else local]",
    )  # fmt: skip
    @functools.wraps(command)
    def inner(*, engine: str | None, **rest: Any) -> Any:
        if engine is None:
            return command(**rest)
        from gpuledger.lake.engines.choosing import using

        with using(engine):
            return command(**rest)

    return inner


def labels_of(given: tuple[str, ...]) -> dict[str, str]:
    """The labels of a recording by name."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--label {text!r} is not NAME=VALUE", hint="for example --label workload=train")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"--label {text!r} is not UTF-8 text", hint="write it in UTF-8") from None
        found[name.strip()] = value.strip()
    return found


def screen_options(command: Command) -> Command:
    """--json and --quiet, given to the command as `screen`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
    @click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
    @functools.wraps(command)
    def inner(*, as_json: bool, quiet: bool, **rest: Any) -> Any:
        return command(screen=Screen(as_json=as_json, quiet=quiet), **rest)

    return inner


def statement_options(command: Command) -> Command:
    """The window and the filters every statement takes, given to the command as `chosen`; empty without any."""

    @click.option(
        "--since", type=instant_ms, metavar="TIME", help="Start of the window: a day or time; UTC unless it has a zone."
    )
    @click.option("--until", type=instant_ms, metavar="TIME", help="End of the window (exclusive).")
    @click.option(
        "--last", type=length_ms, metavar="LENGTH",
        help="Window length, counted back from --until or the newest sample (7d, 12h).",
    )  # fmt: skip
    @click.option("--cluster", multiple=True, help="Only this cluster; repeatable.")
    @click.option("--namespace", multiple=True, help="Only this namespace; repeatable.")
    @click.option("--owner", multiple=True, help="Only this workload; repeatable.")
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        found = {name: given.pop(name) for name in ("since", "until", "last", "cluster", "namespace", "owner")}
        chosen = {name: value for name, value in found.items() if value is not None and value != ()}
        if "since" in chosen and "last" in chosen:
            raise InputError("--since and --last both say where the window starts", hint="give one of them")
        if "since" in chosen and "until" in chosen and chosen["since"] >= chosen["until"]:
            raise InputError("--since is not before --until", hint="swap them")
        if "last" in chosen:
            chosen["last"] = dt.timedelta(milliseconds=chosen["last"])
        return command(chosen=chosen, **given)

    return inner

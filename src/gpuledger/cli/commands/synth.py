"""How does a user get telemetry of a made-up fleet?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.times import length_ms
from gpuledger.units import MS_PER_S, count, size


@click.command("synth")
@click.argument("out", type=PATH)
@click.option("--gpus", type=int, default=50, show_default=True, help="Number of GPUs.")
@click.option("--days", type=float, default=7.0, show_default=True, help="Length in days; 0.5 is twelve hours.")
@click.option(
    "--step", "step_ms", type=length_ms, metavar="LENGTH", default="60s", show_default=True,
    help="Time between samples.",
)  # fmt: skip
@click.option("--start", default="2026-01-20", show_default=True, help="First day (UTC).")
@click.option("--seed", type=int, default=7, show_default=True, help="Random seed; another seed gives another fleet.")
@click.option(
    "--format", "kind", type=click.Choice(["csv", "parquet"]), help="Default: by the extension of OUT, else parquet."
)
@click.option("--by-day", is_flag=True, help="Write one file per day into the folder OUT.")
@screen_options
def command(screen: Screen, out: Path, step_ms: int, kind: str | None, by_day: bool, **wishes: Any) -> None:
    """Generate synthetic DCGM telemetry as CSV or Parquet.

    Six load patterns, 36 columns. The same options give the same rows on every machine.
    """
    from gpuledger.telemetry.synthetic import FleetSpec, export_schema, write_fleet

    spec = FleetSpec(step_s=step_ms / MS_PER_S, **wishes)
    wanted: Literal["csv", "parquet"] = "csv" if (kind or out.suffix.lower().lstrip(".")) == "csv" else "parquet"
    with screen.stages() as stages:
        tick = stages.start("writing samples", spec.rows)
        rows = write_fleet(spec, out, wanted, tick, files="day" if by_day else "one")
    files = sorted(out.glob(f"*.{wanted}")) if by_day else [out]
    size_bytes = sum(f.stat().st_size for f in files)
    made = {"format": wanted, "files": [str(f) for f in files], "size_bytes": size_bytes}
    screen.answer({"rows": rows, "columns": len(export_schema()), **wishes, "step_s": spec.step_s, **made})
    days = "1 day" if spec.days == 1 else f"{spec.days:g} days"
    screen.say(
        f"{rows:,} samples of {count(spec.gpus, 'GPU')} over {days}",
        f"written to {out}: {count(len(files), 'file')}, {size(size_bytes)}",
        f"next: gpuledger import {out}{f'/*.{wanted}' if by_day else ''}",
    )

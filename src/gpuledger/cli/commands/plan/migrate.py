"""Where should a job run instead, what does that save, and what does it risk?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gpuledger.cli.options import LAKE, PATH, full_option, screen_options, statement_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError


@click.command("migrate")
@click.option("--instance", metavar="NAME", help="Current instance: P5, g6e.12xlarge, ... (or give --gpu).")
@click.option("--gpu", metavar="NAME", help="Current GPU: h100-sxm5-80gb, L40S, ...")
@click.option("--gpus", type=int, metavar="N", help="Number of GPUs the job uses; default: 1.")
@click.option("--keep-gpus", is_flag=True, default=None, help="Keep the number of GPUs: other numbers are rejected.")
@click.option("--workload", metavar="KIND", help="Kind of job: training, fine-tuning or inference.")
@click.option("--model", metavar="NAME", help="A model from the catalog, such as llama-3.1-70b.")
@click.option(
    "--model-size", "size", metavar="SIZE", help="Size class: small, medium, large, massive, or one from --config."
)
@click.option("--hours", "monthly_h", type=float, metavar="H", help="Hours per month; default: 720.")
@click.option("--spot/--on-demand", default=None, help="Whether the job runs on spot now and may stay on it.")
@click.option("--precision", metavar="NAME", help="fp32, fp16, bf16, fp8, int8, ...; default: fp16.")
@click.option("--priority", metavar="NAME", help="What matters most: cost, performance, balanced or reliability.")
@click.option("--use-case", metavar="NAME", help="Purpose, such as batch_inference: sets priority and spot.")
@click.option("--method", metavar="NAME", help="Fine-tuning method: lora (default), qlora or full.")
@click.option("--busy", "busy_pct", type=float, metavar="PCT", help="Measured utilization of the current server.")
@click.option(
    "--config", metavar="DIR", help="Folder with prices and instances; `reference`: GPU Fleet Optimizer's examples."
)
@click.option("--workload-id", metavar="ID", help="A workload from the configuration.")
@click.option("--set", "set_name", metavar="NAME", help="A set of workloads from the configuration.")
@click.option("--tag", "tags", multiple=True, help="Workloads from the configuration with this tag; repeatable.")
@click.option("--cloud", "clouds", multiple=True, help="Cloud to search; default: aws, `any` for all; repeatable.")
@click.option(
    "--region", "regions", multiple=True, help="Region to search; default: us-east-1, `any` for all; repeatable."
)
@click.option("--whole", is_flag=True, help="Price whole instances, not only the GPUs the job uses.")
@click.option("--out", type=PATH, metavar="DIR", help="Folder for migrate.html, migrate.md and migrate.json.")
@full_option
@screen_options
@click.option("--lake", "lake_dir", type=LAKE, metavar="DIR", help="Plan from the recorded fleet in this lake.")
@click.option(
    "--inventory", type=PATH, multiple=True, metavar="FILE", help="With --lake: what you pay for, as for audit."
)
@click.option(
    "--price", "prices", multiple=True, metavar="[GPU=]USD", help="With --lake: dollars per GPU-hour paid now."
)
@click.option("--to", metavar="GPU", help="With --lake: the cost of the same work on this GPU, such as h200-sxm.")
@statement_options
def command(
    screen: Screen, out: Path | None, full: bool, lake_dir: Path | None, inventory: tuple[Path, ...],
    prices: tuple[str, ...], to: str | None, chosen: Any, **given: Any,
) -> int:  # fmt: skip
    """Propose a better place for a job: cost, speed, risk, effort.

    Uses dated market prices unless --config names others. Every rejected option is listed with what would change that.
    --workload-id, --set and --tag read their setups from the configuration; other options override them.
    """
    if lake_dir is None and (inventory or prices or to or chosen):
        problem = "--inventory, --price, --to, the window and the filters need a lake"
        raise InputError(problem, hint="add --lake DIR, or leave them out")
    from gpuledger.cli.migrating import answer, answer_of_lake, report_what_fits_nowhere
    from gpuledger.cli.showing import give, write_files
    from gpuledger.report.documents import document_of
    from gpuledger.report.documents.migrate import migrate_document
    from gpuledger.times import today

    with screen.stages() as stages:
        if lake_dir is not None:
            document = document_of(answer_of_lake(lake_dir, inventory, prices, to, chosen, given, stages))
        else:
            stages.start("planning")
            found = answer(given, today())
            document = migrate_document(found)
        files = write_files(document, out, screen, stages)
    give(document, screen, files, full=full)
    return 0 if lake_dir is not None else report_what_fits_nowhere(found)

"""Where should a job run instead, what does that save, and what does it risk?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gpuledger.cli.migrating_lake import lake_mode
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen


@click.command("migrate")
@click.option("--instance", metavar="NAME", help="What runs now: P5, g6e.12xlarge, ... (see --gpu).")
@click.option("--gpu", metavar="NAME", help="What runs now, by its GPU: h100-sxm5-80gb, L40S, ...")
@click.option("--gpus", type=int, metavar="N", help="How many GPUs it uses; 1 unless given.")
@click.option("--workload", metavar="KIND", help="training, fine-tuning or inference.")
@click.option("--model", metavar="NAME", help="A model of the catalog, such as llama-3.1-70b.")
@click.option("--model-size", "size", metavar="SIZE", help="small, medium, large, massive, or a configured one.")
@click.option("--hours", type=float, metavar="H", help="Hours a month; 720 unless given.")
@click.option("--spot/--on-demand", default=None, help="Whether it runs on spot now, and may.")
@click.option("--precision", metavar="NAME", help="fp32, fp16, bf16, fp8, int8, ...; fp16 unless given.")
@click.option("--priority", metavar="NAME", help="cost, performance, balanced or reliability.")
@click.option("--use-case", metavar="NAME", help="Why it runs, such as batch_inference: sets priority and spot.")
@click.option("--method", metavar="NAME", help="Of fine-tuning: lora (unless given), qlora or full.")
@click.option("--busy", "busy_pct", type=float, metavar="PCT", help="How busy the present server is, measured.")
@click.option("--config", metavar="DIR", help="Prices and instances of DIR; `reference`: the guide's own figures.")
@click.option("--workload-id", metavar="ID", help="A workload of the configuration.")
@click.option("--set", "set_name", metavar="NAME", help="A set of workloads of the configuration.")
@click.option("--cloud", "clouds", multiple=True, help="Look here; aws unless given, `any` for all; again for more.")
@click.option("--region", "regions", multiple=True, help="Look here; us-east-1 unless given, `any` for all.")
@click.option("--whole", is_flag=True, help="Pay for whole instances, not for the GPUs the job uses.")
@click.option("--out", type=PATH, metavar="DIR", help="Write migrate.html, migrate.md and migrate.json there.")
@screen_options
@lake_mode
def command(screen: Screen, out: Path | None, **given: Any) -> int:
    """Propose another place to run a job: cost, speed, risk, effort.

    Prices are those of the market, with their date, unless --config names others. Every option refused is listed with
    what would change that. --workload-id and --set take their setups from the configuration; other options change them.
    """
    import datetime as dt

    from gpuledger.cli.migrating import Asked, answer, told_what_fits_nowhere
    from gpuledger.cli.views.migrate import set_parts
    from gpuledger.plan.guide.encode import set_json

    with screen.stages() as stages:
        stages.start("planning")
        found = answer(Asked(**given), dt.datetime.now(tz=dt.UTC).date())
    files = {}
    if out is not None:
        from gpuledger.report.write_migrate import write_migrate

        files = {name: str(path) for name, path in write_migrate(found, out).items()}
    screen.answer({**set_json(found), "files": files})
    if screen.talks:
        screen.show(*set_parts(found, screen.console().width))
        where = files.get("migrate.html", "add --out DIR")
        screen.say("", f"every option, measure and refusal is in the report: {where}")
    return told_what_fits_nowhere(found)

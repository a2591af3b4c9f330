"""How much of its GPUs does a training run use, judged by the rate in its log?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.train import USUAL_SEQUENCE


@click.command("mfu")
@click.option("--model", "name", metavar="NAME", help="A catalog model; gpuledger catalog models lists them.")
@click.option("--config", "config_file", type=PATH, help="A Hugging Face config.json instead of --model.")
@click.option("--tokens-per-s", type=float, help="Tokens trained per second, all GPUs together.")
@click.option("--images-per-s", type=float, help="Images trained per second, for an image model.")
@click.option(
    "--gpu", "gpu_name", required=True, metavar="NAME", help="A catalog GPU; gpuledger catalog gpus lists them."
)
@click.option("--count", type=int, default=1, show_default=True, help="Number of GPUs.")
@click.option("--precision", default="bf16", show_default=True, help="Compute precision: bf16, fp8, tf32, ...")
@click.option("--sequence", type=int, help=f"Tokens per sequence; default: {USUAL_SEQUENCE}, or the model's maximum.")
@click.option("--recompute", is_flag=True, help="Activations are recomputed: counted in HFU, not in MFU.")
@lake_option
@screen_options
def command(
    screen: Screen,
    name: str | None,
    config_file: Path | None,
    tokens_per_s: float | None,
    images_per_s: float | None,
    gpu_name: str,
    count: int,
    precision: str,
    sequence: int | None,
    recompute: bool,
    lake_dir: Path,
) -> None:
    """Calculate a training run's MFU from the rate in its log.

    Model FLOPs utilization (MFU) is the model's own FLOP per second divided by the GPUs' dense bf16 peak. Also shown:
    the share of the peak in the precision used, the share of what was measured as achievable (by gpuledger calibrate
    in --lake, else by the catalog), and hardware FLOPs utilization (HFU).
    """
    from gpuledger import train
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.training import mfu_document

    if (name is None) == (config_file is None):
        both = "both --model and --config" if name else "neither --model nor --config"
        raise InputError(f"{both} were given", hint="give one: --model llama-3.1-8b, or --config path/to/config.json")
    data = train.mfu(
        name if name is not None else Path(config_file or ""), gpu_name, tokens_per_s=tokens_per_s,
        images_per_s=images_per_s, count=count, precision=precision, sequence=sequence, recompute=recompute,
        lake=lake_dir,
    )  # fmt: skip
    give(mfu_document(data), screen)

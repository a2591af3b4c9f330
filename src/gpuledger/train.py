"""How is training measured and improved from Python?

gpuledger.train.mfu("llama-3.1-8b", "h100-sxm5-80gb", tokens_per_s=90_000, count=8)
with gpuledger.train.Meter(model) as meter: ...
gpuledger.train.tune(job, budget_s=300)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuledger.arguments import takes

if TYPE_CHECKING:
    from gpuledger.lake.layout import AnyLake
    from gpuledger.training.job import TrainingJob
    from gpuledger.training.meter.meter import Meter, metered

USUAL_SEQUENCE = 4096
__all__ = ["Meter", "metered", "mfu", "tune"]


@takes()
def mfu(
    model: str | Path,
    gpu: str,
    *,
    tokens_per_s: float | None = None,
    images_per_s: float | None = None,
    count: int = 1,
    precision: str = "bf16",
    sequence: int | None = None,
    recompute: bool = False,
    lake: AnyLake | None = None,
) -> Mapping[str, Any]:
    """Model FLOPs utilization (MFU) of a training run, from the rate in its log.

    `model`: a name of the catalog, or the path of a Hugging Face config.json. `lake`: where calibrations are kept.
    """
    from gpuledger.catalog.gpus import get_gpu
    from gpuledger.catalog.models import get_model
    from gpuledger.catalog.models.configs import model_from_config
    from gpuledger.efficiency.calibration_files import read_boards
    from gpuledger.errors import InputError
    from gpuledger.lake.layout import lake_of
    from gpuledger.training.mfu import count_for, rate_for, sequence_for, training_utilization
    from gpuledger.units import Unknown

    of_file = isinstance(model, Path) or str(model).endswith(".json")
    made, card = model_from_config(Path(model)) if of_file else get_model(str(model)), get_gpu(gpu)
    rate = rate_for(made, tokens_per_s, images_per_s)
    tokens, assumed = sequence_for(made, sequence, USUAL_SEQUENCE)
    found = training_utilization(
        made, card, rate, count=count_for(count), precision=precision, sequence=tokens, recompute=recompute,
        boards=read_boards(lake_of(lake)) if lake is not None else (), assumed=assumed,
    )  # fmt: skip
    if isinstance(found, Unknown):
        raise InputError(f"{made.name}: {found.why}", hint="give a model the formulas know: gpuledger catalog models")
    return found


@takes()
def tune(job: TrainingJob, *, budget_s: float = 300.0, only: Sequence[str] = ()) -> Mapping[str, Any]:
    """The fastest settings for a training job, each gain with its interval."""
    from gpuledger.cost.pricing import PriceChoice, price_for
    from gpuledger.training.tune.choices import load_plan
    from gpuledger.training.tune.tuner import figures
    from gpuledger.training.tune.tuner import tune as tuned

    choice = PriceChoice()
    return figures(tuned(job, load_plan().only(only), budget_s=budget_s, price=lambda d: price_for(d, choice)))


def __getattr__(name: str) -> Any:
    if name in ("Meter", "metered"):
        from gpuledger.training.meter import meter

        return getattr(meter, name)
    raise AttributeError(f"module 'gpuledger.train' has no attribute {name!r}")

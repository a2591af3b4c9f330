"""Which measured and published rows is the planner held to?"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from plan_runs import measured_runs, serves

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.models import Model, TransformerShape, get_model
from gpuledger.catalog.models.configs import UnreadType, model_from_config
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.steps import StepLoad, step_load

HERE = Path(__file__).parent
SERVING = "telemetry/mlenergy_v3_serving_energy.csv"
TRUTH = "h200_truth/truth.json"
MEASURED = HERE / "data" / "memory_h200.json"
# Measured cases of these models calibrate; the others only check.
CALIBRATING_MODELS = ("small", "llama-3.2-1b")


@dataclass(frozen=True)
class ServingRow:
    """One measured batch size of one model on one kind of GPU."""

    model_id: str
    model: Model
    gpu: Gpu
    gpu_label: str
    task: str
    setup: Setup
    load: StepLoad
    step_s: float
    calibrates: bool

    @property
    def kind(self) -> str:
        """Whether the model has experts."""
        return "moe" if getattr(self.model.shape, "experts", 0) else "dense"

    @property
    def group(self) -> str:
        """Models and GPUs whose errors are told together."""
        return f"{self.kind}, {self.gpu.architecture}"


def serving_rows(shared: Path) -> list[ServingRow]:
    """The rows of the serving file that the split names."""
    split = tomllib.loads((HERE / "plan_split.toml").read_text(encoding="utf-8"))
    with (shared / SERVING).open(encoding="utf-8", newline="") as file:
        return [row for raw in csv.DictReader(file) if (row := _serving_row(raw, split)) is not None]


def _serving_row(raw: dict[str, str], split: dict[str, Any]) -> ServingRow | None:
    name = split["calibrate"].get(raw["model_id"]) or split["held_out"].get(raw["model_id"])
    prompt = split["prompt_tokens"].get(raw["task"])
    if name is None or prompt is None or raw["data_parallel"] != "1":
        return None
    model, gpu = get_model(name), get_gpu(split["gpus"][raw["gpu_model"]])
    batch, count, written = float(raw["avg_batch_size"]), int(raw["num_gpus"]), float(raw["avg_output_len"])
    setup = Setup(
        mode="serve", count=count, tensor=count, precision=split["precisions"][raw["weight_precision"]],
        cache_precision="bf16", batch=max(1, round(batch)),
    )  # fmt: skip
    load = step_load(model, gpu, setup, prompt + written / 2)
    assert isinstance(load, StepLoad), load
    step_s = batch / float(raw["output_throughput_tokens_per_sec"])
    calibrates = raw["model_id"] in split["calibrate"]
    return ServingRow(raw["model_id"], model, gpu, raw["gpu_model"], raw["task"], setup, load, step_s, calibrates)


def measured_cases(path: Path = MEASURED) -> dict[str, Any] | None:
    """What benchmarks/memory_on_gpu.py found, where it was run."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def case_model(case: dict[str, Any]) -> Model:
    """The model of a measured case: of the catalog, or of the file of cases."""
    shapes = tomllib.loads((HERE / "memory_cases.toml").read_text(encoding="utf-8"))["shapes"]
    if case["model"] not in shapes:
        return get_model(case["model"])
    raw = shapes[case["model"]]
    return Model(
        name=case["model"],
        shape=TransformerShape(
            **raw, head_dim=raw["hidden"] // raw["heads"], mlp_gated=True, tied_embeddings=False, max_context=131072
        ),
    )


@dataclass(frozen=True)
class PublishedRun:
    """A training run others wrote about."""

    name: str
    model: Model
    gpu: Gpu
    setup: Setup
    micro_batches: int
    tokens_per_s: float
    source: str


def published_runs() -> Iterator[PublishedRun]:
    """The runs of published_training.toml, their rate in tokens a second."""
    for raw in tomllib.loads((HERE / "published_training.toml").read_text(encoding="utf-8"))["run"]:
        setup = Setup(
            mode="train", count=raw["count"], tensor=raw["tensor"], pipeline=raw["pipeline"], kernels="fused",
            sequence=raw["sequence"], micro_batch=raw["micro_batch"], sequence_parallel=True,
        )  # fmt: skip
        model = get_model(raw["model"]) if "model" in raw else _gpt(raw)
        tokens = raw["micro_batches"] * raw["micro_batch"] * raw["sequence"] * setup.data
        if "step_s" in raw:
            rate = tokens / raw["step_s"]
        else:  # 6 FLOP a parameter and token, and the attention of a causal model
            shape = model.shape
            assert isinstance(shape, TransformerShape)
            flop = 6 * model.params_total + 6 * shape.layers * shape.heads * shape.head_dim * raw["sequence"]
            rate = raw["tflops_per_gpu"] * 1e12 * raw["count"] / flop
        yield PublishedRun(raw["name"], model, get_gpu(raw["gpu"]), setup, raw["micro_batches"], rate, raw["source"])


def truth_runs(shared: Path) -> Iterator[PublishedRun]:
    """The training runs of our own recording on one H200 (tokens or images a second)."""
    split = tomllib.loads((HERE / "plan_split.toml").read_text(encoding="utf-8"))
    truth = json.loads((shared / TRUTH).read_text(encoding="utf-8"))["workloads"]
    decoder = Model(name="decoder", shape=TransformerShape(**split["truth_decoder"]))
    for name, how in split["truth"].items():
        model = get_model(how["model"]) if "model" in how else decoder
        ran = truth[name]
        if "params" in ran:
            assert model.params_total == ran["params"], model.params_total
        setup = Setup(
            mode="train", precision=how["precision"], scheme=how["scheme"], micro_batch=how["batch"], sequence=1024
        )
        per_s = ran["iterations"] * ran.get("tokens_per_iter", how["batch"]) / ran["seconds"]
        yield PublishedRun(f"H200 truth: {name}", model, get_gpu("h200-sxm"), setup, 1, per_s, "h200_truth")


def formula_runs() -> Iterator[PublishedRun]:
    """The runs of models_on_gpu.py whose type has a formula, planned by it."""
    runs = (run for _, run in measured_runs() if not serves(run) and "text_config" not in run["config"])
    with TemporaryDirectory() as folder:
        for run in runs:
            config = Path(folder, run["name"], "config.json")
            config.parent.mkdir(exist_ok=True)
            config.write_text(json.dumps(run["config"]), encoding="utf-8")
            try:
                model = model_from_config(config)
            except UnreadType:
                continue
            how = {"scheme": "mixed", **run["run"]}
            batches = how.pop("accumulate", 2)
            setup = Setup(mode="train", **how, accumulate=batches > 1, trace="never")
            per_s = run["samples_per_s"] * how.get("sequence", 1)
            words = [name if value is True else str(value) for name, value in how.items()]
            name = f"H200 models: {run['name']}, {', '.join(words)}"
            yield PublishedRun(name, model, get_gpu("h200-sxm"), setup, batches, per_s, "models_on_gpu.py")


def _gpt(raw: dict[str, Any]) -> Model:
    shape = raw["shape"]
    return Model(
        name=raw["name"],
        shape=TransformerShape(
            **shape, kv_heads=shape["heads"], head_dim=shape["hidden"] // shape["heads"],
            mlp_hidden=4 * shape["hidden"], mlp_gated=False, vocab=51200, tied_embeddings=True, max_context=2048,
            norm_bias=True,
        ),
    )  # fmt: skip

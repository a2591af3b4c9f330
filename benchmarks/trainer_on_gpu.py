"""Does the training meter observe the right precision under real trainers, and does its MFU agree with a pencil?

    PYTHONPATH=src python benchmarks/trainer_on_gpu.py --out trainer.json [--steps 40] [--tiny]

Trains a GPT-2 of 12 layers with random weights through the Hugging Face Trainer in fp32, in TF32, with autocast
(bf16=True), all in bf16, and compiled with autocast, then through Lightning where it is installed. For each it prints
what the meter reports next to a pencil count: FLOPs from the sizes in the configuration by plain arithmetic, seconds
from the clock over the steps the meter times, the dense bf16 peak of an H100 or H200 (SXM). The two must agree within
2 %. Results are written after each mode. Needs torch, transformers and accelerate. --tiny runs a tiny model wherever
torch is; steps of a few milliseconds are too short for the bar.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

BAR_PCT = 2.0
PEAK_TFLOPS = 989.5  # dense bf16, as NVIDIA gives it for the H100 and H200 SXM
CUDA = torch.cuda.is_available()
LIGHTNING = next(
    (m for m in ("lightning.pytorch", "pytorch_lightning") if importlib.util.find_spec(m.split(".")[0])), ""
)
TERA = 1e12


@dataclass(frozen=True)
class Size:
    """A GPT-2."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    sequence: int
    batch: int

    @property
    def tokens(self) -> int:
        """Of a step."""
        return self.batch * self.sequence

    @property
    def pencil_flop(self) -> int:
        """Of a step: 6 for each weight that multiplies and each token, and attention over the whole square.

        A layer has 12 width^2 weights (4 in attention, 8 in the MLP); the head has as many as the embedding. Attention
        makes two products of sequence x width for each token of each layer, three times as much with the backward pass.
        """
        weights = self.layers * 12 * self.width**2 + self.width * self.vocabulary
        return self.tokens * (6 * weights + 12 * self.layers * self.sequence * self.width)

    def model(self) -> Any:
        """With random weights and without dropout."""
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        config = GPT2Config(
            n_layer=self.layers, n_embd=self.width, n_head=self.heads, vocab_size=self.vocabulary,
            n_positions=self.sequence, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        return GPT2LMHeadModel(config)


SIZES = {False: Size(12, 1024, 16, 50304, 1024, 16), True: Size(2, 64, 4, 512, 64, 4)}


@dataclass(frozen=True)
class Mode:
    """One way to train: which precision must be observed, and what brings it about."""

    precision: str
    arguments: dict[str, Any]
    pure: bool = False
    lightning: str = ""
    needs_gpu: bool = False


MODES = {
    "fp32": Mode("fp32", {}),
    "tf32": Mode("tf32", {"tf32": True}, needs_gpu=True),
    "bf16-autocast": Mode("bf16", {"bf16": True}),
    "bf16-pure": Mode("bf16", {}, pure=True),
    "lightning-bf16-mixed": Mode("bf16", {}, lightning="bf16-mixed"),
    "bf16-autocast-compiled": Mode("bf16", {"bf16": True, "torch_compile": True}),
}


class Tokens(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Random tokens, in memory."""

    def __init__(self, size: Size, steps: int) -> None:
        shape = ((steps + 2) * size.batch, size.sequence)
        self._ids = torch.randint(0, size.vocabulary, shape, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._ids[i], "labels": self._ids[i]}


class Clock:
    """Seconds of a step by the wall, from the end of one step to the end of the last. The device is waited for at both
    ends only.
    """

    def __init__(self, first: int, last: int) -> None:
        self._ends, self._at = (first, last), dict[int, float]()

    def step_ended(self, number: int) -> None:
        """Steps count from 1."""
        if number in self._ends:
            if CUDA:
                torch.cuda.synchronize()
            self._at[number] = time.perf_counter()

    @property
    def step_s(self) -> float:
        """The mean."""
        first, last = self._ends
        return (self._at[last] - self._at[first]) / (last - first)


def untimed_steps() -> int:
    """How many steps the meter lets pass before it times: what loads, compiles and fills caches is in them."""
    from gpuledger.training.meter.meter import WARMUP
    from gpuledger.training.meter.sites import WINDOW_STEPS

    return WARMUP + (WINDOW_STEPS if CUDA else 0)


def with_hugging_face(size: Size, mode: Mode, steps: int, clock: Clock) -> Any:
    """The meter's report of `Trainer.train()`."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from gpuledger.training.meter.hf_callback import MeterCallback

    class Ends(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            clock.step_ended(state.global_step)

    model = size.model()
    meter = MeterCallback(show=False)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=size.batch, max_steps=steps, report_to=[],
            save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=not CUDA,
            optim="adamw_torch_fused" if CUDA else "adamw_torch", **mode.arguments,
        )  # fmt: skip
        Trainer(
            model.bfloat16() if mode.pure else model, arguments, train_dataset=Tokens(size, steps),
            callbacks=[meter, Ends()],
        ).train()  # fmt: skip
    return meter.report


def with_lightning(size: Size, mode: Mode, steps: int, clock: Clock) -> Any:
    """The meter's report of `Trainer.fit()`."""
    lightning = importlib.import_module(LIGHTNING)
    from gpuledger.training.meter.lightning_callback import MeterCallback

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = size.model()

        def training_step(self, batch: Any, _index: int) -> Any:
            return self.model(**batch).loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=5e-5, fused=CUDA)

    class Ends(lightning.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_end(self, _trainer: Any, _module: Any, _out: Any, _batch: Any, index: int) -> None:
            clock.step_ended(index + 1)

    meter = MeterCallback(show=False)
    trainer = lightning.Trainer(
        max_steps=steps, accelerator="gpu" if CUDA else "cpu", devices=1, precision=mode.lightning, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[meter, Ends()],
    )  # fmt: skip
    data = torch.utils.data.DataLoader(Tokens(size, steps), batch_size=size.batch, pin_memory=CUDA)
    trainer.fit(Module(), data)
    return meter.report


def compared(name: str, mode: Mode, size: Size, report: Any, clock: Clock) -> dict[str, Any]:
    """What the meter reports next to what the pencil finds."""
    from gpuledger.training.meter.report import to_json

    told = to_json(report)
    seen, work = told["seen"], told["seen"]["work"] or {}
    pencil_tflops = size.pencil_flop / clock.step_s / TERA
    off = None if told["model_tflops"] is None else 100 * (told["model_tflops"] / pencil_tflops - 1)
    device = torch.cuda.get_device_name() if CUDA else "cpu"
    known_peak = CUDA and any(word in device for word in ("H100", "H200"))
    return {
        "mode": name,
        "device": device,
        "torch": torch.__version__,
        "precision": seen["precision"],
        "precision_ratios": seen["precision_ratios"],
        "expected_precision": mode.precision,
        "as_expected": seen["precision"] == mode.precision,
        "compiled": seen["compiled"],
        "steps": seen["steps"],
        "timed_steps": seen["timed_steps"],
        "mfu_pct": told["mfu_pct"],
        "mfu_in_use_pct": told["mfu_of_precision_pct"],
        "mfu_of_measured_pct": told["mfu_of_measured_pct"],
        "hfu_pct": told["hfu_pct"],
        "tokens_per_s": told["tokens_per_s"],
        "pencil_tokens_per_s": size.tokens / clock.step_s,
        "step_ms": told["step_ms"],
        "pencil_step_ms": 1000 * clock.step_s,
        "phases_ms": told["phases_ms"],
        "flop_per_step": work.get("model_flop"),
        "pencil_flop_per_step": size.pencil_flop,
        "model_tflops": told["model_tflops"],
        "pencil_tflops": pencil_tflops,
        "pencil_mfu_pct": 100 * pencil_tflops / PEAK_TFLOPS if known_peak else None,
        "off_pct": off,
        "bar_pct": BAR_PCT,
        "within_bar": off is not None and abs(off) <= BAR_PCT,
        "findings": [found["title"] for found in told["findings"]],
        "notes": seen["notes"],
        "not_known": told["not_known"],
    }


def run(name: str, mode: Mode, size: Size, steps: int) -> dict[str, Any]:
    """One mode, from a fresh model; a mode that fails says how and does not stop the others."""
    train: Callable[..., Any] = with_lightning if mode.lightning else with_hugging_face
    clock, began = Clock(untimed_steps(), steps), time.perf_counter()
    before = torch.get_float32_matmul_precision()
    try:
        found = compared(name, mode, size, train(size, mode, steps, clock), clock)
    except Exception as error:  # noqa: BLE001 - whatever a trainer raises; the other modes are still worth measuring
        traceback.print_exc()
        found = {"mode": name, "failed": f"{type(error).__name__}: {error}"[:500], "within_bar": False}
    torch.set_float32_matmul_precision(before)
    torch.compiler.reset()
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache()
    return found | {"seconds": time.perf_counter() - began}


def main() -> int:
    """Exit 1 where a mode failed, or on a GPU was off the bar or in another precision than it was told."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--out", type=Path, help="write all results here as JSON")
    words.add_argument("--steps", type=int, default=40)
    words.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    words.add_argument("--tiny", action="store_true", help="a tiny model, for a rehearsal")
    asked = words.parse_args()
    missing = [name for name in ("transformers", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"{' and '.join(missing)} not installed: pip install {' '.join(missing)}\n")
        return 2
    if asked.steps <= untimed_steps():
        sys.stderr.write(f"--steps is {asked.steps}: give more than the {untimed_steps()} that are not timed\n")
        return 2
    size, results = SIZES[asked.tiny], list[dict[str, Any]]()
    for name in asked.modes:
        mode = MODES[name]
        if (mode.needs_gpu and not CUDA) or (mode.lightning and not LIGHTNING):
            continue
        results.append(run(name, mode, size, asked.steps))
        sys.stdout.write(json.dumps(results[-1]) + "\n")
        sys.stdout.flush()
        if asked.out is not None:
            asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    held = [r.get("as_expected", False) and (r["within_bar"] or not CUDA or asked.tiny) for r in results]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

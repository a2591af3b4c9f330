"""In which ways can a training loop be run, what does each of them keep, and how is it written as Python?

The *effective batch* is the number of samples between two optimizer steps: `batch` (samples in one forward and
backward pass) x `accumulate` (passes before a step). Tuning never changes it, because that would be another training:
a larger `batch` means fewer passes for each optimizer step.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir
from gpuledger.errors import InputError

Precision = Literal["fp32", "tf32", "bf16", "fp16"]
Compile = Literal["off", "default", "max-autotune"]
Logging = Literal["every-step", "async"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to run the loop. The defaults are torch's own, and those of a first script."""

    precision: Precision = "fp32"
    workers: int = 0
    pin: bool = False
    prefetch: int = 2
    batch: int = 8
    accumulate: int = 1
    logging: Logging = "every-step"
    compile: Compile = "off"
    fused: bool = False
    channels_last: bool = False
    cudnn_benchmark: bool = False

    @property
    def effective_batch(self) -> int:
        """Samples between two optimizer steps."""
        return self.batch * self.accumulate

    def having(self, changes: dict[str, Any]) -> Settings:
        """These settings with some changed; a new batch changes the passes, not the effective batch."""
        made = {**msgspec.to_builtins(self), **changes}
        if "batch" in changes and "accumulate" not in changes:
            made["accumulate"] = max(1, self.effective_batch // int(changes["batch"]))
        new = msgspec.convert(made, Settings)
        if new.effective_batch != self.effective_batch:
            raise InputError(
                f"batch {new.batch} x {new.accumulate} passes is not the effective batch of {self.effective_batch}",
                hint="choose a batch that divides it",
            )
        return new

    def changed(self, other: Settings) -> dict[str, Any]:
        """What `other` does differently, by field."""
        mine, theirs = msgspec.to_builtins(self), msgspec.to_builtins(other)
        return {name: theirs[name] for name in mine if mine[name] != theirs[name]}


def check(settings: Settings) -> Settings:
    """The settings, if they can be run at all."""
    for name, least in (("batch", 1), ("accumulate", 1), ("workers", 0), ("prefetch", 1)):
        value = getattr(settings, name)
        if value < least:
            raise InputError(f"settings: {name} is {value}", hint=f"give a whole number of {least} or more")
    return settings


def in_words(settings: Settings) -> str:
    """One line."""
    copies = ", pinned" if settings.pin else ""
    loader = f"{settings.workers} workers{copies}"
    batch = f"batch {settings.batch}" + (f" x {settings.accumulate}" if settings.accumulate > 1 else "")
    flags = {
        f"compile {settings.compile}": settings.compile != "off",
        "fused optimizer": settings.fused,
        "channels-last": settings.channels_last,
        "cuDNN autotuner": settings.cudnn_benchmark,
        "loss read every step": settings.logging == "every-step",
    }
    return ", ".join([settings.precision, loader, batch, *(name for name, on in flags.items() if on)])


def write(found: str, settings: Settings) -> str:
    """Python that sets up a loop with these settings: `make_loader`, `prepare`, `make_optimizer`, `train_update`."""
    from jinja2 import Template

    text = data_dir("gpuledger.training", "data", "snippet.py.jinja").read_text(encoding="utf-8")
    half = {"bf16": "bfloat16", "fp16": "float16"}.get(settings.precision)
    made = Template(text, trim_blocks=True, keep_trailing_newline=True)
    return made.render(found=found, words=in_words(settings), s=settings, half=half)

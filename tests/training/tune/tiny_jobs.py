"""Jobs small enough to be tuned on a CPU within a test; some of them with a fault."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpuledger.training.job import TrainingJob
from gpuledger.training.tune.settings import Settings


class Points:
    """Numbers and what a line makes of them."""

    def __init__(self, count=64):
        self._x = torch.randn(count, 16, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self._x)

    def __getitem__(self, i):
        return self._x[i], self._x[i].sum(0, keepdim=True)


def build():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))


def images():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Flatten(), nn.Linear(64, 1))


def loss(model, batch):
    x, y = batch
    return functional.mse_loss(model(x).float(), y)


def image_loss(model, batch):
    x, y = batch
    return functional.mse_loss(model(x.view(-1, 1, 4, 4)).float(), y)


def no_half(model, batch):
    if torch.is_autocast_enabled("cpu"):
        raise ValueError("this model knows no bf16")
    return loss(model, batch)


def nan_in_half(model, batch):
    found = loss(model, batch)
    return found * float("nan") if torch.is_autocast_enabled("cpu") else found


def no_room(model, batch):
    if len(batch[0]) > 8:
        raise torch.OutOfMemoryError("tried to allocate more than there is")
    return loss(model, batch)


def broken(model, batch):
    raise RuntimeError("wrong shape")


SETTINGS = Settings(batch=4, accumulate=8, logging="every-step")


def make(name, **changes):
    parts = {"model": build, "dataset": Points, "loss": loss, "settings": SETTINGS, **changes}
    return TrainingJob(name=name, **parts)


line = make("a line through points")
convolutions = make("a convolution", model=images, loss=image_loss)
without_half = make("no bf16", loss=no_half)
with_nan = make("NaN in bf16", loss=nan_in_half)
large = make("no room for more than 8", loss=no_room)
faulty = make("always fails", loss=broken)

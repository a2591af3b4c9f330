"""How do batches reach the device: in an order that is the same whatever their size, without an end?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from gpuledger.training.tune.settings import Settings


class EndlessBatches:
    """Indices of batches, epoch after epoch, each in its own order.

    The order of samples depends on the seed alone, so a run with batches of 8 sees the same samples as one with
    batches of 64. It is a plain iterable: torch's loader takes it as a batch sampler.
    """

    def __init__(self, samples: int, batch: int, seed: int, start: int = 0) -> None:
        self._samples, self._batch, self._seed, self._start = samples, batch, seed, start

    def __iter__(self) -> Iterator[list[int]]:
        stream = self._indices()
        while True:
            yield [next(stream) for _ in range(self._batch)]

    def _indices(self) -> Iterator[int]:
        epoch, skip = divmod(self._start, self._samples)
        while True:
            order = list(range(self._samples))
            random.Random(f"{self._seed}/{epoch}").shuffle(order)  # noqa: S311 - an order, not a secret
            yield from order[skip:]
            epoch, skip = epoch + 1, 0


def open_loader(torch: Any, dataset: Any, settings: Settings, seed: int, start: int, collate: Any) -> Any:
    """A loader as the settings say, from sample number `start` on."""
    with_workers = {"prefetch_factor": settings.prefetch} if settings.workers else {}
    return torch.utils.data.DataLoader(
        dataset,
        batch_sampler=EndlessBatches(len(dataset), settings.batch, seed, start),
        num_workers=settings.workers,
        pin_memory=settings.pin,
        collate_fn=collate,
        **with_workers,
    )


def mover(torch: Any, device: Any, settings: Settings) -> Callable[[Any], Any]:
    """A function that puts a batch, however nested, on the device."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if settings.channels_last and value.dim() == 4:
                return value.to(device, non_blocking=settings.pin, memory_format=torch.channels_last)
            return value.to(device, non_blocking=settings.pin)
        if isinstance(value, dict):
            return {key: move(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            moved = [move(item) for item in value]
            return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
        # Batches of a class of their own (a tokenizer's, a graph's) bring their way with them.
        return value.to(device) if hasattr(value, "to") else value

    return move

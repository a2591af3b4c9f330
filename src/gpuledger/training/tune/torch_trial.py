"""How does one setting train: how fast with everything in it, along which loss, in how much memory?"""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gpuledger.training.runtime import in_words
from gpuledger.training.tune.settings import Settings
from gpuledger.training.tune.trials import TrialFailed
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.training.tune.machine import TorchMachine

LOOK_EVERY_S = 0.05
# A window holds at least this many batches of each loader worker, as they come in bursts,
BATCHES_PER_WORKER = 2
# but never lasts longer than this many times the requested length.
LONGEST_WINDOWS = 4
MANY_COMPILATIONS = 1024


class TorchTrial:
    """One setting, built and warm. The first updates from the seed are its loss curve."""

    def __init__(self, machine: TorchMachine, settings: Settings) -> None:
        self._torch, self._job, self._device = machine.torch, machine.job, machine.device
        self._dataset, self.settings, self._on_gpu = machine.dataset(), settings, machine.device.type == "cuda"
        self._at, self._looks = 0, list[float]()
        self._no_looks = "utilization is known on a GPU only"
        self._model: Any = None
        self._loss: Any = None
        self._optimizer: Any = None
        try:
            before = self._allocated()
            self._build(machine.fresh_model())
            self.curve: Sequence[float] = self._first(machine.updates)
            self.peak_bytes: int | Unknown = Unknown("memory is measured on a GPU only")
            if self._on_gpu:
                self.peak_bytes = int(self._torch.cuda.max_memory_allocated(self._device)) - before
        except Exception as error:
            self.close()
            raise _failed(self._torch, error) from error

    def _allocated(self) -> int:
        if not self._on_gpu:
            return 0
        gc.collect()
        self._torch.cuda.empty_cache()
        self._torch.cuda.reset_peak_memory_stats(self._device)
        return int(self._torch.cuda.memory_allocated(self._device))

    def _build(self, model: Any) -> None:
        torch, settings, job = self._torch, self.settings, self._job
        model = model.to(self._device)
        if settings.channels_last:
            model = model.to(memory_format=torch.channels_last)
        model.train()
        self._model = model
        self._optimizer = job.optimizer(model.parameters(), **({"fused": True} if settings.fused else {}))
        self._loss = job.loss
        if settings.compile != "off":
            # Each setting compiles the same function again: torch would give up after eight of them.
            limits = torch._dynamo.config  # noqa: SLF001 - torch has no public name for it
            for name in ("recompile_limit", "accumulated_recompile_limit"):
                if hasattr(limits, name):
                    setattr(limits, name, MANY_COMPILATIONS)
            self._loss = torch.compile(job.loss, mode=settings.compile, dynamic=False)
        self._half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings.precision)
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=settings.precision == "fp16")
        self._move = mover(torch, self._device, settings)

    @contextmanager
    def _batches(self) -> Iterator[Iterator[Any]]:
        """Batches from where the last ended. The loader restarts: batches prepared in a pause would be free."""
        job, settings = self._job, self.settings
        loader = open_loader(self._torch, self._dataset, settings, job.seed, self._at, job.collate)
        iterator = iter(loader)
        try:
            yield iterator
        finally:
            del iterator, loader

    @contextmanager
    def _as_set(self) -> Iterator[None]:
        """torch's global switches as this setting needs them; restored afterwards."""
        torch, settings = self._torch, self.settings
        cudnn, before = torch.backends.cudnn, torch.get_float32_matmul_precision()
        kept = (cudnn.allow_tf32, cudnn.benchmark)
        torch.set_float32_matmul_precision("highest" if settings.precision == "fp32" else "high")
        cudnn.allow_tf32, cudnn.benchmark = settings.precision != "fp32", settings.cudnn_benchmark
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
            cudnn.allow_tf32, cudnn.benchmark = kept

    def _update(self, batches: Iterator[Any]) -> Any:
        """One optimizer step: its passes, then the step. The mean loss, still on the device."""
        torch, settings, parts = self._torch, self.settings, []
        for _ in range(settings.accumulate):
            batch = self._move(next(batches))
            with torch.autocast(self._device.type, self._half, enabled=self._half is not None):
                loss = self._loss(self._model, batch) / settings.accumulate
            self._scaler.scale(loss).backward()
            if settings.logging == "every-step":
                loss.item()  # like a loop that prints its loss: the CPU waits for the device
            parts.append(loss.detach())
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad(set_to_none=True)
        self._at += settings.effective_batch
        return torch.stack(parts).sum()

    def _first(self, updates: int) -> tuple[float, ...]:
        self._torch.manual_seed(self._job.seed)
        with self._as_set(), self._batches() as batches:
            losses = [self._update(batches) for _ in range(updates)]
        return tuple(float(loss) for loss in losses)

    def window(self, seconds: float) -> float:
        """Samples per second over at least this long, with data loading and everything else."""
        settings = self.settings
        least = -(-settings.workers * BATCHES_PER_WORKER // settings.accumulate)
        try:
            with self._as_set(), self._batches() as batches, self._looking():
                for _ in range(1 + settings.workers // settings.accumulate):
                    self._update(batches)
                self._settle()
                begun, done = time.perf_counter(), 0
                while True:
                    self._update(batches)
                    done += 1
                    took = time.perf_counter() - begun
                    if took >= seconds and (done >= least or took >= LONGEST_WINDOWS * seconds):
                        break
                self._settle()
                return done * settings.effective_batch / (time.perf_counter() - begun)
        except Exception as error:
            raise _failed(self._torch, error) from error

    def _settle(self) -> None:
        if self._on_gpu:
            self._torch.cuda.synchronize(self._device)

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Ask the driver for utilization now and then, next to the loop."""
        if not self._on_gpu:
            yield
            return
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_EVERY_S):
                try:
                    self._looks.append(float(self._torch.cuda.utilization(self._device)))
                except Exception as error:  # noqa: BLE001 - the driver's own errors
                    self._no_looks = f"the driver does not report utilization: {in_words(error)}"
                    return

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def utilization_pct(self) -> float | Unknown:
        """The mean of what the driver reported during the windows."""
        return fmean(self._looks) if self._looks else Unknown(self._no_looks)

    def close(self) -> None:
        """Free the memory."""
        self._model = self._optimizer = self._loss = None
        gc.collect()
        if self._on_gpu:
            self._torch.cuda.empty_cache()


def _failed(torch: Any, error: Exception) -> TrialFailed:
    """An error of torch or of the job, and whether it was out of memory."""
    no_room: tuple[type[BaseException], ...] = (MemoryError, getattr(torch, "OutOfMemoryError", MemoryError))
    memory = isinstance(error, no_room) or "can't allocate memory" in str(error)
    return TrialFailed(in_words(error), memory=memory)


class EndlessBatches:
    """Indices of batches without an end, each epoch in its own order; torch's loader takes it as a batch sampler.

    The order of samples depends on the seed alone: a run with batches of 8 sees the same samples as one with 64.
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
    """A loader with these settings, from sample number `start` on."""
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
        # Batches of their own class (a tokenizer's, a graph's) have their own method.
        return value.to(device) if hasattr(value, "to") else value

    return move

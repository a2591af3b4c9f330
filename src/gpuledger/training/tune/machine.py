"""On what do the trials run, what can it do, and how many FLOP is one sample?"""

from __future__ import annotations

import copy
import os
from typing import Any

from gpuledger.training.counting import count
from gpuledger.training.job import TrainingJob, in_words, need_torch
from gpuledger.training.tune.choices import Means
from gpuledger.training.tune.feed import mover, open_loader
from gpuledger.training.tune.ladder import TrialFailed
from gpuledger.training.tune.settings import Settings
from gpuledger.training.tune.trial import TorchTrial, Work
from gpuledger.units import Unknown


class TorchMachine:
    """The first GPU torch can use, else the CPU."""

    def __init__(self, job: TrainingJob, updates: int, device: str | None = None) -> None:
        self._torch, self._job, self._updates = need_torch("gpuledger train tune"), job, updates
        torch = self._torch
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        on_gpu = self._device.type == "cuda"
        self.name = str(torch.cuda.get_device_name(self._device)) if on_gpu else "CPU"
        self._data: Any = None
        self._model: Any = None
        self.means = self._means(on_gpu)
        self.memory_bytes: int | Unknown = Unknown("memory is measured on a GPU only")
        if on_gpu:
            free, _ = torch.cuda.mem_get_info(self._device)
            self.memory_bytes = int(free) + int(torch.cuda.memory_reserved(self._device))

    def _means(self, on_gpu: bool) -> Means:
        torch = self._torch
        nvidia = on_gpu and torch.version.cuda is not None
        bf16 = _bf16(torch) if on_gpu else True
        # Ampere and later.
        tf32 = nvidia and torch.cuda.get_device_capability(self._device) >= (8, 0)
        return Means(cuda=on_gpu, tf32=tf32, bf16=bf16, convolutions=self._has_convolutions(), cores=_cores())

    def _has_convolutions(self) -> bool:
        try:
            return any(isinstance(m, self._torch.nn.Conv2d) for m in self.fresh_model().modules())
        except Exception:  # noqa: BLE001 - a model that cannot be built is told of when it is tried
            return False

    def fresh_model(self) -> Any:
        """The model as the seed makes it: built once, copied for each trial, since building a large one takes long."""
        if self._model is None:
            self._torch.manual_seed(self._job.seed)
            self._model = self._job.model()
        return copy.deepcopy(self._model)

    def dataset(self) -> Any:
        """The data of the job, made once."""
        if self._data is None:
            try:
                self._data = self._job.dataset()
                if len(self._data) < 1:
                    raise TrialFailed("the dataset is empty")
            except TrialFailed:
                raise
            except Exception as error:
                raise TrialFailed(f"the dataset cannot be made: {in_words(error)}") from error
        return self._data

    def open(self, settings: Settings) -> TorchTrial:
        """One setting, built and warm."""
        work = Work(self._torch, self._job, self._device, self.dataset(), self.fresh_model)
        return TorchTrial(work, settings, self._updates)

    def samples_per_epoch(self) -> int:
        """As the job says, else the length of its data."""
        return self._job.samples_per_epoch or len(self.dataset())

    def flop_per_sample(self, settings: Settings) -> float | Unknown:
        """Forward and backward of one batch, counted by torch in eager mode, over its samples."""
        torch, job = self._torch, self._job
        plain = settings.having({"batch": settings.batch})
        try:
            model = self.fresh_model().to(self._device)
            loader = open_loader(torch, self.dataset(), plain.having({"workers": 0}), job.seed, 0, job.collate)
            batch = mover(torch, self._device, plain)(next(iter(loader)))
            return count(lambda: job.loss(model, batch).backward()).flop / settings.batch
        except Exception as error:  # noqa: BLE001 - the job's own code
            return Unknown(f"the FLOPs could not be counted: {in_words(error)}")


def _bf16(torch: Any) -> bool:
    """Whether the GPU itself has bf16; torch also says yes where it would emulate it slowly."""
    try:
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    except TypeError:  # before torch 2.5
        return bool(torch.cuda.is_bf16_supported())


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""What do the trials run on: which device, what can it do, and how many FLOP is one sample?"""

from __future__ import annotations

import copy
from typing import Any

from gpuledger.training.flops import count
from gpuledger.training.job import TrainingJob
from gpuledger.training.runtime import cpus, in_words, need_torch
from gpuledger.training.tune.choices import Means
from gpuledger.training.tune.settings import Settings
from gpuledger.training.tune.torch_trial import TorchTrial, mover, open_loader
from gpuledger.training.tune.trials import TrialFailed
from gpuledger.units import Unknown


class TorchMachine:
    """The first GPU torch can use, else the CPU."""

    def __init__(self, job: TrainingJob, updates: int, device: str | None = None) -> None:
        self.torch, self.job, self.updates = need_torch("tuning a training job"), job, updates
        torch = self.torch
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        on_gpu = self.device.type == "cuda"
        self.name = str(torch.cuda.get_device_name(self.device)) if on_gpu else "CPU"
        self._data: Any = None
        self._model: Any = None
        self.means = self._means(on_gpu)
        self.memory_bytes: int | Unknown = Unknown("memory is measured on a GPU only")
        if on_gpu:
            free, _ = torch.cuda.mem_get_info(self.device)
            self.memory_bytes = int(free) + int(torch.cuda.memory_reserved(self.device))

    def _means(self, on_gpu: bool) -> Means:
        torch = self.torch
        nvidia = on_gpu and torch.version.cuda is not None
        # Whether the GPU itself has it: torch also reports it where it would emulate it slowly.
        bf16 = bool(torch.cuda.is_bf16_supported(including_emulation=False)) if on_gpu else True
        # Ampere and later.
        tf32 = nvidia and torch.cuda.get_device_capability(self.device) >= (8, 0)
        return Means(cuda=on_gpu, tf32=tf32, bf16=bf16, convolutions=self._has_convolutions(), cores=cpus())

    def _has_convolutions(self) -> bool:
        try:
            return any(isinstance(m, self.torch.nn.Conv2d) for m in self.fresh_model().modules())
        except Exception:  # noqa: BLE001 - a model that cannot be built is reported when it is tried
            return False

    def fresh_model(self) -> Any:
        """The model as the seed makes it: built once and copied for each trial, as building a large one is slow."""
        if self._model is None:
            self.torch.manual_seed(self.job.seed)
            self._model = self.job.model()
        return copy.deepcopy(self._model)

    def dataset(self) -> Any:
        """The job's dataset, built once."""
        if self._data is None:
            try:
                made = self.job.dataset()
                samples = len(made)
            except Exception as error:
                raise TrialFailed(f"the dataset cannot be built: {in_words(error)}") from error
            if samples < 1:
                raise TrialFailed("the dataset is empty")
            self._data = made
        return self._data

    def open(self, settings: Settings) -> TorchTrial:
        """One setting, built and warm."""
        return TorchTrial(self, settings)

    def samples_per_epoch(self) -> int:
        """As the job gives it, else the length of its dataset."""
        return self.job.samples_per_epoch or len(self.dataset())

    def flop_per_sample(self, settings: Settings) -> float | Unknown:
        """Forward and backward of one batch, counted by torch in eager mode, over its samples."""
        torch, job = self.torch, self.job
        try:
            model = self.fresh_model().to(self.device)
            loader = open_loader(torch, self.dataset(), settings.having({"workers": 0}), job.seed, 0, job.collate)
            batch = mover(torch, self.device, settings)(next(iter(loader)))
            return count(lambda: job.loss(model, batch).backward()) / settings.batch
        except Exception as error:  # noqa: BLE001 - the job's own code
            return Unknown(f"the FLOPs could not be counted: {in_words(error)}")

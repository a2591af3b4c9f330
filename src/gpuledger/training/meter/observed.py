"""What was seen of a training loop? Plain frozen data: reports and findings are made of it, without torch."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuledger.catalog.gpus import Gpu
from gpuledger.training.meter.sites import Site
from gpuledger.units import Unknown

Figure = float | Unknown


@dataclass(frozen=True)
class Place:
    """The device a loop runs on. `kind` is cuda or cpu; a CPU has no GPU facts and says so."""

    kind: str
    name: str
    gpu: Gpu | Unknown
    gpu_uuid: str | None = None
    gpu_instance_id: str | None = None
    memory_bytes: int | Unknown = Unknown("this is no GPU")  # noqa: RUF009  (frozen, so one for all is safe)

    @property
    def has_bf16(self) -> bool | Unknown:
        """Whether its tensor cores take bfloat16."""
        return self.gpu if isinstance(self.gpu, Unknown) else "bf16" in self.gpu.peak_tflops


@dataclass(frozen=True)
class Spread:
    """Seconds of a step: tenth, median and ninetieth percentile, and the mean."""

    p10: float
    median: float
    p90: float
    mean: float


@dataclass(frozen=True)
class Work:
    """What one step computes. `how` says by what it was counted; `tokens` and `samples` are that step's."""

    model_flop: float
    hardware_flop: float
    forward_flop: float
    how: str
    tokens: int | None = None
    samples: int | None = None
    kernels: int = 0
    odd_ratio: float = 0.0
    odd_sizes: tuple[tuple[int, ...], ...] = ()
    recompute_ratio: float = 0.0

    def steps_like(self, steps: float, tokens: float | None, samples: float | None) -> float:
        """How many steps such as the counted one this work is: by tokens, by samples, else by steps."""
        if tokens is not None and self.tokens:
            return tokens / self.tokens
        return samples / self.samples if samples is not None and self.samples else steps


@dataclass(frozen=True)
class LoaderFacts:
    """How batches are made, as the DataLoader says; None where it is something else."""

    kind: str
    workers: int | None = None
    pinned: bool | None = None
    prefetch: int | None = None
    persistent: bool | None = None


@dataclass(frozen=True)
class MemoryFacts:
    """Of the device's memory: the most that was allocated and reserved, the whole, and how often torch had to retry."""

    allocated_bytes: int
    reserved_bytes: int
    total_bytes: int
    retries: int = 0


@dataclass(frozen=True)
class Identity:
    """Who ran: a rank of a run on a host, and the owner's labels."""

    run_id: str
    rank: int = 0
    world_size: int = 1
    host: str = ""
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """One rank's loop. Phases are mean seconds of a step on the device, `host_s` on the host.

    Rates stand on the steps that were timed; `steps` are all of them, the first ones too. Waits at `sites` are those of
    `watched_steps`, which are all after the first ones, or some of them where steps are short. `precision` is the one
    most FLOPs run in, as the products showed it; `precision_ratios` are the shares where there are several.
    """

    who: Identity
    place: Place
    state: str
    steps: int
    timed_steps: int
    updates: int
    start_ms: int
    end_ms: int
    phases_s: dict[str, float]
    host_s: dict[str, float]
    step: Spread | Unknown
    precision: str | Unknown
    work: Work | Unknown
    tokens_per_step: Figure = Unknown("the batches hold no tokens")  # noqa: RUF009
    samples_per_step: Figure = Unknown("the batches hold no tensors")  # noqa: RUF009
    sequence: int | None = None
    batch_bytes: float = 0.0
    energy_j_per_step: Figure = Unknown("this is no GPU")  # noqa: RUF009
    memory: MemoryFacts | Unknown = Unknown("this is no GPU")  # noqa: RUF009
    loader: LoaderFacts | Unknown = Unknown("no loader was given to the meter")  # noqa: RUF009
    sites: tuple[Site, ...] = ()
    watched_steps: int | None = None
    compiled: bool = False
    fused_optimizer: bool | None = None
    optimizer: str = ""
    cpus: int = 1
    precision_ratios: dict[str, float] = field(default_factory=dict)
    own_ratio: float = 0.0
    notes: tuple[str, ...] = ()

    def flop_ratio(self, *precisions: str) -> float:
        """The share of the FLOPs in some precisions; 0 where the precision is not known."""
        ratios = self.precision_ratios or ({} if isinstance(self.precision, Unknown) else {self.precision: 1.0})
        return sum(ratios.get(p, 0.0) for p in precisions)

    def share(self, *phases: str) -> float:
        """The share of the step in some phases."""
        whole = sum(self.phases_s.values())
        return sum(self.phases_s.get(p, 0.0) for p in phases) / whole if whole else 0.0

"""What was seen of a training loop? Plain frozen data: reports and findings are made of it, without torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gpuledger.catalog.gpus import Gpu
from gpuledger.units import Unknown

Figure = float | Unknown
Ended = Literal["running", "done", "raised", "out_of_memory"]
NOT_A_GPU = Unknown("this is not a GPU")


@dataclass(frozen=True)
class Place:
    """The device a loop runs on. `kind` is cuda or cpu; a CPU has no GPU facts."""

    kind: str
    name: str
    gpu: Gpu | Unknown
    gpu_uuid: str | None = None
    gpu_instance_id: str | None = None
    memory_bytes: int | Unknown = NOT_A_GPU

    def as_json(self) -> dict[str, Any]:
        """The GPU by its key in the catalog."""
        return vars(self) | {"gpu": self.gpu if isinstance(self.gpu, Unknown) else self.gpu.key}


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of a step: tenth, median and ninetieth percentile, and the mean."""

    p10: float
    median: float
    p90: float
    mean: float


@dataclass(frozen=True)
class Work:
    """What one step computes. `how` it was counted; `tokens` and `samples` are that step's. `convolution_ratio`: the
    share of its FLOPs in convolutions."""

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
    convolution_ratio: float = 0.0

    def steps_like(self, steps: float, tokens: float | None, samples: float | None) -> float:
        """How many steps like the counted one this work is: by tokens, by samples, else by steps."""
        if tokens is not None and self.tokens:
            return tokens / self.tokens
        return samples / self.samples if samples is not None and self.samples else steps


@dataclass(frozen=True)
class LoaderFacts:
    """How batches are made, as the DataLoader reports; None where it is something else."""

    kind: str
    workers: int | None = None
    pinned: bool | None = None
    prefetch: int | None = None
    persistent: bool | None = None


@dataclass(frozen=True)
class MemoryFacts:
    """The device's memory: the most that was allocated and reserved, the whole, and how often torch had to retry."""

    allocated_bytes: int
    reserved_bytes: int
    total_bytes: int
    retries: int = 0


@dataclass(frozen=True)
class Site:
    """One line at which the host waits: what is called there, how often, and how long the host was held."""

    file: str
    line: int
    call: str
    times: int
    host_s: float

    @property
    def where(self) -> str:
        """As an editor takes it."""
        return f"{self.file}:{self.line}"


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

    Rates are those of the steps that were timed; `steps` are all of them, the first ones too. Waits at `sites` are
    those of `watched_steps`, which are all after the first ones, or some of them where steps are short. `precision` is
    the one of most FLOPs, as observed; `precision_ratios` are the shares where there are several. `state` is `ended`
    in words.
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
    step: StepSeconds | Unknown
    precision: str | Unknown
    work: Work | Unknown
    ended: Ended = "done"
    tokens_per_step: Figure = Unknown("the batches hold no tokens")  # noqa: RUF009  (frozen, so one for all is safe)
    samples_per_step: Figure = Unknown("the batches hold no tensors")  # noqa: RUF009
    sequence: int | None = None
    batch_bytes: float = 0.0
    energy_j_per_step: Figure = NOT_A_GPU
    memory: MemoryFacts | Unknown = NOT_A_GPU
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
        """The share of the FLOPs in some precisions; 0 where the precision is unknown."""
        ratios = self.precision_ratios or ({} if isinstance(self.precision, Unknown) else {self.precision: 1.0})
        return sum(ratios.get(p, 0.0) for p in precisions)

    def share(self, *phases: str) -> float:
        """The share of the step in some phases."""
        whole = sum(self.phases_s.values())
        return sum(self.phases_s.get(p, 0.0) for p in phases) / whole if whole else 0.0
